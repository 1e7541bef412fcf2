// Package channelstest is what every channel adapter must do, as tests that run against the
// adapter and an emulator of its platform.
//
// Each behaviour runs in its own testing/synctest bubble: time is virtual, and a goroutine that an
// adapter leaves behind fails the test.
package channelstest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/channels"
	"understudy/chat"
)

// Said is a message as people on the platform see it.
type Said struct {
	ID, Text, ReplyTo string
	ByBot, Silent     bool
}

// Breakage is a way the next send fails.
type Breakage uint8

// The ways.
const (
	CutAfterSend Breakage = iota + 1 // the platform did it, then the connection broke
	RateLimited                      // with RetryAfter as the stated wait
	ServerError                      // the platform is ill for a moment
	Forbidden                        // the bot was thrown out
)

// RetryAfter is the wait a RateLimited platform states.
const RetryAfter = 7 * time.Second

// Platform is the emulator's side, driven by the tests.
type Platform interface {
	// Say lets a person write; replyTo is a message id or "". It returns the message id.
	Say(person string, to chat.Address, text, replyTo string) string
	// Name is how people write the bot's name so that it is a mention.
	Name() string
	// Transcript returns what can be read at a destination, oldest first, without deleted messages.
	Transcript(to chat.Address) []Said
	// Break makes the next send fail.
	Break(Breakage)
	// Press presses a button of a message.
	Press(person string, to chat.Address, id, label string)
	// Close ends the emulator.
	Close()
}

// Subject is an adapter with its platform. The addresses exist on the platform; those that the
// platform does not have are left zero.
type Subject struct {
	Adapter  channels.Adapter
	Platform Platform
	Close    func() // frees the adapter's connections after Run
	Person   string
	Direct   chat.Address
	Group    chat.Address
	Thread   chat.Address // a thread or topic in a group
}

// Run runs all behaviours; start makes a fresh subject inside a bubble.
func Run(t *testing.T, start func(t *testing.T) *Subject) {
	behaviours := []struct {
		name string
		test func(t *testing.T, s *Subject, r *Recorder)
	}{
		{"receives text", receivesText},
		{"recognises mentions", recognisesMentions},
		{"knows replies", knowsReplies},
		{"keeps to threads", keepsToThreads},
		{"sends long text in order", sendsLongText},
		{"attaches references", attachesReferences},
		{"edits", edits},
		{"deletes", deletes},
		{"admits that it does not know", admitsUnsure},
		{"passes rate limits on", passesRateLimits},
		{"lets passing errors be retried", retriesServerErrors},
		{"knows when it is thrown out", knowsForbidden},
		{"falls back from broken markup", rejectsMarkup},
		{"sends notices silently", silentNotices},
		{"turns buttons into commands", buttons},
		{"delivers again what was not stored", delivers},
		{"fails to send after cancellation", cancelled},
	}
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { inBubble(t, start, b.test) })
		})
	}
}

// inBubble starts an adapter, runs one behaviour and shuts down. The end of the bubble is the
// check for goroutines.
func inBubble(t *testing.T, start func(t *testing.T) *Subject, test func(*testing.T, *Subject, *Recorder)) {
	s := start(t)
	r := NewRecorder()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Adapter.Run(ctx, r) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run ended with %v", err)
		}
		s.Close()
		s.Platform.Close()
	}()
	synctest.Wait()
	if got := r.State(); got != channels.Connected {
		t.Errorf("state %q, want %q", got, channels.Connected)
		return
	}
	test(t, s, r)
}

func receivesText(t *testing.T, s *Subject, r *Recorder) {
	id := s.Platform.Say(s.Person, s.Direct, "hello there", "")
	in := r.Next(t)
	if in.ID != id || in.Text != "hello there" || in.Address != s.Direct {
		t.Errorf("got %+v", in)
	}
	if in.Sender.ID != s.Person || in.Sender.Bot || in.Sender.Local {
		t.Errorf("sender %+v, want %q", in.Sender, s.Person)
	}
	if in.EventKey == "" || in.At.IsZero() || in.Edited {
		t.Errorf("key %q at %v, edited %v", in.EventKey, in.At, in.Edited)
	}
	s.Platform.Say(s.Person, s.Direct, "and again", "")
	if second := r.Next(t); second.EventKey == in.EventKey {
		t.Errorf("two messages share the key %q", in.EventKey)
	}
}

func recognisesMentions(t *testing.T, s *Subject, r *Recorder) {
	if s.Group.Conversation == "" {
		t.Skip("no groups")
	}
	s.Platform.Say(s.Person, s.Group, "just talking", "")
	if in := r.Next(t); in.Mentioned || in.Address != s.Group {
		t.Errorf("got %+v", in)
	}
	s.Platform.Say(s.Person, s.Group, s.Platform.Name()+" are you there?", "")
	if in := r.Next(t); !in.Mentioned || in.Text != "are you there?" {
		t.Errorf("mentioned %v, text %q", in.Mentioned, in.Text)
	}
	s.Platform.Say(s.Person, s.Group, "hey "+s.Platform.Name(), "")
	if in := r.Next(t); !in.Mentioned {
		t.Error("a mention at the end is not seen")
	}
}

func knowsReplies(t *testing.T, s *Subject, r *Recorder) {
	if s.Group.Conversation == "" || !s.Adapter.Traits().References {
		t.Skip("no references")
	}
	id := s.send(t, s.Group, "what I said")
	s.Platform.Say(s.Person, s.Group, "why?", id)
	in := r.Next(t)
	if in.ReplyTo != id || in.Quote != "what I said" || !in.Mentioned {
		t.Errorf("reply to %q, quote %q, mentioned %v", in.ReplyTo, in.Quote, in.Mentioned)
	}
	own := s.Platform.Say(s.Person, s.Group, "mine", "")
	r.Next(t)
	s.Platform.Say(s.Person, s.Group, "to myself", own)
	if in := r.Next(t); in.ReplyTo != own || in.Mentioned {
		t.Errorf("reply to %q, mentioned %v", in.ReplyTo, in.Mentioned)
	}
}

func keepsToThreads(t *testing.T, s *Subject, r *Recorder) {
	if s.Thread.Conversation == "" {
		t.Skip("no threads")
	}
	s.Platform.Say(s.Person, s.Thread, "in here", "")
	in := r.Next(t)
	if in.Address != s.Thread || in.ReplyTo != "" {
		t.Errorf("address %+v, reply to %q", in.Address, in.ReplyTo)
	}
	s.send(t, in.Address, "answer")
	if got := s.last(t, s.Thread); got.Text != "answer" {
		t.Errorf("last in the thread: %+v", got)
	}
}

func sendsLongText(t *testing.T, s *Subject, _ *Recorder) {
	limit := s.Adapter.Traits().TextLimit
	if limit == 0 {
		t.Skip("no limit")
	}
	for _, letter := range []string{"a", "b", "c"} {
		s.send(t, s.Direct, strings.Repeat(letter, limit))
	}
	var order string
	for _, m := range s.Platform.Transcript(s.Direct) {
		if m.ByBot {
			order += m.Text[:1]
		}
	}
	if order != "abc" {
		t.Errorf("order %q", order)
	}
	over := strings.Repeat("x", max(limit, s.Adapter.Traits().VisibleLimit)+1)
	_, err := s.Adapter.Send(t.Context(), channels.Piece{To: s.Direct, Class: chat.Assistant, Text: over, Plain: over})
	wantVerdict(t, err, channels.TooLong)
}

func attachesReferences(t *testing.T, s *Subject, r *Recorder) {
	if !s.Adapter.Traits().References {
		t.Skip("no references")
	}
	id := s.Platform.Say(s.Person, s.Direct, "question", "")
	r.Next(t)
	p := piece(s.Direct, "answer")
	p.ReplyTo = id
	if _, err := s.Adapter.Send(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if got := s.last(t, s.Direct); got.ReplyTo != id {
		t.Errorf("reply to %q, want %q", got.ReplyTo, id)
	}
	p.ReplyTo = "999999"
	if _, err := s.Adapter.Send(t.Context(), p); err != nil {
		t.Errorf("a reference to a message that is gone loses the answer: %v", err)
	}
}

func edits(t *testing.T, s *Subject, _ *Recorder) {
	e, ok := s.Adapter.(channels.Editor)
	if !ok {
		t.Skip("no edits")
	}
	id := s.send(t, s.Direct, "one")
	for range 2 { // the second changes nothing, which is a success
		if err := e.Edit(t.Context(), s.Direct, id, piece(s.Direct, "two")); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.last(t, s.Direct); got.Text != "two" || got.ID != id {
		t.Errorf("got %+v", got)
	}
	wantVerdict(t, e.Edit(t.Context(), s.Direct, "999999", piece(s.Direct, "x")), channels.Missing)
}

func deletes(t *testing.T, s *Subject, _ *Recorder) {
	e, ok := s.Adapter.(channels.Editor)
	if !ok {
		t.Skip("no edits")
	}
	id := s.send(t, s.Direct, "oops")
	if err := e.Delete(t.Context(), s.Direct, id); err != nil {
		t.Fatal(err)
	}
	if n := s.count(s.Direct); n != 0 {
		t.Errorf("%d messages left", n)
	}
	wantVerdict(t, e.Delete(t.Context(), s.Direct, id), channels.Missing)
}

func admitsUnsure(t *testing.T, s *Subject, _ *Recorder) {
	s.Platform.Break(CutAfterSend)
	_, err := s.Adapter.Send(t.Context(), piece(s.Direct, "once"))
	wantVerdict(t, err, channels.Unsure)
	if n := s.count(s.Direct); n != 1 {
		t.Errorf("said %d times", n)
	}
}

func passesRateLimits(t *testing.T, s *Subject, _ *Recorder) {
	s.Platform.Break(RateLimited)
	began := time.Now()
	_, err := s.Adapter.Send(t.Context(), piece(s.Direct, "later"))
	wantVerdict(t, err, channels.Retry)
	var e *channels.SendError
	if errors.As(err, &e) && e.After != RetryAfter {
		t.Errorf("wait %v, want %v", e.After, RetryAfter)
	}
	if waited := time.Since(began); waited != 0 { // virtual time
		t.Errorf("the adapter waited %v itself", waited)
	}
	if n := s.count(s.Direct); n != 0 {
		t.Errorf("said %d times", n)
	}
}

func retriesServerErrors(t *testing.T, s *Subject, _ *Recorder) {
	s.Platform.Break(ServerError)
	_, err := s.Adapter.Send(t.Context(), piece(s.Direct, "now"))
	wantVerdict(t, err, channels.Retry)
	s.send(t, s.Direct, "now")
	if n := s.count(s.Direct); n != 1 {
		t.Errorf("said %d times", n)
	}
}

func knowsForbidden(t *testing.T, s *Subject, _ *Recorder) {
	s.Platform.Break(Forbidden)
	_, err := s.Adapter.Send(t.Context(), piece(s.Direct, "hello"))
	wantVerdict(t, err, channels.Gone)
}

func rejectsMarkup(t *testing.T, s *Subject, _ *Recorder) {
	if s.Adapter.Traits().Markup != channels.TelegramHTML {
		t.Skip("nothing is broken markup here")
	}
	p := channels.Piece{To: s.Direct, Class: chat.Assistant, Text: "<b>bold", Plain: "a < b & c"}
	_, err := s.Adapter.Send(t.Context(), p)
	wantVerdict(t, err, channels.Markups)
	for _, text := range []string{"", p.Plain} { // both ways to say "without markup"
		p.Text = text
		if _, err := s.Adapter.Send(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if got := s.last(t, s.Direct); got.Text != "a < b & c" {
			t.Errorf("plain text arrives as %q", got.Text)
		}
	}
}

func silentNotices(t *testing.T, s *Subject, _ *Recorder) {
	if !s.Adapter.Traits().SilentNotices {
		t.Skip("not possible")
	}
	p := piece(s.Direct, "by the way")
	p.Class = chat.Notice
	if _, err := s.Adapter.Send(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if !s.last(t, s.Direct).Silent {
		t.Error("a notice makes a sound")
	}
	s.send(t, s.Direct, "answer")
	if s.last(t, s.Direct).Silent {
		t.Error("an answer makes no sound")
	}
}

func buttons(t *testing.T, s *Subject, r *Recorder) {
	p := piece(s.Direct, "choose")
	p.Buttons = []chat.Button{{Label: "First", Command: "/model first"}, {Label: "Second", Command: "/model second/" + strings.Repeat("long", 30)}}
	got, err := s.Adapter.Send(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	s.Platform.Press(s.Person, s.Direct, got.IDs[0], "Second")
	in := r.Next(t)
	if in.Text != p.Buttons[1].Command || in.Address != s.Direct || in.Sender.ID != s.Person || in.EventKey == "" {
		t.Errorf("got %+v", in)
	}
}

func delivers(t *testing.T, s *Subject, r *Recorder) {
	r.Refuse(errors.New("disk full"))
	s.Platform.Say(s.Person, s.Direct, "important", "")
	refused := r.Refused(t)
	r.Refuse(nil)
	in := r.Next(t)
	if in.Text != "important" || in.EventKey != refused.EventKey {
		t.Errorf("got %q with key %q, refused was %q", in.Text, in.EventKey, refused.EventKey)
	}
}

func cancelled(t *testing.T, s *Subject, _ *Recorder) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Adapter.Send(ctx, piece(s.Direct, "too late"))
	wantVerdict(t, err, channels.Retry)
	if n := s.count(s.Direct); n != 0 {
		t.Errorf("said %d times", n)
	}
}
