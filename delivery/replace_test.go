package delivery

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/channels"
	"understudy/chat"
)

// TestReplacing: what is said in the place of an earlier message stands there, or at least instead of it.
func TestReplacing(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(f *platform)
		id      string
		want    []string
	}{
		"edited":                    {nil, "1", []string{"Done.", "hello"}},
		"after a pause":             {func(f *platform) { f.onEdit = once(retryAfter(41 * time.Second)) }, "1", []string{"Done.", "hello"}},
		"the message is gone":       {nil, "77", []string{"Shall I?", "hello", "Done."}},
		"not any more":              {func(f *platform) { f.onEdit = always(refusal(channels.Refused)) }, "1", []string{"hello", "Done."}},
		"messages stay as they are": {func(f *platform) { f.traits.Edits = false }, "1", []string{"Shall I?", "hello", "Done."}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Settings{}, c.prepare, func(w *world) {
				w.replace(c.id)
				w.pass(10 * time.Minute)
				if d := cmp.Diff(c.want, w.f.texts()); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

// replace asks something, says something else, and says a third thing in the place of a message.
func (w *world) replace(id string) {
	w.t.Helper()
	for _, o := range []chat.Outbound{
		{Markdown: "Shall I?", TurnID: "a", Buttons: []chat.Button{{Label: "Yes", Command: "/yes"}}},
		{Markdown: "hello", TurnID: "b"},
		{Markdown: "Done.", TurnID: "c", Replaces: id},
	} {
		o.To, o.Class = home, chat.Command
		if err := w.s.Send(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
		w.pass(5 * time.Second)
	}
}

func always(err error) func(string, channels.Piece) error {
	return func(string, channels.Piece) error { return err }
}

func once(err error) func(string, channels.Piece) error {
	return func(string, channels.Piece) error {
		now := err
		err = nil
		return now
	}
}

// TestReplacingOverRestart: a process that is killed while it edits leaves the rest to the next one.
func TestReplacingOverRestart(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "copy.sqlite")
	bubble(t, Settings{}, nil, func(w *world) {
		w.f.onEdit = func(string, channels.Piece) error {
			w.crash(copied)
			return nil
		}
		w.replace("1")
		w.f.said[0].Text = "Shall I?" // the call did not reach the platform
		w.restart(copied)
		if d := cmp.Diff([]string{"Done.", "hello"}, w.f.texts()); d != "" {
			t.Error(d)
		}
	})
}
