package notices_test

import (
	"testing"

	"pgregory.net/rapid"

	"understudy/chat"
	"understudy/llm"
	"understudy/notices"
)

var (
	a1 = llm.ModelRef{Provider: "alpha", Model: "a1"}
	b1 = llm.ModelRef{Provider: "beta", Model: "b1"}
	g1 = llm.ModelRef{Provider: "gamma", Model: "g1"}
)

func TestNextTellsOncePerChange(t *testing.T) {
	type turn struct {
		selected, active llm.ModelRef
		because          string
		want             notices.Change
	}
	for name, turns := range map[string][]turn{
		"lead only": {{a1, a1, "", notices.Unchanged}, {a1, a1, "", notices.Unchanged}},
		"away and back": {
			{a1, b1, "rate limit", notices.Engaged},
			{a1, b1, "rate limit", notices.Unchanged},
			{a1, b1, "overloaded", notices.Unchanged},
			{a1, a1, "", notices.Cleared},
			{a1, a1, "", notices.Unchanged},
		},
		"another understudy": {{a1, b1, "x", notices.Engaged}, {a1, g1, "x", notices.Engaged}, {a1, a1, "", notices.Cleared}},
		"selection changed":  {{a1, b1, "x", notices.Engaged}, {g1, g1, "", notices.Unchanged}},
	} {
		t.Run(name, func(t *testing.T) {
			var pair notices.Pair
			for i, x := range turns {
				next, change := notices.Next(pair, x.selected, x.active, x.because)
				if change != x.want {
					t.Errorf("turn %d: change = %d, want %d", i, change, x.want)
				}
				if !next.IsZero() && next.Reason != x.because {
					t.Errorf("turn %d: the newest reason is not kept: %+v", i, next)
				}
				pair = next
			}
		})
	}
}

// nextFunc is notices.Next or a mutation of it.
type nextFunc func(notices.Pair, llm.ModelRef, llm.ModelRef, string) (notices.Pair, notices.Change)

// alternates checks spec/failover.md §16.8 over one random history with a constant selection.
func alternates(rt *rapid.T, next nextFunc) string {
	var pair notices.Pair
	var told llm.ModelRef // who the chat believes to answer; zero = the selected one
	for range rapid.IntRange(1, 30).Draw(rt, "turns") {
		active := rapid.SampledFrom([]llm.ModelRef{a1, b1, g1}).Draw(rt, "active")
		var change notices.Change
		pair, change = next(pair, a1, active, "x")
		switch change {
		case notices.Engaged:
			if told == active {
				return "told the same fallback twice in a row"
			}
			told = active
		case notices.Cleared:
			if told.IsZero() {
				return "cleared what was never told"
			}
			told = llm.ModelRef{}
		}
		believed := told
		if believed.IsZero() {
			believed = a1
		}
		if believed != active {
			return "the chat believes another model answers"
		}
	}
	return ""
}

func TestNoticesAlternate(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		if fault := alternates(rt, notices.Next); fault != "" {
			rt.Fatal(fault)
		}
	})
}

func TestAlternationCatchesMutations(t *testing.T) {
	for name, broken := range map[string]nextFunc{
		"never cleared": func(p notices.Pair, s, a llm.ModelRef, b string) (notices.Pair, notices.Change) {
			next, c := notices.Next(p, s, a, b)
			if c == notices.Cleared {
				c = notices.Unchanged
			}
			return next, c
		},
		"forgets": func(_ notices.Pair, s, a llm.ModelRef, b string) (notices.Pair, notices.Change) {
			return notices.Next(notices.Pair{}, s, a, b)
		},
		"clears always": func(p notices.Pair, s, a llm.ModelRef, b string) (notices.Pair, notices.Change) {
			next, c := notices.Next(p, s, a, b)
			if a == s {
				c = notices.Cleared
			}
			return next, c
		},
	} {
		t.Run(name, func(t *testing.T) {
			caught := false
			rapid.Check(t, func(rt *rapid.T) { caught = alternates(rt, broken) != "" || caught })
			if !caught {
				t.Error("the property does not notice the mutation")
			}
		})
	}
}

func TestTexts(t *testing.T) {
	p := notices.Pair{Selected: a1, Active: b1, Reason: notices.Because(llm.ReasonRateLimit, "")}
	if got, want := notices.Fallback(p), "↪️ Model Fallback: beta/b1 (selected alpha/a1; rate limit)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := notices.FallbackCleared(p), "↪️ Model Fallback cleared: alpha/a1 (was beta/b1)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for want, got := range map[string]string{
		"🧠 The assistant selected beta/b1 for this session (strict - no fallbacks). /model default undoes it.":  notices.Selected(b1, false, llm.ModelRef{}),
		"🧠 The assistant selected beta/b1 for this session (strict - no fallbacks). /model gamma/g1 undoes it.": notices.Selected(b1, false, g1),
		"🧠 The assistant went back to the configured default, alpha/a1. /model gamma/g1 undoes it.":             notices.Selected(a1, true, g1),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestShowsFallback(t *testing.T) {
	for _, x := range []struct {
		mode string
		kind chat.Kind
		want bool
	}{
		{"", chat.Room, true},
		{"all", chat.Group, true},
		{"direct", chat.Direct, true},
		{"direct", chat.Room, false},
		{"off", chat.Direct, false},
	} {
		if got := (notices.Config{Fallback: x.mode}).ShowsFallback(x.kind); got != x.want {
			t.Errorf("%s in %s: %v, want %v", x.mode, x.kind, got, x.want)
		}
	}
	if (notices.Config{Fallback: "some"}).Validate() == nil {
		t.Error("an unknown word is accepted")
	}
}
