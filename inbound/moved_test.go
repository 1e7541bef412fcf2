package inbound

import (
	"testing"

	"understudy/chat"
)

// TestMovedConversation: what the configuration says of a group holds when it gets a new id, also after
// a second time and a restart, and what was said there before goes along.
func TestMovedConversation(t *testing.T) {
	bubble(t, func(w *world) {
		w.rules(func(a *Access) {
			a.GroupPolicy = PolicyAllowlist
			a.Groups = map[string]Group{"-500": {AllowFrom: []string{"1"}}, "-100900": {AllowFrom: []string{"2"}}}
			a.ImplicitThread = true
		})
		n := 0
		say := func(group, sender, text string, mentioned bool) bool {
			n++
			m := message(n, text)
			m.Address.Conversation, m.Address.Kind, m.Address.Thread = group, chat.Group, "7"
			m.Sender.ID, m.Mentioned = sender, mentioned
			before := len(w.handled)
			w.accept(m)
			return len(w.handled) > before
		}
		moved := func(from, to string) bool {
			news, err := w.p.Moved(w.t.Context(), chat.Address{Channel: "telegram", Account: "open", Conversation: from, Kind: chat.Group}, to)
			if err != nil {
				t.Fatal(err)
			}
			return news
		}
		if !say("-500", "1", "hello", true) || say("-100500", "1", "hello", true) {
			t.Fatalf("handled %q", w.texts())
		}
		seq := w.last().Seq
		w.dispatch(seq)
		if err := w.p.Participated(w.t.Context(), seq); err != nil {
			t.Fatal(err)
		}
		w.done(seq)
		w.rules(func(a *Access) { a.ImplicitThread = false })
		say("-500", "1", "by the way", false)
		w.rules(func(a *Access) { a.ImplicitThread = true })
		if !moved("-500", "-100500") || moved("-500", "-100500") || moved("-500", "") || moved("-500", "-500") {
			t.Fatal("what is news")
		}
		if !say("-100500", "1", "and here?", false) { // participates
			t.Fatalf("handled %q", w.texts())
		}
		if h := w.last().History; len(h) != 1 || h[0].Text != "by the way" {
			t.Errorf("overheard %+v", h)
		}
		if say("-100500", "2", "me too", true) || say("-100501", "1", "hello", true) {
			t.Errorf("handled %q", w.texts())
		}
		w.boot()
		if moved("-500", "-100500") || !moved("-100500", "-100501") {
			t.Error("what is news after a restart")
		}
		if !say("-100501", "1", "third home", true) || say("-100501", "2", "me too", true) {
			t.Errorf("handled %q", w.texts())
		}
		moved("-100501", "-100900") // which has an entry of its own
		if say("-100900", "1", "hello", true) || !say("-100900", "2", "hello", true) {
			t.Errorf("handled %q", w.texts())
		}
		w.rules(func(a *Access) { delete(a.Groups, "-500") })
		if say("-100501", "1", "hello", true) {
			t.Error("the entry is gone, and still holds")
		}
	})
}

// TestMovedInACircle: what makes no sense does no harm.
func TestMovedInACircle(t *testing.T) {
	bubble(t, func(w *world) {
		for _, x := range [][2]string{{"a", "b"}, {"b", "c"}, {"c", "a"}} {
			if _, err := w.p.Moved(w.t.Context(), chat.Address{Channel: "telegram", Conversation: x[0]}, x[1]); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.p.moves.former(chat.Address{Channel: "telegram", Conversation: "a"}); len(got) != 2 {
			t.Errorf("former ids %q", got)
		}
	})
}
