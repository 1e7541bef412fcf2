package classify

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func tokens(msg string) []string {
	var w words
	w.cut([]byte(msg))
	var out []string
	for i := range w.n {
		text := string(w.text(i))
		switch w.list[i].kind {
		case tokenNumber:
			text = "#" + text
		case tokenName:
			text = "@" + text
		case tokenQuote:
			text = "Q"
		}
		out = append(out, text)
	}
	return out
}

func TestCut(t *testing.T) {
	for msg, want := range map[string]string{
		"Rate-limited, slow down!":                    "rate limited slow down",
		"The model `gpt-4o` does not exist":           "the model Q does not exist",
		"model corp-rate-limit failed":                "model @corp-rate-limit failed",
		"for gpt-4o-mini in organization org-abc on":  "for @gpt-4o-mini in organization org abc on",
		"you've reached your 5-hour limit":            "you've reached your #5 hour limit",
		"you’ve reached 10,000 neurons":               "you've reached #10,000 neurons",
		"see https://host/x?overloaded=1&y=2 please":  "see @https://host/x?overloaded=1&y=2 please",
		"litellm.RateLimitError: OpenAIException - x": "litellm ratelimiterror openaiexception x",
		"'messages[3].id': string too long":           "Q string too long",
		"Weekly/Monthly limit":                        "weekly monthly limit",
		"daily/beta-7 limit":                          "@daily/beta-7 limit",
		"サーバーが混み":                                     "サ ー バ ー が 混 み",
		"요청 한도를 넘었습니다":                                "요청 한도를 넘었습니다",
		"it's don't can't":                            "it's don't can't",
		"`max_tokens` is too large":                   "max_tokens is too large",
		"Prompt 超长。请缩短":                               "prompt 超 长 请 缩 短",
		"模型“gpt-9”不存在":                                "模 型 Q 不 存 在",
		"(TPM): Limit 6000":                           "tpm limit #6000",
		"read tcp 10.0.0.2:42902->203.0.113.1:443":    "read tcp @10.0.0.2:42902 @203.0.113.1:443",
		`"The model is overloaded"`:                   "the model is overloaded",
		"":                                            "",
	} {
		if diff := cmp.Diff(strings.Fields(want), tokens(msg)); diff != "" && (want != "" || len(tokens(msg)) > 0) {
			t.Errorf("%q: %s", msg, diff)
		}
	}
}

// Every phrase can match: what stands in the tables is cut as messages are, and wildcards take what
// they should. A phrase may be preceded by a more important one, never by a less important one.
func TestEveryPhraseMatches(t *testing.T) {
	fill := strings.NewReplacer("*", "x y", "#", "42", "@", "gpt-4o", "_", "gpt")
	for name, l := range map[string]*lexicon{"provider": providerText, "hard": hardText, "soft": softText, "cues": scopeCues} {
		for g, group := range l.groups {
			for _, phrase := range group.phrases {
				parts := strings.Fields(phrase)
				for i, w := range parts {
					if len(w) == 1 && strings.ContainsAny(w, "*#@_") {
						parts[i] = fill.Replace(w)
					}
				}
				msg := "so " + strings.Join(parts, " ") + " it said"
				var w words
				w.cut([]byte(msg))
				status := 0
				for _, s := range []int{404, 402} {
					if group.when != nil && !group.when(status) {
						status = s
					}
				}
				fam := group.only
				if got := l.find(&w, fam, status); got < 0 || got > g {
					t.Errorf("%s: %q is found in group %d, stands in %d", name, phrase, got, g)
				}
			}
		}
	}
}

// A gap never reaches over the end of a sentence, nor further than maxGap words.
func TestGapsAreBounded(t *testing.T) {
	l := compile([]group{{phrases: []string{"model * overloaded"}}})
	for msg, want := range map[string]int{
		"the model is very overloaded":                 0,
		"the model overloaded":                         0,
		"I like this model. The server is overloaded.": -1,
		"model a b c d e f g h i j k l m n overloaded": -1,
		"the model `is overloaded`":                    -1,
		"the model is overloaded-7b":                   -1,
	} {
		var w words
		w.cut([]byte(msg))
		if got := l.find(&w, 0, 0); got != want {
			t.Errorf("%q: %d, want %d", msg, got, want)
		}
	}
}

// Cutting takes any bytes, and every token lies inside the text.
func TestCutIsTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		msg := rapid.SliceOf(rapid.Byte()).Draw(t, "msg")
		var w words
		w.cut(msg)
		last := uint16(0)
		for i := range w.n {
			tok := w.list[i]
			if tok.start < last || tok.end <= tok.start || int(tok.end) > maxMatched {
				t.Fatalf("token %d is %+v", i, tok)
			}
			last = tok.end
		}
	})
}

// The reader walks over any bytes and stops.
func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"c\u00e9\ud83d\ude00"}],'d':None}`))
	f.Add([]byte(`{"a":"`))
	f.Add([]byte(`{"a":{"b":[`))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		for k, v := range members(b) {
			n += len(k)
			v.text()
			v.number()
			v.filled()
			for e := range elements(v.raw) {
				n += len(e.raw)
			}
		}
		if n > 2*len(b) {
			t.Fatalf("%d bytes out of %d", n, len(b))
		}
	})
}

// A code stands once in a table: a second entry would silently win.
func TestCodesStandOnce(t *testing.T) {
	t.Run("fold", func(t *testing.T) {
		for _, c := range []string{"rate_limit_exceeded", "RateLimitExceeded", "rate-limit-exceeded", "RATE LIMIT EXCEEDED"} {
			if rule, ok := commonCodes.lookUp([]byte(c)); !ok || rule.rule != "code/rate_limit_exceeded" {
				t.Errorf("%s: %+v", c, rule)
			}
		}
	})
	defer func() {
		if recover() == nil {
			t.Error("a second entry was taken")
		}
	}()
	tabulate("x", codeSet{codes: []string{"some_code", "SomeCode"}})
}
