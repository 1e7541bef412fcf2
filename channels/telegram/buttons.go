package telegram

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"understudy/chat"
)

const (
	buttonLife   = 30 * time.Minute
	mostButtons  = 4096
	buttonPrefix = "c:"
	columns      = 2
	longestLabel = 64 // characters; more would not be shown

	mostAnswers = 64
	answerLimit = 5 * time.Second
	expired     = "This menu has expired. Please send the command again."
)

// buttons remembers what the buttons below messages stand for. Telegram gives back at most 64
// bytes, and whoever can press can also forge them: so a button carries only a random token, bound
// to its chat, and a press is authorised like a message of the person who pressed
// (spec/chat.md §8, S13). After a restart, or 30 minutes, a button has expired.
type buttons struct {
	mu    sync.Mutex
	known map[string]pressable
	order []string // oldest first
}

type pressable struct {
	conversation string
	thread       string
	command      string
	until        time.Time
}

func newButtons() *buttons { return &buttons{known: map[string]pressable{}} }

// keyboard is the reply_markup for buttons in a chat.
func (b *buttons) keyboard(to chat.Address, list []chat.Button) string {
	var rows [][]tgbotapi.InlineKeyboardButton
	for i, button := range list {
		data := buttonPrefix + b.remember(to, button.Command)
		if i%columns == 0 {
			rows = append(rows, nil)
		}
		row := &rows[len(rows)-1]
		*row = append(*row, tgbotapi.InlineKeyboardButton{Text: label(button), CallbackData: &data})
	}
	return jsonText(tgbotapi.InlineKeyboardMarkup{InlineKeyboard: rows})
}

func label(b chat.Button) string {
	s := strings.TrimSpace(b.Label)
	if s == "" {
		s = b.Command
	}
	if r := []rune(s); len(r) > longestLabel {
		s = string(r[:longestLabel-1]) + "…"
	}
	return s
}

func (b *buttons) remember(to chat.Address, command string) string {
	token := rand.Text()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for len(b.order) > 0 && (len(b.order) >= mostButtons || b.known[b.order[0]].until.Before(now)) {
		delete(b.known, b.order[0])
		b.order = b.order[1:]
	}
	b.known[token] = pressable{conversation: to.Conversation, thread: to.Thread, command: command, until: now.Add(buttonLife)}
	b.order = append(b.order, token)
	return token
}

// command returns what a press in a chat stands for.
func (b *buttons) command(data, conversation string) (pressable, bool) {
	token, ok := strings.CutPrefix(data, buttonPrefix)
	if !ok {
		return pressable{}, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.known[token]
	return p, ok && p.conversation == conversation && time.Now().Before(p.until)
}

// answer ends the waiting sign on a pressed button.
type answer struct{ query, text string }

// pressed passes the command of a button on, as if the person who pressed it had sent it.
func (p *poller) pressed(ctx context.Context, updateID int64, q *callbackQuery) error {
	if q.Message == nil {
		p.answer(answer{query: q.ID, text: expired})
		return nil
	}
	address, ok := p.address(q.Message)
	press, known := p.buttons.command(q.Data, address.Conversation)
	if !ok || !known {
		p.answer(answer{query: q.ID, text: expired})
		return nil
	}
	p.answer(answer{query: q.ID})
	address.Thread = press.thread
	return p.sink.Accept(ctx, chat.Inbound{
		ID:        strconv.Itoa(q.Message.ID),
		EventKey:  "tg:" + id64(p.self.ID) + ":" + id64(updateID),
		AltKeys:   []string{"tg:" + id64(p.self.ID) + ":press:" + q.ID},
		Address:   address,
		Sender:    chat.Sender{ID: id64(q.From.ID), Name: fullName(&q.From), Bot: q.From.IsBot},
		Text:      press.command,
		Mentioned: true,
		At:        time.Now().UTC(),
	})
}

// answer queues an answer. When the queue is full the waiting sign stays until it times out, which
// is better than to hold up messages.
func (b *Bot) answer(a answer) {
	select {
	case b.answers <- a:
	default:
		b.log.Warn("press not answered")
	}
}

// answerPresses answers presses until ctx ends.
func (b *Bot) answerPresses(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-b.answers:
			b.answerPress(ctx, a)
		}
	}
}

func (b *Bot) answerPress(ctx context.Context, a answer) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	params := tgbotapi.Params{"callback_query_id": a.query}
	params.AddNonEmpty("text", a.text)
	if _, err := b.api.call(ctx, b.api.calls, "answerCallbackQuery", params); err != nil && ctx.Err() == nil {
		b.log.Debug("press not answered", "error", err)
	}
}
