package slack

import (
	"context"
	"errors"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"understudy/channels"
	"understudy/chat"
)

// Limits of blocks (spec/chat.md §2.7), in characters.
const (
	mostButtons     = 5
	mostOptions     = 100
	mostMenus       = 20
	longestLabel    = 75
	longestSection  = 3000
	mostSections    = 40
	longestFallback = 3000
	longestToken    = 64
	cancelChoice    = "x"
	cancelLabel     = "Cancel"
)

// layout is what a message shows: either text alone, or blocks with a text for notifications.
type layout struct {
	markdown string // for Slack to render
	mrkdwn   string // shown instead of markdown, "" = it is not
	plain    string // escaped; nothing in it is markup
	blocks   []slack.Block
}

// errEmpty tells that there is nothing to say.
var errEmpty = &channels.SendError{Verdict: channels.Refused, Code: "empty", Err: errors.New("there is nothing to say")}

// layout lays a piece out and keeps the menu of its buttons. An empty Text means that Plain is to be
// shown as it is.
func (b *Bot) layout(ctx context.Context, p channels.Piece) (layout, error) {
	l := layout{markdown: p.Text, plain: escaper.Replace(p.Plain)}
	if strings.TrimSpace(p.Text+p.Plain) == "" {
		return l, errEmpty
	}
	if len(p.Buttons) == 0 && (p.Via == "" || p.Text == "") {
		return l, nil
	}
	if p.Text != "" { // a response_url takes Markdown in a block only
		l.blocks = append(l.blocks, slack.NewMarkdownBlock("", p.Text))
	} else {
		l.blocks = sections(slack.PlainTextType, p.Plain)
	}
	if len(p.Buttons) == 0 {
		return l, nil
	}
	to := p.To
	to.Thread = thread(p)
	token, err := b.deps.Menus.Put(ctx, channels.Menu{To: to, For: p.For, Buttons: p.Buttons, Until: time.Now().Add(channels.MenuLife)})
	if err != nil {
		return l, &channels.SendError{Verdict: channels.Retry, Code: "store", Err: err}
	}
	l.blocks = append(l.blocks, slack.NewActionBlock("", choices(token, p.Buttons)...))
	return l, nil
}

// inMrkdwn is the layout with mrkdwn in place of Markdown. It reports false when there is nothing to
// replace, or nobody who can render.
func (l layout) inMrkdwn(render func(markdown string) string) (layout, bool) {
	if l.markdown == "" || render == nil {
		return l, false
	}
	if l.mrkdwn = render(l.markdown); strings.TrimSpace(l.mrkdwn) == "" {
		return l, false
	}
	if len(l.blocks) > 0 { // the first is the text
		l.blocks = append(sections(slack.MarkdownType, l.mrkdwn), l.blocks[1:]...)
	}
	return l, true
}

// fallback is the text beside blocks: for notifications and screen readers.
func (l layout) fallback() string {
	if l.plain == "" {
		return shorten(escaper.Replace(l.markdown), longestFallback)
	}
	if len(l.blocks) == 0 {
		return l.plain
	}
	return shorten(l.plain, longestFallback)
}

// options are the layout as options of the library.
func (l layout) options() []slack.MsgOption {
	switch {
	case len(l.blocks) > 0:
		return []slack.MsgOption{slack.MsgOptionBlocks(l.blocks...), slack.MsgOptionText(l.fallback(), false)}
	case l.mrkdwn != "":
		return []slack.MsgOption{slack.MsgOptionText(l.mrkdwn, false)}
	case l.markdown != "":
		return []slack.MsgOption{slack.MsgOptionMarkdownText(l.markdown)}
	}
	return []slack.MsgOption{slack.MsgOptionText(l.plain, false), slack.MsgOptionDisableMarkdown()}
}

// sections are a text as blocks. One that is too long for one is cut, between two lines if possible.
func sections(kind, text string) []slack.Block {
	var out []slack.Block
	for runes := []rune(text); len(runes) > 0 && len(out) < mostSections; {
		n := min(len(runes), longestSection)
		for at := n; n < len(runes) && at > n/2; at-- {
			if runes[at-1] == '\n' {
				n = at
				break
			}
		}
		if part := string(runes[:n]); strings.TrimSpace(part) != "" {
			out = append(out, slack.NewSectionBlock(slack.NewTextBlockObject(kind, part, false, false), nil, nil))
		}
		runes = runes[n:]
	}
	return out
}

// choices are a few buttons, or menus with a button to send them away. Each carries the token of its
// menu and the number of its choice.
func choices(token string, buttons []chat.Button) []slack.BlockElement {
	if len(buttons) <= mostButtons {
		var out []slack.BlockElement
		for i, button := range buttons {
			e := slack.NewButtonBlockElement("b"+strconv.Itoa(i), value(token, i), plainText(label(button)))
			if button.Chosen {
				e.WithStyle(slack.StylePrimary)
			}
			out = append(out, e)
		}
		return out
	}
	buttons = buttons[:min(len(buttons), mostMenus*mostOptions)]
	var out []slack.BlockElement
	for from := 0; from < len(buttons); from += mostOptions {
		to := min(from+mostOptions, len(buttons))
		out = append(out, selection(token, from, buttons[from:to], len(buttons) > mostOptions))
	}
	return append(out, slack.NewButtonBlockElement("cancel", token+":"+cancelChoice, plainText(cancelLabel)))
}

// selection is one menu. Those of one group stand together, in the order in which the groups came.
func selection(token string, from int, buttons []chat.Button, several bool) *slack.SelectBlockElement {
	placeholder := "Choose…"
	if several {
		placeholder = "Choose from " + strconv.Itoa(from+1) + "–" + strconv.Itoa(from+len(buttons)) + "…"
	}
	menu := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, plainText(placeholder), "m"+strconv.Itoa(from))
	var order []string
	groups := map[string][]*slack.OptionBlockObject{}
	for i, button := range buttons {
		o := slack.NewOptionBlockObject(value(token, from+i), plainText(label(button)), nil)
		if button.Chosen && menu.InitialOption == nil {
			menu.InitialOption = o
		}
		if _, known := groups[button.Group]; !known {
			order = append(order, button.Group)
		}
		groups[button.Group] = append(groups[button.Group], o)
	}
	if len(order) == 1 && order[0] == "" {
		menu.Options = groups[""]
		return menu
	}
	for _, name := range order {
		shown := strings.TrimSpace(name)
		if shown == "" {
			shown = "Other"
		}
		menu.OptionGroups = append(menu.OptionGroups, slack.NewOptionGroupBlockElement(plainText(shorten(shown, longestLabel)), groups[name]...))
	}
	return menu
}

func value(token string, n int) string { return token + ":" + strconv.Itoa(n) }

func plainText(s string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, s, false, false)
}

func label(b chat.Button) string {
	s := strings.TrimSpace(b.Label)
	if s == "" {
		s = strings.TrimSpace(b.Command)
	}
	if s == "" {
		s = "…"
	}
	return shorten(s, longestLabel)
}

// fileName is the last element of the given name, in case somebody made a path of it.
func fileName(a chat.Attachment) string {
	name := path.Base(strings.ReplaceAll(a.Name, `\`, "/"))
	if name == "." || name == "/" || name == ".." {
		return "file"
	}
	return shorten(name, 200)
}
