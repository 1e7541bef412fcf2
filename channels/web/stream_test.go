package web

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/channels"
	"understudy/chat"
)

// oneConn is a listener with a single connection.
type oneConn struct {
	conn chan net.Conn
	done chan struct{}
}

func (l oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l oneConn) Close() error   { close(l.done); return nil }
func (l oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// inBubble serves one connection of an adapter with the time limits of a careful server.
func inBubble(t *testing.T, f func(t *testing.T, a *Adapter, conn net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a, err := New(Config{}, Deps{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		p := &pipeline{states: make(chan channels.State, 4)}
		ran := make(chan error, 1)
		go func() { ran <- a.Run(ctx, p) }()
		here, there := net.Pipe()
		l := oneConn{make(chan net.Conn, 1), make(chan struct{})}
		l.conn <- there
		server := &http.Server{Handler: a.Handler(), ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute}
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()
		if _, err := io.WriteString(here, "GET /api/events HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		f(t, a, here)
		cancel()
		here.Close()
		server.Close()
		if err := <-ran; err != nil {
			t.Errorf("run: %v", err)
		}
		<-served
	})
}

func TestStreamOutlivesTheServersLimits(t *testing.T) {
	inBubble(t, func(t *testing.T, a *Adapter, conn net.Conn) {
		lines := make(chan string, 1024)
		go func() {
			defer close(lines)
			for s := bufio.NewScanner(conn); s.Scan(); {
				lines <- s.Text()
			}
		}()
		<-time.After(10 * time.Minute)
		synctest.Wait()
		for len(lines) > 0 {
			<-lines
		}
		_, err := a.Send(t.Context(), channels.Piece{To: address("s1"), Class: chat.Assistant, Text: "still here"})
		if err != nil {
			t.Fatal(err)
		}
		for line := range lines {
			if strings.Contains(line, "still here") {
				conn.Close()
				return
			}
		}
		t.Error("the stream has ended")
	})
}

func TestReaderThatStoppedReadingIsDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, a *Adapter, conn net.Conn) {
		buf := make([]byte, 4096)
		if _, err := conn.Read(buf); err != nil {
			t.Fatal(err)
		}
		<-time.After(keepAlive + 2*writeLimit)
		synctest.Wait()
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.streams != 0 {
			t.Errorf("%d streams are held", a.streams)
		}
	})
}
