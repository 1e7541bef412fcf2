package delivery

import (
	"testing"

	"pgregory.net/rapid"

	"understudy/chat"
)

var (
	onDiscord = Rule{References: true, Target: "m"}
	onSlack   = Rule{OpensThreads: true, Target: "m"}
)

func (r Rule) with(m Mode) Rule { r.Mode = m; return r }

// TestSlotReferences is the mode table of spec/chat.md §2.3: the references of a notice, of the
// first and second message of the answer, and of a separate later answer.
func TestSlotReferences(t *testing.T) {
	inThread := onSlack
	inThread.InThread = true
	batch := onDiscord
	batch.Batched = true
	nothing := onDiscord
	nothing.Target = ""
	cases := []struct {
		name                         string
		rule                         Rule
		notice, first, second, later string
	}{
		{"discord off", onDiscord.with(ModeOff), "", "", "", ""},
		{"discord default", onDiscord, "", "", "", ""},
		{"discord first", onDiscord.with(ModeFirst), "", "m", "", ""},
		{"discord all", onDiscord.with(ModeAll), "", "m", "m", "m"},
		{"discord batched, one message", onDiscord.with(ModeBatched), "", "", "", ""},
		{"discord batched, a batch", batch.with(ModeBatched), "", "m", "", ""},
		{"discord, nobody asked", nothing.with(ModeAll), "", "", "", ""},
		{"slack off", onSlack.with(ModeOff), "", "", "", ""},
		{"slack first", onSlack.with(ModeFirst), "m", "m", "m", ""},
		{"slack all", onSlack.with(ModeAll), "m", "m", "m", "m"},
		{"slack first, in a thread already", inThread.with(ModeFirst), "", "", "", ""},
		{"no references at all", Rule{Mode: ModeAll, Target: "m"}, "", "", "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := NewSlot(c.rule)
			check := func(what, got, want string) {
				t.Helper()
				if got != want {
					t.Errorf("%s refers to %q, want %q", what, got, want)
				}
			}
			check("notice", s.Reference(chat.Notice, false), c.notice)
			if s.Consume(chat.Notice, "n") || s.Consumed() {
				t.Error("a notice took the slot")
			}
			check("first message", s.Reference(chat.Assistant, false), c.first)
			s.Consume(chat.Assistant, "a1")
			check("notice behind it", s.Reference(chat.Notice, false), c.notice)
			check("second message", s.Reference(chat.Assistant, true), c.second)
			check("later answer", s.Reference(chat.Assistant, false), c.later)
		})
	}
}

func TestSlotOtherClasses(t *testing.T) {
	for _, c := range []struct {
		class            chat.Class
		discord, onSlack string
	}{
		{chat.Error, "m", "m"}, {chat.Command, "", "m"}, {chat.Notice, "", "m"}, {chat.Cron, "", ""}, {chat.Heartbeat, "", ""},
	} {
		if got := NewSlot(onDiscord.with(ModeFirst)).Reference(c.class, false); got != c.discord {
			t.Errorf("discord %s: %q, want %q", c.class, got, c.discord)
		}
		if got := NewSlot(onSlack.with(ModeFirst)).Reference(c.class, false); got != c.onSlack {
			t.Errorf("slack %s: %q, want %q", c.class, got, c.onSlack)
		}
	}
}

func TestSlotPreview(t *testing.T) {
	s := NewSlot(onDiscord.with(ModeFirst))
	if !s.Reserve("p") || s.Reserve("q") {
		t.Fatal("the open slot is reserved once")
	}
	if s.Consume(chat.Assistant, "other") {
		t.Error("another message took the reserved slot")
	}
	s.Release()
	if s.Owner() != "" || s.Reference(chat.Error, false) != "m" {
		t.Error("a discarded preview gives the slot back")
	}
	s.Reserve("q")
	if !s.Consume(chat.Assistant, "q") || s.Owner() != "q" {
		t.Error("the preview becomes the owner")
	}
	s.Release()
	if !s.Consumed() {
		t.Error("consumed is for good")
	}
}

// TestSlotChoice: what the model chose holds for the first message of the answer in every mode, for
// all under `all`, and for nothing else; where a reference opens a thread it means nothing.
func TestSlotChoice(t *testing.T) {
	for _, m := range []Mode{ModeOff, ModeFirst, ModeAll, ModeBatched} {
		s := NewSlot(onDiscord.with(m))
		s.Choose("77")
		all := ""
		if m == ModeAll {
			all = "77"
		}
		before := s.Reference(chat.Assistant, false)
		notice := s.Reference(chat.Notice, false)
		s.Consume(chat.Assistant, "a")
		if got := [...]string{before, notice, s.Reference(chat.Assistant, true), s.Reference(chat.Assistant, false)}; got != [...]string{"77", "", all, all} {
			t.Errorf("%s: %q", m, got)
		}
		s = NewSlot(onDiscord.with(m))
		want := s.Reference(chat.Assistant, false)
		s.Choose("77")
		if got := s.Reference(chat.Error, false); got == "77" {
			t.Errorf("%s: an error refers to what the model chose", m)
		}
		if s.Choose(""); s.Reference(chat.Assistant, false) != want {
			t.Errorf("%s: the choice is not taken back", m)
		}
		s = NewSlot(onSlack.with(m))
		want = s.Reference(chat.Assistant, false)
		if s.Choose("77"); s.Reference(chat.Assistant, false) != want {
			t.Errorf("%s: the choice opens a thread", m)
		}
	}
}

func TestModeValidate(t *testing.T) {
	for _, m := range []Mode{"", ModeOff, ModeFirst, ModeAll, ModeBatched} {
		if err := m.Validate(); err != nil {
			t.Error(err)
		}
	}
	if Mode("frist").Validate() == nil {
		t.Error("a wrong mode passed")
	}
}

// TestSlotInvariants: whatever happens, the slot has one owner at most, only a class that takes it
// may own it, and under `first` an owned slot attaches nothing to separate messages.
func TestSlotInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := Rule{
			Mode:       rapid.SampledFrom([]Mode{ModeOff, ModeFirst, ModeAll, ModeBatched}).Draw(t, "mode"),
			References: rapid.Bool().Draw(t, "references"), OpensThreads: rapid.Bool().Draw(t, "threads"),
			InThread: rapid.Bool().Draw(t, "inThread"), Batched: rapid.Bool().Draw(t, "batched"), Target: "m",
		}
		s := NewSlot(rule)
		owner := ""
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			class := chat.Class(rapid.IntRange(0, int(chat.Error)).Draw(t, "class"))
			id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "id")
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				s.Reserve(id)
			case 1:
				s.Release()
			case 2:
				if s.Consume(class, id) {
					if owner != "" || !class.TakesSlot() {
						t.Fatalf("%s %q took the slot of %q", class, id, owner)
					}
					owner = id
				}
			}
			if owner != "" && (s.Owner() != owner || !s.Consumed()) {
				t.Fatalf("the slot of %q went to %q", owner, s.Owner())
			}
			if owner != "" && rule.Mode != ModeAll && s.Reference(chat.Assistant, false) != "" {
				t.Fatal("a later answer got a reference")
			}
			if rule.Mode == ModeOff && s.Reference(class, false) != "" {
				t.Fatal("a reference in mode off")
			}
		}
	})
}
