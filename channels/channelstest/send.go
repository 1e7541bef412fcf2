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
	ability[Breaker](t, s, "nothing breaks").Break(CutAfterSend)
	_, err := s.Adapter.Send(t.Context(), piece(s.Direct, "once"))
	wantVerdict(t, err, channels.Unsure)
	if n := s.count(s.Direct); n != 1 {
		t.Errorf("said %d times", n)
	}
}

func passesRateLimits(t *testing.T, s *Subject, _ *Recorder) {
	ability[Breaker](t, s, "nothing breaks").Break(RateLimited)
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
	ability[Breaker](t, s, "nothing breaks").Break(ServerError)
	_, err := s.Adapter.Send(t.Context(), piece(s.Direct, "now"))
	wantVerdict(t, err, channels.Retry)
	s.send(t, s.Direct, "now")
	if n := s.count(s.Direct); n != 1 {
		t.Errorf("said %d times", n)
	}
}

func knowsForbidden(t *testing.T, s *Subject, _ *Recorder) {
	ability[Breaker](t, s, "nothing breaks").Break(Forbidden)
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

func cancelled(t *testing.T, s *Subject, _ *Recorder) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Adapter.Send(ctx, piece(s.Direct, "too late"))
	wantVerdict(t, err, channels.Retry)
	if n := s.count(s.Direct); n != 0 {
		t.Errorf("said %d times", n)
	}
}

func reacts(t *testing.T, s *Subject, r *Recorder) {
	x, ok := s.Adapter.(channels.Reactor)
	p := ability[Reactable](t, s, "no reactions")
	if !ok {
		t.Skip("no reactions")
	}
	to := s.Direct
	if s.Group.Conversation != "" {
		to = s.Group
	}
	id := s.Platform.Say(s.Person, to, "hello", "")
	r.Next(t)
	for range 2 { // the second changes nothing, which is a success
		if err := x.React(t.Context(), to, id, "👀"); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.Reactions(to, id); len(got) != 1 {
		t.Errorf("reactions %q", got)
	}
	for range 2 {
		if err := x.Unreact(t.Context(), to, id, "👀"); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.Reactions(to, id); len(got) != 0 {
		t.Errorf("reactions %q", got)
	}
	wantVerdict(t, x.React(t.Context(), to, "999999", "👀"), channels.Missing)
	r.nothing(t) // what the bot does itself is no message
}

func sendsFiles(t *testing.T, s *Subject, _ *Recorder) {
	p := ability[Sharer](t, s, "no files")
	out := piece(s.Direct, "the report")
	out.Media = []chat.Attachment{{Name: "report.txt", MediaType: "text/plain", Data: []byte("all is well")}}
	got, err := s.Adapter.Send(t.Context(), out)
	if err != nil || len(got.IDs) == 0 {
		t.Fatalf("send: %v, receipt %v", err, got)
	}
	synctest.Wait()
	files := p.Files(s.Direct)
	if len(files) != 1 || files[0].Name != "report.txt" || string(files[0].Data) != "all is well" {
		t.Errorf("files %+v", files)
	}
	said := ""
	for _, m := range s.Platform.Transcript(s.Direct) {
		said += m.Text
	}
	if said != "the report" {
		t.Errorf("beside the file it says %q", said)
	}
}
