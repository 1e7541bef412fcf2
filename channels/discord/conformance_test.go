package discord

import (
	"net/http"
	"testing"

	"understudy/channels/channelstest"
	"understudy/chat"

	emulator "understudy/internal/emulate/discord"
)

func TestConformance(t *testing.T) {
	channelstest.Run(t, func(t *testing.T) *channelstest.Subject {
		s := subject(t, emulator.Config{}, "")
		s.Second = func(t *testing.T) *channelstest.Subject {
			return subject(t, emulator.Config{Token: "MTE3.second.account"}, "second")
		}
		return s
	})
}

func subject(t *testing.T, cfg emulator.Config, account string) *channelstest.Subject {
	srv := newServer(cfg)
	marks := channelstest.NewMarks()
	b := newBot(t, srv, func(_ *Config, d *Deps) {
		d.Account, d.Seen, d.Menus = account, marks, channelstest.NewMenus()
	})
	at := func(a chat.Address) chat.Address { a.Account = account; return a }
	return &channelstest.Subject{
		Adapter: b, Platform: &platform{Server: srv}, Close: b.Close, Seen: marks, Person: ann, Other: bob,
		Direct: at(direct), Group: at(inRoom), Thread: at(inThread),
	}
}

// platform drives the emulator for the conformance suite.
type platform struct {
	*emulator.Server
	runs []string // interactions of people
}

func placeOf(to chat.Address) string {
	if to.Thread != "" {
		return to.Thread
	}
	return to.Conversation
}

func (p *platform) Say(person string, to chat.Address, text, replyTo string) string {
	var opts []emulator.Say
	if replyTo != "" {
		opts = append(opts, emulator.ReplyingTo(replyTo))
	}
	return p.UserSays(placeOf(to), person, text, opts...)
}

func (p *platform) Name() string { return p.Mention() }

func (p *platform) Transcript(to chat.Address) []channelstest.Said {
	var out []channelstest.Said
	for _, m := range p.Messages(placeOf(to)) {
		if !m.Deleted && !m.Ephemeral {
			out = append(out, channelstest.Said{ID: m.ID, Text: m.Content, ReplyTo: m.ReplyTo, ByBot: m.FromBot, Silent: m.Flags&emulator.Silent != 0})
		}
	}
	return out
}

func (p *platform) Break(how channelstest.Breakage) {
	f := emulator.Fault{Method: http.MethodPost, Path: "/messages"}
	switch how {
	case channelstest.CutAfterSend:
		f.DropAfter = true
	case channelstest.RateLimited:
		f.Status, f.RetryAfter = http.StatusTooManyRequests, channelstest.RetryAfter
	case channelstest.ServerError:
		f.Status, f.Body = http.StatusBadGateway, "<html>Bad Gateway</html>"
	case channelstest.Forbidden:
		f.Status, f.Code, f.Message = http.StatusForbidden, codeNoAccess, "Missing Access"
	}
	p.Inject(f)
}

func (p *platform) Press(person string, to chat.Address, id, label string) {
	p.keep(p.Server.Press(placeOf(to), person, id, label))
}

// keep remembers an interaction.
func (p *platform) keep(id string) string {
	if id != "" {
		p.runs = append(p.runs, id)
	}
	return id
}

func (p *platform) Edit(_ string, to chat.Address, id, text string) {
	p.UserEdits(placeOf(to), id, text)
}

func (p *platform) Delete(_ string, to chat.Address, id string) { p.UserDeletes(placeOf(to), id) }

func (p *platform) Duplicate(chat.Address, string) { p.Repeat() }

func (p *platform) Reactions(to chat.Address, id string) []string {
	for _, m := range p.Messages(placeOf(to)) {
		if m.ID == id {
			return m.Reactions
		}
	}
	return nil
}

func (p *platform) Share(person string, to chat.Address, text string, f chat.Attachment) string {
	return p.UserSays(placeOf(to), person, text, emulator.WithFile(f.Name, f.MediaType, f.Data))
}

func (p *platform) Files(to chat.Address) []chat.Attachment {
	var out []chat.Attachment
	for _, m := range p.Sent(placeOf(to)) {
		for _, f := range m.Files {
			out = append(out, chat.Attachment{Name: f.Name, Data: f.Data})
		}
	}
	return out
}

func (p *platform) Options(to chat.Address, id string) []string {
	var out []string
	for _, m := range p.Messages(placeOf(to)) {
		if m.ID != id {
			continue
		}
		for _, row := range m.Components {
			for _, c := range row.Components {
				if c.Label != "" && !c.Disabled {
					out = append(out, c.Label)
				}
				for _, o := range c.Options {
					out = append(out, o.Label)
				}
			}
		}
	}
	return out
}

func (*platform) Next() string { return "▶" }

func (p *platform) Told(person string) []string {
	var out []string
	for _, id := range p.runs {
		if p.Interaction(id).User == person {
			for _, m := range p.Replies(id) {
				out = append(out, m.Content)
			}
		}
	}
	return out
}

func (p *platform) Run(person string, to chat.Address, name, args string) string {
	var given []emulator.Argument
	if args != "" {
		given = append(given, emulator.Argument{Name: "name", Value: args})
	}
	return p.keep(p.RunCommand(placeOf(to), person, name, given...))
}

func (p *platform) Private(person string, _ chat.Address) []string { return p.Told(person) }
