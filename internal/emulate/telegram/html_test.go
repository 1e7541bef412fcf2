package telegram

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestParseHTML(t *testing.T) {
	tests := []struct {
		name, in string
		text     string
		entities []Entity
		wrong    bool
	}{
		{"plain", "a b", "a b", nil, false},
		{"nested", "<b>a<i>b</i></b>", "ab", []Entity{{Type: "bold", Length: 2}, {Type: "italic", Offset: 1, Length: 1}}, false},
		{"offsets are UTF-16", "😀<b>x</b>", "😀x", []Entity{{Type: "bold", Offset: 2, Length: 1}}, false},
		{"link", `<a href="https://e.com/?a=1&amp;b=&quot;2&quot;">x</a>`, "x", []Entity{{Type: "text_link", Length: 1, URL: `https://e.com/?a=1&b="2"`}}, false},
		{"language", `<pre><code class="language-go">x</code></pre>`, "x", []Entity{{Type: "pre", Length: 1, Language: "go"}}, false},
		{"spoilers", `<tg-spoiler>a</tg-spoiler><span class="tg-spoiler">b</span>`, "ab", []Entity{{Type: "spoiler", Length: 1}, {Type: "spoiler", Offset: 1, Length: 1}}, false},
		{"references", "&lt;&amp;&#65;&#x42;&quot;", `<&AB"`, nil, false},
		{"unknown references are text", "&copy; & &x", "&copy; & &x", nil, false},
		{"nothing marked", "<b></b>x", "x", nil, false},
		{"attribute without value", "<blockquote expandable>q</blockquote>", "q", []Entity{{Type: "blockquote", Length: 1}}, false},
		{"unknown tag", "<p>x</p>", "", nil, true},
		{"less than", "a < b", "", nil, true},
		{"unclosed", "<b>x", "", nil, true},
		{"crossed", "<b><i>x</b></i>", "", nil, true},
		{"end only", "x</b>", "", nil, true},
		{"unclosed tag", "<b", "", nil, true},
		{"unclosed value", `<a href="x>y</a>`, "", nil, true},
		{"unclosed end tag", "<b>x</b", "", nil, true},
		{"wrong span", `<span class="x">y</span>`, "", nil, true},
		{"not UTF-8", "\xff", "", nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text, entities, err := ParseHTML(tt.in)
			if (err != nil) != tt.wrong {
				t.Fatalf("error %v", err)
			}
			if text != tt.text {
				t.Errorf("text %q, want %q", text, tt.text)
			}
			if diff := cmp.Diff(tt.entities, entities); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzParseHTML(f *testing.F) {
	f.Add(`<b>x &lt; <a href='y'>z</a></b>&#x1F600;`)
	f.Fuzz(func(t *testing.T, s string) {
		text, entities, err := ParseHTML(s)
		if err != nil {
			return
		}
		if !utf8.ValidString(text) {
			t.Errorf("%q → %q", s, text)
		}
		for _, e := range entities {
			if e.Offset < 0 || e.Length <= 0 || e.Offset+e.Length > units(text) {
				t.Errorf("%q: entity %+v outside of %q", s, e, text)
			}
		}
	})
}
