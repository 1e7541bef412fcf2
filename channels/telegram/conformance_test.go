package telegram

import (
	"context"
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
	bob   = 1002
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
	srv.AddChat(emulator.Chat{ID: bob, Type: "private"})
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
		s := subject(t, emulator.Config{}, "", nil)
		s.Second = func(t *testing.T) *channelstest.Subject {
			return subject(t, emulator.Config{Token: "220:other"}, "second", nil)
		}
		return s
	})
}

// subject makes an account with an emulator of its own.
func subject(t *testing.T, cfg emulator.Config, account string, change func(*Config, *Deps)) *channelstest.Subject {
	srv := newServer(cfg)
	b := newBot(t, srv, func(c *Config, d *Deps) {
		d.Account, d.Menus = account, channelstest.NewMenus()
		if change != nil {
			change(c, d)
		}
	})
	of := func(a chat.Address) chat.Address {
		a.Account = account
		return a
	}
	return &channelstest.Subject{
		Adapter: b, Platform: platform{srv}, Close: b.Close,
		Person: strconv.Itoa(ann), Other: strconv.Itoa(bob), Direct: of(direct), Group: of(inGroup), Thread: of(inTopic),
	}
}

// platform drives the emulator for the conformance suite.
type platform struct{ *emulator.Server }

var (
	_ channelstest.Breaker    = platform{}
	_ channelstest.Chooser    = platform{}
	_ channelstest.Cutter     = platform{}
	_ channelstest.Duplicator = platform{}
	_ channelstest.Editable   = platform{}
	_ channelstest.Reactable  = platform{}
	_ channelstest.Revoker    = platform{}
	_ channelstest.Sharer     = platform{}
)

func number(id string) int {
	n, _ := strconv.Atoi(id)
	return n
}

func (p platform) Edit(_ string, to chat.Address, id, text string) {
	conversation, _ := ids(to)
	p.UserEdits(conversation, number(id), text)
}

func (p platform) Duplicate(to chat.Address, id string) {
	conversation, _ := ids(to)
	p.Redeliver(conversation, number(id))
}

func (p platform) Reactions(to chat.Address, id string) []string {
	conversation, _ := ids(to)
	return p.Server.Reactions(conversation, number(id))
}

func (p platform) Share(person string, to chat.Address, text string, file chat.Attachment) string {
	conversation, _ := ids(to)
	return strconv.Itoa(p.UserSays(conversation, int64(number(person)), text, emulator.WithFile("document", file.Name, file.MediaType, file.Data)))
}

func (p platform) Files(to chat.Address) []chat.Attachment {
	conversation, _ := ids(to)
	var out []chat.Attachment
	for _, m := range p.Sent(conversation) {
		if m.Media != "" {
			out = append(out, chat.Attachment{Name: m.FileName, Data: m.Data})
		}
	}
	return out
}

func (p platform) Options(to chat.Address, id string) []string {
	conversation, _ := ids(to)
	var out []string
	for _, m := range p.Messages(conversation) {
		if m.ID == number(id) {
			for _, b := range m.Buttons {
				out = append(out, b.Text)
			}
		}
	}
	return out
}

func (platform) Next() string { return "▶" }

func (p platform) Told(person string) []string { return p.Toasts(int64(number(person))) }

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
