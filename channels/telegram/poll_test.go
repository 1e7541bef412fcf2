package telegram

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/channels"
	"understudy/channels/channelstest"
	"understudy/chat"

	emulator "understudy/internal/emulate/telegram"
)

// account is a running bot with its emulator, inside a bubble.
type account struct {
	*Bot
	srv     *emulator.Server
	got     *channelstest.Recorder
	offsets *memory
	log     *bytes.Buffer
	done    chan error
	stop    context.CancelFunc
}

// running runs test in a bubble with an account; prepare acts before it starts.
func running(t *testing.T, cfg emulator.Config, prepare func(*emulator.Server, *Config, *Deps), test func(*testing.T, *account)) {
	synctest.Test(t, func(t *testing.T) {
		a := &account{srv: newServer(cfg), got: channelstest.NewRecorder(), offsets: &memory{}, log: new(bytes.Buffer), done: make(chan error, 1)}
		a.Bot = newBot(t, a.srv, func(c *Config, d *Deps) {
			d.Offsets = a.offsets
			d.Log = slog.New(slog.NewTextHandler(a.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			if prepare != nil {
				prepare(a.srv, c, d)
			}
		})
		a.start(t)
		defer func() {
			a.stop()
			<-a.done
			a.Close()
			a.srv.Close()
			if secretPart := strings.SplitN(a.srv.Token(), ":", 2)[1]; strings.Contains(a.log.String(), secretPart) {
				t.Errorf("the token is in the log:\n%s", a.log)
			}
		}()
		test(t, a)
	})
}

func (a *account) start(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	a.stop = stop
	go func() { a.done <- a.Run(ctx, a.got) }()
	synctest.Wait()
}

// await waits, in virtual time, until the emulator is in a state.
func (a *account) await(t *testing.T, limit time.Duration, cond func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := a.srv.WaitFor(ctx, cond); err != nil {
		t.Errorf("not within %v: %v", limit, err)
	}
}

func TestOffsetFollowsTheSink(t *testing.T) {
	running(t, emulator.Config{FirstUpdate: 500}, nil, func(t *testing.T, a *account) {
		a.srv.UserSays(ann, ann, "one")
		a.got.Next(t)
		synctest.Wait()
		if got := a.offsets.stored(); got != 501 {
			t.Errorf("offset %d, want 501", got)
		}
		a.got.Refuse(errors.New("disk full"))
		a.srv.UserSays(ann, ann, "two")
		a.got.Refused(t)
		synctest.Wait()
		if got := a.offsets.stored(); got != 501 {
			t.Errorf("offset %d moved past what was not stored", got)
		}
		if s := a.got.State(); s != channels.Down {
			t.Errorf("state %q", s)
		}
		a.got.Refuse(nil)
		if in := a.got.Next(t); in.Text != "two" {
			t.Errorf("got %q", in.Text)
		}
		a.await(t, time.Minute, func() bool { return a.srv.Unconfirmed() == 0 })
		if got := a.offsets.stored(); got != 502 {
			t.Errorf("offset %d, want 502", got)
		}
	})
}

// An account that cannot store what it polls is down until it can: readiness must see it.
func TestStateWhileNothingIsStored(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.got.Refuse(errors.New("disk full"))
		a.srv.UserSays(ann, ann, "hello")
		for range 10 {
			a.got.Refused(t)
		}
		connected := 0
		for _, s := range a.got.Statuses() {
			if s.State == channels.Connected {
				connected++
			}
		}
		if s := a.got.State(); s != channels.Down || connected != 1 {
			t.Errorf("state %q, connected %d times", s, connected)
		}
		a.got.Refuse(nil)
		a.got.Next(t)
		a.await(t, time.Minute, func() bool { return a.srv.Unconfirmed() == 0 })
		synctest.Wait()
		if s := a.got.State(); s != channels.Connected {
			t.Errorf("state %q", s)
		}
	})
}

// A webhook that somebody sets while the account polls takes all updates away.
func TestWebhookSetWhilePolling(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.srv.SetWebhook("https://other.test/hook")
		a.srv.UserSays(ann, ann, "hello")
		a.got.Next(t)
		if got := a.srv.Webhook(); got != "" {
			t.Errorf("the webhook is still %q", got)
		}
		told := false
		for _, s := range a.got.Statuses() {
			told = told || s.State == channels.Down && strings.Contains(s.Detail, "webhook")
		}
		if !told {
			t.Errorf("statuses %+v", a.got.Statuses())
		}
	})
}

// Whatever the network does, every message is stored, in order, under keys that tell doubles.
func TestBadWeather(t *testing.T) {
	for seed := range uint64(5) {
		for _, byWebhook := range []bool{false, true} {
			test := func(t *testing.T, a *account) {
				a.srv.SetWeather(emulator.Weather{
					Seed: seed, Drop: 0.1, DropAfter: 0.1, Limited: 0.1, Ill: 0.1, Slow: 0.2, SlowBy: 20 * time.Second, Duplicate: 0.1,
				})
				const many = 60
				for i := range many {
					a.srv.UserSays(ann, ann, fmt.Sprint(i))
					timer := time.NewTimer(time.Duration(i%7) * time.Second)
					<-timer.C
				}
				known := map[string]bool{}
				for next := 0; next < many; {
					in := a.got.Next(t)
					if t.Failed() {
						return
					}
					if known[in.EventKey] || known[in.AltKeys[0]] {
						continue
					}
					known[in.EventKey], known[in.AltKeys[0]] = true, true
					if in.Text != fmt.Sprint(next) {
						t.Errorf("seed %d: message %q, want %d", seed, in.Text, next)
						return
					}
					next++
				}
				a.srv.SetWeather(emulator.Weather{})
				a.await(t, 10*time.Minute, func() bool { return a.srv.Unconfirmed() == 0 && a.got.State() == channels.Connected })
			}
			if byWebhook {
				listening(t, nil, func(t *testing.T, a *account, _ *doorway) { test(t, a) })
			} else {
				running(t, emulator.Config{}, nil, test)
			}
		}
	}
}

// sinkFunc is a sink that does not care about the connection.
type sinkFunc func(chat.Inbound) error

func (f sinkFunc) Accept(_ context.Context, m chat.Inbound) error { return f(m) }
func (sinkFunc) Status(channels.Status)                           {}

// What stands behind an update that is not stored must not take the offset past it.
func TestOffsetStopsAtTheFirstRefusal(t *testing.T) {
	offsets := &memory{offset: 10}
	b, err := New(Config{BotToken: newToken()}, Deps{Offsets: offsets})
	if err != nil {
		t.Fatal(err)
	}
	var stored []string
	sink := sinkFunc(func(m chat.Inbound) error {
		if m.Text == "two" {
			return errors.New("disk full")
		}
		stored = append(stored, m.Text)
		return nil
	})
	var batch []jsonRaw
	for i, word := range []string{"one", "two", "three"} {
		batch = append(batch, jsonRaw(fmt.Sprintf(
			`{"update_id":%d,"message":{"message_id":%d,"text":%q,"chat":{"id":1001,"type":"private"},"from":{"id":1001}}}`, 10+i, i+1, word)))
	}
	p := &poller{intake: &intake{Bot: b, sink: sink, self: identity{ID: 110}}, offset: 10}
	if err := p.takeAll(t.Context(), batch); err == nil {
		t.Error("a refusal is not reported")
	}
	if diff := cmp.Diff([]string{"one"}, stored); diff != "" || p.offset != 11 || offsets.stored() != 11 {
		t.Errorf("offset %d, stored %d: %s", p.offset, offsets.stored(), diff)
	}
}

// An account that shuts down while it stores an update still saves the offset.
func TestOffsetIsSavedAtShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(emulator.Config{FirstUpdate: 70})
		defer srv.Close()
		offsets := &memory{}
		var idle atomic.Int64
		b := newBot(t, srv, func(_ *Config, d *Deps) {
			d.Offsets = offsets
			d.Transport = func() http.RoundTripper { return &countingTransport{RoundTripper: srv.Transport(), closed: &idle} }
		})
		ctx, stop := context.WithCancel(t.Context())
		srv.UserSays(ann, ann, "last words")
		if err := b.Run(ctx, sinkFunc(func(chat.Inbound) error { stop(); return nil })); err != nil {
			t.Errorf("Run ended with %v", err)
		}
		if got := offsets.stored(); got != 71 {
			t.Errorf("offset %d, want 71", got)
		}
		if idle.Load() != 2 {
			t.Errorf("%d of 2 transports were emptied", idle.Load())
		}
	})
}

// countingTransport counts how often idle connections were closed.
type countingTransport struct {
	http.RoundTripper
	closed *atomic.Int64
}

func (c *countingTransport) CloseIdleConnections() {
	c.closed.Add(1)
	c.RoundTripper.(*http.Transport).CloseIdleConnections()
}

// After a failure the account asks at once, not after the length of a poll, whether it works.
func TestStateRecoversAtOnce(t *testing.T) {
	prepare := func(srv *emulator.Server, _ *Config, _ *Deps) {
		srv.Inject(emulator.Fault{Method: "getUpdates", Status: 500})
	}
	running(t, emulator.Config{}, prepare, func(t *testing.T, a *account) {
		if s := a.got.State(); s != channels.Down {
			t.Errorf("state %q", s)
		}
		a.await(t, 5*time.Second, func() bool { return len(a.srv.Calls("getUpdates")) == 3 })
		if s := a.got.State(); s != channels.Connected {
			t.Errorf("state %q", s)
		}
	})
}

func TestRestartGoesOnWhereItStopped(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.srv.UserSays(ann, ann, "before")
		a.got.Next(t)
		synctest.Wait()
		a.stop()
		if err := <-a.done; err != nil {
			t.Errorf("Run ended with %v", err)
		}
		a.srv.UserSays(ann, ann, "meanwhile")
		a.start(t)
		if in := a.got.Next(t); in.Text != "meanwhile" {
			t.Errorf("got %q", in.Text)
		}
		if n := a.got.Pending(); n != 0 {
			t.Errorf("%d messages came again", n)
		}
	})
}

// Ids of updates may start anew, far below the stored offset.
func TestLowUpdateIDsAreNotIgnored(t *testing.T) {
	const page = `{"ok":true,"result":[{"update_id":5000,"message":{"message_id":1,"date":1,"text":"hi","chat":{"id":1001,"type":"private"},"from":{"id":1001,"first_name":"A"}}}]}`
	prepare := func(srv *emulator.Server, _ *Config, d *Deps) {
		d.Offsets = &memory{offset: 926831434}
		srv.Inject(emulator.Fault{Method: "getUpdates", Body: page})
	}
	running(t, emulator.Config{}, prepare, func(t *testing.T, a *account) {
		if in := a.got.Next(t); in.Text != "hi" {
			t.Errorf("got %+v", in)
		}
		a.await(t, time.Minute, func() bool {
			calls := a.srv.Calls("getUpdates")
			return calls[len(calls)-1].Params["offset"] == "5001"
		})
	})
}

func TestPoisonIsPassedOver(t *testing.T) {
	running(t, emulator.Config{FirstUpdate: 7}, nil, func(t *testing.T, a *account) {
		a.srv.PushRaw(`{"update_id":%d,"message":"what?"}`)
		a.srv.PushRaw(`{"update_id":%d,"message":{"message_id":{"a":1}}}`)
		a.srv.PushRaw(`{"update_id":%d,"poll_answer":{}}`)
		a.srv.PushRaw(`"%d"`)
		a.srv.UserSays(ann, ann, "still here?")
		if in := a.got.Next(t); in.Text != "still here?" {
			t.Errorf("got %q", in.Text)
		}
		a.await(t, time.Minute, func() bool { return a.srv.Unconfirmed() == 0 })
		if got := a.offsets.stored(); got != 12 {
			t.Errorf("offset %d, want 12", got)
		}
	})
}

// A poll of the former process may live on for a while: no storm, no giving up.
func TestConflict(t *testing.T) {
	began := time.Time{}
	prepare := func(srv *emulator.Server, _ *Config, _ *Deps) {
		began = time.Now()
		srv.Inject(emulator.Fault{Method: "getUpdates", Times: -1, Status: http.StatusConflict, Description: "Conflict: terminated by other getUpdates request"})
	}
	running(t, emulator.Config{}, prepare, func(t *testing.T, a *account) {
		a.await(t, time.Minute, func() bool { return time.Since(began) >= 20*time.Second || len(a.srv.Calls("getUpdates")) >= 3 })
		if st := a.got.Statuses(); st[len(st)-1].Detail != "another process polls this bot token" {
			t.Errorf("status %+v", st[len(st)-1])
		}
		timer := time.NewTimer(35*time.Second + time.Millisecond - time.Since(began))
		<-timer.C
		if n := len(a.srv.Calls("getUpdates")); n > 8 {
			t.Errorf("%d polls in 35 s", n)
		}
		a.srv.ClearFaults()
		a.srv.UserSays(ann, ann, "hello")
		a.got.Next(t)
		if waited := time.Since(began); waited > time.Minute { // virtual
			t.Errorf("works again after %v", waited)
		}
		synctest.Wait() // the state is told once the whole batch is stored
		if s := a.got.State(); s != channels.Connected {
			t.Errorf("state %q", s)
		}
	})
}

func TestRefusedTokenStops(t *testing.T) {
	for _, method := range []string{"getMe", "getUpdates"} {
		t.Run(method, func(t *testing.T) {
			prepare := func(srv *emulator.Server, _ *Config, _ *Deps) {
				srv.Inject(emulator.Fault{Method: method, Times: -1, Status: http.StatusUnauthorized})
			}
			running(t, emulator.Config{}, prepare, func(t *testing.T, a *account) {
				err := <-a.done
				a.done <- nil
				if err == nil || !strings.Contains(err.Error(), "botToken") {
					t.Errorf("got %v", err)
				}
				if s := a.got.State(); s != channels.Stopped {
					t.Errorf("state %q", s)
				}
			})
		})
	}
}

func TestPassingFailures(t *testing.T) {
	tests := []struct {
		name  string
		fault emulator.Fault
	}{
		{"page of a proxy", emulator.Fault{Status: 502, Body: "<html>502 Bad Gateway</html>"}},
		{"page with status 200", emulator.Fault{Body: "<html>hello</html>"}},
		{"empty answer", emulator.Fault{Body: " "}},
		{"result of another kind", emulator.Fault{Body: `{"ok":true,"result":{"a":1}}`}},
		{"updates without ids", emulator.Fault{Body: `{"ok":true,"result":["x"]}`}},
		{"not ok without a code", emulator.Fault{Body: `{"ok":false}`}},
		{"ill server", emulator.Fault{Status: 500}},
		{"cut", emulator.Fault{Drop: true}},
		{"rate limit", emulator.Fault{Status: 429, RetryAfter: 3 * time.Second}},
	}
	for _, tt := range tests {
		for _, method := range []string{"getMe", "deleteWebhook", "getUpdates"} {
			t.Run(tt.name+" of "+method, func(t *testing.T) {
				prepare := func(srv *emulator.Server, _ *Config, _ *Deps) {
					tt.fault.Method, tt.fault.Times = method, 3
					srv.Inject(tt.fault)
				}
				running(t, emulator.Config{}, prepare, func(t *testing.T, a *account) {
					a.srv.UserSays(ann, ann, "hello")
					a.got.Next(t)
					a.await(t, time.Minute, func() bool { return a.srv.Unconfirmed() == 0 })
				})
			})
		}
	}
}

// The server accepts the poll and never answers: it is given up, and when that goes on the
// connections are made anew.
func TestSilentConnection(t *testing.T) {
	var transports atomic.Int64
	prepare := func(srv *emulator.Server, _ *Config, d *Deps) {
		d.Transport = func() http.RoundTripper {
			transports.Add(1)
			return srv.Transport()
		}
		srv.Inject(emulator.Fault{Method: "getUpdates", Times: 2, Hang: true})
	}
	running(t, emulator.Config{}, prepare, func(t *testing.T, a *account) {
		before := transports.Load()
		a.srv.UserSays(ann, ann, "hello")
		if in := a.got.Next(t); in.Text != "hello" {
			t.Errorf("got %q", in.Text)
		}
		if n := transports.Load() - before; n != 1 {
			t.Errorf("the transport was rebuilt %d times, want once", n)
		}
		calls := a.srv.Calls("getUpdates")
		for i, c := range calls[1:] {
			if waited := c.At.Sub(calls[i].At); waited > 61*time.Second { // virtual
				t.Errorf("poll %d was waited for %v", i, waited)
			}
		}
	})
}

// An operator sees since when nothing has been heard.
func TestSilenceIsTold(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.srv.UserSays(ann, ann, "hello")
		a.got.Next(t)
		a.srv.Inject(emulator.Fault{Method: "getUpdates", Hang: true})
		a.srv.Cut()
		timer := time.NewTimer(2 * time.Minute)
		<-timer.C
		told := ""
		for _, s := range a.got.Statuses() {
			told += s.Detail + "\n"
		}
		if !strings.Contains(told, "last completed poll at 00:00:00 UTC") {
			t.Errorf("told %q", told)
		}
	})
}

func TestRunTwice(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		if err := a.Run(t.Context(), a.got); !errors.Is(err, ErrRunning) {
			t.Errorf("got %v", err)
		}
	})
}

// A webhook that somebody set would keep all updates from us.
func TestWebhookIsDeleted(t *testing.T) {
	prepare := func(srv *emulator.Server, _ *Config, _ *Deps) { srv.SetWebhook("https://example.com/hook") }
	running(t, emulator.Config{}, prepare, func(t *testing.T, a *account) {
		a.srv.UserSays(ann, ann, "hello")
		a.got.Next(t)
		want := []string{"Connected"}
		var got []string
		for _, s := range a.got.Statuses() {
			if s.State == channels.Connected {
				got = append(got, "Connected")
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func FuzzWebhook(f *testing.F) {
	f.Add([]byte(`{"update_id":1,"message":{"message_id":1,"text":"hi","chat":{"id":1,"type":"private"},"from":{"id":2}}}`))
	f.Add([]byte(`{"update_id":1,"message":{"migrate_from_chat_id":-5,"chat":{"id":-100,"type":"supergroup"}}}`))
	f.Add([]byte(`{"update_id":1,"callback_query":{"id":"q","data":"m:tok:p1","message":{"message_id":1,"chat":{"id":1,"type":"private"}}}}`))
	f.Add([]byte(`{"update_id":1,"my_chat_member":{"chat":{"id":1},"new_chat_member":{"status":"kicked"}}}`))
	f.Add([]byte(`[]`))
	cfg := Config{BotToken: newToken()}
	withWebhook(&cfg)
	b, err := New(cfg, Deps{Offsets: &memory{}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := channelstest.NewRecorder()
		ended := make(chan struct{})
		b.hook.run.Store(&hooked{intake: &intake{Bot: b, sink: got, self: identity{ID: 110, Username: "understudy_bot"}}, ended: ended})
		r := httptest.NewRequest(http.MethodPost, hookURL, bytes.NewReader(body))
		r.Header.Set(secretHeader, hookSecret)
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		if w.Code != http.StatusOK && len(body) <= largestUpdate {
			t.Errorf("status %d: the update would come for ever", w.Code)
		}
		if got.Pending() > 0 {
			if in := got.Next(t); in.EventKey == "" || in.Address.Conversation == "" {
				t.Errorf("incomplete: %+v", in)
			}
		}
	})
}

func FuzzTake(f *testing.F) {
	f.Add([]byte(`{"update_id":1,"message":{"message_id":1,"text":"/a@b 😀","entities":[{"type":"bot_command","offset":0,"length":4}],"chat":{"id":1,"type":"private"},"from":{"id":2}}}`))
	f.Add([]byte(`{"update_id":1,"edited_message":{"chat":{"type":"group"},"sender_chat":{},"reply_to_message":{},"photo":[{}]}}`))
	f.Add([]byte(`{"update_id":1,"callback_query":{"message":{}}}`))
	f.Add([]byte(`{"update_id":1,"message":{"text":"a","entities":[{"type":"mention","offset":1,"length":9223372036854775807}],"chat":{"type":"private"},"from":{}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		srv := Config{BotToken: newToken()}
		b, err := New(srv, Deps{Offsets: &memory{}, Transport: func() http.RoundTripper { return http.DefaultTransport }})
		if err != nil {
			t.Fatal(err)
		}
		got := channelstest.NewRecorder()
		p := &poller{intake: &intake{Bot: b, sink: got, self: identity{ID: 110, Username: "understudy_bot"}}}
		if err := p.takeAll(t.Context(), []jsonRaw{raw}); err != nil {
			t.Errorf("an accepting sink gives an error: %v", err)
		}
		if got.Pending() > 0 {
			if in := got.Next(t); in.EventKey == "" || in.Address.Conversation == "" {
				t.Errorf("incomplete: %+v", in)
			}
		}
	})
}

func newContext(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}

// slowSink stores only when it is released.
type slowSink struct {
	*channelstest.Recorder
	storing chan<- struct{}
	release <-chan struct{}
}

func (s *slowSink) Accept(ctx context.Context, m chat.Inbound) error {
	s.storing <- struct{}{}
	<-s.release
	return s.Recorder.Accept(ctx, m)
}
