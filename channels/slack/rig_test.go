package slack

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"understudy/channels"
	"understudy/channels/channelstest"
	"understudy/chat"
	"understudy/internal/secret"

	emulator "understudy/internal/emulate/slack"
)

const (
	ann     = "U0ANN0001"
	bob     = "U0BOB0001"
	dm      = "D0ANN0001"
	general = "C0GENERAL"
	trio    = "C0TRIO001" // several people
)

var (
	direct = chat.Address{Channel: Channel, Conversation: dm, Kind: chat.Direct}
	room   = chat.Address{Channel: Channel, Conversation: general, Kind: chat.Room}
)

// menus is a channels.Menus that can fail.
type menus struct {
	*channelstest.Menus
	mu  sync.Mutex
	err error
}

func newMenus() *menus { return &menus{Menus: channelstest.NewMenus()} }

func (m *menus) Put(ctx context.Context, one channels.Menu) (string, error) {
	if err := m.failure(); err != nil {
		return "", err
	}
	return m.Menus.Put(ctx, one)
}

func (m *menus) Get(ctx context.Context, token string) (channels.Menu, error) {
	if err := m.failure(); err != nil {
		return channels.Menu{}, err
	}
	return m.Menus.Get(ctx, token)
}

func (m *menus) failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

func (m *menus) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// newServer makes a workspace with the places of the tests.
func newServer(cfg emulator.Config) *emulator.Server {
	srv := emulator.New(cfg)
	srv.AddChannel(emulator.Channel{ID: dm, Kind: "im", With: ann})
	srv.AddChannel(emulator.Channel{ID: general, Kind: "channel", Name: "general"})
	srv.AddChannel(emulator.Channel{ID: trio, Kind: "mpim", Name: "mpdm-ann--bob--understudy-1"})
	srv.SetUser(emulator.User{ID: ann, Name: "Ann Lee"})
	srv.SetUser(emulator.User{ID: bob, Name: "Bob"})
	return srv
}

// newBot makes an account that talks to an emulator.
func newBot(t testing.TB, srv *emulator.Server, change func(*Config, *Deps)) *Bot {
	t.Helper()
	known := srv.Config()
	cfg := Config{
		BotToken: secret.New(known.BotToken), AppToken: secret.New(known.AppToken), SigningSecret: secret.New(known.SigningSecret),
		APIRoot: emulator.Root,
	}
	deps := Deps{Menus: newMenus(), Transport: srv.Transport, Dial: srv.Dial}
	if change != nil {
		change(&cfg, &deps)
	}
	b, err := New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// rig is an account that runs against an emulator in a bubble.
type rig struct {
	*testing.T
	srv  *emulator.Server
	bot  *Bot
	sink *channelstest.Recorder
	stop context.CancelFunc
	done chan error
}

// setup is what a test changes.
type setup struct {
	server emulator.Config
	bot    func(*Config, *Deps)
	before func(*emulator.Server) // before the account runs
	idle   bool                   // do not run it
}

// inBubble runs a test with an account that is connected.
func inBubble(t *testing.T, s setup, test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(s.server)
		if s.before != nil {
			s.before(srv)
		}
		b := newBot(t, srv, s.bot)
		if b.cfg.Mode == modeHTTP {
			srv.PostTo(b, b.Path())
		}
		r := &rig{T: t, srv: srv, bot: b, sink: channelstest.NewRecorder(), done: make(chan error, 1)}
		ctx, stop := context.WithCancel(t.Context())
		r.stop = stop
		if s.idle {
			r.done <- nil
		} else {
			go func() { r.done <- b.Run(ctx, r.sink) }()
		}
		defer func() {
			stop()
			if err := <-r.done; err != nil {
				t.Errorf("Run ended with %v", err)
			}
			b.Close()
			srv.Close()
		}()
		synctest.Wait()
		test(r)
	})
}

func overHTTP(c *Config, _ *Deps) { c.Mode = modeHTTP }

// send sends text and returns the message id.
func (r *rig) send(to chat.Address, text string) string {
	r.Helper()
	return r.sendPiece(channels.Piece{To: to, Class: chat.Assistant, Text: text, Plain: text})
}

func (r *rig) sendPiece(p channels.Piece) string {
	r.Helper()
	got, err := r.bot.Send(r.Context(), p)
	if err != nil || len(got.IDs) == 0 {
		r.Fatalf("send: %v, receipt %v", err, got)
	}
	return got.IDs[0]
}

// last is the last message in a conversation.
func (r *rig) last(conversation string) emulator.Message {
	r.Helper()
	all := r.srv.Messages(conversation)
	if len(all) == 0 {
		r.Fatal("nothing was said")
	}
	return all[len(all)-1]
}

// none fails when anything was accepted and not read.
func (r *rig) none() {
	r.Helper()
	synctest.Wait()
	if n := r.sink.Pending(); n != 0 {
		r.Errorf("%d messages too many, the first is %+v", n, r.sink.Next(r.T))
	}
}
