package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"understudy/internal/emulate/slack"
)

type slackSide struct {
	weather
	srv  *slack.Server
	root string
	last []string // channel and timestamp of the latest question
}

func newSlack() *slackSide {
	return &slackSide{srv: slack.New(slack.Config{}), root: "http://slack.test"}
}

func (s *slackSide) name() string { return "slack" }

func (s *slackSide) listen() (err error) {
	s.root, err = s.srv.Listen()
	return err
}

func (s *slackSide) settings() string {
	c := s.srv.Config()
	return fmt.Sprintf(`  slack:
    botToken: %s
    appToken: %s
    apiRoot: %q
    dmPolicy: open
    allowFrom: ["*"]
    groupPolicy: open
    channels: {"*": {}}
    replyToModeByChatType: {direct: "off"}
`, c.BotToken, c.AppToken, s.root)
}

func (s *slackSide) open(i int, kind string) place {
	p := place{kind: kind, user: fmt.Sprintf("U0SOAK%03d", i), channel: fmt.Sprintf("C0SOAK%03d", i)}
	s.srv.SetUser(slack.User{ID: p.user, Name: fmt.Sprintf("person%d", i)})
	c := slack.Channel{ID: p.channel, Kind: "channel", Name: fmt.Sprintf("room-%d", i)}
	if kind == direct {
		p.channel = fmt.Sprintf("D0SOAK%03d", i)
		c = slack.Channel{ID: p.channel, Kind: "im", With: p.user}
	}
	s.srv.AddChannel(c)
	return p
}

func (s *slackSide) say(p *place, text string) (id, where string) {
	var opts []slack.Say
	if p.kind != direct {
		text = "<@" + s.srv.Config().BotUser + "> " + text
	}
	if p.thread != "" {
		opts = append(opts, slack.InThread(p.thread))
	}
	id = s.srv.UserSays(p.channel, p.user, text, opts...)
	s.last = []string{p.channel, id}
	switch p.kind {
	case direct:
		return id, ""
	case room:
		return id, id
	}
	if p.thread == "" {
		p.thread = id
	}
	return id, p.thread
}

func (s *slackSide) transcript(p place) []heard {
	var out []heard
	for _, m := range s.srv.Messages(p.channel) {
		if !m.Deleted {
			out = append(out, heard{id: m.TS, thread: m.Thread, text: m.Text, at: m.At, byBot: m.ByBot})
		}
	}
	return out
}

func (s *slackSide) astray() []heard { return nil }

// slackCalls are the calls that answers are made of.
var slackCalls = []string{"chat.postMessage", "chat.update", "chat.startStream", "chat.appendStream", "chat.stopStream", "chat.delete", "assistant.threads.setStatus", "reactions.add"}

func (s *slackSide) gust(r *rand.Rand) string {
	method := slackCalls[r.IntN(len(slackCalls))]
	if r.IntN(2) == 0 {
		method = slackCalls[0]
	}
	inject := func(f slack.Fault) func(*rand.Rand) {
		return func(*rand.Rand) { f.Method = method; s.srv.Inject(f) }
	}
	s.srv.ClearFaults() // what met no call is over
	return s.pick(r, []chance{
		{"429", inject(slack.Fault{RetryAfter: seconds(r, 3), Times: 1 + r.IntN(2)})},
		{"lost call", inject(slack.Fault{Drop: true})},
		{lostReceipt, inject(slack.Fault{DropAfter: true})},
		{"502", inject(slack.Fault{Body: errorPage, Status: http.StatusBadGateway})},
		{"internal_error", inject(slack.Fault{Error: "service_unavailable", Status: http.StatusServiceUnavailable})},
		{"slow call", inject(slack.Fault{Delay: upTo(r, 4*time.Second), Times: 3})},
		{"event again", func(r *rand.Rand) {
			if d := s.srv.Deliveries(); len(d) > 0 {
				s.srv.Redeliver(d[len(d)-1-r.IntN(min(len(d), 10))].Envelope)
			}
		}},
		{"event anew", func(*rand.Rand) {
			if s.last != nil {
				s.srv.TellAgain(s.last[0], s.last[1])
			}
		}},
	}, []chance{
		{"sockets dropped", func(*rand.Rand) { s.srv.DropSockets() }},
		{"asked to reconnect", func(*rand.Rand) { s.srv.Disconnect("refresh_requested") }},
		{"warned", func(*rand.Rand) { s.srv.Disconnect("warning") }},
		{"half-open socket", func(*rand.Rand) { s.srv.Silence() }},
		{"no connection", func(*rand.Rand) {
			s.srv.Inject(slack.Fault{Method: "apps.connections.open", Status: http.StatusInternalServerError, Error: "internal_error"})
			s.srv.DropSockets()
		}},
	})
}

func (s *slackSide) calm() { s.srv.ClearFaults() }

func (s *slackSide) tried(text string) int {
	n := 0
	for _, c := range s.srv.Calls("") {
		if !slices.Contains([]string{"chat.postMessage", "chat.startStream", "chat.appendStream", "chat.stopStream"}, c.Method) {
			continue
		}
		for _, v := range c.Params {
			if strings.Contains(v, text) {
				n++
				break
			}
		}
	}
	return n
}

func (s *slackSide) transport() http.RoundTripper { return s.srv.Transport() }

func (s *slackSide) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return s.srv.Dial(ctx, network, address)
}

func (s *slackSide) close() { s.srv.Close() }
