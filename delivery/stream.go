package delivery

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"
	"unicode"

	"understudy/channels"
	"understudy/chat"
	"understudy/delivery/markup"
)

// A native stream (spec/chat.md §2.4) is a preview that grows on the platform's side:
//
//	started ── append … ──► the answer goes on with it: its rest is appended, the stream stopped
//	   │                    the answer is another text: stopped, and edited like any preview
//	   └── a failure, or the text was taken back: stopped; the rest of the turn edits the message
//
// Whatever happens, also at the end of the process, a stream that was started is stopped.

// streamTimeout bounds one call of a stream.
const streamTimeout = 15 * time.Second

// growing is a stream that is not stopped yet.
type growing struct {
	a  *account
	to chat.Address
	id string
}

// calling is what would notify people.
var calling = regexp.MustCompile(`(?i)<[!@#]|@(?:channel|here|everyone)`)

// growable makes unfinished Markdown fit for a native stream: it calls nobody, and what is made of a
// text begins with what was made of its beginning. The renderer promises the latter not: it may
// change what stands before a new character.
func growable(md string) string {
	md = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, withoutToken(md))
	md = calling.ReplaceAllStringFunc(md, func(m string) string { return m[:1] + "\u200b" + m[1:] })
	return strings.TrimSpace(md)
}

// grown renders complete Markdown as a native stream is to show it in the end.
func (a *account) grown(md string) string {
	d := markup.Markdown
	if a.dialect() == markup.SlackMrkdwn || a.dialect() == markup.SlackMarkdown {
		d = markup.SlackMarkdown
	}
	return strings.TrimSpace(markup.Render(md, d))
}

// longestToken bounds what withoutToken looks at, in bytes.
const longestToken = 80

// withoutToken cuts an unfinished word off a text when it may become something that is rendered in
// another way than it is written, such as a mention. What is appended to a stream cannot be changed.
func withoutToken(text string) string {
	tail := text[max(0, len(text)-longestToken):]
	tail = tail[strings.LastIndexAny(tail, " \t\n")+1:]
	if i := strings.IndexAny(tail, "<@"); i >= 0 {
		return text[:len(text)-len(tail)+i]
	}
	return text
}

// startStream begins a stream with a text. When that fails, the turn goes on with edits.
func (t *Turn) startStream(ctx context.Context, p preview, text string) {
	if text == "" {
		t.flushed(ctx, p, nil)
		return
	}
	piece := t.piece()
	piece.Text, piece.Plain, piece.Key = text, text, pieceKey(t.id+"/stream")
	call, cancel := t.s.begun(ctx, streamTimeout)
	defer cancel()
	id, err := t.a.stream.StartStream(call, piece)
	if e := t.s.reached(ctx, t.to, callStream, err); e != nil {
		p.edits = true
		t.streamFailed(p, e)
		return
	}
	p.id, p.ref, p.shown, p.grows = id, piece.ReplyTo, text, id != ""
	if p.grows {
		t.s.grows(t.id, growing{t.a, t.to, id})
	}
	t.flushed(ctx, p, nil)
}

// streamFailed takes in that no stream was started.
func (t *Turn) streamFailed(now preview, e *channels.SendError) {
	t.s.log.Info("stream not started", "channel", t.to.Channel, "turn", t.id, "code", e.Code)
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &t.preview
	p.edits = now.edits
	p.next = t.s.clock.Now().Add(p.interval)
	if e.Verdict == channels.Unsure { // perhaps it stands, and cannot be reached
		p.off, t.committed = true, true
		return
	}
	t.schedule()
}

// grow appends what is new of a text. A text that does not go on where the stream ends, and any
// failure, ends the stream.
func (t *Turn) grow(ctx context.Context, p preview, text string) {
	rest, goesOn := strings.CutPrefix(text, p.shown)
	t.mu.Lock()
	goesOn = goesOn && !t.preview.seam
	t.mu.Unlock()
	switch {
	case !goesOn:
		t.seal(ctx, p)
		return
	case rest == "":
		t.flushed(ctx, p, nil)
		return
	}
	e := t.append(ctx, p.id, rest)
	switch {
	case e == nil:
		p.shown = text
		t.flushed(ctx, p, nil)
	case e.Verdict == channels.Missing:
		t.s.grownUp(t.id)
		t.flushed(ctx, p, e)
	default:
		t.s.log.Info("stream failed", "channel", t.to.Channel, "turn", t.id, "code", e.Code)
		t.seal(ctx, p)
	}
}

// append adds text to the turn's stream.
func (t *Turn) append(ctx context.Context, id, text string) *channels.SendError {
	call, cancel := t.s.begun(ctx, streamTimeout)
	defer cancel()
	return t.s.heard(t.to, callStream, t.a.stream.AppendStream(call, t.s.where(t.to), id, text))
}

// seal stops the turn's stream; from now on its message is edited.
func (t *Turn) seal(ctx context.Context, p preview) {
	if errors.Is(t.s.stopStream(ctx, t.id, growing{t.a, t.to, p.id}), errStopped) {
		return
	}
	t.s.stored(t.s.store.putPreview(ctx, t.id, t.to, p.id, false, t.s.clock.Now()))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.preview.grows, t.preview.edits, t.preview.shown = false, true, ""
	t.preview.next = t.s.clock.Now()
	t.schedule()
}

// grows remembers a stream that is to be stopped.
func (s *Service) grows(turn string, g growing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[turn] = g
}

// grownUp forgets a stream that has ended.
func (s *Service) grownUp(turn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, turn)
}

// stopStream stops a stream, as well as it can. It returns nil, a *channels.SendError, or errStopped,
// which leaves the stream to stopStreams.
func (s *Service) stopStream(ctx context.Context, turn string, g growing) error {
	err := s.insist(ctx, patience{tries: roundTries, until: s.clock.Now().Add(time.Minute), harmless: true},
		func(ctx context.Context) error { return s.stopOnce(ctx, g) })
	if errors.Is(err, errStopped) {
		return err
	}
	s.grownUp(turn)
	if e := verdict(err); e != nil {
		s.log.Info("stream not stopped", "channel", g.to.Channel, "turn", turn, "code", e.Code)
		return e
	}
	return nil
}

// stopOnce makes one attempt to stop a stream.
func (s *Service) stopOnce(ctx context.Context, g growing) error {
	call, cancel := s.begun(ctx, streamTimeout)
	defer cancel()
	if e := s.heard(g.to, callStream, g.a.stream.StopStream(call, s.where(g.to), g.id)); e != nil {
		return e
	}
	return nil
}

// stopStreams stops what still grows when the Service ends, within the grace time.
func (s *Service) stopStreams() {
	s.mu.Lock()
	left := s.streams
	s.streams = map[string]growing{}
	s.mu.Unlock()
	var ends []chan struct{}
	for turn, g := range left {
		end := make(chan struct{})
		ends = append(ends, end)
		s.clock.Go(func() {
			defer close(end)
			call, cancel := s.clock.WithTimeout(context.Background(), grace, errOverdue)
			defer cancel()
			if e := verdict(g.a.stream.StopStream(call, s.where(g.to), g.id)); e != nil {
				s.log.Info("stream not stopped", "channel", g.to.Channel, "turn", turn, "code", e.Code)
			}
		})
	}
	for _, end := range ends {
		_ = s.clock.Await(context.Background(), end)
	}
}
