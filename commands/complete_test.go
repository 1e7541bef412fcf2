package commands_test

import (
	"fmt"
	"strings"
	"testing"

	"understudy/commands"
	"understudy/llm"
	"understudy/session"
)

func TestComplete(t *testing.T) {
	w := newWorld(t, furnish(t))
	w.run(direct(), `/cron add "every day at 9" name=Morning look`)
	w.run(direct(), `/cron add "every day at 18" name=Evening look`)
	suggest := func(c commands.Call, command, option, text string) string {
		var list []string
		for _, b := range w.reg.Complete(t.Context(), c, command, option, text) {
			list = append(list, b.Command)
		}
		return strings.Join(list, " ")
	}
	for _, x := range []struct{ command, option, text, want string }{
		{"model", "model", "", "alpha/a1 beta/b1 gamma/g1 alpha/a2 gamma/g2@2026 default status"},
		{"model", "model", "g", "gamma/g1 gamma/g2@2026"},
		{"MODEL", "model", " Gee ", "gamma/g1"},
		{"model", "model", "a2", "alpha/a2"},
		{"model", "model", "beta/b1", "beta/b1"},
		{"model", "model", "delta", ""}, // it may not be chosen
		{"new", "model", "sta", ""},
		{"models", "provider", "", "alpha beta gamma"},
		{"help", "command", "qu", "queue"},
		{"t", "level", "h", "high xhigh"},
		{"queue", "mode", "c", "collect"},
		{"queue", "options", "drop", "drop:summarize drop:old drop:new"},
		{"cron", "task", "even", "bbbbbbbbbb"},
		{"cron", "task", "aaa", "aaaaaaaaaa"},
		{"cron", "action", "r", "run runs remove"},
		{"cron", "nothing", "", ""},
		{"nothing", "model", "", ""},
	} {
		if got := suggest(direct(), x.command, x.option, x.text); got != x.want {
			t.Errorf("/%s %s %q: %s", x.command, x.option, x.text, got)
		}
	}
	if got := suggest(group(), "cron", "task", ""); got != "" {
		t.Errorf("somebody else is shown tasks: %s", got)
	}
}

func TestCompleteIsBounded(t *testing.T) {
	w := newWorld(t)
	var b strings.Builder
	b.WriteString("agents: {defaults: {model: many/m0}}\nmodels: {providers: {many: {baseUrl: 'http://m.test', models: [")
	for i := range 200 {
		fmt.Fprintf(&b, "{id: m%d}, ", i)
	}
	w.models.cfg = newModels(t, b.String()+"]}}}\n").cfg
	list := w.reg.Complete(t.Context(), direct(), "model", "model", "m")
	if len(list) != 25 {
		t.Errorf("%d suggestions", len(list))
	}
	if list := w.reg.Complete(t.Context(), direct(), "model", "model", "m19"); len(list) != 11 || list[0].Command != "many/m19" {
		t.Errorf("%v", list)
	}
	if n := len(w.run(direct(), "/model").Buttons); n != 100 {
		t.Errorf("%d buttons", n)
	}
}

// TestALongListLeavesRoomForEveryProvider covers what is offered to press, with a selection at the very end.
func TestALongListLeavesRoomForEveryProvider(t *testing.T) {
	w, c := newWorld(t), direct()
	w.models.cfg = newModels(t, strings.Replace(standardConfig, "gamma/*]", "gamma/*, large/*, small/*]", 1)+"    large: {baseUrl: 'http://large.test/v1'}\n").cfg
	for i := range 300 {
		w.models.available = append(w.models.available, mustRef(fmt.Sprintf("large/m%d", i)))
	}
	w.models.available = append(w.models.available, mustRef("small/m1"), mustRef("small/m2"))
	w.run(c, "/model large/m299")
	var got []string
	of := map[string]int{}
	for _, b := range w.run(c, "/model").Buttons {
		of[b.Group]++
		if b.Chosen {
			got = append(got, b.Command)
		}
	}
	if of["small"] != 2 || of["alpha"] != 2 || of["large"] < 80 || len(got) != 1 || got[0] != "/model large/m299" {
		t.Errorf("%v, chosen %q", of, got)
	}
	if text := w.run(c, "/model").Text; !strings.Contains(text, "\n305. `large/m299` — selected") || !strings.Contains(text, "\n30. ") || strings.Contains(text, "\n31. ") {
		t.Error(text)
	}
}

func TestUsageCost(t *testing.T) {
	w, c := newWorld(t), direct()
	spend := func(days int, model string, in, out int, micros int64, priced bool) {
		t.Helper()
		s := session.Spend{At: noon.AddDate(0, 0, -days), Agent: "main", Model: mustRef(model), Purpose: session.PurposeMessage, Turns: 1, CostMicros: micros, Priced: priced}
		s.Usage.Input, s.Usage.Output = in, out
		if err := w.store.AddSpend(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	spend(0, "alpha/a1", 100, 10, 2500, true)
	spend(0, "beta/b1", 50, 5, 0, false)
	spend(6, "alpha/a1", 1000, 100, 25, true)
	spend(7, "gamma/g1", 10000, 1000, 1_500_000, true)
	spend(29, "gamma/g1", 1, 1, 0, true)
	spend(30, "gamma/g1", 5_000_000, 5, 9_000_000, true)
	w.set(c, func(s *session.Session) { s.TokensIn, s.TokensOut = 70, 7 })
	golden(t, "usage_cost", w.run(c, "/usage cost").Text)
	w.run(c, "/usage reset")
	if s := w.row(c); s.TokensIn != 0 || s.UsageSince.IsZero() {
		t.Errorf("%+v", s)
	}
}

// TestSettingsAreStored looks at what commands leave behind, and that a queue that cannot be read is
// none.
func TestSettingsAreStored(t *testing.T) {
	w, c := newWorld(t, furnish(t)), direct()
	for _, text := range []string{"/queue collect", "/queue debounce:0 drop:old", "/verbose full", "/usage tokens", "/tts chat on", "/think low"} {
		w.run(c, text)
	}
	s := w.row(c)
	if string(s.Queue) != `{"mode":"collect","debounce":0,"drop":"old"}` || s.Verbose != "full" || s.UsageMode != "tokens" || s.TTSAuto != "always" || s.Think != "low" {
		t.Errorf("%s %+v", s.Queue, s)
	}
	if text := w.run(c, "/status").Text; !strings.Contains(text, "⚙️ Think: low · Queue: collect · Verbose: full · Usage: tokens · TTS: always/openai\n") {
		t.Error(text)
	}
	w.set(c, func(s *session.Session) { s.Queue = []byte(`{"mode":7}`) })
	if text := w.run(c, "/status").Text; !strings.Contains(text, "Queue: steer · ") {
		t.Error(text)
	}
	for _, text := range []string{"/queue default", "/verbose off", "/usage off", "/tts chat default", "/think default"} {
		w.run(c, text)
	}
	if s = w.row(c); s.Queue != nil || s.Verbose != "" || s.UsageMode != "off" || s.TTSAuto != "" || s.Think != "" {
		t.Errorf("%s %+v", s.Queue, s)
	}
}

func TestStatusSaysWhenNobodyCanBeSteered(t *testing.T) {
	w := newWorld(t, func(d *commands.Deps) { d.Steerable = func(string, llm.ModelRef) bool { return false } })
	c := direct()
	w.lanes[c.Key] = session.LaneState{Active: true, Since: noon, Queued: 2}
	text := w.run(c, "/status").Text
	if !strings.Contains(text, "Queue: steer (2 waiting) (steer acts as collect: answers have no steps here)\n⏳ Working since 12:00\n") {
		t.Error(text)
	}
	w.run(c, "/queue followup")
	if text := w.run(c, "/status").Text; strings.Contains(text, "acts as") {
		t.Error(text)
	}
}
