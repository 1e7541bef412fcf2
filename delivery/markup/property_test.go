package markup

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// writer draws Markdown of which every word is known: w0, w1, w2 …
type writer struct {
	t     *rapid.T
	words int
}

func (w *writer) pick(of ...string) string { return rapid.SampledFrom(of).Draw(w.t, "pick") }

func (w *writer) upTo(n int) int { return rapid.IntRange(1, n).Draw(w.t, "n") }

func (w *writer) word() string {
	w.words++
	return fmt.Sprintf("w%d", w.words-1)
}

// phrase is words with marks around some of them.
func (w *writer) phrase() string {
	var parts []string
	for range w.upTo(12) {
		x := w.word()
		switch w.pick("", "", "", "bold", "italic", "strike", "spoiler", "code", "link", "image", "long", "emoji", "stop") {
		case "bold":
			x = "**" + x + " " + w.word() + "**"
		case "italic":
			x = "*" + x + "*"
		case "strike":
			x = "~~" + x + " " + w.word() + "~~"
		case "spoiler":
			x = "||" + x + "||"
		case "code":
			x = "`" + x + " " + w.word() + "`"
		case "link":
			x = "[" + x + " **" + w.word() + "**](https://x.example/path)"
		case "image":
			x = "![" + x + "](https://x.example/i.png)"
		case "long":
			x = "**" + x + " " + strings.Repeat("🇩🇪", w.upTo(9)) + " *" + w.word() + "*, " + w.word() + "**"
		case "emoji":
			x += " 👩‍👩‍👧"
		case "stop":
			x += "."
		}
		parts = append(parts, x)
	}
	return strings.Join(parts, " ")
}

func (w *writer) block(depth int) string {
	kind := w.pick("text", "text", "lines", "heading", "list", "numbers", "quote", "code", "table", "rule")
	if depth > 2 {
		kind = "text"
	}
	switch kind {
	case "lines":
		return w.phrase() + "\n" + w.phrase()
	case "heading":
		return strings.Repeat("#", w.upTo(5)) + " " + w.phrase()
	case "list", "numbers":
		return w.list(kind == "numbers", depth)
	case "quote":
		return "> " + strings.ReplaceAll(w.block(depth+1), "\n", "\n> ")
	case "code":
		fence := w.pick("```", "~~~", "````")
		rows := fence + w.pick("", "go", "python title=x")
		for range w.upTo(8) {
			rows += "\n" + w.pick("", "  ", "\t") + w.word() + " := " + w.word()
		}
		return rows + "\n" + fence
	case "table":
		rows := "| h | k |\n|---|--:|"
		for range w.upTo(8) {
			rows += "\n| " + w.word() + " **" + w.word() + "** | " + w.word() + " |"
		}
		return rows
	case "rule":
		return "---"
	default:
		return w.phrase()
	}
}

func (w *writer) list(ordered bool, depth int) string {
	var items []string
	for i := range w.upTo(4) {
		sign := "- "
		if ordered {
			sign = strconv.Itoa(i+1) + ". "
		}
		item := w.phrase()
		if w.pick("", "", "more") == "more" {
			item += w.pick("\n", "\n\n") + w.block(depth+1)
		}
		items = append(items, sign+strings.ReplaceAll(item, "\n", "\n"+strings.Repeat(" ", len(sign))))
	}
	return strings.Join(items, "\n")
}

func (w *writer) text() string {
	var blocks []string
	for range w.upTo(6) {
		blocks = append(blocks, w.block(0))
	}
	return strings.Join(blocks, "\n\n")
}

var wordOf = regexp.MustCompile(`w(\d+)`)

// TestEveryWordIsSaidOnce splits and renders texts of known words: each is said, once and in order,
// and no mark of the source is left over.
func TestEveryWordIsSaidOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &writer{t: t}
		md := w.text()
		l := Limits{
			Units:   rapid.IntRange(100, 700).Draw(t, "units"),
			Lines:   rapid.SampledFrom([]int{0, 0, 6, 17}).Draw(t, "lines"),
			Newline: rapid.Bool().Draw(t, "newline"),
			Spans:   rapid.SampledFrom([]int{0, 0, 3, 10}).Draw(t, "spans"),
		}
		for _, d := range dialects {
			messages := Messages(md, d, l)
			check(t, d, md, messages, l)
			said := 0
			for _, m := range messages {
				for _, found := range wordOf.FindAllStringSubmatch(m.Text, -1) {
					if found[1] != strconv.Itoa(said) {
						t.Fatalf("dialect %d: w%d is missing before %q in %q\n%s", d, said, found[0], m.Text, md)
					}
					said++
				}
				if d == TelegramHTML || d == Plain {
					if left := regexp.MustCompile("[*`]|\\]\\(|\\|\\||~~|\\\\").FindString(m.Text); left != "" {
						t.Fatalf("dialect %d: %q is left over in %q\n%s", d, left, m.Text, md)
					}
				}
			}
			if said != w.words {
				t.Fatalf("dialect %d: %d of %d words are said\n%s", d, said, w.words, md)
			}
		}
	})
}

// TestCharactersStayWhole cuts texts without spaces everywhere a cut can be.
func TestCharactersStayWhole(t *testing.T) {
	whole := []string{"👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "1️⃣", "e\u0301", "각", "\u1112\u1161\u11ab", "क्षि", "நி", "กำ", "🏴\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F", "🏳️‍🌈", "x"}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(whole), 1, 60).Draw(t, "characters")
		md := strings.Join(parts, "")
		limit := rapid.IntRange(20, 60).Draw(t, "limit")
		ends := map[int]bool{}
		n := 0
		for _, p := range parts {
			n += len(p)
			ends[n] = true
		}
		at := 0
		for _, c := range chunksOf(md, Limits{Units: limit}) {
			if at += len(c); !ends[at] {
				t.Fatalf("%q is cut at %d", md, at)
			}
		}
		if preview := CutPreview(md, limit); !ends[len(strings.TrimSuffix(preview, ellipsis))] {
			t.Fatalf("the preview %q of %q cuts a character", preview, md)
		}
	})
}

// TestElementsStayWhole cuts texts of links, code and emphasis, each of which fits one message.
func TestElementsStayWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		element := rapid.SampledFrom([]string{
			"[a b c d](https://x.example/abc)", "`some code here`", "**bold words here**", "~~no longer said~~", "||not to be seen||", "*in italics*",
			"https://x.example/a-b-c?d=e", "<https://x.example/y>", "![a picture](https://p.example)", "[**a** `b`](https://x.example)", "word", "$x_1 * y_1$",
		})
		elements := rapid.SliceOfN(element, 1, 40).Draw(t, "elements")
		glue := rapid.SampledFrom([]string{" ", "\n", ", "}).Draw(t, "glue")
		md := strings.Join(elements, glue)
		text := strings.Join(chunksOf(md, Limits{Units: rapid.IntRange(40, 120).Draw(t, "limit")}), "\n")
		for _, e := range elements {
			i := strings.Index(text, e)
			if i < 0 {
				t.Fatalf("%q is torn in %q", e, text)
			}
			text = text[i+len(e):]
		}
	})
}

// markdownText draws anything that could be Markdown.
func markdownText() *rapid.Generator[string] {
	fragment := rapid.OneOf(
		rapid.SampledFrom([]string{
			"**", "*", "_", "~~", "||", "`", "``", "[", "](", "](https://x.y/", ")", "![", "<b>", "</b>", "<", ">", "&", "&lt;", "&#60;", "\\", "<https://a.b>",
			"https://c.d/e", "\n", "\n\n", "\n> ", "\n- ", "\n1. ", "\n# ", "\n```go\n", "\n```\n", "\n| a | b |\n|---|---|\n| c |", "\n<div>", "\n---\n", "😀", "\x00", "\xff", "a", "b c",
			"\n    ", "\n  - ", "\t", "\u2067", "\u2069", "\u202b", "[^1]", "$", "[x]: y\n", "<!channel>", "<@U1>", "@everyone", "@here", "<@&42>", "\u200b", "\u202e", "|", "\n~~~\n", "。", "重", "===", "[ ] ",
		}),
		rapid.String(),
	)
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(fragment, 0, 40).Draw(t, "fragments"), "") })
}

// TestAnythingIsRight renders anything: every platform accepts it, and nobody is notified.
func TestAnythingIsRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		md := markdownText().Draw(t, "md")
		l := Limits{Units: rapid.IntRange(20, 300).Draw(t, "units"), Visible: rapid.IntRange(70, 300).Draw(t, "visible")}
		for _, d := range dialects {
			check(t, d, md, Messages(md, d, l), l)
			check(t, d, md, Messages(CutPreview(md, l.Units), d, l), l)
		}
	})
}

// TestNothingIsAddedByTheSecondTime holds what must not change when it is done again.
func TestNothingIsAddedByTheSecondTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		md := markdownText().Draw(t, "md")
		once := clean(md)
		if twice := clean(once); twice != once {
			t.Errorf("clean: %q, then %q", once, twice)
		}
		limit := rapid.IntRange(20, 200).Draw(t, "limit")
		shown := CutPreview(md, limit)
		if again := CutPreview(shown, limit); Units(again) > limit {
			t.Errorf("a preview of %q is longer than %d", again, limit)
		}
	})
}
