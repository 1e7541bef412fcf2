package inbound

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"understudy/chat"
)

// lines writes a message's context in short.
func lines(m Message) []string {
	var out []string
	for _, l := range m.History {
		out = append(out, l.Sender.ID+": "+l.Text)
	}
	return out
}

// TestHistory: what was said in a room since the last answer goes with the next message for the bot,
// once, and survives a crash together with it.
func TestHistory(t *testing.T) {
	bubble(t, func(w *world) {
		photo := inRoom(3, "3", "")
		photo.Attachments = []chat.Attachment{{Name: "a\n.png"}, {MediaType: "audio/ogg"}}
		for _, m := range []chat.Inbound{inRoom(1, "1", "lunch?"), inRoom(2, "2", "pizza"), photo, inRoom(2, "2", "pizza")} {
			w.accept(m)
		}
		if len(w.handled) != 0 {
			t.Fatalf("handled %q", w.texts())
		}
		w.boot()
		w.accept(mention(4, "1", "what do you say?"))
		want := []string{"1: lunch?", "2: pizza", "3: [file: a.png]\n[file: audio/ogg]"}
		if d := cmp.Diff(want, lines(w.last())); d != "" {
			t.Error(d)
		}
		if l := w.last().History[0]; l.ID != "1" || l.Sender.Name != "Person 1" || l.At.IsZero() {
			t.Errorf("line %+v", l)
		}
		w.accept(mention(5, "2", "again"))
		if l := lines(w.last()); l != nil {
			t.Errorf("told twice: %q", l)
		}
		w.boot()
		if d := cmp.Diff(want, lines(w.handled[0])); d != "" {
			t.Errorf("after a crash: %s", d)
		}
		if got := w.dispatch(w.handled[0].Seq); cmp.Diff(want, lines(got)) != "" {
			t.Errorf("the turn got %q", lines(got))
		}
		w.done(w.handled[0].Seq)
		if n := w.count("SELECT (SELECT count(*) FROM history_buffer) + (SELECT count(*) FROM inbound WHERE id = 1 AND history_json != '')"); n != 0 {
			t.Errorf("%d texts are kept", n)
		}
	})
}

func TestHistoryBelongsToItsPlace(t *testing.T) {
	bubble(t, func(w *world) {
		other := inRoom(2, "1", "elsewhere")
		other.Address.Conversation = "C2"
		thread := inRoom(3, "1", "in the thread")
		thread.Address.Thread = "T"
		for _, m := range []chat.Inbound{inRoom(1, "1", "here"), other, thread, message(4, "private")} {
			w.accept(m)
		}
		inThread := mention(5, "1", "hello")
		inThread.Address.Thread = "T"
		w.accept(inThread)
		if d := cmp.Diff([]string{"1: in the thread"}, lines(w.last())); d != "" {
			t.Error(d)
		}
		w.accept(mention(6, "1", "hello"))
		if d := cmp.Diff([]string{"1: here"}, lines(w.last())); d != "" {
			t.Error(d)
		}
	})
}

// TestHistoryIsBounded: the newest so many, each of a bounded length, for seven days.
func TestHistoryIsBounded(t *testing.T) {
	bubble(t, func(w *world) {
		w.rules(func(a *Access) { a.HistoryLimit = ptr(3) })
		for n := range 5 {
			w.accept(inRoom(n, "1", fmt.Sprint(n)))
		}
		long := inRoom(10, "1", strings.Repeat("é", maxLine))
		w.accept(long)
		w.accept(mention(11, "1", "hello"))
		got := w.last().History
		if len(got) != 3 || got[0].Text != "3" || got[1].Text != "4" || len(got[2].Text) > maxLine || !utf8.ValidString(got[2].Text) {
			t.Errorf("%d lines, %.20q", len(got), lines(w.last()))
		}
		w.accept(inRoom(12, "1", "old"))
		w.pass(keepFor + time.Second)
		if err := w.p.Prune(w.t.Context()); err != nil {
			t.Fatal(err)
		}
		w.rules(func(a *Access) { a.HistoryLimit = ptr(0) })
		w.accept(inRoom(13, "1", "unheard"))
		if n := w.count("SELECT count(*) FROM history_buffer"); n != 0 {
			t.Errorf("%d lines", n)
		}
	})
}

// TestHistoryOfManyWords: the newest lines go along as far as they fit.
func TestHistoryOfManyWords(t *testing.T) {
	bubble(t, func(w *world) {
		for n := range 30 {
			w.accept(inRoom(n, "1", fmt.Sprintf("%02d%s", n, strings.Repeat("x", maxLine-2))))
		}
		w.accept(mention(30, "1", "hello"))
		got := w.last().History
		if len(got) != maxLines/maxLine || !strings.HasPrefix(got[len(got)-1].Text, "29") {
			t.Errorf("%d lines", len(got))
		}
		w.accept(mention(31, "1", "hello"))
		if w.last().History != nil {
			t.Error("the rest came later")
		}
	})
}

// TestHistoryOfStrangers: what is not admitted is no context, and a private conversation never is.
func TestHistoryOfStrangers(t *testing.T) {
	bubble(t, func(w *world) {
		w.rules(func(a *Access) { a.Groups = map[string]Group{"C1": {AllowFrom: []string{"1"}}} })
		bot := inRoom(2, "1", "beep")
		bot.Sender.Bot = true
		for _, m := range []chat.Inbound{inRoom(1, "666", "inject"), bot, stranger(3, "66"), message(4, "private")} {
			w.accept(m)
		}
		if n := w.count("SELECT count(*) FROM history_buffer"); n != 0 {
			t.Errorf("%d lines", n)
		}
	})
}

// TestHistoryIsNotForCommands: a command leaves the context to the next question.
func TestHistoryIsNotForCommands(t *testing.T) {
	bubble(t, func(w *world) {
		w.accept(inRoom(1, "1", "lunch?"))
		w.accept(inRoom(2, "1", "/status"))
		native := inRoom(3, "1", "/model")
		native.Via = "token"
		w.accept(native)
		if len(w.handled) != 2 || w.handled[0].History != nil || w.handled[1].History != nil {
			t.Errorf("handled %+v", w.handled)
		}
		w.accept(mention(4, "1", "hello"))
		if d := cmp.Diff([]string{"1: lunch?"}, lines(w.last())); d != "" {
			t.Error(d)
		}
	})
}

// TestHistoryFollowsEdits: the author changes a line or takes it back; nobody else does.
func TestHistoryFollowsEdits(t *testing.T) {
	bubble(t, func(w *world) {
		for n, text := range []string{"lnch?", "secret", "mine"} {
			w.accept(inRoom(n, "1", text))
		}
		w.accept(edited(inRoom(0, "1", ""), 1, "lunch?"))
		w.accept(edited(inRoom(2, "2", ""), 1, "not mine"))
		w.accept(deleted(inRoom(1, "1", "")))
		w.accept(mention(4, "1", "hello"))
		if d := cmp.Diff([]string{"1: lunch?", "1: mine"}, lines(w.last())); d != "" {
			t.Error(d)
		}
	})
}

// TestLateEditsAreContextWhereTheAnswerIs: the edit of a message that opened a thread belongs to the thread;
// that of a command, or where nothing is kept, is no news.
func TestLateEditsAreContextWhereTheAnswerIs(t *testing.T) {
	bubble(t, func(w *world) {
		w.rules(func(a *Access) { a.SeedThreads = true })
		root, command := mention(1, "1", "meet at 5"), inRoom(2, "1", "/status")
		w.accept(root)
		w.done(w.last().Seq)
		w.accept(command)
		w.done(w.last().Seq)
		w.accept(edited(root, 1, "meet at 6"))
		w.accept(edited(root, 2, "meet at 7"))
		w.accept(edited(command, 1, "/status all"))
		w.accept(mention(3, "1", "hello"))
		if got := lines(w.last()); len(got) != 0 {
			t.Errorf("outside of the thread there are %q", got)
		}
		later := mention(4, "1", "when?")
		later.Address.Thread = root.ID
		w.accept(later)
		if d := cmp.Diff([]string{"1: " + textEdited + "meet at 7"}, lines(w.last())); d != "" {
			t.Error(d)
		}
		w.rules(func(a *Access) { a.HistoryLimit = new(int) })
		w.done(w.last().Seq)
		w.accept(edited(later, 1, "where?"))
		w.rules(func(a *Access) { limit := 5; a.HistoryLimit = &limit })
		again := mention(5, "1", "and?")
		again.Address.Thread = root.ID
		w.accept(again)
		if got := lines(w.last()); len(got) != 0 {
			t.Errorf("kept %q", got)
		}
	})
}

// TestHistoryGoesBack: a message that is deleted before its turn leaves its context to the next one, in
// order.
func TestHistoryGoesBack(t *testing.T) {
	bubble(t, func(w *world) {
		w.rules(func(a *Access) { a.SeedThreads = true })
		w.accept(inRoom(1, "1", "first"))
		w.accept(inRoom(2, "2", "second"))
		first := mention(3, "1", "oops")
		w.accept(first)
		w.accept(inRoom(4, "2", "third"))
		w.accept(deleted(first))
		w.accept(mention(5, "1", "hello"))
		if d := cmp.Diff([]string{"1: first", "2: second", "2: third"}, lines(w.last())); d != "" {
			t.Error(d)
		}
	})
}
