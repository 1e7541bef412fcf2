package commands_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/commands"
	"understudy/session"
)

// TestConversations plays every script in testdata/conversations. A script begins with a comment, then
// come lines between dashes, each followed by the reply:
//
//	-- owner: /queue collect --          in a private chat
//	-- anna in group: /restart --        Anna is let in and no owner; in a group
//	-- stranger native: /status --       may use no commands; through a platform's own menu
//	-- owner says: hello /think high --  a message, with what Extract and Apply make of it
//	-- an answer runs --                 the lane is busy from here on; "it ends" undoes that
//	-- 5m pass --
func TestConversations(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "conversations", "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatal("there are no conversations", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			script, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			compareFile(t, path, play(t, string(script)))
		})
	}
}

// play returns the script with the replies as they are.
func play(t *testing.T, script string) string {
	w := newWorld(t, furnish(t))
	var out strings.Builder
	seen := false
	for line := range strings.Lines(script) {
		step, ok := strings.CutPrefix(strings.TrimSpace(line), "-- ")
		step, end := strings.CutSuffix(step, " --")
		if !ok || !end {
			if !seen {
				out.WriteString(line)
			}
			continue
		}
		seen = true
		out.WriteString(line)
		if text := w.step(step); text != "" {
			out.WriteString(text + "\n")
		}
	}
	return out.String()
}

// step does one line and returns what is said.
func (w *world) step(step string) string {
	who, text, isText := strings.Cut(step, ": ")
	if !isText {
		return w.happens(step)
	}
	c := direct()
	words := strings.Fields(who)
	for _, word := range words[1:] {
		switch word {
		case "group":
			c = group()
		case "native":
			c.In.Via = "v1"
		case "in", "says":
		default:
			w.t.Fatalf("%q", who)
		}
	}
	c.Owner = words[0] == "owner"
	c.In.Sender.ID = map[string]string{"owner": "7", "anna": "8", "stranger": "stranger"}[words[0]]
	text = strings.ReplaceAll(text, `\n`, "\n")
	if words[len(words)-1] == "says" {
		return w.hear(c, text)
	}
	return shown(w.run(c, text))
}

func (w *world) happens(what string) string {
	switch what {
	case "an answer runs":
		for _, c := range []commands.Call{direct(), group()} {
			w.lanes[c.Key] = session.LaneState{Active: true, Since: w.clock.Now()}
		}
		return ""
	case "it ends":
		clear(w.lanes)
		return ""
	}
	d, err := time.ParseDuration(strings.TrimSuffix(what, " pass"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.clock.Advance(w.clock.Now().Add(d))
	return ""
}

// hear is what becomes of a message.
func (w *world) hear(c commands.Call, text string) string {
	if _, ok := w.reg.Match(text); ok {
		w.t.Fatalf("%q is a command", text)
	}
	rest, directives, shortcuts := w.reg.Extract(text)
	once, reply := w.reg.Apply(w.t.Context(), directives, c, rest == "")
	lines := []string{fmt.Sprintf("message: %q", rest)}
	if len(directives) > 0 {
		lines = append(lines, fmt.Sprintf("once: think %q, verbose %q, queue %q", once.Think, once.Verbose, once.Queue))
	}
	if s := shown(reply); s != "(silence)" {
		lines = append(lines, s)
	}
	for _, inv := range shortcuts {
		lines = append(lines, shown(w.reg.Run(w.t.Context(), inv, c)))
	}
	return strings.Join(lines, "\n")
}

func shown(r commands.Reply) string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if r.Text != "" {
		add("%s", r.Text)
	}
	for _, b := range r.Buttons {
		mark := ""
		if b.Chosen {
			mark = " (chosen)"
		}
		add("[%s: %s → %s]%s", b.Group, b.Label, b.Command, mark)
	}
	for _, a := range r.Media {
		add("[%s: %q]", a.Name, a.Data)
	}
	if r.Follow != "" {
		add("[asks the model: %q]", r.Follow)
	}
	if len(lines) == 0 {
		return "(silence)"
	}
	return strings.Join(lines, "\n")
}

// TestEveryCommandHasAConversation keeps the scripts complete.
func TestEveryCommandHasAConversation(t *testing.T) {
	paths, _ := filepath.Glob(filepath.Join("testdata", "conversations", "*.txtar"))
	var all strings.Builder
	for _, path := range paths {
		script, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(script)
	}
	for _, s := range newWorld(t, furnish(t)).reg.Specs() {
		if !strings.Contains(all.String(), ": /"+s.Name+" ") {
			t.Errorf("/%s is in no conversation", s.Name)
		}
	}
}
