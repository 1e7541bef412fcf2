package markup

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	emulator "understudy/internal/emulate/telegram"
)

// The checkers of this file read a message as its platform does, as strictly as its documents
// allow, and say what is wrong with it.

type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

// telegramTag is any tag that the dialect writes.
var telegramTag = regexp.MustCompile(`^<(?:(b|i|s|tg-spoiler|code|pre|blockquote)|(a) href="(https?://[^"<>\s]+)"|(code) class="language-[A-Za-z0-9+\-#._]{1,32}")>`)

// telegramProblem reads HTML of Telegram: only tags and references the server knows, each closed in
// order, nothing inside of code, no link in a link, no quote in a quote.
func telegramProblem(s string) error {
	if _, _, err := emulator.ParseHTML(s); err != nil {
		return err
	}
	var open []string
	inside := func(name string) bool {
		for _, o := range open {
			if o == name {
				return true
			}
		}
		return false
	}
	for rest := s; rest != ""; {
		switch m := telegramTag.FindStringSubmatch(rest); {
		case strings.HasPrefix(rest, "</"):
			end := strings.IndexByte(rest, '>')
			if len(open) == 0 || end < 0 || rest[2:end] != open[len(open)-1] {
				return fmt.Errorf("end tag %.20q with %v open", rest, open)
			}
			open, rest = open[:len(open)-1], rest[end+1:]
		case m != nil:
			name := m[1] + m[2] + m[4]
			languageOfBlock := m[4] != "" && len(open) > 0 && open[len(open)-1] == "pre"
			if inside("code") || inside("pre") && !languageOfBlock {
				return fmt.Errorf("<%s> in code", name)
			}
			if (name == "a" || name == "blockquote") && inside(name) || m[4] != "" && !languageOfBlock || inside("a") && name == "code" {
				return fmt.Errorf("<%s> in %v", name, open)
			}
			open, rest = append(open, name), rest[len(m[0]):]
		case rest[0] == '&':
			ref := regexp.MustCompile(`^&(?:amp|lt|gt|quot);`).FindString(rest)
			if ref == "" {
				return fmt.Errorf("reference %.10q", rest)
			}
			rest = rest[len(ref):]
		case rest[0] == '<' || rest[0] == '>' || rest[0] == '"':
			return fmt.Errorf("not escaped: %.20q", rest)
		default:
			if end := strings.IndexAny(rest, `<>&"`); end >= 0 {
				rest = rest[end:]
			} else {
				rest = ""
			}
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%v is not closed", open)
	}
	return nil
}

// mrkdwnToken is what may stand in angle brackets: nothing that notifies anybody.
var mrkdwnToken = regexp.MustCompile(`^<https?://[^<>|\s]+(?:\|[^<>|\n]+)?>`)

// mrkdwnProblem reads mrkdwn: the three characters are escaped, angle brackets are links of ours,
// code is balanced.
func mrkdwnProblem(s string) error {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '&':
			if ref := regexp.MustCompile(`^&(?:amp|lt|gt);`).FindString(s[i:]); ref == "" {
				return fmt.Errorf("& not escaped: %.20q", s[i:])
			}
		case '<':
			token := mrkdwnToken.FindString(s[i:])
			if token == "" {
				return fmt.Errorf("token %.20q", s[i:])
			}
			if strings.Contains(strings.ReplaceAll(token, "&amp;", ""), "&amp;amp;") {
				return fmt.Errorf("escaped twice: %s", token)
			}
			i += len(token) - 1
		case '>':
			if !regexp.MustCompile(`(?:^|\n)$`).MatchString(s[:i]) || !strings.HasPrefix(s[i:], "> ") {
				return fmt.Errorf("> not escaped: %.20q", s[i:])
			}
		}
	}
	if loud := broadcast.FindString(outsideFences(s)); loud != "" && !strings.Contains(s, "`") {
		return fmt.Errorf("%s", loud)
	}
	if strings.Count(s, "```")%2 != 0 {
		return fmt.Errorf("a code block is not closed")
	}
	for line := range strings.SplitSeq(outsideFences(s), "\n") {
		if strings.Count(line, "`")%2 != 0 {
			return fmt.Errorf("code is not closed: %q", line)
		}
	}
	return nil
}

// outsideFences returns a text without its code blocks.
func outsideFences(s string) string {
	var out strings.Builder
	for i, part := range strings.Split(s, "```") {
		if i%2 == 0 {
			out.WriteString(part)
		}
	}
	return out.String()
}

// discordLoud is what Discord makes a mention of, wherever it stands outside of code.
var discordLoud = regexp.MustCompile(`@everyone|@here|<@[!&]?\d+>`)

// discordProblem reads Discord's Markdown as far as it can notify people or swallow text.
func discordProblem(s string) error {
	if strings.Count(s, "```")%2 != 0 {
		return fmt.Errorf("a code block is not closed")
	}
	if loud := discordLoud.FindString(discordProse(outsideFences(s))); loud != "" {
		return fmt.Errorf("%s notifies people", loud)
	}
	return nil
}

// discordProse returns a text without its inline code.
func discordProse(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); {
		switch n := run(s[i:]); {
		case s[i] == '\\' && i+1 < len(s):
			out.WriteString(s[i : i+2])
			i += 2
		case n > 0:
			if code := codeSpan(s[i:]); len(code) > n {
				n = len(code)
			}
			i += n
		default:
			out.WriteByte(s[i])
			i++
		}
	}
	return out.String()
}

// slackMarkdownProblem reads Slack's Markdown: it notifies nobody, and says what the plain text says.
func slackMarkdownProblem(m Message) error {
	if loud := slackTokens.FindString(m.Text) + broadcast.FindString(m.Text); loud != "" {
		return fmt.Errorf("%s notifies people", loud)
	}
	again := renderTree(m.Text, plainStyle{}, nil)
	if got, want := comparable(again), comparable(m.Plain); got != want {
		return fmt.Errorf("says %q, not %q", got, want)
	}
	return nil
}

// comparable leaves of a text what two renderings of it must have in common.
func comparable(s string) string {
	s = regexp.MustCompile(`%[0-9A-F]{2}`).ReplaceAllString(s, "")
	return strings.Map(func(r rune) rune {
		if isLetter(r) {
			return r
		}
		return -1
	}, s)
}

// check holds what every message must be: right for its platform, within the limits, not empty.
func check(t failer, d Dialect, md string, messages []Message, l Limits) {
	t.Helper()
	for _, m := range messages {
		var err error
		switch d {
		case TelegramHTML:
			err = telegramProblem(m.Text)
		case SlackMrkdwn:
			err = mrkdwnProblem(m.Text)
		case DiscordMarkdown:
			err = discordProblem(m.Text)
		case SlackMarkdown:
			err = slackMarkdownProblem(m)
		}
		if err != nil {
			t.Errorf("dialect %d: %v\n%q\n→ %q", d, err, md, m.Text)
			continue
		}
		seen := Units(m.Text)
		if d == TelegramHTML {
			seen = htmlUnits(m.Text)
		}
		if n := strings.Count(m.Text, "</") - strings.Count(m.Text, "</code></pre>"); l.Spans > 0 && d == TelegramHTML && n > l.Spans {
			t.Errorf("%d spans, more than %d: %q", n, l.Spans, m.Text)
		}
		if most := max(l.Visible, leastLimit); l.Visible > 0 && (seen > most || Units(m.Plain) > most) {
			t.Errorf("dialect %d: %d and %d units, limit %d\n%q\n→ %q", d, seen, Units(m.Plain), most, md, m.Text)
		}
		if l.Units > 0 && Units(m.Source) > max(l.Units, leastLimit) {
			t.Errorf("dialect %d: %d units of source, limit %d", d, Units(m.Source), l.Units)
		}
		if !visible(m.Text) || !visible(m.Plain) {
			t.Errorf("dialect %d: %q: nothing to see in %q", d, md, m.Text)
		}
		if bad := strings.IndexFunc(m.Text, func(r rune) bool { return (&cleaner{}).unwanted(r) || r < ' ' && r != '\n' && r != '\t' }); bad >= 0 && !strings.Contains(m.Text, string(blackFlag)) {
			t.Errorf("dialect %d: %q keeps %q", d, md, m.Text[bad:])
		}
		if n := openDirections(m.Text); n != 0 {
			t.Errorf("dialect %d: %d directional runs are not balanced in %q", d, n, m.Text)
		}
	}
}

// openDirections counts the directional runs that a text starts and does not end, or the other way
// round.
func openDirections(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case r >= firstEmbedding && r <= lastEmbedding, r >= firstIsolate && r <= lastIsolate:
			n++
		case r == endEmbedding, r == endIsolate:
			n--
		}
	}
	return n
}

// openFence returns the fence that is open at the end of a text, read line by line.
func openFence(md string) fence {
	var f fence
	for line := range strings.SplitSeq(md, "\n") {
		f = f.after(line)
	}
	return f
}

var dialects = []Dialect{Plain, Markdown, TelegramHTML, SlackMrkdwn, SlackMarkdown, DiscordMarkdown}

// TestCheckersNotice holds that the checkers can fail.
func TestCheckersNotice(t *testing.T) {
	wrong := map[Dialect][]string{
		TelegramHTML: {
			"<b>a", "a</b>", "<b><i>a</b></i>", "<u>a</u>", "a < b", "a > b", "a & b", "&nbsp;", "<code><b>a</b></code>", `<a href="tg://user?id=1">a</a>`,
			`<pre>a<code class="language-go">b</code><b>c</b></pre>`, "<blockquote><blockquote>a</blockquote></blockquote>", `a"b`, `<a href="https://a.b"><code>x</code></a>`,
		},
		SlackMrkdwn:     {"<!here>", "<@U1>", "a & b", "a < b", "a > b", "<https://a.b|x", "`a", "```\na", "<javascript:x|y>", "hey @channel"},
		DiscordMarkdown: {"```\na", "@everyone", "x <@&42>", "<@!1> a"},
		SlackMarkdown:   {"<!channel>", "a <@U1>", "@here", "other words"},
	}
	for d, texts := range wrong {
		for _, text := range texts {
			seen := &recorder{}
			check(seen, d, text, []Message{{Text: text, Plain: "a b c", Source: text}}, Limits{})
			if seen.failures == 0 {
				t.Errorf("dialect %d: nobody noticed %q", d, text)
			}
		}
	}
	seen := &recorder{}
	check(seen, Plain, "", []Message{{Text: "too long", Plain: "too long"}, {Text: "\x00a", Plain: "a"}, {Text: "a\u2067", Plain: "a"}, {Text: " ", Plain: " "}}, Limits{Visible: 5})
	if seen.failures < 4 {
		t.Errorf("%d of the common faults were noticed", seen.failures)
	}
}

// recorder counts failures.
type recorder struct{ failures int }

func (*recorder) Helper() {}

func (r *recorder) Errorf(string, ...any) { r.failures++ }

// chunksOf are the chunks of a text before they are rendered.
func chunksOf(md string, l Limits) []string {
	var out []string
	s := newSplitter(analyse(clean(md)), l)
	for at := (place{}); !s.done(at); {
		var chunk string
		if chunk, at = s.next(at); chunk != "" {
			out = append(out, chunk)
		}
	}
	return out
}

// renderTree renders a text in a style. A text that the parser cannot cope with is shown as it is.
func renderTree(md string, s style, src *source) string {
	return newTree(md, markdown, src).render(s)
}
