package telegram

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"understudy/channels"
	"understudy/chat"
)

// The shape of a keyboard (spec/chat.md §2.9).
const (
	columns      = 2
	perPage      = 8
	mostChoices  = 1000
	longestLabel = 64 // characters; more would not be shown

	labelBack  = "◀"
	labelNext  = "▶"
	labelClose = "✖ Close"
	chosenSign = "✓ "
)

// What a button does. Its data is "m:<token>:<action>": at most 64 bytes go back and forth, and
// whoever can press can forge them, so they name a menu and nothing else (channels.Menu).
//
//	m:<token>:12    the choice with this number
//	m:<token>:p2    turn to a page
//	m:<token>:x     take the keyboard away
const (
	dataPrefix  = "m:"
	actionPage  = "p"
	actionClose = "x"
)

// action is what somebody pressed.
type action struct {
	token  string
	choice int // -1 = none
	page   int // -1 = none
	close  bool
}

// parseAction reads the data of a press, which comes from outside.
func parseAction(data string) (action, bool) {
	token, verb, ok := strings.Cut(strings.TrimPrefix(data, dataPrefix), ":")
	if !ok || !strings.HasPrefix(data, dataPrefix) || token == "" {
		return action{}, false
	}
	a := action{token: token, choice: -1, page: -1}
	number, turns := strings.CutPrefix(verb, actionPage)
	n, err := strconv.Atoi(number)
	switch {
	case verb == actionClose:
		a.close = true
	case err != nil || n < 0 || n >= mostChoices:
		return action{}, false
	case turns:
		a.page = n
	default:
		a.choice = n
	}
	return a, true
}

// keyboard keeps what buttons stand for and returns the reply_markup with their first page.
func (b *Bot) keyboard(ctx context.Context, p channels.Piece) (string, error) {
	menu := channels.Menu{To: p.To, For: p.For, Buttons: grouped(p.Buttons), Until: time.Now().Add(channels.MenuLife)}
	token, err := b.menus.Put(ctx, menu)
	if err != nil {
		return "", &channels.SendError{Verdict: channels.Retry, Code: "menu", Err: fmt.Errorf("telegram: buttons are not stored: %w", err)}
	}
	return layout(menu.Buttons, token, 0), nil
}

// grouped brings the buttons of each group together, in the order in which the groups begin.
func grouped(list []chat.Button) []chat.Button {
	list = list[:min(len(list), mostChoices)]
	rank := map[string]int{}
	for _, b := range list {
		if _, known := rank[b.Group]; !known {
			rank[b.Group] = len(rank)
		}
	}
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(x, y chat.Button) int { return rank[x.Group] - rank[y.Group] })
	return out
}

// layout is the reply_markup of one page: the choices in columns below the names of their groups,
// and when there is more than one page, the row that turns them. What can be chosen from, and that is what
// has groups or pages, can be closed too; a question is answered by its buttons. A page that does not exist
// is the last one.
func layout(list []chat.Button, token string, page int) string {
	pages := max(1, (len(list)+perPage-1)/perPage)
	page = min(page, pages-1)
	key := func(text, verb string) tgbotapi.InlineKeyboardButton {
		data := dataPrefix + token + ":" + verb
		return tgbotapi.InlineKeyboardButton{Text: text, CallbackData: &data}
	}
	turn := func(text string, to int) tgbotapi.InlineKeyboardButton {
		return key(text, actionPage+strconv.Itoa(to))
	}
	rows := [][]tgbotapi.InlineKeyboardButton{}
	choice := slices.ContainsFunc(list, func(b chat.Button) bool { return b.Group != "" })
	named := choice && list[0].Group != list[len(list)-1].Group
	group, full := "", true
	for i := page * perPage; i < min(len(list), (page+1)*perPage); i++ {
		if g := list[i].Group; named && (i == page*perPage || g != group) {
			if group = g; g != "" {
				rows = append(rows, []tgbotapi.InlineKeyboardButton{turn(clip("— "+g+" —"), page)})
			}
			full = true
		}
		if full {
			rows = append(rows, nil)
		}
		row := &rows[len(rows)-1]
		*row = append(*row, key(label(list[i]), strconv.Itoa(i)))
		full = len(*row) == columns
	}
	if pages > 1 {
		rows = append(rows, []tgbotapi.InlineKeyboardButton{
			turn(labelBack, (page+pages-1)%pages), turn(fmt.Sprintf("%d/%d", page+1, pages), page), turn(labelNext, (page+1)%pages),
		})
	}
	if pages > 1 || choice {
		rows = append(rows, []tgbotapi.InlineKeyboardButton{key(labelClose, actionClose)})
	}
	return jsonText(tgbotapi.InlineKeyboardMarkup{InlineKeyboard: rows})
}

// noKeyboard is the reply_markup of a message without buttons.
const noKeyboard = `{"inline_keyboard":[]}`

func label(b chat.Button) string {
	s := strings.TrimSpace(b.Label)
	if s == "" {
		s = b.Command
	}
	if b.Chosen {
		s = chosenSign + s
	}
	return clip(s)
}

func clip(s string) string {
	if r := []rune(s); len(r) > longestLabel {
		s = string(r[:longestLabel-1]) + "…"
	}
	return s
}
