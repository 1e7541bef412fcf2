// Package markup turns the Markdown a model writes into messages a chat platform accepts.
//
// The way of a text is
//
//	bytes ── clean ── analyse ──► source ── splitter ──► chunk ── tree ──► style ──► Message
//	         valid    CommonMark: what      cuts where           parsed    one per     checked against
//	         text     a cut would tear      nothing tears        again     dialect     its limits
//
// and every function is pure: same input, same output, no clock, no I/O. A chunk is Markdown that
// stands for itself, so that it can be cut again. Each dialect is written anew from the parsed
// text, never passed through: whatever the input, the result is well-formed in its dialect, text of
// a model can neither open nor close markup of ours, and it notifies nobody (spec/chat.md §8, S5).
//
// The work is linear in the length of a text: what hostile texts make expensive is bounded in
// parse.go, and shown as it is written beyond the bounds.
//
// Lengths are UTF-16 code units, which is what all platforms count at most (spec/chat.md §2.5).
package markup

// Dialect is the markup language of a channel. The values are those of channels.Markup, so that a
// conversion is enough.
type Dialect uint8

// The dialects (spec/chat.md §2.6).
const (
	Plain           Dialect = iota // no markup at all
	Markdown                       // passes through (web, console)
	TelegramHTML                   // Telegram's HTML parse mode
	SlackMrkdwn                    // Slack's mrkdwn
	SlackMarkdown                  // Slack's markdown_text: Markdown with broadcasts made harmless
	DiscordMarkdown                // Discord's Markdown, which has no tables and three headings
)

// Limits bound one message. Zero values mean no limit.
type Limits struct {
	Units   int  // length of the Markdown source
	Lines   int  // lines of the Markdown source; soft: one line of a code block is always kept
	Visible int  // length of what the reader sees after rendering
	Spans   int  // stretches with a format of their own, after rendering (Telegram's entities)
	Newline bool // split at blank lines first (`chunkMode: newline`)
}

// Message is one message, rendered.
type Message struct {
	Text   string // in the dialect
	Plain  string // the same without markup, for a platform that rejects Text
	Source string // the Markdown it came from
}

// Units returns the length of s in UTF-16 code units. An invalid byte counts as one.
func Units(s string) int {
	n := 0
	for _, r := range s {
		n += runeUnits(r)
	}
	return n
}

func runeUnits(r rune) int {
	if r >= 0x10000 {
		return 2
	}
	return 1
}

// prefix returns the longest prefix of s that has at most limit units.
func prefix(s string, limit int) string {
	n := 0
	for i, r := range s {
		if n += runeUnits(r); n > limit {
			return s[:i]
		}
	}
	return s
}
