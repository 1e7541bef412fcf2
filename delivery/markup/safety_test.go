package markup

import (
	"strings"
	"testing"
)

// What a model writes never notifies people, whatever it is made of.
func TestNobodyIsNotified(t *testing.T) {
	pieces := []string{
		"<!channel>", "<!here>", "<!everyone>", "<!subteam^S1|x>", "<@U1>", "<@U1|me>", "@everyone", "@here", "@channel", "<@123>", "<@!123>", "<@&123>",
		"@[everyone](javascript:x)", "[@](javascript:x)everyone", "@||everyone||", "**@**[here](data:x)", "<[!channel](tg:x)>", "<[@U1](x:y)>", "&lt;!here&gt;", "&#60;@U1&#62;", "\\<!here\\>", "@\u2060everyone", "@\u00adhere",
		"@&#101;veryone", "@e\x00veryone", "@\x7fhere", "<\u202e!channel>", "[x](https://x.example/<!here>)", "[<@U1>](https://x.example)", "![@everyone](https://x.example)", "<https://x.example|<!here>>", "@every*one*", "_@_here",
	}
	frames := []string{"%", "**%**", "# %", "> %", "- %", "| % | b |\n|---|---|\n| % | c |", "[%](https://x.example)", "a%b", "%%", "~~%~~\n%", "[^1]: %", "[x]: %"}
	for _, piece := range pieces {
		for _, frame := range frames {
			md := strings.ReplaceAll(frame, "%", piece)
			for _, d := range dialects {
				check(t, d, md, Messages(md, d, Limits{}), Limits{})
			}
		}
	}
}

// Telegram makes mentions of links to people; those of models are text.
func TestNoLinkMentionsAPerson(t *testing.T) {
	for _, target := range []string{"tg://user?id=5", "TG://user?id=5", " tg://user?id=5", "<tg://user?id=5>", "t\u200bg://user?id=5", "&#116;g://user?id=5", "javascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "intent://x"} {
		for _, d := range []Dialect{TelegramHTML, SlackMrkdwn, SlackMarkdown, DiscordMarkdown, Plain} {
			if got := Render("[you]("+target+") ![you]("+target+")", d); got != "you you" {
				t.Errorf("dialect %d: %q becomes %q", d, target, got)
			}
		}
	}
}

// A link shows where it leads if its text is the address of another site.
func TestLinksDoNotLie(t *testing.T) {
	tests := []struct {
		label, target string
		lies          bool
	}{
		{"bank.com", "https://evil.example", true},
		{"https://bank.example/login", "https://evil.example/login", true},
		{"www.bank.example", "https://evil.example", true},
		{"visit bank.com now", "https://evil.example", true},
		{"ba\u200bnk.com", "https://evil.example", true},
		{"\u202ebank.com", "https://evil.example", true},
		{"**bank**.com", "https://evil.example", true},
		{"bank.com", "https://bank.com@evil.example", true},
		{"bank.com", "https://bank.com.evil.example", true},
		{"b\u0430nk.com", "https://bank.com", true},
		{"bank.com", "https://www.bank.com/login", false},
		{"Bank.COM/login", "https://bank.com/login", false},
		{"https://bank.com", "https://bank.com/", false},
		{"README.md", "https://github.com/o/r/blob/main/README.md", false},
		{"main.go", "https://github.com/o/r", false},
		{"Node.js", "https://nodejs.org", false},
		{"the docs", "https://docs.example", false},
		{"v1.2.3", "https://docs.example", false},
	}
	for _, tt := range tests {
		got := Render("["+tt.label+"]("+tt.target+")", TelegramHTML)
		if shows := strings.HasSuffix(got, " (<a href=\""+tt.target+"\">"+tt.target+"</a>)"); shows != tt.lies {
			t.Errorf("%q to %s: %q", tt.label, tt.target, got)
		}
	}
}

// Characters that show nothing and change what is around them do not get through.
func TestControlCharactersAreDropped(t *testing.T) {
	in := "a\x00b\x07c\x1b[31md\u0085e\u202ef\ufeffg\U000e0041h\ufdd0i\r\nj\u2028k"
	if got, want := Render(in, Plain), "abc[31md\nefghi\nj\nk"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, keep := range []string{"👩\u200d👩\u200d👧", "🏴\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F", "می\u200cخواهم", "\u200fשלום", "\u2067a\u2069", "a\tb"} {
		for _, d := range dialects {
			if got := Render(keep, d); got != keep {
				t.Errorf("dialect %d: %q becomes %q", d, keep, got)
			}
		}
	}
}

// Texts that are expensive for parsers give right messages like any other.
func TestHostileTexts(t *testing.T) {
	for name, md := range hostile(4000) {
		t.Run(name, func(t *testing.T) {
			l := Limits{Units: 2000, Visible: 2000}
			for _, d := range dialects {
				check(t, d, name, Messages(md, d, l), l)
				check(t, d, name, Messages(CutPreview(md, 2000), d, l), l)
			}
		})
	}
}
