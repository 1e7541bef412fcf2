package llm

import (
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// fail plays f and reports whether that was the response.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, p *protocol, c *call, f Fault) bool {
	switch {
	case f.Status != 0:
		s.sendStatus(w, p, f)
	case f.breaks():
		s.breakStream(w, r, p, c, f)
	case f.Reset:
		tearDown(w)
	case f.Hang:
		s.gone(r)
		panic(http.ErrAbortHandler)
	default:
		return false
	}
	return true
}

func (s *Server) sendStatus(w http.ResponseWriter, p *protocol, f Fault) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if f.ContentType != "" {
		h.Set("Content-Type", f.ContentType)
	}
	h.Set("X-Request-Id", "req_"+itoa(s.nextID()))
	if f.RetryAfter > 0 {
		h.Set("Retry-After", itoa(int((f.RetryAfter+time.Second-1)/time.Second)))
	}
	kind, message := reasonFor(f.Status)
	usual := &refusal{status: f.Status, kind: kind, message: message}
	bare := f.Body != "" || f.Raw
	if !bare {
		p.annotate(h, usual)
	}
	for name, value := range f.Header {
		h.Set(name, value)
	}
	w.WriteHeader(f.Status)
	if bare {
		_, _ = io.WriteString(w, f.Body)
		return
	}
	_, _ = w.Write(p.refuse(usual))
}

// breakStream begins a stream and lets it end as f says.
func (s *Server) breakStream(w http.ResponseWriter, r *http.Request, p *protocol, c *call, f Fault) {
	out := startStream(w, p.stream)
	for _, fr := range beginning(p.frames(c, Reply{Text: f.Say}), f.Say != "") {
		if !out.send(fr.text) {
			return
		}
	}
	if f.Error != "" {
		out.send(p.errorFrame(f.Error))
	}
	switch {
	case f.Hang:
		s.hang(r, out, p, f.PingEvery)
		panic(http.ErrAbortHandler)
	case f.Reset:
		tearDown(w)
	}
}

// beginning returns the frames up to the last piece of content, or those before the first frame
// that belongs to the end.
func beginning(frames []frame, spoke bool) []frame {
	end := 0
	for i, fr := range frames {
		if fr.terminal {
			break
		}
		if fr.content || !spoke {
			end = i + 1
		}
	}
	return frames[:end]
}

// hang keeps a stream silent but for pings until the client goes.
func (s *Server) hang(r *http.Request, out *stream, p *protocol, every time.Duration) {
	if every <= 0 {
		s.gone(r)
		return
	}
	for s.wait(r, every) {
		if !out.send(p.ping) {
			return
		}
	}
}

// answer sends a reply.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, p *protocol, c *call, f Fault, rep Reply) {
	if rep.Echo {
		rep.Text = c.LastUser
	}
	if f.Empty {
		rep = Reply{}
	}
	c.id = s.nextID()
	if !s.wait(r, rep.Latency) {
		return
	}
	w.Header().Set("X-Request-Id", "req_"+itoa(c.id))
	if !c.Stream || rep.AsJSON {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(p.whole(c, rep))
		return
	}
	out := startStream(w, p.stream)
	for i, fr := range p.frames(c, rep) {
		if i > 0 && fr.content && !s.wait(r, rep.ChunkDelay) {
			return
		}
		if !out.send(fr.text) {
			return
		}
	}
}

// stream is a response of events.
type stream struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

func startStream(w http.ResponseWriter, kind string) *stream {
	if kind == "" {
		kind = "text/event-stream; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	out := &stream{w: w, rc: http.NewResponseController(w)}
	_ = out.rc.Flush()
	return out
}

// send writes and flushes text, and reports whether the client is still there.
func (o *stream) send(text string) bool {
	if _, err := io.WriteString(o.w, text); err != nil {
		return false
	}
	err := o.rc.Flush()
	return err == nil || errors.Is(err, http.ErrNotSupported)
}

// tearDown closes the connection without a farewell; over TCP with a reset.
func tearDown(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
