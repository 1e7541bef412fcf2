package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/app"
	"understudy/internal/drill"
	emullm "understudy/internal/emulate/llm"
	"understudy/internal/emulate/telegram"
)

// Dave may talk to the bot and use no commands; Alice owns it, Bob is neither.
const daveID = 1004

// everything is what a model tries that may be led to anything.
func everything() []emullm.ToolCall {
	return []emullm.ToolCall{
		{Name: "cron", Arguments: `{"action":"add","schedule":"every 2 hours","text":"spend","name":"costly"}`},
		{Name: "cron", Arguments: `{"action":"add","schedule":"in 3 days","text":"stretch","reminder":true}`},
		{Name: "session_status", Arguments: `{"model":"beta/b1"}`},
		{Name: "send_message", Arguments: `{"text":"by the way"}`},
	}
}

// done tells which calls of everything did something, by the results that the model was shown next.
func done(t *testing.T, requests []emullm.Request, marker string) string {
	t.Helper()
	for _, r := range requests {
		var body struct {
			Messages []struct {
				Role    string          `json:"role"`
				Content json.RawMessage `json:"content"`
			} `json:"messages"`
		}
		if !strings.Contains(r.LastUser, marker) || json.Unmarshal(r.Body, &body) != nil {
			continue
		}
		last := body.Messages[max(0, len(body.Messages)-len(everything())):]
		if len(last) == 0 || last[0].Role != "tool" || last[len(last)-1].Role != "tool" {
			continue
		}
		var out []string
		for i, sign := range []string{`every 2 hours`, `stretch`, `Model for this session: beta/b1`, `sent`} {
			if text := string(last[i].Content); strings.Contains(text, sign) {
				out = append(out, []string{"task", "reminder", "model", "words"}[i])
			} else {
				t.Logf("%s: %s", marker, text)
			}
		}
		return strings.Join(out, " ")
	}
	t.Fatalf("no model was told what became of the calls of %s", marker)
	return ""
}

// errands is an office with a group in which the bot has to be named, and a model that can be led to anything.
type errands struct {
	*office
	models *emullm.Server
}

func newErrands(t *testing.T, more ...string) errands {
	o := newOffice(t, "")
	models := emullm.New()
	t.Cleanup(models.Close)
	o.models = models.Transport()
	everybody := fmt.Sprintf(`["%d", "%d", "%d"]`, aliceID, bobID, daveID)
	o.configure(o.telegramServer(fmt.Sprintf(`dmPolicy: allowlist, allowFrom: %s, groupAllowFrom: %s, groups: {"%d": {}}`, everybody, everybody, opsGroup)) +
		fmt.Sprintf(`commands: {ownerAllowFrom: ["telegram:%d"], allowFrom: {telegram: ["%d", "%d"]}}`+"\n", aliceID, aliceID, bobID) + strings.Join(more, ""))
	o.replaceModel("alpha/a1", `alpha: {api: openai-chat, baseUrl: "http://models.test/v1", apiKey: key-for-alpha}, beta: {api: openai-chat, baseUrl: "http://models.test/v1", apiKey: key-for-beta}`)
	for id, name := range map[int64]string{aliceID: "Alice", bobID: "Bob", daveID: "Dave"} {
		o.person(id, name)
	}
	o.tg.AddChat(telegram.Chat{ID: opsGroup, Type: "supergroup", Title: "Ops"})
	o.open()
	return errands{o, models}
}

// says has somebody write to the bot.
func (e errands) says(chat, who int64, text string, more ...telegram.Say) {
	if chat == opsGroup {
		text = "@" + e.tg.Username() + " " + text
	}
	e.tg.UserSays(chat, who, text, more...)
}

// busy has somebody ask for something in the group that takes ten seconds, and ends with a tool call or at once.
func (e errands) busy(who int64, calls ...emullm.ToolCall) {
	e.models.Reply(emullm.Reply{Match: emullm.Match{Contains: "take your time", Times: 1}, Latency: 10 * time.Second, Text: "Well.", ToolCalls: calls})
	e.says(opsGroup, who, "take your time")
	pass(2 * time.Second)
}

// What the tools of a turn do when the model tries everything, by whose words are in it.
const (
	ofOwners = "task reminder model words"
	ofPeople = "reminder model words" // who may use commands
	ofGuests = "reminder words"
)

// stories are turns with the words of several people.
func stories(e errands) []story {
	look := emullm.ToolCall{Name: "session_status"}
	return []story{
		{"the owner", aliceID, ofOwners, func(m string) { e.says(aliceID, aliceID, m) }},
		{"somebody else", bobID, ofPeople, func(m string) { e.says(bobID, bobID, m) }},
		{"somebody who may use no commands", daveID, ofGuests, func(m string) { e.says(daveID, daveID, m) }},
		{"the owner in a group", opsGroup, ofOwners, func(m string) { e.says(opsGroup, aliceID, m) }},
		{"somebody steers the owner's turn", opsGroup, ofPeople, func(m string) { e.busy(aliceID, look); e.says(opsGroup, bobID, m) }},
		{"a guest steers the owner's turn", opsGroup, ofGuests, func(m string) { e.busy(aliceID, look); e.says(opsGroup, daveID, m) }},
		{"the owner steers a guest's turn", opsGroup, ofGuests, func(m string) { e.busy(daveID, look); e.says(opsGroup, aliceID, m) }},
		{"somebody was overheard", opsGroup, ofPeople, func(m string) {
			e.tg.UserSays(opsGroup, bobID, "make it every hour")
			e.says(opsGroup, aliceID, m)
		}},
		{"a guest was overheard", opsGroup, ofGuests, func(m string) {
			e.tg.UserSays(opsGroup, daveID, "the other model is better")
			e.says(opsGroup, aliceID, m)
		}},
		{"the owner quotes a guest", opsGroup, ofGuests, func(m string) {
			id := e.tg.UserSays(opsGroup, daveID, "the other model is better")
			e.asks(opsGroup, aliceID, "@"+e.tg.Username()+" noted")
			e.says(opsGroup, aliceID, m, telegram.ReplyingTo(id, ""))
		}},
		{"the owner quotes the bot", opsGroup, ofOwners, func(m string) {
			sent := e.tg.Sent(opsGroup)
			e.says(opsGroup, aliceID, m, telegram.ReplyingTo(sent[len(sent)-1].ID, ""))
		}},
		{"a guest's message is collected with the owner's", opsGroup, ofGuests, func(m string) {
			e.asks(opsGroup, aliceID, "/queue collect")
			e.busy(aliceID)
			e.says(opsGroup, aliceID, "and then")
			e.says(opsGroup, daveID, m)
		}},
		{"a line of a guest's message stands above the owner's", opsGroup, ofGuests, func(m string) {
			e.asks(opsGroup, aliceID, "/queue collect cap:1")
			e.busy(aliceID)
			e.says(opsGroup, daveID, "me too")
			e.says(opsGroup, aliceID, m)
		}},
	}
}

// story is a turn in which a model tries everything as soon as it reads the marker.
type story struct {
	name string
	chat int64
	want string
	act  func(marker string)
}

// What the built-in tools do depends on everybody whose words are in the turn: whoever may do least decides.
func TestATurnMayDoWhatAllWhoseWordsAreInItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newErrands(t)
		for i, c := range stories(e) {
			marker := fmt.Sprintf("GO-%d.", i)
			e.models.Reply(emullm.Reply{Match: emullm.Match{Contains: marker, Times: 1}, ToolCalls: everything()})
			before := len(e.tg.Sent(c.chat))
			c.act(marker)
			pass(20 * time.Second)
			synctest.Wait()
			if got := done(t, e.models.Requests(), marker); got != c.want {
				t.Errorf("%s: did %q, want %q", c.name, got, c.want)
			}
			told := strings.Count(strings.Join(tgTexts(e.office, c.chat)[before:], "\n"), "The assistant selected beta/b1 for this session (strict - no fallbacks). /model default undoes it.")
			if told != strings.Count(c.want, "model") {
				t.Errorf("%s: people are told of it %d times: %q", c.name, told, tgTexts(e.office, c.chat)[before:])
			}
			if c.chat == opsGroup && told > 0 {
				e.asks(opsGroup, aliceID, "/model default")
			}
			e.models.ClearRequests()
		}
	})
}

// Turns that nobody began do nothing on their own account, and are asked with the same tools as the
// conversation: those are the beginning of what a provider remembers.
func TestUnaskedTurnsHaveTheSameToolsAndNobodysRights(t *testing.T) {
	ticking(t, "session: {dmScope: main}\n"+beats("}, commitments: {enabled: true"), func(w *clockwork) {
		w.says("hello")
		w.add(`"10m" session=current name=T1 Look at TASK-1.`)
		for _, marker := range []string{"TASK-1.", "Heartbeat"} {
			w.Models.Reply(emullm.Reply{Match: emullm.Match{Contains: marker, Times: 1}, ToolCalls: everything()})
			w.Models.Reply(emullm.Reply{Match: emullm.Match{Contains: marker}, Text: "HEARTBEAT_OK"})
		}
		w.pass(31 * time.Minute)
		requests := w.Models.Requests()
		for _, marker := range []string{"TASK-1.", "Heartbeat"} {
			if got := done(t, requests, marker); got != "words" {
				t.Errorf("%s did %q", marker, got)
			}
		}
		w.says("again")
		requests = w.Models.Requests()
		for _, r := range requests {
			if got, want := toolNames(t, r), toolNames(t, requests[0]); got != want {
				t.Errorf("%q is asked with %s\nwant %s", r.LastUser, got, want)
			}
		}
		if got := w.says("/status"); len(got) != 1 || !strings.Contains(got[0], "alpha/a1 (default)") {
			t.Errorf("said %q", got)
		}
		if n := w.tasks(); n != 0 {
			t.Errorf("there are %d tasks", n)
		}
		if all := strings.Join(w.texts(), "\n"); strings.Contains(all, "The assistant") {
			t.Errorf("said %s", all)
		}
	})
}

// toolNames is the list of tools of a request, as it was sent.
func toolNames(t *testing.T, r emullm.Request) string {
	t.Helper()
	var body struct {
		Tools json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		t.Fatal(err)
	}
	return string(body.Tools)
}

// A program's turn is the owner's, and its caller alone hears it.
func TestAProgramsTurnIsTheOwnersAndSaysNothingInTheChat(t *testing.T) {
	w := drill.New(t, drill.Options{Network: true, Config: still})
	w.Start()
	say(t, w, "hello", 1)
	for session, want := range map[string]string{fmt.Sprintf("agent:main:telegram:direct:%d", alice): "task reminder model", "nightly": "model"} {
		marker := "GO in " + session
		w.Models.Reply(emullm.Reply{Match: emullm.Match{Contains: marker, Times: 1}, ToolCalls: everything()})
		var out bytes.Buffer
		if app.Agent(t.Context(), w.Options(), app.Std{Out: &out, Err: &out}, app.AgentTurn{Session: session, Message: marker}) != app.ExitOK {
			t.Fatal(out.String())
		}
		if got := done(t, w.Models.Requests(), marker); got != want {
			t.Errorf("%s did %q, want %q", session, got, want)
		}
		if names := toolNames(t, w.Models.Requests()[len(w.Models.Requests())-1]); strings.Contains(names, "send_message") {
			t.Errorf("%s is offered %s", session, names)
		}
	}
	say(t, w, "again", 1)
	for _, m := range w.Telegram.Sent(alice) {
		if strings.Contains(m.Text, "by the way") || strings.Contains(m.Text, "The assistant") {
			t.Errorf("said %q", m.Text)
		}
	}
	w.Stop()
	shown.add(t.Name(), w.Outputs())
}
