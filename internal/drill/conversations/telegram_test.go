package conversations

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"understudy/internal/emulate/telegram"
)

const (
	telegramOps   = -1001
	telegramHall  = -1002
	telegramTopic = 7 // what a thread is here
)

type telegramSide struct {
	srv    *telegram.Server
	newest map[string][2]int64
}

func newTelegram() *telegramSide {
	t := &telegramSide{srv: telegram.New(telegram.Config{}), newest: map[string][2]int64{}}
	for _, who := range people {
		t.srv.SetUser(telegram.User{ID: telegramID(who), FirstName: who, IsBot: who == "robot"})
		t.srv.AddChat(telegram.Chat{ID: telegramID(who), Type: "private"})
	}
	t.srv.AddChat(telegram.Chat{ID: telegramOps, Type: "supergroup", Title: "Ops", Forum: true}, telegramTopic)
	t.srv.AddChat(telegram.Chat{ID: telegramHall, Type: "supergroup", Title: "Hall"})
	return t
}

func telegramID(who string) int64 { return int64(1001 + slices.Index(people, who)) }

func (t *telegramSide) settings(more string) string {
	return fmt.Sprintf(`  telegram:
    botToken: %q
    apiRoot: %q
    groups: {"-1001": {}}
    allowFrom: ["1001", "1002", "1004"]
%s`, t.srv.Token(), telegram.Root, more)
}

func (t *telegramSide) where(who, place string) int64 {
	switch place {
	case private:
		return telegramID(who)
	case hall:
		return telegramHall
	}
	return telegramOps
}

func (t *telegramSide) say(x say) {
	var opts []telegram.Say
	if x.place == thread {
		opts = append(opts, telegram.InTopic(telegramTopic))
	}
	switch x.file {
	case "picture":
		opts = append(opts, telegram.WithFile("photo", "dot.png", "image/png", aPicture))
	case "voice note":
		opts = append(opts, telegram.WithFile("voice", "note.ogg", "audio/ogg", aNote))
	}
	c := t.where(x.who, x.place)
	id := t.srv.UserSays(c, telegramID(x.who), mention(x.text, "@"+t.srv.Username()), opts...)
	t.newest[x.who] = [2]int64{c, int64(id)}
}

func (t *telegramSide) edit(who, text string) {
	t.srv.UserEdits(t.newest[who][0], int(t.newest[who][1]), text)
}

func (t *telegramSide) remove(who string) { t.srv.UserDeletes(t.newest[who][0], int(t.newest[who][1])) }

func (t *telegramSide) run(who, place, command string) {
	if place != private {
		command += "@" + t.srv.Username()
	}
	t.srv.UserSays(t.where(who, place), telegramID(who), "/"+command)
}

func (t *telegramSide) press(who, label string) bool {
	for _, c := range t.chats() {
		for _, m := range slices.Backward(t.srv.Messages(c)) {
			if m.FromBot && !m.Deleted && t.srv.Press(c, telegramID(who), m.ID, label) != "" {
				return true
			}
		}
	}
	return false
}

func (t *telegramSide) chats() (out []int64) {
	for _, who := range people {
		out = append(out, telegramID(who))
	}
	return append(out, telegramOps, telegramHall)
}

func (t *telegramSide) away() {
	t.srv.Inject(telegram.Fault{Method: "getUpdates", Drop: true, Times: -1})
	t.srv.Cut()
}

func (t *telegramSide) back() { t.srv.ClearFaults() }

func (t *telegramSide) refuse(status int) {
	t.srv.Inject(telegram.Fault{Method: "sendMessage", Status: status, Description: "Forbidden: not enough rights", RetryAfter: time.Duration(0)})
}

func (t *telegramSide) loseReceipt() {
	t.srv.Inject(telegram.Fault{Method: "sendMessage", DropAfter: true})
}

func (t *telegramSide) messages() (out []shown) {
	names := map[int64]string{t.srv.BotID(): "bot"}
	for _, who := range people {
		names[telegramID(who)] = who
	}
	for _, c := range t.chats() {
		for _, m := range t.srv.Messages(c) {
			id := func(n int) string { return fmt.Sprintf("%d/%d", c, n) }
			x := shown{id: id(m.ID), place: t.placeOf(c), who: names[m.From], text: m.Text, deleted: m.Deleted, quiet: m.Silent}
			if m.FromBot {
				x.who = "bot"
			}
			if m.ReplyTo != 0 {
				x.to = id(m.ReplyTo)
			}
			if m.Thread != 0 {
				x.thread = "topic " + strconv.Itoa(m.Thread)
			}
			for _, b := range m.Buttons {
				x.buttons = append(x.buttons, b.Text)
			}
			if m.Media != "" {
				x.files = append(x.files, describe(m.Media, m.Data))
			}
			out = append(out, x)
		}
	}
	return out
}

func (t *telegramSide) placeOf(chat int64) string {
	switch {
	case chat == telegramOps:
		return ops
	case chat == telegramHall:
		return hall
	}
	return private + " " + people[chat-1001]
}

func (t *telegramSide) transport() http.RoundTripper { return t.srv.Transport() }
func (t *telegramSide) dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("telegram has no sockets")
}
func (t *telegramSide) close() { t.srv.Close() }
