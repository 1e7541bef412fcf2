package slack

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const botID = "U0BOT0001"

func testReader() reader {
	return reader{self: botID, name: func(user string) string {
		return map[string]string{ann: "Ann Lee", botID: "understudy"}[user]
	}}
}

func TestReadsTheNotationOfText(t *testing.T) {
	for _, c := range []struct {
		text, want       string
		mentions, others bool
	}{
		{text: "hello", want: "hello"},
		{text: "<@U0BOT0001> hi", want: "hi", mentions: true},
		{text: "  <@U0BOT0001|understudy>, hi", want: "hi", mentions: true},
		{text: "<@U0BOT0001> <@U0BOT0001>: /status", want: "/status", mentions: true},
		{text: "<@U0BOT0001>", want: "", mentions: true},
		{text: "ask <@U0BOT0001> too", want: "ask @understudy too", mentions: true},
		{text: "<@U0BOT00012> hi", want: "@U0BOT00012 hi", others: true},
		{text: "<@U0ANN0001> hi", want: "@Ann Lee hi", others: true},
		{text: "<@U0XYZ9999|zoe> hi <@W0ABC1>", want: "@zoe hi @W0ABC1", others: true},
		{text: "<@U0BOT0001> tell <@U0ANN0001>", want: "tell @Ann Lee", mentions: true, others: true},
		{text: "in <#C0GENERAL|general> or <#C0OTHER01>", want: "in #general or #C0OTHER01"},
		{text: "<!here> and <!channel> and <!everyone|everyone>", want: "@here and @channel and @everyone"},
		{text: "<!subteam^S123|@team> <!subteam^S9>", want: "@team @S9", others: true},
		{text: "<!date^1392734382^{date}|Feb 18, 2014>", want: "Feb 18, 2014"},
		{text: "<!unknown>", want: "@unknown"},
		{text: "see <https://example.com/a?b=1&amp;c=2>", want: "see https://example.com/a?b=1&c=2"},
		{text: "see <https://example.com/a|the page>", want: "see the page (https://example.com/a)"},
		{text: "see <http://example.com|example.com>", want: "see example.com"},
		{text: "see <http://example.com/|http://example.com>", want: "see http://example.com/"},
		{text: "<mailto:ann@example.com|ann@example.com>", want: "ann@example.com"},
		{text: "a &lt; b &amp;&amp; c &gt; d", want: "a < b && c > d"},
		{text: "&amp;lt; stays", want: "&lt; stays"},
		{text: "1 < 2", want: "1 < 2"},
		{text: "<", want: "<"},
		{text: "<>", want: "<>"},
		{text: "<|x>", want: "<|x>"},
		{text: "<<@U0ANN0001>>", want: "<@Ann Lee>", others: true},
		{text: "<@>", want: "@", others: true},
		{text: "<!>", want: "@"},
		{text: "<#>", want: "#"},
	} {
		got := testReader().read(c.text)
		if got.text != c.want || got.mentions != c.mentions || got.others != c.others {
			t.Errorf("%q: got %q (mentions %v, others %v), want %q (%v, %v)", c.text, got.text, got.mentions, got.others, c.want, c.mentions, c.others)
		}
	}
}

func TestEscapedTextIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("<>&@!#|ab ;ltgmp\n😀"))).Draw(t, "text")
		if got := testReader().read(escaper.Replace(text)).text; got != strings.TrimSpace(text) {
			t.Fatalf("%q is read as %q", text, got)
		}
	})
}

func TestReadingNeverFails(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("<>&@!#|U0BOT01 ^:,ab😀"))).Draw(t, "text")
		got := testReader().read(text)
		if len(got.users) > mostNamed || len(got.text) > 3*len(text)+40 {
			t.Fatalf("%q is read as %q", text, got.text)
		}
	})
}

// loud is what notifies people.
var loud = regexp.MustCompile(`<[!@#]|@(?:channel|here|everyone)\b`)

func TestNoMentionHidesInTheSeamsOfAStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.SampledFrom([]string{"<!", "<@", "<#", "@channel", "@here", "@everyone", "<", "@", "cha", "nnel>", "U0ANN0001>", " ", "e", "h", "plain & simple", "_x"})).Draw(t, "words")
		text := strings.Join(words, "")
		var said string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			said += quiet(rest[:n])
			rest = rest[n:]
		}
		if l := loud.FindString(said); l != "" {
			t.Fatalf("%q is said as %q, which holds %q", text, said, l)
		}
		if strings.ReplaceAll(said, zeroWidth, "") != text {
			t.Fatalf("%q is said as %q", text, said)
		}
	})
}

func TestCodeIsStreamedUnchanged(t *testing.T) {
	for _, code := range []string{"@heredoc", "if a < b { @channelId }", "@everyone_else", "ann@example.com <div> <-ch"} {
		if got := quiet(code + "\n"); got != code+"\n" {
			t.Errorf("%q becomes %q", code, got)
		}
	}
}

func TestKnowsTheNamesOfEmoji(t *testing.T) {
	for emoji, want := range map[string]string{
		"👀": "eyes", "✅": "white_check_mark", "⚠️": "warning", "❤️": "heart", ":tada:": "tada", "partyparrot": "partyparrot",
		"thumbsup::skin-tone-2": "thumbsup::skin-tone-2",
	} {
		if got, ok := reactionName(emoji); !ok || got != want {
			t.Errorf("%q: got %q, %v", emoji, got, ok)
		}
	}
	for _, emoji := range []string{"", "🦤", "not a name", "::", "UPPER"} {
		if got, ok := reactionName(emoji); ok {
			t.Errorf("%q: got %q", emoji, got)
		}
	}
}

func TestTimestampsAreKept(t *testing.T) {
	for _, ts := range []string{"1772445600.000100", "946684800.000001", "100.100000"} {
		if got := stamp(moment(ts)); got != ts {
			t.Errorf("%q becomes %q", ts, got)
		}
	}
	for _, ts := range []string{"", "x", "-1.5", "99999999999999999999.1", "1.x"} {
		if at := moment(ts); at.Unix() > 1<<41 {
			t.Errorf("%q is %v", ts, at)
		}
	}
	if !later("1772445600.000200", "1772445600.000100") || later("999.9", "1000.1") || !later("1.1", "") {
		t.Error("timestamps are in the wrong order")
	}
}
