package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of a connection.
const (
	largestFrame  = 8 << 20 // one message of a server
	largestAnswer = 16 << 20
	longestLine   = 4 << 10 // of a server's standard error, in the log
	closeTime     = 3 * time.Second
	mostRedirects = 3
)

// inherited are the variables that every server's program gets of ours.
var inherited = []string{"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "SYSTEMROOT"}

// program is a server's process.
type program struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once it has been waited for
}

// launch starts a server's program and returns the transport to it. Closing the connection does not
// end the process: end does.
func launch(s Server, log *slog.Logger) (*program, sdk.Transport, error) {
	cmd := exec.Command(s.Command, s.Args...)
	cmd.Dir = s.Cwd
	for _, name := range inherited {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	for name, value := range s.Env {
		cmd.Env = append(cmd.Env, name+"="+value.Reveal())
	}
	ownGroup(cmd)
	// Pipes of our own: those of package exec are closed by Wait, in the middle of a read.
	in, toServer, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("a pipe: %w", err)
	}
	fromServer, out, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("a pipe: %w", err), in.Close(), toServer.Close())
	}
	stderr, complaints, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("a pipe: %w", err), in.Close(), toServer.Close(), out.Close(), fromServer.Close())
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, complaints
	err = cmd.Start()
	_, _, _ = in.Close(), out.Close(), complaints.Close() // the child has its own
	if err != nil {
		_, _, _ = toServer.Close(), fromServer.Close(), stderr.Close()
		return nil, nil, fmt.Errorf("start %s: %w", s.Command, err)
	}
	p := &program{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		complain(stderr, log)
		_ = cmd.Wait() // how it ended shows at the connection
	}()
	return p, &sdk.IOTransport{Reader: fromServer, Writer: toServer, MaxLineLength: largestFrame}, nil
}

// complain copies what a program writes to its standard error to the log, line by line, cut.
func complain(stderr io.ReadCloser, log *slog.Logger) {
	defer stderr.Close()
	r := bufio.NewReaderSize(stderr, longestLine)
	for {
		line, err := r.ReadSlice('\n')
		if len(line) > 0 && log.Enabled(context.Background(), slog.LevelDebug) {
			log.Debug("tool server says", "line", string(line))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// end sees to it that nothing of the program runs any more: it may end by itself, since its input is
// closed, then its whole group is killed.
func (p *program) end() {
	if p == nil {
		return
	}
	t := time.NewTimer(closeTime)
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
	}
	killGroup(p.cmd)
	<-p.done
}

// errRedirect is why a redirect was not followed.
var errRedirect = errors.New("the server redirects to another host")

// remote returns the transport to a server behind a URL. Its headers go to that host only.
func remote(s Server, base http.RoundTripper) sdk.Transport {
	if base == nil {
		base = http.DefaultTransport.(*http.Transport).Clone()
	}
	client := &http.Client{
		Transport: &bounded{base: base, headers: s.Headers},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > mostRedirects || req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
				return errRedirect
			}
			return nil
		},
	}
	return &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: client, MaxRetries: -1, MaxEventSize: largestFrame}
}
