package discord

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/channels"
	"understudy/channels/channelstest"
	"understudy/chat"
	"understudy/internal/secret"

	emulator "understudy/internal/emulate/discord"
)

// The places of the tests.
const (
	ann     = "1001"
	bob     = "1002"
	guildID = "500"
	general = "200"
	news    = "201"
	forum   = "202"
	branch  = "300"
	dm      = "400"
	botRole = "600"
	staff   = "601"
)

var (
	direct   = chat.Address{Channel: Channel, Conversation: dm, Kind: chat.Direct}
	inRoom   = chat.Address{Channel: Channel, Conversation: general, Kind: chat.Room}
	inThread = chat.Address{Channel: Channel, Conversation: general, Thread: branch, Kind: chat.Room}
	inForum  = chat.Address{Channel: Channel, Conversation: forum, Kind: chat.Room}
)

func newServer(cfg emulator.Config) *emulator.Server {
	srv := emulator.New(cfg)
	srv.AddGuild(emulator.Guild{
		ID: guildID, Name: "Works",
		Roles:   []emulator.Role{{ID: botRole, Name: "understudy", BotID: srv.BotID()}, {ID: staff, Name: "staff"}},
		Members: map[string][]string{ann: {staff}, bob: {}},
	})
	srv.AddChannel(emulator.Channel{ID: general, Guild: guildID, Name: "general", Type: emulator.TextChannel})
	srv.AddChannel(emulator.Channel{ID: news, Guild: guildID, Name: "news", Type: emulator.NewsChannel})
	srv.AddChannel(emulator.Channel{ID: forum, Guild: guildID, Name: "help", Type: emulator.Forum})
	srv.AddChannel(emulator.Channel{ID: branch, Guild: guildID, Parent: general, Name: "side talk", Type: emulator.PublicThread})
	srv.AddChannel(emulator.Channel{ID: dm, Type: emulator.DirectChannel, Recipients: []string{ann}})
	srv.SetUser(emulator.User{ID: ann, Username: "ann_x", GlobalName: "Ann"})
	srv.SetUser(emulator.User{ID: bob, Username: "bob"})
	return srv
}

// memory is a Menus and a Hash for tests.
type memory struct {
	mu    sync.Mutex
	menus map[string]channels.Menu
	hash  string
	saves int
	err   error
}

func (m *memory) Put(_ context.Context, menu channels.Menu) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return "", m.err
	}
	if m.menus == nil {
		m.menus = map[string]channels.Menu{}
	}
	token := rand.Text()
	m.menus[token] = menu
	return token, nil
}

func (m *memory) Get(_ context.Context, token string) (channels.Menu, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return channels.Menu{}, m.err
	}
	menu, ok := m.menus[token]
	if !ok || time.Now().After(menu.Until) {
		return channels.Menu{}, channels.ErrExpired
	}
	return menu, nil
}

func (m *memory) Load(context.Context) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hash, m.err
}

func (m *memory) Save(_ context.Context, hash string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hash = hash
	m.saves++
	return m.err
}

// journal is a Seen for tests.
type journal struct {
	mu    sync.Mutex
	marks []channels.Mark
	err   error
	asked int
}

func (j *journal) Marks(_ context.Context, since time.Time, most int) ([]channels.Mark, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked++
	if since.After(time.Now().Add(-channels.RecentFor+time.Second)) || most != channels.MostMarks {
		return nil, errors.New("asked for other bounds")
	}
	return append([]channels.Mark(nil), j.marks...), j.err
}

func (j *journal) put(marks ...channels.Mark) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.marks = marks
}

// newBot makes an account that talks to an emulator.
func newBot(t testing.TB, srv *emulator.Server, change func(*Config, *Deps)) *Bot {
	t.Helper()
	cfg := Config{BotToken: secret.New(srv.Token()), APIRoot: emulator.Root}
	store := &memory{}
	deps := Deps{
		Menus: store, Hash: store, Transport: srv.Transport,
		Dial: func(ctx context.Context, network, addr string) (net.Conn, error) { return srv.Dial(ctx, network, addr) },
	}
	if change != nil {
		change(&cfg, &deps)
	}
	b, err := New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// account is a running bot with its platform.
type account struct {
	*Bot
	srv  *emulator.Server
	got  *channelstest.Recorder
	log  *lines
	stop context.CancelFunc
	done chan error
}

// start starts a bot in a bubble.
func start(t *testing.T, srv *emulator.Server, change func(*Config, *Deps)) *account {
	t.Helper()
	a := &account{srv: srv, got: channelstest.NewRecorder(), log: &lines{}, done: make(chan error, 1)}
	a.Bot = newBot(t, srv, func(c *Config, d *Deps) {
		d.Log = slog.New(slog.NewTextHandler(a.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		if change != nil {
			change(c, d)
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	a.stop = stop
	go func() { a.done <- a.Run(ctx, a.got) }()
	return a
}

// end stops a bot. No secret may stand in its log.
func (a *account) end(t *testing.T) error {
	t.Helper()
	a.stop()
	err := <-a.done
	a.Close()
	if text := a.log.String(); strings.Contains(text, a.srv.Token()) || strings.Contains(text, "interaction-token") {
		t.Errorf("a token stands in the log:\n%s", text)
	}
	return err
}

// running runs a test against a connected bot, in a bubble.
func running(t *testing.T, cfg emulator.Config, change func(*Config, *Deps), test func(t *testing.T, a *account)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(cfg)
		defer srv.Close()
		a := start(t, srv, change)
		synctest.Wait()
		if got := a.got.State(); got != channels.Connected {
			t.Errorf("state %q, log:\n%s", got, a.log)
		} else {
			test(t, a)
		}
		if err := a.end(t); err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
}

// await waits, in virtual time, until something holds.
func (a *account) await(t *testing.T, limit time.Duration, cond func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := a.srv.WaitFor(ctx, cond); err != nil {
		t.Errorf("it does not come to that within %v; log:\n%s", limit, a.log)
	}
}

// pass lets virtual time pass.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// lines is a log for tests.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func say(to chat.Address, text string) channels.Piece {
	return channels.Piece{To: to, Class: chat.Assistant, Text: text, Plain: text}
}

// verdictOf is the verdict of an error of Send, 0 if it is none.
func verdictOf(err error) (channels.Verdict, string) {
	var e *channels.SendError
	if !errors.As(err, &e) {
		return 0, ""
	}
	return e.Verdict, e.Code
}

// slowSink is a sink whose Accept takes its time.
type slowSink struct {
	*channelstest.Recorder
	takes time.Duration
}

func (s *slowSink) Accept(ctx context.Context, m chat.Inbound) error {
	timer := time.NewTimer(s.takes)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.Recorder.Accept(ctx, m)
}

var _ http.RoundTripper = (*recorder)(nil)

var otherToken = secret.New(emulator.TokenOf("78"))

func prefixed(s secret.String) secret.String { return secret.New(tokenPrefix + s.Reveal()) }

// emulatorWithoutServer is a platform for parts that do not connect.
func emulatorWithoutServer() *emulator.Server {
	srv := emulator.New(emulator.Config{})
	srv.Close()
	return srv
}

func mustParse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
