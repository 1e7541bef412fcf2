package app

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestAModelIsChangedInPlace(t *testing.T) {
	const head = "# about\nagents:\n  # who\n  defaults: # here\n"
	for name, c := range map[string]struct{ before, primary, list, want string }{
		"nothing there":         {"", "a/b", "", "agents:\n  defaults:\n    model: a/b\n"},
		"comments only":         {"# mine\n", "a/b", "", "# mine\n\nagents:\n  defaults:\n    model: a/b\n"},
		"another section":       {"models: {}\n", "a/b", "", "agents:\n  defaults:\n    model: a/b\nmodels: {}\n"},
		"an empty section":      {"agents:\nmodels: {}\n", "a/b", "", "agents:\n  defaults:\n    model: a/b\nmodels: {}\n"},
		"empty, with a comment": {"agents: # soon\n", "a/b", "", "agents: # soon\n  defaults:\n    model: a/b\n"},
		"no model": {
			head + "    # prompt\n    systemPrompt: x\n", "a/b", "c/d",
			head + "    # prompt\n    model: {primary: a/b, fallbacks: [c/d]}\n    systemPrompt: x\n",
		},
		"a plain model":          {head + "    model: x/y   # ours\n", "a/b", "", head + "    model: a/b   # ours\n"},
		"a quoted model":         {head + "    model: \"x/y\"\n", "a/b", "", head + "    model: a/b\n"},
		"one without a value":    {head + "    model: # later\n    systemPrompt: x\n", "a/b", "", head + "    model: a/b # later\n    systemPrompt: x\n"},
		"a first fallback":       {head + "    model: x/y # ours\n", "x/y", "c/d e/f", head + "    model: {primary: x/y, fallbacks: [c/d, e/f]} # ours\n"},
		"a block":                {head + "    model:\n      primary: x/y # ours\n", "a/b", "", head + "    model:\n      primary: a/b # ours\n"},
		"a fallback for a block": {head + "    model:\n      primary: x/y # ours", "x/y", "c/d", head + "    model:\n      primary: x/y # ours\n      fallbacks: [c/d]\n"},
		"a list with dashes": {
			head + "    model:\n      primary: x/y\n      fallbacks: # then\n        - c/d # one\n        # two\n        - e/f\n    systemPrompt: x\n", "x/y", "c/d g/h",
			head + "    model:\n      primary: x/y\n      fallbacks: # then\n        - c/d # one\n        # two\n        - g/h\n    systemPrompt: x\n",
		},
		"dashes without indent": {
			head + "    model:\n      fallbacks:\n      - c/d\n      primary: x/y", "x/y", "c/d e/f",
			head + "    model:\n      fallbacks:\n      - c/d\n      - e/f\n      primary: x/y",
		},
		"the last one of dashes": {
			head + "    model:\n      primary: x/y\n      fallbacks:\n        - c/d", "x/y", "",
			head + "    model:\n      primary: x/y\n      fallbacks: []\n",
		},
		"a list in brackets":       {head + "    model: {primary: x/y, fallbacks: [c/d, e/f]} # ours\n", "x/y", "e/f", head + "    model: {primary: x/y, fallbacks: [e/f]} # ours\n"},
		"brackets over lines":      {head + "    model:\n      primary: x/y\n      fallbacks: [\n        c/d,\n      ]\n", "x/y", "c/d e/f", head + "    model:\n      primary: x/y\n      fallbacks: [c/d, e/f]\n"},
		"braces without a list":    {head + "    model: {primary: x/y}\n", "a/b", "c/d", head + "    model: {primary: a/b, fallbacks: [c/d]}\n"},
		"everything on one line":   {"agents: {defaults: {timeoutSeconds: 5}}\n", "a/b", "", "agents: {defaults: {model: a/b, timeoutSeconds: 5}}\n"},
		"empty braces":             {"agents: {}\n", "a/b", "c/d", "agents: {defaults: {model: {primary: a/b, fallbacks: [c/d]}}}\n"},
		"what needs quotes":        {head + "    model: x/y\n", "ollama/qwen:27b", "c/d:e", head + "    model: {primary: \"ollama/qwen:27b\", fallbacks: [\"c/d:e\"]}\n"},
		"letters of other tongues": {"agents: {defaults: {systemPrompt: Grüße, model: x/y}}\n", "a/b", "", "agents: {defaults: {systemPrompt: Grüße, model: a/b}}\n"},
		"windows":                  {"agents:\r\n  defaults:\r\n    model: x/y\r\n", "a/b", "", "agents:\r\n  defaults:\r\n    model: a/b\r\n"},
	} {
		got, err := setModel([]byte(c.before), c.primary, strings.Fields(c.list))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, string(got)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestWhatAnEditCouldDamageIsLeftToPeople(t *testing.T) {
	for _, text := range []string{
		"agents: &a\n  defaults: {model: x/y}\n",
		"base: &b {model: x/y}\nagents:\n  defaults:\n    <<: *b\n",
		"m: &m x/y\nagents:\n  defaults:\n    model: *m\n",
		"agents:\n  defaults:\n    model: |\n      x/y\n",
		"agents:\n  defaults:\n    model:\n      fallbacks: [c/d]\n",
		"agents:\n  defaults:\n    model:\n      primary: x/y\n      fallbacks: [c/d, # one\n        e/f]\n",
		"agents:\n  defaults:\n    model: {primary: x/y, fallbacks: c/d}\n",
		"agents: 7\n", "- a\n",
	} {
		if got, err := setModel([]byte(text), "a/b", []string{"c/d"}); !errors.Is(err, errByHand) {
			t.Errorf("%q became %q, %v", text, got, err)
		}
	}
}

// TestAnyEditReadsBack changes documents of many shapes: what is read afterwards is what was wanted,
// and nothing else has changed.
func TestAnyEditReadsBack(t *testing.T) {
	shapes := []string{
		"", "# c\n", "models: {}\nagents:\n  defaults:\n    systemPrompt: 'x: y' # c\n", "agents: {list: [{id: main}]}\n",
		"agents:\n  list:\n    - id: main\n  defaults:\n    model: q/r # c\nmodels:\n  providers: {}\n",
		"agents:\n    defaults:\n        model:\n            # first\n            primary: 'q/r'\n            # then\n            fallbacks:\n            - s/t # c\n            - u/v\n        timeoutSeconds: 5\n",
		"agents: {defaults: {model: {fallbacks: [s/t, \"u/v\"], primary: q/r}, timeoutSeconds: 5}}\n",
		"agents:\n  defaults:\n    model: {primary: \"q/r\"}\n",
	}
	ref := rapid.StringMatching(`[a-z]{1,4}/[a-z0-9.:-]{1,6}[a-z]`)
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.SampledFrom(shapes).Draw(t, "shape"))
		before := modelIn(t, text)
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			primary := ref.Draw(t, "primary")
			list := keep(t, before.list)
			list = append(list, rapid.SliceOfN(ref, 0, 2).Draw(t, "more")...)
			after, err := setModel(text, primary, list)
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			got := modelIn(t, after)
			if got.primary != primary || !cmp.Equal(append([]string{}, list...), append([]string{}, got.list...)) {
				t.Fatalf("%q with %s %v became %q", text, primary, list, after)
			}
			if diff := cmp.Diff(before.rest, got.rest); diff != "" && before.rest != nil {
				t.Fatalf("%q became %q: %s", text, after, diff)
			}
			if strings.Count(string(after), "# ") < strings.Count(string(text), "# ")-len(before.list) {
				t.Fatalf("comments were lost: %q became %q", text, after)
			}
			text, before = after, got
		}
	})
}

// keep drops some of a list.
func keep(t *rapid.T, list []string) []string {
	var out []string
	for _, x := range list {
		if rapid.Bool().Draw(t, "keep") {
			out = append(out, x)
		}
	}
	return out
}

type modelRead struct {
	primary string
	list    []string
	rest    any
}

// modelIn reads a document with the model apart from the rest.
func modelIn(t *rapid.T, text []byte) (m modelRead) {
	var doc map[string]any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	agents, _ := doc["agents"].(map[string]any)
	defaults, _ := agents["defaults"].(map[string]any)
	switch v := defaults["model"].(type) {
	case string:
		m.primary = v
	case map[string]any:
		m.primary, _ = v["primary"].(string)
		list, _ := v["fallbacks"].([]any)
		for _, x := range list {
			m.list = append(m.list, x.(string))
		}
	}
	if defaults != nil {
		delete(defaults, "model")
		m.rest = doc
	}
	return m
}

func TestTheExampleKeepsItsComments(t *testing.T) {
	text, err := os.ReadFile("../config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := setModel(text, "openai/gpt-5.5", []string{"anthropic/claude-opus-4-8"})
	if err != nil {
		t.Fatal(err)
	}
	a, b := strings.Split(string(text), "\n"), strings.Split(string(got), "\n")
	changed := 0
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			changed++
		}
	}
	if len(a) != len(b) || changed == 0 || changed > 4 {
		t.Errorf("%d of %d lines changed, %d are there now", changed, len(a), len(b))
	}
}
