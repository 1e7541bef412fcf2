package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"understudy/app"
)

// childVar makes the test binary a bot: it holds the path of the configuration. logVar is where it
// logs to.
const (
	childVar = "UNDERSTUDY_SOAK_CONFIG"
	logVar   = "UNDERSTUDY_SOAK_LOG"
)

// measured is how often a child says how it is.
const measured = 5 * time.Second

// child is the bot's process. It writes its Stats to standard output.
func child(config string) int {
	if err := serve(config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serve(config string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var logs io.Writer = io.Discard
	if path := os.Getenv(logVar); path != "" {
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		logs = file
	}
	bot, err := app.New(ctx, app.Options{
		Version: "soak", Config: config, Listen: "off", Env: environment(filepath.Dir(config)),
		Log: slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelInfo})),
	})
	if err != nil {
		return err
	}
	go func() {
		enc := json.NewEncoder(os.Stdout)
		tick := time.NewTicker(measured)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = enc.Encode(look()) // whoever reads may have gone
			}
		}
	}()
	return errors.Join(bot.Run(ctx), bot.Close())
}

// look measures this process.
func look() Stats {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	s := Stats{Goroutines: runtime.NumGoroutine(), Heap: m.HeapAlloc}
	var size, resident uint64
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		if _, err := fmt.Sscan(string(text), &size, &resident); err == nil {
			s.RSS = resident * uint64(os.Getpagesize())
		}
	}
	return s
}

// process is a child as its parent sees it.
type process struct {
	cmd  *exec.Cmd
	said strings.Builder // standard error
	read sync.WaitGroup

	mu   sync.Mutex
	last Stats
}

// startChild runs a bot with a configuration in a directory.
func startChild(dir, config, log string) (*process, error) {
	path := filepath.Join(dir, "bot.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self)}
	p.cmd.Env = append(os.Environ(), childVar+"="+path, logVar+"="+log)
	p.cmd.Stderr = &p.said
	lines, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.read.Go(func() {
		for scan := bufio.NewScanner(lines); scan.Scan(); {
			var s Stats
			if json.Unmarshal(scan.Bytes(), &s) == nil {
				p.mu.Lock()
				p.last = s
				p.mu.Unlock()
			}
		}
	})
	return p, nil
}

// stats returns the latest measurement.
func (p *process) stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// stop ends the bot in an orderly way.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	p.read.Wait()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, p.said.String())
	}
	return nil
}
