package conversations

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"

	"understudy/internal/emulate/slack"
)

type slackSide struct {
	srv    *slack.Server
	places map[string]string    // place, or "private alice" → channel
	newest map[string][2]string // person → channel and timestamp
	root   string               // of the newest thread
}

func newSlack() *slackSide {
	s := &slackSide{srv: slack.New(slack.Config{}), places: map[string]string{ops: "C0OPS0001", hall: "C0HALL001"}, newest: map[string][2]string{}}
	for i, who := range people {
		s.srv.SetUser(slack.User{ID: slackID(who), Name: who})
		id := fmt.Sprintf("D0PERSON%d", i)
		s.places[private+" "+who] = id
		s.srv.AddChannel(slack.Channel{ID: id, Kind: "im", With: slackID(who)})
	}
	s.srv.AddChannel(slack.Channel{ID: s.places[ops], Kind: "channel", Name: "ops"})
	s.srv.AddChannel(slack.Channel{ID: s.places[hall], Kind: "channel", Name: "hall"})
	return s
}

func slackID(who string) string {
	return map[string]string{"alice": "U0ALICE01", "bob": "U0BOB0001", "carol": "U0CAROL01", "robot": "U0ROBOT01"}[who]
}

func (s *slackSide) settings(more string) string {
	c := s.srv.Config()
	return fmt.Sprintf(`  slack:
    botToken: %s
    appToken: %s
    apiRoot: %q
    channels: {C0OPS0001: {}}
    allowFrom: [U0ALICE01, U0BOB0001, U0ROBOT01]
%s`, c.BotToken, c.AppToken, slack.Root, more)
}

func (s *slackSide) where(who, place string) string {
	switch place {
	case private:
		return s.places[private+" "+who]
	case thread:
		return s.places[ops]
	}
	return s.places[place]
}

func (s *slackSide) say(x say) {
	var opts []slack.Say
	if x.place == thread {
		opts = append(opts, slack.InThread(s.root))
	}
	switch x.file {
	case "picture":
		opts = append(opts, slack.WithFile(slack.File{Name: "dot.png", MIME: "image/png", Data: aPicture}))
	case "voice note":
		opts = append(opts, slack.WithFile(slack.File{Name: "note.ogg", MIME: "audio/ogg", Subtype: "slack_audio", Data: aNote}))
	}
	if x.who == "robot" {
		opts = append(opts, slack.AsBot("B0ROBOT01"))
	}
	c := s.where(x.who, x.place)
	ts := s.srv.UserSays(c, slackID(x.who), mention(x.text, "<@"+s.srv.Config().BotUser+">"), opts...)
	s.newest[x.who] = [2]string{c, ts}
	if x.place == ops {
		s.root = ts
	}
}

func (s *slackSide) edit(who, text string) { s.srv.UserEdits(s.newest[who][0], s.newest[who][1], text) }
func (s *slackSide) remove(who string)     { s.srv.UserDeletes(s.newest[who][0], s.newest[who][1]) }
func (s *slackSide) run(who, place, command string) {
	s.srv.Slash(s.where(who, place), slackID(who), "/bot", command)
}

func (s *slackSide) press(who, label string) bool {
	for _, c := range s.channels() {
		for _, m := range slices.Backward(s.srv.Messages(c)) {
			if m.ByBot && !m.Deleted && s.srv.Press(c, slackID(who), m.TS, label) != "" {
				return true
			}
		}
	}
	return false
}

func (s *slackSide) channels() (out []string) {
	for _, who := range people {
		out = append(out, s.places[private+" "+who])
	}
	return append(out, s.places[ops], s.places[hall])
}

func (s *slackSide) away() { s.srv.Away() }
func (s *slackSide) back() { s.srv.Back() }

func (s *slackSide) refuse(int) {
	s.srv.Inject(slack.Fault{Method: "chat.postMessage", Error: "restricted_action"})
}

func (s *slackSide) loseReceipt() {
	s.srv.Inject(slack.Fault{Method: "chat.postMessage", DropAfter: true})
}

func (s *slackSide) messages() (out []shown) {
	names := map[string]string{s.srv.Config().BotUser: "bot"}
	for _, who := range people {
		names[slackID(who)] = who
	}
	for _, c := range s.channels() {
		all := s.srv.Messages(c)
		for _, m := range all {
			x := shown{id: c + m.TS, place: s.placeOf(c), who: names[m.User], text: m.Text, deleted: m.Deleted, only: names[m.OnlyFor], buttons: m.Choices()}
			if i := slices.IndexFunc(all, func(o slack.Message) bool { return o.TS == m.Thread }); i >= 0 && m.Thread != m.TS {
				x.thread = cmp.Or(all[i].Text, "(no words)")
			}
			for _, id := range m.Files {
				name, data := s.srv.Content(id)
				x.files = append(x.files, describe(name, data))
			}
			out = append(out, x)
		}
	}
	return out
}

func (s *slackSide) placeOf(channel string) string {
	for name, c := range s.places {
		if c == channel {
			return name
		}
	}
	return channel
}

func (s *slackSide) transport() http.RoundTripper { return s.srv.Transport() }
func (s *slackSide) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return s.srv.Dial(ctx, network, address)
}
func (s *slackSide) close() { s.srv.Close() }
