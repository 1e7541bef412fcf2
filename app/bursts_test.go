package app_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"understudy/internal/sqlite"
	"understudy/llm"
	"understudy/reply"
	"understudy/session"
)

// burst is what one person does: messages and commands with pauses between them.
type burst struct {
	mode  string // of the queue
	steps []step
}

type step struct {
	text  string // "" = an ordinary message
	tool  bool   // an ordinary message that makes the model use a tool, so that the turn has a step
	pause time.Duration
}

// drawBurst draws one.
func drawBurst(rt *rapid.T) burst {
	b := burst{mode: rapid.SampledFrom([]string{"steer", "collect", "followup", "interrupt"}).Draw(rt, "mode")}
	pauses := []time.Duration{0, 0, 300 * time.Millisecond, time.Second, 4 * time.Second}
	for range rapid.IntRange(4, 12).Draw(rt, "steps") {
		s := step{pause: rapid.SampledFrom(pauses).Draw(rt, "pause")}
		switch rapid.IntRange(0, 11).Draw(rt, "what") {
		case 0:
			s.text = "/stop"
		case 1:
			s.text = "/new"
		case 2:
			s.text = rapid.SampledFrom([]string{"/model sim/understudy", "/model default"}).Draw(rt, "model")
		case 3, 4, 5:
			s.tool = true
		}
		b.steps = append(b.steps, s)
	}
	return b
}

// TestNothingIsLostOrAnsweredTwiceInBursts lets a hundred people write in bursts, each in a queue mode of
// their own, stop, begin anew and change models in between. Whatever comes of it: in every conversation
// the messages are in the transcript once and in order, but for those that were stopped; each turn has
// one answer, which arrives once; and nothing is left over for the next start.
func TestNothingIsLostOrAnsweredTwiceInBursts(t *testing.T) {
	const people = 100
	draw := rapid.SliceOfN(rapid.Custom(drawBurst), people, people)
	for seed := range 1 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bursts := draw.Example(seed)
			synctest.Test(t, func(t *testing.T) { playBursts(t, bursts) })
		})
	}
}

const firstPerson = 5000

func playBursts(t *testing.T, bursts []burst) {
	o := newOffice(t, "")
	o.configure(o.telegramServer("dmPolicy: open, allowFrom: [\"*\"]"))
	for i := range bursts {
		o.person(int64(firstPerson+i), fmt.Sprint("P", i))
	}
	o.open()
	said := make([][]string, len(bursts))
	done := make(chan struct{})
	for i, b := range bursts {
		go func() {
			defer func() { done <- struct{}{} }()
			id := int64(firstPerson + i)
			o.tg.UserSays(id, id, "/queue "+b.mode)
			pass(time.Second)
			for n, s := range b.steps {
				text := s.text
				switch {
				case s.tool:
					text = fmt.Sprintf("m%02d, and what is your status?", n)
				case text == "":
					text = fmt.Sprintf("m%02d", n)
				}
				said[i] = append(said[i], text)
				o.tg.UserSays(id, id, text)
				pass(s.pause)
			}
		}()
	}
	for range bursts {
		<-done
	}
	pass(20 * time.Minute)
	synctest.Wait()
	shown := answersOf(o, len(bursts))
	o.close()
	for i, list := range transcripts(t, o, len(bursts)) {
		checkBurst(t, fmt.Sprintf("person %d, %s", i, bursts[i].mode), bursts[i].mode, said[i], list, shown[i])
		if t.Failed() {
			t.Logf("said %q", said[i])
			for _, m := range o.tg.Messages(int64(firstPerson + i)) {
				t.Logf("%s bot=%v %.80q", m.At.Format("15:04:05.000"), m.FromBot, m.Text)
			}
			t.FailNow()
		}
	}
	o.open()
	pass(10 * time.Minute)
	if again := answersOf(o, len(bursts)); !slices.EqualFunc(shown, again, slices.Equal[[]string]) {
		t.Error("after a restart something is said again")
	}
}

// answersOf returns what the models said to each person.
func answersOf(o *office, people int) [][]string {
	out := make([][]string, people)
	for i := range out {
		for _, m := range o.tg.Sent(int64(firstPerson + i)) {
			if strings.HasPrefix(m.Text, "I am sim/") || strings.HasPrefix(m.Text, "sim/") || strings.HasPrefix(m.Text, "Let me look.") {
				out[i] = append(out[i], m.Text)
			}
		}
	}
	return out
}

// transcripts returns everything that was said with each person.
func transcripts(t *testing.T, o *office, people int) [][]llm.Message {
	t.Helper()
	ctx := context.Background()
	db, err := sqlite.Open(ctx, filepath.Join(o.dir, "state", "bot.sqlite"), sqlite.Options{BusyTimeout: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	store, err := session.New(ctx, db, session.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	out := make([][]llm.Message, people)
	for i := range out {
		ids, err := store.Transcripts(ctx, fmt.Sprintf("agent:main:telegram:direct:%d", firstPerson+i))
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			entries, err := store.Load(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				out[i] = append(out[i], e.Message)
			}
		}
	}
	return out
}

func checkBurst(t *testing.T, who, mode string, said []string, list []llm.Message, shown []string) {
	t.Helper()
	var heard []string
	finals, unanswered := 0, false
	for _, m := range list {
		switch {
		case m.Role == llm.RoleUser:
			heard, unanswered = append(heard, reply.Spoken(m)), true
		case m.Role == llm.RoleAssistant && !slices.ContainsFunc(m.Parts, func(p llm.Part) bool { return p.ToolCall != nil }):
			finals++
			if !unanswered {
				t.Errorf("%s: a second answer to the same: %q", who, m.PlainText())
			}
			unanswered = false
		}
	}
	if !slices.IsSorted(heard) || len(slices.Compact(slices.Clone(heard))) != len(heard) {
		t.Errorf("%s: out of order, or twice: %q", who, heard)
	}
	for n, text := range said {
		if strings.HasPrefix(text, "/") || slices.Contains(heard, text) {
			continue
		}
		later := said[n+1:]
		stopped := slices.Contains(later, "/stop") || slices.Contains(later, "/new") || mode == "interrupt" && len(later) > 0
		if !stopped {
			t.Errorf("%s: %q is lost", who, text)
		}
	}
	if finals != len(shown) {
		t.Errorf("%s: %d answers, %d of them were seen", who, finals, len(shown))
	}
}
