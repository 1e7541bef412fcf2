package slack

import (
	"slices"
	"testing"

	"understudy/channels/channelstest"
	"understudy/chat"
	"understudy/internal/secret"

	emulator "understudy/internal/emulate/slack"
)

func TestConformanceOverSocketMode(t *testing.T) {
	channelstest.Run(t, func(t *testing.T) *channelstest.Subject {
		s := subject(t, emulator.Config{}, nil)
		s.Platform = socketPlatform{s.Platform.(platform)}
		s.Second = func(t *testing.T) *channelstest.Subject {
			return subject(t, emulator.Config{BotToken: "xoxb-second", AppToken: "xapp-second"}, second)
		}
		return s
	})
}

func TestConformanceOverHTTP(t *testing.T) {
	channelstest.Run(t, func(t *testing.T) *channelstest.Subject {
		s := subject(t, emulator.Config{}, overHTTP)
		s.Second = func(t *testing.T) *channelstest.Subject {
			return subject(t, emulator.Config{BotToken: "xoxb-second"}, func(c *Config, d *Deps) { overHTTP(c, d); second(c, d) })
		}
		return s
	})
}

// second names the second account, whose addresses say so.
func second(_ *Config, d *Deps) { d.Account = "second" }

func subject(t *testing.T, cfg emulator.Config, change func(*Config, *Deps)) *channelstest.Subject {
	srv := newServer(cfg)
	root := srv.UserSaidUnheard(general, bob, "a root")
	srv.UserSaidUnheard(general, bob, "a reply", emulator.InThread(root))
	marks := channelstest.NewMarks()
	account := ""
	b := newBot(t, srv, func(c *Config, d *Deps) {
		d.Seen = marks
		if change != nil {
			change(c, d)
		}
		c.AppToken = secret.New(srv.Config().AppToken)
		account = d.Account
	})
	if b.Path() != "" {
		srv.PostTo(b, b.Path())
	}
	at := func(a chat.Address, thread string) chat.Address {
		a.Account, a.Thread = account, thread
		return a
	}
	return &channelstest.Subject{
		Adapter: b, Platform: platform{srv}, Close: b.Close, Seen: marks, Person: ann, Other: bob,
		Direct: at(direct, ""), Group: at(room, ""), Thread: at(room, root),
	}
}

// platform drives the emulator for the conformance suite.
type platform struct{ srv *emulator.Server }

func (p platform) Say(person string, to chat.Address, text, _ string) string {
	var opts []emulator.Say
	if to.Thread != "" {
		opts = append(opts, emulator.InThread(to.Thread))
	}
	return p.srv.UserSays(to.Conversation, person, text, opts...)
}

func (p platform) Close() { p.srv.Close() }

func (p platform) Name() string { return "<@" + p.srv.Config().BotUser + ">" }

func (p platform) Transcript(to chat.Address) []channelstest.Said {
	var out []channelstest.Said
	for _, m := range p.srv.Messages(to.Conversation) {
		thread := m.Thread
		if to.Thread == "" && thread == m.TS {
			thread = ""
		}
		if !m.Deleted && m.OnlyFor == "" && thread == to.Thread {
			out = append(out, channelstest.Said{ID: m.TS, Text: m.Text, ByBot: m.ByBot})
		}
	}
	return out
}

func (p platform) Break(how channelstest.Breakage) {
	f := emulator.Fault{Method: "chat.postMessage"}
	switch how {
	case channelstest.CutAfterSend:
		f.DropAfter = true
	case channelstest.RateLimited:
		f.RetryAfter = channelstest.RetryAfter
	case channelstest.ServerError:
		f.Status, f.Body = 503, "<html>Service Unavailable</html>"
	case channelstest.Forbidden:
		f.Error = "not_in_channel"
	}
	p.srv.Inject(f)
}

func (p platform) Press(person string, to chat.Address, id, label string) {
	p.srv.Press(to.Conversation, person, id, label)
}

func (p platform) Edit(_ string, to chat.Address, id, text string) {
	p.srv.UserEdits(to.Conversation, id, text)
}

func (p platform) Delete(_ string, to chat.Address, id string) {
	p.srv.UserDeletes(to.Conversation, id)
}

func (p platform) Duplicate(to chat.Address, id string) { p.srv.TellAgain(to.Conversation, id) }

func (p platform) Reactions(to chat.Address, id string) []string {
	return p.srv.Reactions(to.Conversation, id)
}

func (p platform) Share(person string, to chat.Address, text string, f chat.Attachment) string {
	return p.srv.UserSays(to.Conversation, person, text, emulator.WithFile(emulator.File{Name: f.Name, MIME: f.MediaType, Data: f.Data}))
}

func (p platform) Files(to chat.Address) []chat.Attachment {
	var out []chat.Attachment
	for _, m := range p.srv.Sent(to.Conversation) {
		for _, id := range m.Files {
			name, data := p.srv.Content(id)
			out = append(out, chat.Attachment{Name: name, Data: data})
		}
	}
	return out
}

func (p platform) Options(to chat.Address, id string) []string {
	var out []string
	for _, m := range p.srv.Messages(to.Conversation) {
		if m.TS == id {
			out = append(out, m.Choices()...)
		}
	}
	return out
}

func (platform) Next() string { return "there are no pages" }

func (p platform) Told(person string) []string {
	var out []string
	for _, conversation := range []string{dm, general} {
		for _, m := range p.srv.Messages(conversation) {
			if m.OnlyFor == person {
				out = append(out, m.Text)
			}
		}
	}
	slices.Sort(out)
	return out
}

// socketPlatform is a platform with connections.
type socketPlatform struct{ platform }

func (p socketPlatform) Cut() { p.srv.DropSockets() }

func (p socketPlatform) Away() { p.srv.Away() }

func (p socketPlatform) Back() { p.srv.Back() }

func (p socketPlatform) Revoke() { p.srv.Revoke() }
