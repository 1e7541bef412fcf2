package app

import (
	"fmt"
	"strings"

	"understudy/channels/discord"
	"understudy/channels/slack"
	"understudy/channels/telegram"
)

// checkStep is one step of a maintainer's check by hand (spec/chat.md §11): what to do, and what must
// be seen. Texts differ by channel where the platforms do.
type checkStep struct {
	do, see string
	own     map[string]string // by channel, instead of do
	seen    map[string]string // by channel, instead of see
}

// checkSteps are the twelve steps, the same for every channel.
var checkSteps = []checkStep{
	{do: "Write to the bot privately from an account that it does not know. Approve it with the printed command and --notify.", see: "A code once, not again for the second message; the approval is told; the next message is answered."},
	{
		do: "Mention the bot in a channel that is listed.", see: "One answer. An ordinary message without a mention stays without.",
		own: map[string]string{telegram.Channel: "Mention the bot in a group that is listed."},
	},
	{
		do: "Go on in the thread of that answer, without a mention.", see: "It is answered there, and the bot knows what was said before.",
		own: map[string]string{
			discord.Channel:  "Open a thread in that channel and mention the bot in it, twice.",
			telegram.Channel: "Write in a topic of a forum group, mention the bot there, and reply to its answer.",
		},
	},
	{
		do: "Use the slash command: /bot status.", see: "The status, seen by you alone.",
		own:  map[string]string{discord.Channel: "Use /status from the menu, and type /model for suggestions.", telegram.Channel: "Open the command menu and send /status, in private and in a group."},
		seen: map[string]string{telegram.Channel: "The status; in the group everybody sees it, because Telegram has no replies for one person."},
	},
	{do: "Open the model picker with /model, page or select, choose another model. Let somebody else press too.", see: "The choice is confirmed; the other person is refused."},
	{do: "Ask for a program of 200 lines.", see: "A preview grows; the final answer is split with every code block whole."},
	{do: "Send a picture and ask what is on it.", see: "It is described, with a model that takes pictures."},
	{do: "Turn speech on and ask something.", see: "The answer is spoken; a fallback notice is not. (Skip it where speech is not set up.)"},
	{do: "Make the first model fail (a wrong key) and ask in a thread; then mend it and ask again.", see: "One notice in the thread, beside the answer; one when the lead is back."},
	{do: "Cut the bot's network for two minutes, write two messages meanwhile, connect again.", see: "Both are answered, once, in order. /readyz was degraded and is ready again."},
	{do: "Restart the bot while it writes a long answer.", see: "The answer comes once, or the apology; no preview stays."},
	{
		do: "Revoke the token, wait, put a new one into the configuration.", see: "The account stops with words that say what to do; the owner is told on another channel; the new token works without a restart.",
	},
}

// titles are the channels' names for people.
var titles = map[string]string{slack.Channel: "Slack", discord.Channel: "Discord", telegram.Channel: "Telegram"}

// checklist is the list of one channel, with boxes.
func checklist(channel string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", titles[channel])
	for i, s := range checkSteps {
		do, see := s.do, s.see
		if own, ok := s.own[channel]; ok {
			do = own
		}
		if own, ok := s.seen[channel]; ok {
			see = own
		}
		fmt.Fprintf(&b, "- [ ] %d. %s\n", i+1, do)
		fmt.Fprintf(&b, "      %s\n", see)
	}
	return b.String()
}

// SmokeDoc is the text of docs/smoke.md.
func SmokeDoc() string {
	var b strings.Builder
	b.WriteString(`# Before a release: a check with real tokens

What the tests cannot know is what the real platforms do. Before a release a maintainer tries it with real
tokens and a person in front of every client. This takes about half an hour for each channel.

What a program can try, it tries:

    bot channels smoke                                  asks every platform, sends nothing
    bot channels smoke slack --to C0123456789           sends, edits, reacts, shows typing, uploads, deletes
    bot channels smoke telegram --account ops --to 123456789

It works beside a running bot, prints every step as ok or FAILED, and ends with the list below for the channel:
what only a person can see. This page is made from the same text (` + "`go test ./app -run TestSmokePage -update`" + `).

`)
	for _, channel := range []string{slack.Channel, discord.Channel, telegram.Channel} {
		b.WriteString(checklist(channel))
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
