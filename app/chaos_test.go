package app_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/inbound"
	"understudy/internal/drill"
	emullm "understudy/internal/emulate/llm"
	"understudy/internal/emulate/telegram"
)

const chaosConfig = `agents: {defaults: {userTimezone: UTC, heartbeat: {every: 0m}, model: {primary: alpha/a1, fallbacks: [beta/b1, pair/p1, gamma/g1]}}}
queue: {mode: followup} # so that every message has an answer of its own
channels:
  telegram:
    apiRoot: http://telegram.test
    dmPolicy: allowlist
    allowFrom: ["1001", "1002"]
    replyToMode: all
`

// TestChaos lets everything fail in random order while two people write, kills the bot now and then,
// and checks what must hold however it comes: every message is answered once, or its sender is told
// why not; notices alternate; what a person reads is fit for people.
func TestChaos(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			name := t.Name()
			synctest.Test(t, func(t *testing.T) {
				c := chaos{t: t, r: rand.New(rand.NewPCG(seed, 1)), w: drill.New(t, drill.Options{Config: chaosConfig})}
				c.run()
				shown.add(name, c.w.Outputs())
			})
		})
	}
}

type chaos struct {
	t        *testing.T
	r        *rand.Rand
	w        *drill.World
	said     map[int64][]int // chat → messages of its person
	commands map[int64]int   // chat → number of commands
	kills    int
	log      []string // what happened
}

func (c *chaos) run() {
	c.said, c.commands = map[int64][]int{}, map[int64]int{}
	c.w.Models.Reply(emullm.Reply{Echo: true})
	c.w.Start()
	settle(c.t, c.w)
	for range 25 {
		c.step()
		pass(time.Duration(c.r.IntN(20)*c.r.IntN(20)) * time.Second / 10)
	}
	c.w.Models.Heal()
	c.w.Telegram.ClearFaults()
	pass(30 * time.Minute)
	for chat, messages := range c.said {
		c.check(chat, messages)
	}
	if c.t.Failed() {
		c.t.Log(strings.Join(c.log, "\n"))
		c.t.Log(c.w.Log())
	}
}

func (c *chaos) step() {
	pick := func(n int) int { return c.r.IntN(n) }
	note := func(format string, args ...any) {
		c.log = append(c.log, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	}
	switch pick(10) {
	case 0, 1, 2, 3, 4:
		chat := int64(1001 + pick(2))
		if pick(5) == 0 {
			text := []string{"/model gamma/g1", "/model default", "/status", "/why"}[pick(4)]
			c.w.Telegram.UserSays(chat, chat, text)
			c.commands[chat]++
			note("%d says %s", chat, text)
			return
		}
		id := c.w.Telegram.UserSays(chat, chat, fmt.Sprintf("message %d", c.r.Uint32()))
		c.said[chat] = append(c.said[chat], id)
		note("%d says %d", chat, id)
	case 5, 6, 7:
		f := []emullm.Fault{
			{Status: 429},
			{Status: 429, RetryAfter: 3 * time.Minute},
			{Status: 529},
			{Status: 500},
			{Status: 401},
			{Reset: true},
			{Hang: true},
			{Cut: true},
			{Empty: true},
			{Status: 402},
			{Status: 404},
			{Error: `{"error":{"type":"api_error","message":"Internal server error"}}`},
		}[pick(12)]
		f.Model, f.Times = []string{"a1", "b1", "p1", "g1"}[pick(4)], 1+pick(4)
		c.w.Models.Fault(f)
		note("%s fails: %+v", f.Model, f)
	case 8:
		f := []telegram.Fault{
			{Method: "sendMessage", DropAfter: true},
			{Method: "sendMessage", Status: 429, RetryAfter: 7 * time.Second},
			{Method: "sendMessage", Status: 500},
			{Method: "getUpdates", Status: 502, Body: "<html>"},
			{Method: "getUpdates", Drop: true},
		}[pick(5)]
		c.w.Telegram.Inject(f)
		note("telegram: %+v", f)
	case 9:
		if pick(2) == 0 {
			note("restart")
			c.w.Stop()
		} else {
			note("kill")
			c.kills++
			c.w.Kill()
		}
		pass(time.Duration(pick(30)) * time.Second)
		c.w.Start()
	}
}

// check looks at one chat.
func (c *chaos) check(chat int64, messages []int) {
	answers, apologies := map[int]int{}, map[int]int{}
	// A notice may be lost with a process, or be refused by Telegram; then they do not alternate.
	told := c.kills == 0 && len(c.w.Records("notice failed")) == 0
	engaged := ""
	for _, m := range c.w.Telegram.Sent(chat) {
		if m.ReplyTo != 0 && (len([]rune(m.Text)) > 600 || strings.Contains(m.Text, "{")) {
			c.t.Errorf("unfit for people: %q", m.Text)
		}
		switch {
		case strings.HasPrefix(m.Text, "↪️ Model Fallback cleared"):
			if engaged == "" && told {
				c.t.Errorf("chat %d: cleared what was never told: %q", chat, m.Text)
			}
			engaged = ""
		case strings.HasPrefix(m.Text, "↪️"):
			if engaged == m.Text && told {
				c.t.Errorf("chat %d: told twice: %q", chat, m.Text)
			}
			engaged = m.Text
		case m.Text == inbound.Apology:
			apologies[m.ReplyTo]++
		case !m.Silent:
			if m.ReplyTo == 0 {
				engaged = "?" // a choice forgets what was told
			}
			answers[m.ReplyTo]++
		}
	}
	// The replies of commands refer to nothing.
	if n := answers[0] + apologies[0]; n != c.commands[chat] {
		c.t.Errorf("chat %d: %d commands, %d replies", chat, c.commands[chat], n)
	}
	for _, id := range messages {
		if n := answers[id] + apologies[id]; answers[id] > 1 || apologies[id] > 1 || n == 0 {
			c.t.Errorf("chat %d: message %d has %d answers and %d apologies", chat, id, answers[id], apologies[id])
		}
	}
	if c.t.Failed() {
		for _, m := range c.w.Telegram.Messages(chat) {
			c.t.Logf("%s %d from %d to %d: %q", m.At.Format("15:04:05"), m.ID, m.From, m.ReplyTo, m.Text)
		}
	}
}
