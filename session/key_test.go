package session

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy/chat"
)

func TestKeys(t *testing.T) {
	dm := chat.Address{Channel: "slack", Account: "T1", Conversation: "D99", Kind: chat.Direct}
	with := func(a chat.Address, f func(*chat.Address)) chat.Address { f(&a); return a }
	thread := func(id string) func(*chat.Address) { return func(a *chat.Address) { a.Thread = id } }
	tg := chat.Address{Channel: "telegram", Conversation: "123", Kind: chat.Direct}
	group := chat.Address{Channel: "telegram", Conversation: "-100", Kind: chat.Group}
	channel := chat.Address{Channel: "slack", Conversation: "C1", Kind: chat.Room}
	links := Config{DMScope: ScopePeer, IdentityLinks: map[string][]string{"Alice": {"telegram:123", "slack:D99"}}}
	cases := []struct {
		name      string
		a         chat.Address
		cfg       Config
		want, par string
	}{
		{"direct", dm, Config{}, "agent:main:slack:direct:D99", ""},
		{"direct, main", dm, Config{DMScope: ScopeMain}, "agent:main:main", ""},
		{"direct, own main key", dm, Config{DMScope: ScopeMain, MainKey: "Home"}, "agent:main:home", ""},
		{"direct, peer", dm, Config{DMScope: ScopePeer}, "agent:main:direct:slack-D99", ""},
		{"direct, linked", tg, links, "agent:main:direct:alice", ""},
		{"direct, linked elsewhere", dm, links, "agent:main:direct:alice", ""},
		{"direct, account", dm, Config{DMScope: ScopeAccountChannel}, "agent:main:slack:T1:direct:D99", ""},
		{"direct, no account", tg, Config{DMScope: ScopeAccountChannel}, "agent:main:telegram:default:direct:123", ""},
		{"direct Slack thread", with(dm, thread("1.2")), Config{}, "agent:main:slack:direct:D99", ""},
		{
			"Slack assistant thread", with(dm, func(a *chat.Address) { a.Thread, a.Separate = "1.2", true }),
			Config{},
			"agent:main:slack:direct:D99:thread:1.2", "agent:main:slack:direct:D99",
		},
		{"direct Telegram topic", with(tg, thread("7")), Config{}, "agent:main:telegram:direct:123:topic:7", "agent:main:telegram:direct:123"},
		{"group", group, Config{DMScope: ScopeMain}, "agent:main:telegram:group:-100", ""},
		{"topic", with(group, thread("1")), Config{}, "agent:main:telegram:group:-100:topic:1", "agent:main:telegram:group:-100"},
		{"room", channel, Config{}, "agent:main:slack:channel:C1", ""},
		{"room thread", with(channel, thread("17.5")), Config{}, "agent:main:slack:channel:C1:thread:17.5", "agent:main:slack:channel:C1"},
		{"web", chat.Address{Channel: "web", Conversation: "w1", Kind: chat.Direct}, Config{DMScope: ScopeMain}, "agent:main:web:direct:w1", ""},
		{"console", chat.Address{Channel: "console", Conversation: "c", Kind: chat.Direct}, Config{DMScope: ScopePeer}, "agent:main:console:direct:c", ""},
		{"cli", chat.Address{Channel: "cli", Conversation: "job", Kind: chat.Direct}, Config{}, "agent:main:cli:job", ""},
		{"hostile id", chat.Address{Channel: "web", Conversation: "a:b%\n\xff", Kind: chat.Direct}, Config{}, "agent:main:web:direct:a%3ab%25%0a%ff", ""},
	}
	for _, c := range cases {
		if got := Key("Main", c.a, c.cfg); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if got := ParentKey("Main", c.a, c.cfg); got != c.par {
			t.Errorf("%s: parent %q, want %q", c.name, got, c.par)
		}
	}
	if got := MainKey("Ops", Config{}); got != "agent:ops:main" {
		t.Error(got)
	}
}

// TestKeysDoNotCollide: two conversations never share a key, whatever their ids are made of.
func TestKeysDoNotCollide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("a:%thread1é")))
		draw := func(name string) chat.Address {
			return chat.Address{
				Channel: "slack", Kind: rapid.SampledFrom([]chat.Kind{chat.Group, chat.Room}).Draw(t, name+" kind"),
				Conversation: text.Draw(t, name+" conversation"), Thread: text.Draw(t, name+" thread"),
			}
		}
		a, b := draw("a"), draw("b")
		ka, kb := Key("main", a, Config{}), Key("main", b, Config{})
		if (a == b) != (ka == kb) {
			t.Fatalf("%+v and %+v have the keys %s and %s", a, b, ka, kb)
		}
		if strings.ContainsFunc(ka, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Fatalf("%q is not printable ASCII", ka)
		}
	})
}

func TestResetIsDue(t *testing.T) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	at := func(day, hour, minute int) time.Time { return time.Date(2026, 3, day, hour, minute, 0, 0, zone) }
	two := 2
	daily, idle := ResetConfig{Mode: ResetDaily}, ResetConfig{Mode: ResetIdle, IdleMinutes: 30}
	both := ResetConfig{Mode: ResetDaily, IdleMinutes: 30}
	cases := []struct {
		name           string
		r              ResetConfig
		started, heard time.Time
		now            time.Time
		want           bool
	}{
		{"never", ResetConfig{}, at(1, 0, 0), at(1, 0, 0), at(9, 0, 0), false},
		{"daily, before the hour", daily, at(2, 5, 0), at(2, 5, 0), at(3, 3, 59), false},
		{"daily, at the hour", daily, at(2, 5, 0), at(2, 5, 0), at(3, 4, 0), true},
		{"daily, started today", daily, at(3, 4, 0), at(3, 4, 0), at(3, 23, 0), false},
		{"daily, an hour that the clock skips", ResetConfig{Mode: ResetDaily, AtHour: &two}, at(8, 0, 30), at(8, 0, 30), at(8, 3, 30), true},
		{"idle, exactly", idle, at(2, 5, 0), at(2, 5, 0), at(2, 5, 30), false},
		{"idle, over", idle, at(2, 5, 0), at(2, 5, 0), at(2, 5, 31), true},
		{"idle, begun anew since", idle, at(2, 9, 0), at(2, 5, 0), at(2, 9, 30), false},
		{"idle, begun anew and over", idle, at(2, 9, 0), at(2, 5, 0), at(2, 9, 31), true},
		{"idle, nobody wrote", idle, at(2, 5, 0), time.Time{}, at(9, 5, 0), false},
		{"both, idle first", both, at(2, 5, 0), at(2, 5, 0), at(2, 6, 0), true},
		{"both, daily first", both, at(2, 3, 0), at(2, 3, 50), at(2, 4, 5), true},
	}
	for _, c := range cases {
		if got := c.r.Due(Session{StartedAt: c.started, LastInteractionAt: c.heard}, c.now); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestConfig(t *testing.T) {
	hour := 24
	bad := []Config{
		{DMScope: "all"},
		{Reset: ResetConfig{Mode: "weekly"}},
		{Reset: ResetConfig{Mode: ResetIdle}},
		{Reset: ResetConfig{Mode: ResetDaily, AtHour: &hour}},
		{Reset: ResetConfig{IdleMinutes: -1}},
		{ResetByType: map[string]ResetConfig{"dm": {}}},
		{ResetByChannel: map[string]ResetConfig{"slack": {Mode: "x"}}},
	}
	for _, c := range bad {
		if c.Validate() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	cfg := Config{
		Reset:          ResetConfig{Mode: ResetNone},
		ResetByType:    map[string]ResetConfig{"direct": {Mode: ResetDaily}, "group": {Mode: ResetDaily, IdleMinutes: 1}, "thread": {Mode: ResetIdle, IdleMinutes: 2}},
		ResetByChannel: map[string]ResetConfig{"slack": {Mode: ResetIdle, IdleMinutes: 9}},
	}.WithDefaults()
	if err := cfg.Validate(); err != nil || cfg.DMScope != ScopeChannelPeer || cfg.MainKey != "main" {
		t.Errorf("%+v, %v", cfg, err)
	}
	for _, c := range []struct {
		a    chat.Address
		idle int
	}{
		{chat.Address{Channel: "slack", Kind: chat.Direct}, 9},
		{chat.Address{Channel: "telegram", Kind: chat.Direct}, 0},
		{chat.Address{Channel: "telegram", Kind: chat.Group}, 1},
		{chat.Address{Channel: "telegram", Kind: chat.Group, Thread: "1"}, 2},
	} {
		if got := cfg.ResetFor(c.a); got.IdleMinutes != c.idle {
			t.Errorf("%+v: %+v", c.a, got)
		}
	}
}
