package tts

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"understudy/chat"
)

var update = flag.Bool("update", false, "write the golden files")

// always is a policy under which everything is spoken that may be.
func always(change ...func(*Config)) Config {
	c := Config{Auto: Always, Provider: "openai"}
	for _, f := range change {
		f(&c)
	}
	return c.WithDefaults()
}

// TestGolden plans the answers of testdata/*.txtar.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no golden files", err)
	}
	for _, file := range files {
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(string(before), "-- model --\n")
		got := parts[0]
		for _, part := range parts[1:] {
			text, _, _ := strings.Cut(part, "-- shown --\n")
			text = strings.TrimRight(text, "\n")
			got += "-- model --\n" + text + "\n" + shown(Plan(Request{Policy: always(), Class: chat.Assistant, Text: text}))
		}
		got = strings.TrimRight(got, "\n") + "\n"
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(string(before), got); diff != "" {
			t.Error(diff)
		}
	}
}

func shown(p Planned) string {
	s := "-- shown --\n" + p.Visible + "\n"
	if p.AsVoice {
		s += "(attached sound is a voice note)\n"
	}
	if p.Speech == nil {
		return s + "-- not said --\n\n"
	}
	s += "-- said"
	for _, key := range slices.Sorted(maps.Keys(p.Speech.Options)) {
		s += fmt.Sprintf(" %s=%q", key, p.Speech.Options[key])
	}
	return s + " --\n" + p.Speech.Text + "\n\n"
}

const answer = "This is an answer of the model."

// TestOnlyAnswersAreSpoken: whatever the settings, the conversation and the text ask for, a thing is
// spoken only if its class is an answer, an alert or a result. A new class is silent until this test
// says otherwise.
func TestOnlyAnswersAreSpoken(t *testing.T) {
	speakable := []chat.Class{chat.Assistant, chat.Heartbeat, chat.Cron}
	for class := chat.Class(0); class < 255; class++ {
		for _, auto := range []string{Off, Always, Inbound, Tagged} {
			for _, text := range []string{answer, "[[tts]]" + answer, "x [[tts:text]]" + answer + "[[/tts:text]]"} {
				p := Plan(Request{Policy: always(func(c *Config) { c.Auto = auto }), Chosen: auto, Voice: true, Class: class, Text: text})
				if p.Speech != nil && !slices.Contains(speakable, class) {
					t.Fatalf("%s (%d) is spoken: %q", class, class, p.Speech.Text)
				}
				if auto == Always && p.Speech == nil && slices.Contains(speakable, class) {
					t.Errorf("%s is not spoken", class)
				}
				if strings.Contains(p.Visible, "tts") || p.Visible == "" {
					t.Errorf("%s shows %q", class, p.Visible)
				}
			}
		}
	}
}

// TestNobodyElseSpeaks: speech is made in this package and nowhere else in the product, so what Plan does
// not let through (notices, errors, replies to commands, and the prefix and footer that are added to its
// result) has no other way to become sound.
func TestNobodyElseSpeaks(t *testing.T) {
	makers := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != ".." && strings.HasPrefix(e.Name(), "."):
			return fs.SkipDir
		case e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil //nolint:nilerr // somebody is writing it
		}
		ast.Inspect(file, func(n ast.Node) bool {
			var made ast.Expr
			switch n := n.(type) {
			case *ast.CompositeLit:
				made = n.Type
			case *ast.CallExpr: // new(chat.Speech)
				if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "new" && len(n.Args) == 1 {
					made = n.Args[0]
				}
			}
			if s, ok := made.(*ast.SelectorExpr); ok && s.Sel.Name == "Speech" {
				if in, ok := s.X.(*ast.Ident); ok && in.Name == "chat" {
					makers[filepath.ToSlash(path)] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"../tts/plan.go": true, "../tts/speaker.go": true} // the latter for /tts audio and /tts latest
	if diff := cmp.Diff(want, makers); diff != "" {
		t.Errorf("who makes speech: %s", diff)
	}
}

func TestWhenAnswersAreSpoken(t *testing.T) {
	const tagged = "[[tts]]" + answer
	for _, tc := range []struct {
		name, auto, chosen, text string
		voice, want              bool
	}{
		{"off", Off, "", tagged, true, false},
		{"always", Always, "", answer, false, true},
		{"a voice note is answered with one", Inbound, "", answer, true, true},
		{"a text is not", Inbound, "", tagged, false, false},
		{"the model asks for it", Tagged, "", tagged, false, true},
		{"the model does not", Tagged, "", answer, true, false},
		{"the conversation wants it", Off, Always, answer, false, true},
		{"the conversation does not", Always, Off, tagged, true, false},
		{"nine characters", Always, "", "All done.", false, false},
		{"ten characters", Always, "", "Very well.", false, true},
		{"few words are shown and many said", Always, "", "Ok. [[tts:text]]It is done.[[/tts:text]]", false, true},
		{"nothing to report", Always, "", "HEARTBEAT_OK", false, false},
		{"only pictures", Always, "", strings.Repeat("🎉", 20), false, false},
		{"nothing", Always, "", "", false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := Plan(Request{Policy: always(func(c *Config) { c.Auto = tc.auto }), Chosen: tc.chosen, Voice: tc.voice, Class: chat.Assistant, Text: tc.text})
			if got := p.Speech != nil; got != tc.want {
				t.Errorf("spoken: %v", got)
			}
		})
	}
	if p := Plan(Request{Policy: Config{Auto: Always}.WithDefaults(), Class: chat.Assistant, Text: answer}); p.Speech != nil {
		t.Error("spoken, and nobody can speak")
	}
}

func TestWhatModelsMayChoose(t *testing.T) {
	two := func(c *Config) {
		c.Providers = map[string]Provider{"openai": {}, "other": {BaseURL: "http://127.0.0.1/v1"}}
	}
	for _, tc := range []struct {
		name, text string
		change     func(*Config)
		want       chat.Speech
	}{
		{
			"a provider, where that is allowed", "[[tts:provider=other voice=bella]]" + answer,
			func(c *Config) { c.ModelOverrides.AllowProvider = new(true) },
			chat.Speech{Text: answer, Provider: "other", Options: map[string]string{"voice": "bella"}},
		},
		{
			"no provider, and no voice of one", "[[tts:provider=other voice=bella speed=2]]" + answer,
			func(*Config) {},
			chat.Speech{Text: answer, Provider: "openai", Options: map[string]string{"speed": "2"}},
		},
		{
			"no provider that there is not", "[[tts:provider=nobody]]" + answer,
			func(c *Config) { c.ModelOverrides.AllowProvider = new(true) },
			chat.Speech{Text: answer, Provider: "openai"},
		},
		{
			"nothing, where that is forbidden", "[[tts:voice=nova]]" + answer + "[[tts:text]]Other words.[[/tts:text]]",
			func(c *Config) { c.ModelOverrides.Enabled = new(false) },
			chat.Speech{Text: answer, Provider: "openai"},
		},
		{
			"no path, no option of a program, no nonsense", `[[tts:voice=../../x]][[tts:voice=--help]][[tts:speed=99]][[tts:speed=NaN]][[tts:text=1]]` + answer,
			func(*Config) {},
			chat.Speech{Text: answer, Provider: "openai"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := Plan(Request{Policy: always(two, tc.change), Class: chat.Assistant, Text: tc.text})
			if diff := cmp.Diff(&tc.want, p.Speech); diff != "" || p.Visible != answer {
				t.Errorf("shown %q, said %s", p.Visible, diff)
			}
		})
	}
}

func TestLongAnswersAreCutAtSentences(t *testing.T) {
	text := strings.Repeat("A sentence of seven words is here. ", 100)
	short := Plan(Request{Policy: always(func(c *Config) { c.MaxLength = 200 }), Class: chat.Assistant, Text: text}).Speech.Text
	if n := utf8.RuneCountInString(short); n > 200 || n < 150 || !strings.HasSuffix(short, "here.") {
		t.Errorf("%d characters: %q", n, short)
	}
	whole := Plan(Request{Policy: always(func(c *Config) { c.Summarize = new(true) }), Class: chat.Assistant, Text: text}).Speech.Text
	if len(whole) != len(text)-1 {
		t.Errorf("%d characters are left for a summary", len(whole))
	}
	for in, want := range map[string]string{
		strings.Repeat("word ", 40):                             strings.Repeat("word ", 19) + "word",
		strings.Repeat("x", 150):                                strings.Repeat("x", 100),
		strings.Repeat("重", 150):                                strings.Repeat("重", 100),
		strings.Repeat("重", 60) + "。" + strings.Repeat("重", 60): strings.Repeat("重", 60) + "。",
	} {
		if got := shorten(in, 100); got != want {
			t.Errorf("%q", got)
		}
	}
}

// TestSpeechIsForeseen: what is said of an answer before there is one comes true, whatever it says.
func TestSpeechIsForeseen(t *testing.T) {
	for _, auto := range []string{Off, Always, Inbound, Tagged} {
		for _, chosen := range []string{"", Off, Always} {
			for _, voice := range []bool{false, true} {
				for _, mode := range []string{modeFinal, modeAll} {
					q := Request{Policy: always(func(c *Config) { c.Auto, c.Mode = auto, mode }), Chosen: chosen, Voice: voice, Class: chat.Assistant}
					p := Foresee(q)
					q.Text = answer
					plain := Plan(q).Speech != nil
					q.Text = "[[tts]]" + answer
					asked := Plan(q).Speech != nil
					if p.Certain != (plain && mode == modeFinal) || p.Tagged != (asked && !plain) {
						t.Errorf("%s, chosen %q, voice note %v, %s: foreseen %+v", auto, chosen, voice, mode, p)
					}
				}
			}
		}
	}
	for name, p := range map[string]Config{
		"nobody can speak":       Config{Auto: Tagged}.WithDefaults(),
		"directives are ignored": always(func(c *Config) { c.Auto, c.ModelOverrides.Enabled = Tagged, new(false) }),
	} {
		if p := Foresee(Request{Policy: p}); p != (Prospect{}) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}
