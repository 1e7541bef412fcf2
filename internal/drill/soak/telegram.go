package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"understudy/internal/emulate/telegram"
)

// forumTopic is the topic in which the conversations of kind thread are held.
const forumTopic = 7

type telegramSide struct {
	weather
	srv  *telegram.Server
	root string
	last [2]int64 // chat and id of the latest question
}

func newTelegram() *telegramSide {
	return &telegramSide{srv: telegram.New(telegram.Config{}), root: telegram.Root}
}

func (t *telegramSide) name() string { return "telegram" }

func (t *telegramSide) listen() (err error) {
	t.root, err = t.srv.Listen()
	return err
}

func (t *telegramSide) settings() string {
	return fmt.Sprintf(`  telegram:
    botToken: %q
    apiRoot: %q
    dmPolicy: open
    allowFrom: ["*"]
    groupPolicy: open
    groups: {"*": {}}
    replyToMode: first
`, t.srv.Token(), t.root)
}

func (t *telegramSide) open(i int, kind string) place {
	user := int64(1001 + i)
	t.srv.SetUser(telegram.User{ID: user, FirstName: fmt.Sprintf("Person %d", i)})
	c := telegram.Chat{ID: user, Type: "private"}
	if kind != direct {
		c = telegram.Chat{ID: -1000 - int64(i), Type: "supergroup", Title: fmt.Sprintf("Room %d", i), Forum: kind == thread}
	}
	p := place{kind: kind, user: strconv.FormatInt(user, 10), channel: strconv.FormatInt(c.ID, 10)}
	if kind == thread {
		p.thread = strconv.Itoa(forumTopic)
		t.srv.AddChat(c, forumTopic)
	} else {
		t.srv.AddChat(c)
	}
	return p
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64) // written by open
	return n
}

func (t *telegramSide) say(p *place, text string) (id, where string) {
	var opts []telegram.Say
	if p.kind != direct {
		text = "@" + t.srv.Username() + " " + text
	}
	if p.thread != "" {
		opts = append(opts, telegram.InTopic(forumTopic))
	}
	n := t.srv.UserSays(number(p.channel), number(p.user), text, opts...)
	t.last = [2]int64{number(p.channel), int64(n)}
	return strconv.Itoa(n), p.thread
}

func (t *telegramSide) transcript(p place) []heard {
	var out []heard
	for _, m := range t.srv.Messages(number(p.channel)) {
		if m.Deleted {
			continue
		}
		h := heard{id: strconv.Itoa(m.ID), text: m.Text, at: m.At, byBot: m.FromBot}
		if m.Thread != 0 {
			h.thread = strconv.Itoa(m.Thread)
		}
		if m.ReplyTo != 0 {
			h.ref = strconv.Itoa(m.ReplyTo)
		}
		out = append(out, h)
	}
	return out
}

func (t *telegramSide) astray() []heard { return nil }

func (t *telegramSide) gust(r *rand.Rand) string {
	f := telegram.Fault{Method: []string{"sendMessage", "sendMessage", "editMessageText", "getUpdates", ""}[r.IntN(5)]}
	inject := func(change func(*telegram.Fault)) func(*rand.Rand) {
		return func(*rand.Rand) { change(&f); t.srv.Inject(f) }
	}
	t.calm() // what met no call is over
	return t.pick(r, []chance{
		{"429", inject(func(f *telegram.Fault) { f.Status, f.RetryAfter = 429, seconds(r, 3) })},
		{"lost call", inject(func(f *telegram.Fault) { f.Drop = true })},
		{lostReceipt, inject(func(f *telegram.Fault) { f.DropAfter = true })},
		{"502", inject(func(f *telegram.Fault) { f.Body, f.Status = errorPage, http.StatusBadGateway })},
		{"500", inject(func(f *telegram.Fault) { f.Status = http.StatusInternalServerError })},
		{"slow call", inject(func(f *telegram.Fault) { f.Delay, f.Times = upTo(r, 4*time.Second), 3 })},
		{"update anew", func(*rand.Rand) {
			if t.last[1] != 0 {
				t.srv.Redeliver(t.last[0], int(t.last[1]))
			}
		}},
		{"unreadable update", func(*rand.Rand) { t.srv.PushRaw(`{"update_id":%d,"message":{"message_id":"no number"}}`) }},
	}, []chance{
		{"connections cut", func(*rand.Rand) { t.srv.Cut() }},
		{"poll conflict", func(*rand.Rand) { t.srv.Inject(telegram.Fault{Method: "getUpdates", Status: http.StatusConflict}) }},
	})
}

func (t *telegramSide) calm() { t.srv.ClearFaults() }

func (t *telegramSide) tried(text string) int {
	n := 0
	for _, c := range t.srv.Calls("sendMessage") {
		if strings.Contains(c.Params["text"], text) {
			n++
		}
	}
	return n
}

func (t *telegramSide) transport() http.RoundTripper { return t.srv.Transport() }

func (t *telegramSide) dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("telegram has no sockets")
}

func (t *telegramSide) close() { t.srv.Close() }
