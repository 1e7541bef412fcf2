package telegram

import (
	"context"
	"errors"
	"strconv"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"understudy/channels"
	"understudy/chat"
)

const (
	mostPresses = 64
	pressLimit  = 10 * time.Second // for all that one press shows
)

// press is what is shown to somebody who pressed a button.
type press struct {
	query string
	toast string // "" = only the waiting sign ends
	// keyboard, unless "", replaces the one below the message.
	keyboard, conversation string
	message                int
}

// pressed acts on a press. A choice is passed on as if the person who pressed had sent its command:
// it is authorised there. An error means that the press must come again.
func (in *intake) pressed(ctx context.Context, updateID int64, q *callbackQuery) error {
	shown := press{query: q.ID}
	address, menu, a, err := in.menuOf(ctx, q)
	switch {
	case errors.Is(err, channels.ErrExpired):
		shown.toast = channels.TextExpired
		in.show(shown)
		return nil
	case err != nil:
		return err
	case !menu.Allows(address.Conversation, id64(q.From.ID)):
		shown.toast = channels.TextOthers
		in.show(shown)
		return nil
	}
	shown.conversation, shown.message = address.Conversation, q.Message.ID
	switch {
	case a.close:
		shown.keyboard = noKeyboard
	case a.page >= 0:
		shown.keyboard = layout(menu.Buttons, a.token, a.page)
	}
	in.show(shown)
	if a.choice < 0 {
		return nil
	}
	address.Thread = menu.To.Thread
	return in.accept(ctx, chat.Inbound{
		ID:        strconv.Itoa(q.Message.ID),
		EventKey:  in.eventKey(updateID),
		AltKeys:   []string{"tg:" + id64(in.self.ID) + ":press:" + q.ID},
		Address:   address,
		Sender:    chat.Sender{ID: id64(q.From.ID), Name: fullName(&q.From), Bot: q.From.IsBot},
		Text:      menu.Buttons[a.choice].Command,
		Mentioned: true,
		At:        time.Now().UTC(),
	})
}

// menuOf finds what a press is about: channels.ErrExpired for everything that is not the button of
// a menu of that conversation.
func (in *intake) menuOf(ctx context.Context, q *callbackQuery) (chat.Address, channels.Menu, action, error) {
	var none chat.Address
	a, ok := parseAction(q.Data)
	if !ok || q.Message == nil {
		return none, channels.Menu{}, a, channels.ErrExpired
	}
	address, ok := in.address(q.Message)
	if !ok {
		return none, channels.Menu{}, a, channels.ErrExpired
	}
	menu, err := in.menus.Get(ctx, a.token)
	if err == nil && (menu.To.Conversation != address.Conversation || a.choice >= len(menu.Buttons)) {
		err = channels.ErrExpired
	}
	return address, menu, a, err
}

// show queues what a press shows. When the queue is full the waiting sign stays until it times out,
// which is better than to hold up messages.
func (b *Bot) show(p press) {
	select {
	case b.presses <- p:
	default:
		b.log.Warn("press not answered")
	}
}

// showPresses shows what is queued, in order, until ctx ends.
func (b *Bot) showPresses(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-b.presses:
			b.showPress(ctx, p)
		}
	}
}

// showPress ends the waiting sign first; what fails here is seen by the one who pressed.
func (b *Bot) showPress(ctx context.Context, p press) {
	ctx, cancel := context.WithTimeout(ctx, pressLimit)
	defer cancel()
	try := func(method string, params tgbotapi.Params) {
		if _, err := b.api.call(ctx, b.api.calls, method, params); err != nil && ctx.Err() == nil {
			b.log.Debug("press not answered", "error", err)
		}
	}
	params := tgbotapi.Params{"callback_query_id": p.query}
	params.AddNonEmpty("text", p.toast)
	try("answerCallbackQuery", params)
	if p.keyboard != "" {
		try("editMessageReplyMarkup", tgbotapi.Params{
			"chat_id": p.conversation, "message_id": strconv.Itoa(p.message), "reply_markup": p.keyboard,
		})
	}
}
