package app_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	emullm "understudy/internal/emulate/llm"
	"understudy/internal/emulate/slack"
	"understudy/internal/emulate/telegram"
	"understudy/internal/sqlite"
	"understudy/llm"
	"understudy/session"
)

// People and groups of the Telegram of an office.
const (
	tgAnn, tgBob       = 7001, 7002
	oldGroup, newGroup = -500, -100500
)

// telegramOffice opens an office with a Telegram account whose keys are given.
func telegramOffice(t *testing.T, keys, more string) *office {
	t.Helper()
	o := newOffice(t, "")
	o.tg = telegram.New(telegram.Config{})
	t.Cleanup(o.tg.Close)
	for id, name := range map[int64]string{tgAnn: "Ann", tgBob: "Bob"} {
		o.tg.SetUser(telegram.User{ID: id, FirstName: name})
		o.tg.AddChat(telegram.Chat{ID: id, Type: "private"})
	}
	o.tg.AddChat(telegram.Chat{ID: oldGroup, Type: "group", Title: "Friends"})
	o.tg.AddChat(telegram.Chat{ID: newGroup, Type: "supergroup", Title: "Friends"})
	o.configure(fmt.Sprintf("channels: {telegram: {apiRoot: %q, botToken: %q, streaming: {mode: \"off\"}, allowFrom: [%d, %d], %s}}\n%s",
		telegram.Root, o.tg.Token(), tgAnn, tgBob, keys, more))
	o.open()
	return o
}

// tgTexts lists what the bot said in a chat.
func tgTexts(o *office, chat int64) []string {
	var out []string
	for _, m := range o.tg.Sent(chat) {
		out = append(out, m.Text)
	}
	return out
}

// heard lists what models were told by people in a session.
func (o *office) heard(key string) []string {
	o.t.Helper()
	ctx := context.Background()
	db, err := sqlite.Open(ctx, filepath.Join(o.dir, "state", "bot.sqlite"), sqlite.Options{BusyTimeout: -1})
	if err != nil {
		o.t.Fatal(err)
	}
	defer db.Close()
	store, err := session.New(ctx, db, session.Deps{})
	if err != nil {
		o.t.Fatal(err)
	}
	s, err := store.Get(ctx, key)
	if err != nil {
		o.t.Fatal(err)
	}
	entries, err := store.Load(ctx, s.ID)
	if err != nil {
		o.t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if e.Message.Role == llm.RoleUser {
			out = append(out, e.Message.PlainText())
		}
	}
	return out
}

// asks says something and returns the one answer to it.
func (o *office) asks(chat, who int64, text string) string {
	o.t.Helper()
	before := len(o.tg.Sent(chat))
	o.tg.UserSays(chat, who, text)
	o.settle()
	got := tgTexts(o, chat)[before:]
	if len(got) != 1 {
		o.t.Fatalf("%q is answered with %q\n%s", text, got, o.logs)
	}
	return got[0]
}

// TestGroupBecomesASupergroup: nothing that was said or chosen there is lost, who may write there may go
// on, and the owner is told once what to put into the configuration.
func TestGroupBecomesASupergroup(t *testing.T) {
	for name, migrate := range map[string]func(*telegram.Server, int64, int64){
		"told in both": (*telegram.Server).Migrate, "told in the new one": (*telegram.Server).MigrateQuietly,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := telegramOffice(t, fmt.Sprintf("groups: {%q: {requireMention: false, allowFrom: [%d]}}", fmt.Sprint(oldGroup), tgAnn),
					fmt.Sprintf("commands: {ownerAllowFrom: ['telegram:%d']}\n", tgAnn))
				o.asks(tgAnn, tgAnn, "hello")
				o.asks(oldGroup, tgAnn, "/model sim/understudy")
				o.asks(oldGroup, tgAnn, "first")
				migrate(o.tg, oldGroup, newGroup)
				o.settle()
				got := o.asks(newGroup, tgAnn, "and here?")
				if !strings.Contains(got, "sim/understudy") && !strings.Contains(got, "understudy") || !strings.Contains(got, "With it came 3 messages") {
					t.Errorf("the conversation did not come along: %q", got)
				}
				o.tg.UserSays(newGroup, tgBob, "me too")
				o.settle()
				if n := len(o.tg.Sent(newGroup)); n != 1 {
					t.Errorf("somebody who is not listed is answered: %q", tgTexts(o, newGroup))
				}
				o.close()
				o.open()
				if got := o.asks(newGroup, tgAnn, "after a restart"); !strings.Contains(got, "With it came 5 messages") {
					t.Errorf("after a restart: %q", got)
				}
				told := slices.DeleteFunc(tgTexts(o, tgAnn), func(s string) bool { return !strings.Contains(s, fmt.Sprint(newGroup)) })
				if len(told) != 1 || !strings.Contains(told[0], fmt.Sprint(oldGroup)) {
					t.Errorf("the owner was told %q", told)
				}
			})
		})
	}
}

// TestABoundGroupKeepsItsAgentUnderItsNewID: a binding that names the old id goes on to hold.
func TestABoundGroupKeepsItsAgentUnderItsNewID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := telegramOffice(t, fmt.Sprintf("groups: {%q: {requireMention: false}}", fmt.Sprint(oldGroup)),
			fmt.Sprintf("bindings: [{agentId: main, match: {channel: telegram, peer: {kind: group, id: '%d'}}}]\n", oldGroup))
		text, err := os.ReadFile(o.file)
		if err != nil {
			t.Fatal(err)
		}
		several := strings.NewReplacer("agents: {", "agents: {list: [{id: main, default: true}, {id: ops}], ", "agentId: main", "agentId: ops").Replace(string(text))
		if err := os.WriteFile(o.file, []byte(several), 0o600); err != nil {
			t.Fatal(err)
		}
		o.settle()
		o.asks(oldGroup, tgAnn, "first")
		o.tg.Migrate(oldGroup, newGroup)
		o.settle()
		o.asks(newGroup, tgAnn, "second")
		if got := o.heard(fmt.Sprint("agent:ops:telegram:group:", newGroup)); len(got) != 2 {
			t.Errorf("heard %q\n%s", got, o.logs)
		}
	})
}

// TestOwnerHearsOfEachBreak: of a group that threw the bot out its owner hears once, whatever is said
// there, and again when it happened again.
func TestOwnerHearsOfEachBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := telegramOffice(t, fmt.Sprintf("groups: {%q: {requireMention: false}}", fmt.Sprint(newGroup)),
			fmt.Sprintf("commands: {ownerAllowFrom: ['telegram:%d']}\n", tgAnn))
		o.asks(tgAnn, tgAnn, "hello")
		told := func() int {
			o.settle()
			return len(slices.DeleteFunc(tgTexts(o, tgAnn), func(s string) bool { return !strings.HasPrefix(s, "📪") }))
		}
		for round := 1; round <= 2; round++ {
			o.tg.Block(newGroup, "bot was kicked from the supergroup chat")
			for n := range 3 {
				o.tg.UserSays(newGroup, tgBob, fmt.Sprint("hello ", n))
				if got := told(); got != round {
					t.Fatalf("round %d: told %d times\n%s", round, got, o.logs)
				}
			}
			o.tg.Block(newGroup, "")
			o.asks(newGroup, tgBob, "back again")
		}
	})
}

// TestUnknownArrivalIsRemembered: the conversation says that an answer may not have arrived, once.
func TestUnknownArrivalIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := telegramOffice(t, "", "")
		o.asks(tgAnn, tgAnn, "one")
		o.tg.Inject(telegram.Fault{Method: "sendMessage", DropAfter: true})
		o.asks(tgAnn, tgAnn, "two")
		if got := o.asks(tgAnn, tgAnn, "three"); !strings.Contains(got, "With it came 6 messages") { // two pairs, the note, the question
			t.Errorf("%q", got)
		}
		if got := o.heard(fmt.Sprint("agent:main:telegram:direct:", tgAnn)); len(got) != 4 || !strings.Contains(got[2], "may not have arrived") {
			t.Errorf("heard %q", got)
		}
		o.close()
		o.open()
		if got := o.asks(tgAnn, tgAnn, "four"); !strings.Contains(got, "With it came 8 messages") {
			t.Errorf("after a restart: %q", got)
		}
	})
}

// TestHistoryOfDirectChatsIsBounded: groups are not.
func TestHistoryOfDirectChatsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := telegramOffice(t, fmt.Sprintf("dmHistoryLimit: 2, groups: {%q: {requireMention: false}}", fmt.Sprint(newGroup)), "")
		for n, want := range []int{1, 3, 5, 5, 5} {
			if got := o.asks(tgAnn, tgAnn, fmt.Sprint("question ", n)); !strings.Contains(got, fmt.Sprintf("With it came %d message", want)) {
				t.Errorf("question %d: %q, want %d", n, got, want)
			}
			if got := o.asks(newGroup, tgAnn, fmt.Sprint("question ", n)); !strings.Contains(got, fmt.Sprintf("With it came %d message", 2*n+1)) {
				t.Errorf("in a group, question %d: %q", n, got)
			}
		}
	})
}

// TestTypingAsConfigured: what the account says wins, and a change needs no new connection.
func TestTypingAsConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := telegramOffice(t, "typingMode: never", "messages: {typingMode: instant}\n")
		o.asks(tgAnn, tgAnn, "hello")
		if got := o.tg.Actions(tgAnn); len(got) != 0 {
			t.Fatalf("shown %q", got)
		}
		polls := len(o.tg.Calls("getMe"))
		o.configure(fmt.Sprintf("channels: {telegram: {apiRoot: %q, botToken: %q, streaming: {mode: \"off\"}, allowFrom: [%d]}}\nmessages: {typingMode: thinking}\n",
			telegram.Root, o.tg.Token(), tgAnn))
		o.settle()
		o.asks(tgAnn, tgAnn, "hello again")
		if got := o.tg.Actions(tgAnn); len(got) == 0 || len(o.tg.Calls("getMe")) != polls {
			t.Errorf("shown %q, connected %d times more", got, len(o.tg.Calls("getMe"))-polls)
		}
	})
}

// TestSlackTypingReaction: where Slack shows no typing, the reaction stands for it, whatever other
// reactions there are.
func TestSlackTypingReaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		s := o.slackServer("slack.test", slack.Config{})
		o.configure("channels: {slack: " + slackBlock(s, slack.Root, `allowFrom: [`+slackAlice+`], replyToMode: "off", typingReaction: hourglass_flowing_sand`) + "}\n")
		o.open()
		s.UserSays(slackDM, slackAlice, "hello")
		o.settle()
		var names []string
		for _, method := range []string{"reactions.add", "reactions.remove"} {
			for _, c := range s.Calls(method) {
				names = append(names, method+" "+c.Params["name"])
			}
		}
		if want := []string{"reactions.add hourglass_flowing_sand", "reactions.remove hourglass_flowing_sand"}; !slices.Equal(names, want) {
			t.Errorf("reactions %q, want %q\n%s", names, want, o.logs)
		}
	})
}

// TestSlackThreadIsReadOnce: who calls the bot into a thread need not repeat what was said there; from
// then on the bot knows it.
func TestSlackThreadIsReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		s := o.slackServer("slack.test", slack.Config{})
		block := func(more string) string {
			return "channels: {slack: " + slackBlock(s, slack.Root, "allowFrom: ["+slackAlice+"], channels: {"+slackRoom+": {}}"+more) + "}\n"
		}
		o.configure(block(""))
		root := s.UserSaidUnheard(slackRoom, slackBob, "the disk is full")
		s.UserSaidUnheard(slackRoom, slackAlice, "on which machine?", slack.InThread(root))
		o.open()
		call := "<@" + s.Config().BotUser + "> "
		s.UserSays(slackRoom, slackBob, "on the build server", slack.InThread(root)) // is overheard, and read
		o.settle()
		s.UserSays(slackRoom, slackAlice, call+"what now?", slack.InThread(root))
		o.settle()
		key := "agent:main:slack:channel:" + slackRoom + ":thread:"
		got := o.heard(key + root)
		if len(got) != 1 || !inOrder(got[0], "the disk is full", "on which machine?", "on the build server", "what now?") || strings.Count(got[0], "build server") != 1 {
			t.Fatalf("heard %q\n%s", got, o.logs)
		}
		s.UserSays(slackRoom, slackAlice, call+"and then?", slack.InThread(root))
		o.settle()
		if got := o.heard(key + root); len(got) != 2 || strings.Contains(got[1], "the disk is full") {
			t.Errorf("heard %q", got)
		}
		if n := len(s.Calls("conversations.replies")); n != 1 {
			t.Errorf("the thread was read %d times", n)
		}
		o.configure(block(", thread: {initialHistoryLimit: 0}"))
		o.settle()
		other := s.UserSaidUnheard(slackRoom, slackBob, "something else")
		s.UserSays(slackRoom, slackAlice, call+"and this?", slack.InThread(other))
		o.settle()
		if got := o.heard(key + other); len(got) != 1 || strings.Contains(got[0], "something else") || len(s.Calls("conversations.replies")) != 1 {
			t.Errorf("switched off: heard %q", got)
		}
	})
}

// TestSlackThreadIsReadWithTheFirstThingTheModelIsTold: commands tell it nothing, and neither does a turn that
// a restart interrupts.
func TestSlackThreadIsReadWithTheFirstThingTheModelIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		models := emullm.New()
		t.Cleanup(models.Close)
		o.models = models.Transport()
		s := o.slackServer("slack.test", slack.Config{})
		o.configure("shutdown: {drain: 1s}\nchannels: {slack: " + slackBlock(s, slack.Root, "allowFrom: ["+slackAlice+"], channels: {"+slackRoom+": {}}") + "}\n")
		o.replaceModel("alpha/a1", alphaModels)
		call := "<@" + s.Config().BotUser + "> "
		stories := map[string]func(say func(string)){
			"command":            func(say func(string)) { say("/status") },
			"choice":             func(say func(string)) { say("/model alpha/a1") },
			"choice in the same": func(say func(string)) { say("tell me, what now? /think high") },
			"interrupted": func(say func(string)) {
				models.Reply(emullm.Reply{Match: emullm.Match{Contains: "tell me", Times: 1}, Latency: time.Hour, Text: "late"})
				say("tell me, what now?")
				o.close()
				o.open()
			},
		}
		roots := map[string]string{}
		for name := range stories {
			roots[name] = s.UserSaidUnheard(slackRoom, slackBob, "the disk is full")
		}
		o.open()
		for name, act := range stories {
			say := func(text string) {
				s.UserSays(slackRoom, slackAlice, call+text, slack.InThread(roots[name]))
				o.settle()
			}
			act(say)
			say("what now?")
			got := o.heard("agent:main:slack:channel:" + slackRoom + ":thread:" + roots[name])
			if all := strings.Join(got, "\n"); !inOrder(all, "the disk is full", "what now?") || strings.Count(all, "disk") != 1 {
				t.Errorf("%s: heard %q", name, got)
			}
		}
	})
}

// TestSlackThreadThatCannotBeRead: then there is an answer without what was said before.
func TestSlackThreadThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		s := o.slackServer("slack.test", slack.Config{})
		o.configure("channels: {slack: " + slackBlock(s, slack.Root, "allowFrom: ["+slackAlice+"], channels: {"+slackRoom+": {}}") + "}\n")
		root := s.UserSaidUnheard(slackRoom, slackBob, "the disk is full")
		o.open()
		s.Inject(slack.Fault{Method: "conversations.replies", Hang: true, Times: -1})
		s.UserSays(slackRoom, slackAlice, "<@"+s.Config().BotUser+"> what now?", slack.InThread(root))
		o.settle()
		sees(t, o, slackTexts(s, slackRoom), "["+root+"] …what now?")
	})
}

// inOrder reports whether a text has the words one after the other.
func inOrder(text string, words ...string) bool {
	for _, w := range words {
		_, rest, ok := strings.Cut(text, w)
		if !ok {
			return false
		}
		text = rest
	}
	return true
}
