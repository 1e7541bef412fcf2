package discord

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"understudy/channels"
	"understudy/chat"
)

// Limits of components (spec/chat.md §2.8).
const (
	mostInRow     = 5
	mostRows      = 5
	mostOptions   = 25
	longestLabel  = 80
	longestOption = 100

	customPrefix = "p:"
	selectMark   = "s" // in front of the number of a selection
	pageMark     = "g" // in front of the number of a page
	longestToken = 26
)

// Types and styles of components.
const (
	actionRow    = 1
	buttonType   = 2
	selectType   = 3
	stylePrimary = 1
	styleNormal  = 2
)

type component struct {
	Type        int         `json:"type"`
	Components  []component `json:"components,omitempty"`
	CustomID    string      `json:"custom_id,omitempty"`
	Label       string      `json:"label,omitempty"`
	Style       int         `json:"style,omitempty"`
	Disabled    bool        `json:"disabled,omitempty"`
	Placeholder string      `json:"placeholder,omitempty"`
	Options     []choosable `json:"options,omitempty"`
}

type choosable struct {
	Label   string `json:"label"`
	Value   string `json:"value"`
	Default bool   `json:"default,omitempty"`
}

// offer keeps the buttons of a piece as a menu and returns its components. Without a place to keep
// them the text goes out alone: it says what can be typed.
func (b *Bot) offer(ctx context.Context, p channels.Piece) []component {
	if len(p.Buttons) == 0 || b.deps.Menus == nil {
		return nil
	}
	token, err := b.deps.Menus.Put(ctx, channels.Menu{To: p.To, For: p.For, Buttons: p.Buttons, Until: time.Now().Add(channels.MenuLife)})
	if err != nil {
		b.log.Warn("buttons left out", "error", err)
		return nil
	}
	return components(p.Buttons, token, 0)
}

// components shows buttons: a few side by side, many as selections by group, very many on pages.
func components(buttons []chat.Button, token string, page int) []component {
	if len(buttons) <= mostInRow {
		return []component{row(buttonsRow(buttons, token)...)}
	}
	all := selections(buttons, token)
	if len(all) <= mostRows {
		return all
	}
	const perPage = mostRows - 1
	pages := (len(all) + perPage - 1) / perPage
	page = min(max(page, 0), pages-1)
	shown := all[page*perPage : min((page+1)*perPage, len(all))]
	turn := func(label string, to int, off bool) component {
		// The ends of the row lead nowhere; their ids have to differ all the same.
		return component{Type: buttonType, Style: styleNormal, Label: label, Disabled: off, CustomID: customPrefix + token + ":" + pageMark + strconv.Itoa(to)}
	}
	return append(shown[:len(shown):len(shown)], row(
		turn("◀", page-1, page == 0),
		turn(fmt.Sprintf("%d/%d", page+1, pages), page, true),
		turn("▶", page+1, page == pages-1),
	))
}

func row(inside ...component) component { return component{Type: actionRow, Components: inside} }

func buttonsRow(buttons []chat.Button, token string) []component {
	var out []component
	for i, b := range buttons {
		c := component{Type: buttonType, Style: styleNormal, Label: clip(label(b), longestLabel), CustomID: customPrefix + token + ":" + strconv.Itoa(i)}
		if b.Chosen {
			c.Style = stylePrimary
		}
		out = append(out, c)
	}
	return out
}

// selections are the rows for many buttons: one selection for each group, in the order in which the
// groups appear, or several where a group is too large for one.
func selections(buttons []chat.Button, token string) []component {
	var order []string
	groups := map[string][]int{}
	for i, b := range buttons {
		if groups[b.Group] == nil {
			order = append(order, b.Group)
		}
		groups[b.Group] = append(groups[b.Group], i)
	}
	var out []component
	for _, g := range order {
		members := groups[g]
		parts := (len(members) + mostOptions - 1) / mostOptions
		for part := range parts {
			c := component{Type: selectType, CustomID: customPrefix + token + ":" + selectMark + strconv.Itoa(len(out)), Placeholder: placeholder(g, part, parts)}
			chosen := false
			for _, i := range members[part*mostOptions : min((part+1)*mostOptions, len(members))] {
				o := choosable{Label: clip(label(buttons[i]), longestOption), Value: strconv.Itoa(i), Default: buttons[i].Chosen && !chosen}
				chosen = chosen || o.Default
				c.Options = append(c.Options, o)
			}
			out = append(out, row(c))
		}
	}
	return out
}

func placeholder(group string, part, parts int) string {
	group = clip(oneLine(group), longestLabel)
	if group == "" {
		group = "Choose"
	}
	if parts > 1 {
		group += fmt.Sprintf(" (%d/%d)", part+1, parts)
	}
	return group
}

// label is what stands on a button; Discord takes none without one.
func label(b chat.Button) string {
	for _, s := range []string{b.Label, b.Command} {
		if s = strings.Join(strings.Fields(s), " "); s != "" {
			return s
		}
	}
	return "…"
}

// parseCustomID takes the id of a component apart. Whoever can press can also forge it.
func parseCustomID(id string) (token, what string, ok bool) {
	rest, ok := strings.CutPrefix(id, customPrefix)
	if !ok {
		return "", "", false
	}
	token, what, ok = strings.Cut(rest, ":")
	return token, what, ok && token != "" && len(token) <= longestToken && what != "" && len(what) <= longestOption
}

// names knows how registered commands are called here, and their options in order.
type names struct {
	mu      sync.Mutex
	known   map[string]string // by the name on Discord
	options map[string][]string
}

// command returns a command's name by the one on Discord, and the names of its options in order; nil
// if they are not known.
func (n *names) command(native string) (name string, options []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name = n.known[native]; name == "" {
		name = native
		if native == nativeSpeech {
			name = speech
		}
	}
	return name, n.options[native]
}

func (n *names) set(known map[string]string, options map[string][]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known, n.options = known, options
}
