package delivery_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/channels/telegram"
	"understudy/chat"
	"understudy/delivery"
	"understudy/inbound"
	"understudy/internal/clock"
	emulator "understudy/internal/emulate/telegram"
	"understudy/internal/secret"
	"understudy/internal/sqlite"
)

// ann is a person, and the chat with her.
const ann = 1001

// bot is a whole process between Telegram and a stand-in for the model.
type bot struct {
	t        *testing.T
	srv      *emulator.Server
	db       *sqlite.DB
	telegram *telegram.Bot
	delivery *delivery.Service
	inbound  *inbound.Pipeline
	answer   func(b *bot, m inbound.Message) // one turn
	stop     context.CancelFunc
	done     chan struct{}
}

// Handle implements inbound.Handler.
func (b *bot) Handle(_ context.Context, m inbound.Message) { b.answer(b, m) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// start wires a process as the app does, and runs it.
func start(t *testing.T, srv *emulator.Server, path string, turn func(*bot, inbound.Message)) *bot {
	ctx := t.Context()
	log := slog.New(slog.DiscardHandler)
	b := &bot{t: t, srv: srv, answer: turn, done: make(chan struct{}, 2)}
	b.db = must(sqlite.Open(ctx, path, sqlite.Options{BusyTimeout: -1, Log: log}))
	cursor := must(inbound.OpenCursor(ctx, b.db, telegram.Channel, "", "offset"))
	b.telegram = must(telegram.New(
		telegram.Config{BotToken: secret.New(srv.Token()), APIRoot: emulator.Root},
		telegram.Deps{Offsets: cursor, Log: log, Transport: srv.Transport}))
	b.delivery = must(delivery.New(ctx, delivery.Deps{
		DB: b.db, Log: log,
		Unknown: func(ctx context.Context, o chat.Outbound, restarted bool) {
			if restarted {
				b.inbound.Uncertain(ctx, o)
			}
		},
	}))
	b.inbound = must(inbound.New(ctx, inbound.Config{
		Access: map[inbound.Account]inbound.Access{{Channel: telegram.Channel}: {AllowFrom: []string{fmt.Sprint(ann)}}},
	}, inbound.Deps{
		DB: b.db, Log: log, Handler: b, Send: b.delivery.Send,
		Answer: func(ctx context.Context, turn string) (inbound.Answer, error) {
			state, err := b.delivery.AnswerState(ctx, turn)
			return inbound.Answer(state), err
		},
	}))
	set := delivery.Settings{ReplyTo: delivery.ModeFirst, Previews: true, Typing: delivery.TypingInstant}
	for _, err := range []error{b.delivery.Register(b.telegram, set), b.delivery.Recover(ctx), b.inbound.Recover(ctx)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, b.stop = context.WithCancel(ctx)
	for _, run := range []func() error{
		func() error { return b.delivery.Run(ctx) },
		func() error { return b.telegram.Run(ctx, b.inbound) },
	} {
		go func() {
			if err := run(); err != nil {
				t.Error(err)
			}
			b.done <- struct{}{}
		}()
	}
	return b
}

func (b *bot) end() {
	b.stop()
	<-b.done
	<-b.done
	b.telegram.Close()
	if err := b.db.Close(); err != nil {
		b.t.Error(err)
	}
}

// copy makes a copy of the database as a process that is killed now would leave it.
func (b *bot) copy(path string) {
	if _, err := b.db.Writer().ExecContext(b.t.Context(), "VACUUM INTO ?", path); err != nil {
		b.t.Error(err)
	}
}

func pass(t *testing.T, d time.Duration) {
	if err := (clock.Clock{}).Sleep(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// seen returns what Ann sees of the bot.
func seen(srv *emulator.Server) []string {
	var out []string
	for _, m := range srv.Sent(ann) {
		if !m.Deleted {
			out = append(out, m.Text)
		}
	}
	return out
}

// echo answers with what was asked, after a preview and a notice.
func echo(b *bot, m inbound.Message) {
	ctx := b.t.Context()
	turn := b.delivery.Begin(m.In.Address, &m.In, inbound.TurnID(m.Seq))
	go func() {
		defer turn.Cancel()
		if _, err := b.inbound.Dispatched(ctx, m.Seq); err != nil {
			b.t.Error(err)
			return
		}
		turn.Stream("You said <" + m.In.Text)
		pass(b.t, 5*time.Second)
		turn.Notify(chat.Outbound{Markdown: "a notice"})
		turn.Stream(">, **really**")
		pass(b.t, 5*time.Second)
		if err := turn.Finish(ctx, chat.Outbound{Class: chat.Assistant, Markdown: "You said <" + m.In.Text + ">, **really**."}); err != nil {
			b.t.Error(err)
			return
		}
		if err := b.inbound.Done(ctx, m.Seq); err != nil {
			b.t.Error(err)
		}
	}()
}

// overTelegram runs a test with an emulated Telegram in a bubble.
func overTelegram(t *testing.T, test func(t *testing.T, srv *emulator.Server, path string)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		srv := emulator.New(emulator.Config{})
		srv.AddChat(emulator.Chat{ID: ann, Type: "private"})
		test(t, srv, filepath.Join(dir, "bot.sqlite"))
		srv.Close()
	})
}

func TestOverTelegram(t *testing.T) {
	overTelegram(t, func(t *testing.T, srv *emulator.Server, path string) {
		b := start(t, srv, path, echo)
		pass(t, time.Second)
		asked := srv.UserSays(ann, ann, "hello & goodbye")
		srv.AddChat(emulator.Chat{ID: 66, Type: "private"})
		srv.UserSays(66, 66, "a stranger")
		pass(t, time.Minute)
		sent := srv.Sent(ann)
		if d := cmp.Diff([]string{"You said <hello & goodbye>, really.", "a notice"}, seen(srv)); d != "" {
			t.Error(d)
		} else if sent[0].ReplyTo != asked || len(sent[0].Versions) == 0 || sent[1].ReplyTo != 0 || !sent[1].Silent {
			t.Errorf("sent %+v", sent)
		}
		if len(srv.Actions(ann)) == 0 {
			t.Error("no typing")
		}
		if got := srv.Sent(66); len(got) != 1 || !strings.Contains(got[0].Text, "Pairing code: ") {
			t.Errorf("the stranger sees %+v", got)
		}
		b.end()
	})
}

// TestTelegramCutAfterSend: the answer arrived, its receipt did not: it is not said again.
// TestTelegramKeepsEveryFormat: Telegram shows what is behind the hundredth formatted stretch of a message
// without its format, so an answer with more becomes several messages.
func TestTelegramKeepsEveryFormat(t *testing.T) {
	const many = 250
	synctest.Test(t, func(t *testing.T) {
		srv := emulator.New(emulator.Config{})
		defer srv.Close()
		srv.AddChat(emulator.Chat{ID: ann, Type: "private"})
		b := start(t, srv, filepath.Join(t.TempDir(), "bot.sqlite"), nil)
		var md strings.Builder
		for i := range many {
			fmt.Fprintf(&md, "- **item %d**\n", i)
		}
		if err := b.delivery.Send(t.Context(), chat.Outbound{
			To: chat.Address{Channel: telegram.Channel, Conversation: fmt.Sprint(ann), Kind: chat.Direct}, Class: chat.Assistant, Markdown: md.String(),
		}); err != nil {
			t.Fatal(err)
		}
		pass(t, time.Minute)
		formatted := 0
		for _, m := range srv.Sent(ann) {
			formatted += len(m.Entities)
		}
		if formatted != many {
			t.Errorf("%d of %d items have their format, in %d messages", formatted, many, len(srv.Sent(ann)))
		}
		b.end()
	})
}

func TestTelegramCutAfterSend(t *testing.T) {
	overTelegram(t, func(t *testing.T, srv *emulator.Server, path string) {
		b := start(t, srv, path, func(b *bot, m inbound.Message) {
			turn := b.delivery.Begin(m.In.Address, &m.In, inbound.TurnID(m.Seq))
			if err := turn.Finish(b.t.Context(), chat.Outbound{Class: chat.Assistant, Markdown: "Paris."}); err != nil {
				b.t.Error(err)
			}
		})
		pass(t, time.Second)
		srv.Inject(emulator.Fault{Method: "sendMessage", DropAfter: true, Times: 2})
		srv.UserSays(ann, ann, "capital?")
		pass(t, time.Hour)
		if d := cmp.Diff([]string{"Paris."}, seen(srv)); d != "" {
			t.Error(d)
		}
		b.end()
	})
}

// TestTelegramKilled: the process is killed at some moment of a turn and started again: Ann gets one
// answer, or the one apology, and nothing else stays.
func TestTelegramKilled(t *testing.T) {
	const done = "You said <hello>, really."
	for _, c := range []struct {
		name string
		at   time.Duration // after the question
		want string
	}{
		{"before the preview", time.Second, done},
		{"with a preview", 4 * time.Second, done},
		{"after the notice", 7 * time.Second, done},
		{"after the answer", time.Minute, done},
	} {
		t.Run(c.name, func(t *testing.T) {
			overTelegram(t, func(t *testing.T, srv *emulator.Server, path string) {
				killed := false
				dying := start(t, srv, path, func(b *bot, m inbound.Message) {
					b.answer = echo
					ctx := b.t.Context()
					turn := b.delivery.Begin(m.In.Address, &m.In, inbound.TurnID(m.Seq))
					go func() {
						if _, err := b.inbound.Dispatched(ctx, m.Seq); err != nil {
							b.t.Error(err)
						}
						turn.Stream("You said")
						pass(b.t, 5*time.Second)
						turn.Notify(chat.Outbound{Markdown: "a notice"})
						pass(b.t, 5*time.Second)
						if killed {
							return
						}
						if err := turn.Finish(ctx, chat.Outbound{Class: chat.Assistant, Markdown: done}); err != nil {
							b.t.Error(err)
						}
					}()
				})
				pass(t, time.Second)
				srv.UserSays(ann, ann, "hello")
				pass(t, c.at)
				killed = true
				dying.copy(path + "2")
				dying.end()
				pass(t, time.Minute)
				b := start(t, srv, path+"2", echo)
				pass(t, time.Minute)
				var got []string
				for _, text := range seen(srv) {
					if !strings.Contains(text, "notice") {
						got = append(got, text)
					}
				}
				if d := cmp.Diff([]string{c.want}, got); d != "" {
					t.Error(d)
				}
				b.end()
			})
		})
	}
}

// TestTelegramKilledWhileSending: nobody can know whether the answer arrived: Ann gets the apology,
// once.
func TestTelegramKilledWhileSending(t *testing.T) {
	overTelegram(t, func(t *testing.T, srv *emulator.Server, path string) {
		dying := start(t, srv, path, func(b *bot, m inbound.Message) {
			ctx := b.t.Context()
			turn := b.delivery.Begin(m.In.Address, &m.In, inbound.TurnID(m.Seq))
			if err := turn.Finish(ctx, chat.Outbound{Class: chat.Assistant, Markdown: "Paris."}); err != nil {
				b.t.Error(err)
			}
			if err := b.inbound.Done(ctx, m.Seq); err != nil {
				b.t.Error(err)
			}
		})
		pass(t, time.Second)
		srv.Inject(emulator.Fault{Method: "sendMessage", Hang: true})
		srv.UserSays(ann, ann, "capital?")
		pass(t, time.Second)
		dying.copy(path + "2")
		dying.end()
		for range 2 {
			b := start(t, srv, path+"2", echo)
			pass(t, time.Minute)
			b.end()
		}
		if d := cmp.Diff([]string{inbound.Apology}, seen(srv)); d != "" {
			t.Error(d)
		}
	})
}
