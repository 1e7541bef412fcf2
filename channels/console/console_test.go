package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"understudy/channels"
	"understudy/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bot plays the pipeline behind an adapter: act answers each message in a goroutine of its own.
type bot struct {
	*Adapter
	act    func(b *bot, m chat.Inbound)
	refuse error
	seen   chan chat.Inbound
}

func (b *bot) Accept(_ context.Context, m chat.Inbound) error {
	if b.refuse != nil {
		return b.refuse
	}
	if b.seen != nil {
		b.seen <- m
	}
	go b.act(b, m)
	return nil
}

func (b *bot) Status(channels.Status) {}

func (b *bot) say(m chat.Inbound, class chat.Class, text, key string) string {
	r, err := b.Send(context.Background(), channels.Piece{To: m.Address, Class: class, Text: text, Key: key})
	if err != nil {
		panic(err)
	}
	return r.IDs[0]
}

func (b *bot) edit(m chat.Inbound, id, text, key string) {
	if err := b.Edit(context.Background(), m.Address, id, channels.Piece{Class: chat.Assistant, Text: text, Key: key}); err != nil {
		panic(err)
	}
}

// runBot starts the adapter; stop ends it and waits.
func runBot(t *testing.T, account string, act func(*bot, chat.Inbound)) (b *bot, stop func()) {
	t.Helper()
	a, err := New(account)
	if err != nil {
		t.Fatal(err)
	}
	b = &bot{Adapter: a, act: act}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx, b) }()
	synctest.Wait()
	return b, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	}
}

// script answers by what was said.
func script(b *bot, m chat.Inbound) {
	replies := 1
	switch m.Text {
	case "hi":
		if err := b.Typing(context.Background(), m.Address); err != nil {
			panic(err)
		}
		b.say(m, chat.Notice, "↪️ Model Fallback: b/c (selected a/b; rate limited)", "")
		b.say(m, chat.Assistant, "Hello\x1b]0;title\x07!\nHow are you?\n", "k")
	case "silence":
		replies = 0
	case "/think high, and answer":
		replies = 2
		b.Finished(m.Address, m.ID, replies) // before anything has been sent
		b.say(m, chat.Command, "Thinking level set to high.", "")
		b.say(m, chat.Assistant, "Done.", "k")
		return
	case "break":
		b.say(m, chat.Error, "All models are temporarily rate-limited.", "")
	default:
		b.say(m, chat.Assistant, "You said: "+m.Text, "k")
	}
	b.Finished(m.Address, m.ID, replies)
}

func TestPipe(t *testing.T) {
	for name, c := range map[string]struct {
		in, out, notes string
		err            error
	}{
		"nothing":     {"", "", "", nil},
		"blank lines": {"\n  \n\n", "", "", nil},
		"conversation": {
			"hi\nsilence\n\n/think high, and answer\nlast without newline",
			"Hello]0;title!\nHow are you?\nThinking level set to high.\nDone.\nYou said: last without newline\n",
			"↪️ Model Fallback: b/c (selected a/b; rate limited)\n", nil,
		},
		"error": {
			"break\nagain\n", "All models are temporarily rate-limited.\nYou said: again\n", "", ErrUnanswered,
		},
		"too long": {"a\n" + strings.Repeat("x", 2*MaxText), "You said: a\n", "", ErrTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, stop := runBot(t, AccountWhole, script)
				defer stop()
				link, err := b.Attach("main")
				if err != nil {
					t.Fatal(err)
				}
				defer link.Close()
				var out, notes strings.Builder
				if err := Pipe(t.Context(), link, strings.NewReader(c.in), &out, &notes); !errors.Is(err, c.err) {
					t.Errorf("error %v, want %v", err, c.err)
				}
				if d := cmp.Diff(c.out, out.String()); d != "" {
					t.Errorf("output (-want +got):\n%s", d)
				}
				if d := cmp.Diff(c.notes, notes.String()); d != "" {
					t.Errorf("notes (-want +got):\n%s", d)
				}
			})
		})
	}
}

// TestPipeWaits gives the second line only while the first one is unanswered.
func TestPipeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b, stop := runBot(t, AccountWhole, func(b *bot, m chat.Inbound) {
			<-release
			script(b, m)
		})
		defer stop()
		b.seen = make(chan chat.Inbound, 9)
		link, err := b.Attach("x")
		if err != nil {
			t.Fatal(err)
		}
		defer link.Close()
		ended := make(chan error, 1)
		go func() { ended <- Pipe(t.Context(), link, strings.NewReader("one\ntwo\n"), io.Discard, io.Discard) }()
		synctest.Wait()
		if n := len(b.seen); n != 1 {
			t.Errorf("%d messages before the first answer", n)
		}
		m := <-b.seen
		want := chat.Inbound{
			ID: m.ID, EventKey: "console:whole:x:" + m.ID, Text: "one", Mentioned: true, At: m.At,
			Address: chat.Address{Channel: Channel, Account: AccountWhole, Conversation: "x", Kind: chat.Direct},
			Sender:  chat.Sender{ID: Owner, Name: "Owner", Local: true},
		}
		if d := cmp.Diff(want, m); d != "" {
			t.Errorf("inbound (-want +got):\n%s", d)
		}
		close(release)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestPipeEndsWithTheBot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, stop := runBot(t, AccountWhole, func(*bot, chat.Inbound) {})
		link, err := b.Attach("x")
		if err != nil {
			t.Fatal(err)
		}
		defer link.Close()
		ended := make(chan error, 1)
		go func() { ended <- Pipe(t.Context(), link, strings.NewReader("one\n"), io.Discard, io.Discard) }()
		synctest.Wait()
		stop()
		if err := <-ended; !errors.Is(err, ErrGone) {
			t.Errorf("error %v", err)
		}
		if err := link.Say(t.Context(), "1", "x"); !errors.Is(err, ErrNotRunning) {
			t.Errorf("say: %v", err)
		}
		if _, err := b.Attach("x"); !errors.Is(err, ErrGone) {
			t.Errorf("attach: %v", err)
		}
	})
}

func TestPipeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, stop := runBot(t, AccountWhole, func(*bot, chat.Inbound) {})
		defer stop()
		link, err := b.Attach("x")
		if err != nil {
			t.Fatal(err)
		}
		defer link.Close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Pipe(ctx, link, strings.NewReader("one\n"), io.Discard, io.Discard) }()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

func TestSlowTerminalIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, stop := runBot(t, "", script)
		defer stop()
		slow, err := b.Attach("x")
		if err != nil {
			t.Fatal(err)
		}
		to := chat.Inbound{Address: chat.Address{Channel: Channel, Conversation: "x"}}
		for range backlog + 1 {
			b.say(to, chat.Notice, "x", "")
		}
		n := 0
		for range slow.Events() {
			n++
		}
		if err := slow.Err(); n != backlog || !errors.Is(err, ErrTooSlow) {
			t.Errorf("%d events, then %v", n, err)
		}
		if err := slow.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestVerdicts(t *testing.T) {
	a, err := New("")
	if err != nil {
		t.Fatal(err)
	}
	here, there := chat.Address{Channel: Channel, Conversation: "x"}, chat.Address{Channel: Channel, Account: AccountWhole, Conversation: "x"}
	_, elsewhere := a.Send(t.Context(), channels.Piece{To: there, Text: "x"})
	_, empty := a.Send(t.Context(), channels.Piece{To: here})
	for name, c := range map[string]struct {
		err  error
		want channels.Verdict
	}{
		"another account": {elsewhere, channels.Gone}, "no text": {empty, channels.Refused},
		"edit elsewhere": {a.Edit(t.Context(), there, "c1", channels.Piece{}), channels.Gone},
		"edit nothing":   {a.Edit(t.Context(), here, "c1", channels.Piece{}), channels.Missing},
		"delete nothing": {a.Delete(t.Context(), here, "c1"), channels.Missing},
	} {
		var send *channels.SendError
		if !errors.As(c.err, &send) || send.Verdict != c.want {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	if _, err := a.Send(t.Context(), channels.Piece{To: here, Text: "x"}); err != nil {
		t.Errorf("without a terminal: %v", err)
	}
	if _, err := a.Attach("../x"); err == nil {
		t.Error("any name is a conversation")
	}
	if _, err := New("other"); err == nil {
		t.Error("any name is an account")
	}
}

// remoteLink connects to the adapters as another process does, over a network in memory.
func remoteLink(t *testing.T, account string, adapters ...*Adapter) (Link, func()) {
	t.Helper()
	l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	server := &http.Server{Handler: Handler(adapters...)}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	transport := &http.Transport{DialContext: l.dial, DisableKeepAlives: true}
	link, err := Dial(t.Context(), &http.Client{Transport: transport}, "http://control", account, "x")
	if err != nil {
		t.Fatal(err)
	}
	return link, func() {
		link.Close()
		server.Close()
		<-ended
	}
}

type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.done); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{} }

func TestRemotePipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, stop := runBot(t, AccountWhole, script)
		streaming, err := New("")
		if err != nil {
			t.Fatal(err)
		}
		err = b.RegisterCommands(t.Context(), []channels.CommandInfo{{Name: "model", Description: "choose", Args: "[name]"}})
		if err != nil {
			t.Fatal(err)
		}
		link, hangUp := remoteLink(t, AccountWhole, streaming, b.Adapter)
		defer hangUp()
		var out, notes strings.Builder
		if err := Pipe(t.Context(), link, strings.NewReader("hi\nsilence\nbye\n"), &out, &notes); err != nil {
			t.Error(err)
		}
		if d := cmp.Diff("Hello]0;title!\nHow are you?\nYou said: bye\n", out.String()); d != "" {
			t.Errorf("output (-want +got):\n%s", d)
		}
		cmds, err := link.Commands(t.Context())
		if err != nil {
			t.Error(err)
		}
		if d := cmp.Diff([]channels.CommandInfo{{Name: "model", Description: "choose", Args: "[name]"}}, cmds); d != "" {
			t.Errorf("commands (-want +got):\n%s", d)
		}
		if err := link.Say(t.Context(), "1", strings.Repeat("x", MaxText+1)); !errors.Is(err, ErrTooLong) {
			t.Errorf("long: %v", err)
		}
		b.refuse = errors.New("secret detail")
		if err := link.Say(t.Context(), "1", "x"); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("refused: %v", err)
		}
		stop()
		for range link.Events() {
		}
		if err := link.Err(); !errors.Is(err, ErrGone) {
			t.Errorf("after the bot: %v", err)
		}
		if err := link.Say(t.Context(), "1", "x"); !errors.Is(err, ErrNotRunning) {
			t.Errorf("say after the bot: %v", err)
		}
	})
}

func TestDialRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := New("")
		if err != nil {
			t.Fatal(err)
		}
		l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
		server := &http.Server{Handler: Handler(a)}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(l) }()
		client := &http.Client{Transport: &http.Transport{DialContext: l.dial, DisableKeepAlives: true}}
		for _, c := range [][2]string{{"", "a b"}, {"unknown", "x"}} {
			if _, err := Dial(t.Context(), client, "http://control", c[0], c[1]); err == nil {
				t.Errorf("%q attached", c)
			}
		}
		server.Close()
		<-ended
	})
}

func TestSettleNeverDuplicates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, stop := runBot(t, "", func(*bot, chat.Inbound) {})
		defer stop()
		link, err := b.Attach("x")
		if err != nil {
			t.Fatal(err)
		}
		defer link.Close()
		in := chat.Inbound{Address: chat.Address{Channel: Channel, Conversation: "x"}}
		for i := range 3 {
			if err := link.Say(t.Context(), fmt.Sprint(i), "x"); err != nil {
				t.Fatal(err)
			}
		}
		b.Finished(in.Address, "0", 1)
		b.Finished(in.Address, "0", 1)       // again
		b.Finished(in.Address, "unknown", 5) // of a terminal that is gone
		b.Finished(in.Address, "1", 0)
		b.say(in, chat.Cron, "report", "") // nobody asked for it
		b.say(in, chat.Assistant, "one", "k")
		id := b.say(in, chat.Assistant, "preview", "p")
		if err := b.Delete(t.Context(), in.Address, id); err != nil {
			t.Fatal(err)
		}
		b.Finished(in.Address, "2", 1)
		b.say(in, chat.Error, "failed", "")
		var got []string
		for len(link.Events()) > 0 {
			e := <-link.Events()
			if e.Type == Done {
				e.Text = e.ID
			}
			got = append(got, string(e.Type)+" "+e.Text)
		}
		want := []string{"sent report", "sent one", "done 0", "done 1", "sent preview", "deleted ", "sent failed", "done 2"}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("events (-want +got):\n%s", d)
		}
	})
}

// TestStoppedPreviewOwesNothing plays what a stop in the middle of an answer does: the preview is
// taken back after the reply of the stop was counted, and the next message must still come to its end.
func TestStoppedPreviewOwesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, stop := runBot(t, "", func(*bot, chat.Inbound) {})
		defer stop()
		b.seen = make(chan chat.Inbound, 3)
		link, err := b.Attach("main")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = link.Close() }()
		say := func(id, text string) chat.Inbound {
			if err := link.Say(t.Context(), id, text); err != nil {
				t.Fatal(err)
			}
			return <-b.seen
		}
		hello := say("1", "hello")
		preview := b.say(hello, chat.Assistant, "Hel", "preview")
		stopped := say("2", "/stop")
		b.Finished(stopped.Address, stopped.ID, 1)
		b.Finished(hello.Address, hello.ID, 0)
		b.say(stopped, chat.Command, "⏹ Stopped.", "")
		if err := b.Delete(t.Context(), hello.Address, preview); err != nil {
			t.Fatal(err)
		}
		again := say("3", "/new")
		b.say(again, chat.Command, "🆕 New session.", "")
		b.Finished(again.Address, again.ID, 1)
		synctest.Wait()
		for {
			select {
			case e := <-link.Events():
				if e.Type == Done && e.ID == "3" {
					return
				}
				continue
			default:
			}
			t.Fatal("the message after a stop never comes to its end")
		}
	})
}
