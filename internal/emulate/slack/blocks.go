package slack

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Block is a part of a message's layout.
type Block struct {
	Type     string    `json:"type"`
	BlockID  string    `json:"block_id,omitempty"`
	Source   any       `json:"text,omitempty"` // an object, or the text of a markdown block
	Elements []Element `json:"elements,omitempty"`
}

// Text is a text object.
type Text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// Element is a button or a menu.
type Element struct {
	Type          string   `json:"type"`
	ActionID      string   `json:"action_id,omitempty"`
	Text          any      `json:"text,omitempty"`
	Value         string   `json:"value,omitempty"`
	Style         string   `json:"style,omitempty"`
	Placeholder   *Text    `json:"placeholder,omitempty"`
	Options       []Option `json:"options,omitempty"`
	OptionGroups  []Group  `json:"option_groups,omitempty"`
	InitialOption *Option  `json:"initial_option,omitempty"`
}

// Option is an entry of a menu.
type Option struct {
	Text  Text   `json:"text"`
	Value string `json:"value"`
}

// Group is a part of a menu.
type Group struct {
	Label   Text     `json:"label"`
	Options []Option `json:"options"`
}

// Limits of blocks.
const (
	mostBlocks     = 50
	longestSection = 3000
	mostElements   = 25
	mostOptions    = 100
	longestLabel   = 75
	longestValue   = 150
	longestButton  = 2000
	longestActID   = 255
)

// label returns the text of a button.
func (e Element) label() string {
	m, _ := e.Text.(map[string]any)
	text, _ := m["text"].(string)
	return text
}

// Choices returns the labels of the buttons and menu entries below a message.
func (m Message) Choices() []string {
	var out []string
	for _, b := range m.Blocks {
		for _, e := range b.Elements {
			for _, o := range e.options() {
				out = append(out, o.Text.Text)
			}
			if e.Type == "button" {
				out = append(out, e.label())
			}
		}
	}
	return out
}

// options returns all entries of a menu.
func (e Element) options() []Option {
	out := slices.Clone(e.Options)
	for _, g := range e.OptionGroups {
		out = append(out, g.Options...)
	}
	return out
}

// source returns the text of a block and whether it is Markdown.
func (b Block) source() (string, bool) {
	switch t := b.Source.(type) {
	case string:
		return t, b.Type == "markdown"
	case map[string]any:
		text, _ := t["text"].(string)
		if t["type"] == "mrkdwn" {
			text = unescape(text)
		}
		return text, false
	}
	return "", false
}

// blockText is what blocks show, and whether it is Markdown.
func blockText(blocks []Block) (string, bool) {
	var parts []string
	markdown := false
	for _, b := range blocks {
		text, md := b.source()
		if text != "" {
			parts = append(parts, text)
		}
		markdown = markdown || md
	}
	return strings.Join(parts, "\n"), markdown
}

func checkBlocks(blocks []Block) *refusal {
	if len(blocks) > mostBlocks {
		return refuse("invalid_blocks")
	}
	markdown := 0
	actions := map[string]bool{}
	for _, b := range blocks {
		text, _ := b.source()
		n := utf8.RuneCountInString(text)
		switch b.Type {
		case "markdown":
			if _, isText := b.Source.(string); !isText || n == 0 {
				return refuse("invalid_blocks")
			}
			markdown += n
		case "section":
			if n == 0 || n > longestSection {
				return refuse("invalid_blocks")
			}
		case "actions":
			if len(b.Elements) == 0 || len(b.Elements) > mostElements {
				return refuse("invalid_blocks")
			}
			for _, e := range b.Elements {
				if e.ActionID == "" || len(e.ActionID) > longestActID || actions[e.ActionID] || !e.valid() {
					return refuse("invalid_blocks")
				}
				actions[e.ActionID] = true
			}
		case "divider", "context", "rich_text", "header":
		default:
			return refuse("invalid_blocks")
		}
	}
	if markdown > longestMarkdown {
		return refuse("msg_blocks_too_long")
	}
	return nil
}

func (e Element) valid() bool {
	switch e.Type {
	case "button":
		n := utf8.RuneCountInString(e.label())
		return n > 0 && n <= longestLabel && len(e.Value) <= longestButton && slices.Contains([]string{"", "primary", "danger"}, e.Style)
	case "static_select":
		if (len(e.Options) > 0) == (len(e.OptionGroups) > 0) || len(e.OptionGroups) > mostOptions {
			return false
		}
		for _, g := range e.OptionGroups {
			if n := utf8.RuneCountInString(g.Label.Text); n == 0 || n > longestLabel || len(g.Options) == 0 || len(g.Options) > mostOptions {
				return false
			}
		}
		return e.validOptions()
	}
	return false
}

func (e Element) validOptions() bool {
	all := e.options()
	values := map[string]bool{}
	for _, o := range all {
		n := utf8.RuneCountInString(o.Text.Text)
		if n == 0 || n > longestLabel || o.Value == "" || len(o.Value) > longestValue || values[o.Value] || o.Text.Type != "plain_text" {
			return false
		}
		values[o.Value] = true
	}
	return len(all) <= mostOptions && (e.InitialOption == nil || slices.Contains(all, *e.InitialOption))
}
