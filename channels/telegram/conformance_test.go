package telegram

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"testing"

	"understudy/channels/channelstest"
	"understudy/chat"
	"understudy/internal/secret"

	emulator "understudy/internal/emulate/telegram"
)

// memory is an Offsets for tests.
type memory struct {
	mu     sync.Mutex
	offset int64
	err    error
}

func (m *memory) Load(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.offset, m.err
}

func (m *memory) Save(ctx context.Context, offset int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m.offset = offset
	return nil
}

func (m *memory) stored() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.offset
}

const (
	ann   = 1001
	group = -2001
	forum = -1001
	topic = 55
)

// newBot makes an account that talks to an emulator.
func newBot(t *testing.T, srv *emulator.Server, change func(*Config, *Deps)) *Bot {
	t.Helper()
	cfg := Config{BotToken: secret.New(srv.Token()), APIRoot: emulator.Root}
	deps := Deps{Offsets: &memory{}, Transport: srv.Transport}
	if change != nil {
		change(&cfg, &deps)
	}
	b, err := New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newServer(cfg emulator.Config) *emulator.Server {
	srv := emulator.New(cfg)
	srv.AddChat(emulator.Chat{ID: ann, Type: "private"})
	srv.AddChat(emulator.Chat{ID: group, Type: "group", Title: "Plain"})
	srv.AddChat(emulator.Chat{ID: forum, Type: "supergroup", Title: "Forum", Forum: true}, topic)
	return srv
}

var (
	direct  = chat.Address{Channel: Channel, Conversation: "1001", Kind: chat.Direct}
	inGroup = chat.Address{Channel: Channel, Conversation: "-2001", Kind: chat.Group}
	inTopic = chat.Address{Channel: Channel, Conversation: "-1001", Thread: "55", Kind: chat.Group}
	general = chat.Address{Channel: Channel, Conversation: "-1001", Thread: "1", Kind: chat.Group}
)

func TestConformance(t *testing.T) {
	channelstest.Run(t, func(t *testing.T) *channelstest.Subject {
		srv := newServer(emulator.Config{})
		b := newBot(t, srv, func(_ *Config, d *Deps) { d.Log = slog.New(slog.DiscardHandler) })
		return &channelstest.Subject{
			Adapter: b, Platform: platform{srv}, Close: b.Close,
			Person: strconv.Itoa(ann), Direct: direct, Group: inGroup, Thread: inTopic,
		}
	})
}

// platform drives the emulator for the conformance suite.
type platform struct{ *emulator.Server }

func ids(to chat.Address) (conversation int64, thread int) {
	conversation, _ = strconv.ParseInt(to.Conversation, 10, 64)
	thread, _ = strconv.Atoi(to.Thread)
	return conversation, thread
}

func (p platform) Say(person string, to chat.Address, text, replyTo string) string {
	conversation, thread := ids(to)
	user, _ := strconv.ParseInt(person, 10, 64)
	var opts []emulator.Say
	if thread != 0 {
		opts = append(opts, emulator.InTopic(thread))
	}
	if n, err := strconv.Atoi(replyTo); err == nil {
		opts = append(opts, emulator.ReplyingTo(n, ""))
	}
	return strconv.Itoa(p.UserSays(conversation, user, text, opts...))
}

func (p platform) Name() string { return "@" + p.Username() }

func (p platform) Transcript(to chat.Address) []channelstest.Said {
	conversation, thread := ids(to)
	var out []channelstest.Said
	for _, m := range p.Messages(conversation) {
		if m.Deleted || m.Thread != thread {
			continue
		}
		said := channelstest.Said{ID: strconv.Itoa(m.ID), Text: m.Text, ByBot: m.FromBot, Silent: m.Silent}
		if m.ReplyTo != 0 {
			said.ReplyTo = strconv.Itoa(m.ReplyTo)
		}
		out = append(out, said)
	}
	return out
}

func (p platform) Break(how channelstest.Breakage) {
	switch how {
	case channelstest.CutAfterSend:
		p.Inject(emulator.Fault{Method: "sendMessage", DropAfter: true})
	case channelstest.RateLimited:
		p.Inject(emulator.Fault{Method: "sendMessage", Status: 429, RetryAfter: channelstest.RetryAfter})
	case channelstest.ServerError:
		p.Inject(emulator.Fault{Method: "sendMessage", Status: 502, Body: "<html>Bad Gateway</html>"})
	case channelstest.Forbidden:
		p.Inject(emulator.Fault{Method: "sendMessage", Status: 403, Description: "Forbidden: bot was blocked by the user"})
	}
}

func (p platform) Press(person string, to chat.Address, id, label string) {
	conversation, _ := ids(to)
	user, _ := strconv.ParseInt(person, 10, 64)
	message, _ := strconv.Atoi(id)
	p.Server.Press(conversation, user, message, label)
}
