package telegram

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"understudy/channels"
	"understudy/chat"

	emulator "understudy/internal/emulate/telegram"
)

// menu sends a message with one button and returns its id and the button's data.
func (a *account) menu(t *testing.T, to chat.Address) (int, string) {
	t.Helper()
	p := channels.Piece{To: to, Class: chat.Command, Plain: "choose", Buttons: []chat.Button{{Label: "A", Command: "/model a"}}}
	got, err := a.Send(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := strconv.Atoi(got.IDs[0])
	conversation, _ := ids(to)
	for _, m := range a.srv.Sent(conversation) {
		if m.ID == id {
			return id, m.Buttons[0].Data
		}
	}
	t.Fatal("no such message")
	return 0, ""
}

func TestPressInTopic(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		id, _ := a.menu(t, inTopic)
		query := a.srv.Press(forum, ann, id, "A")
		in := a.got.Next(t)
		if in.Address != inTopic || in.Sender.ID != "1001" || !in.Mentioned {
			t.Errorf("got %+v", in)
		}
		a.await(t, time.Minute, func() bool { return a.srv.Answered(query) })
	})
}

// A press that is forged, of another chat, or too late is answered and does nothing.
func TestPressRefused(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		id, data := a.menu(t, direct)
		other, _ := a.menu(t, inGroup)
		queries := []string{
			a.srv.PressData(ann, ann, id, "c:guess"),
			a.srv.PressData(ann, ann, id, "/model a"),
			a.srv.PressData(group, ann, other, data),
		}
		timer := time.NewTimer(buttonLife)
		<-timer.C
		queries = append(queries, a.srv.PressData(ann, ann, id, data))
		for _, q := range queries {
			a.await(t, time.Minute, func() bool { return a.srv.Answered(q) })
			if text := a.lastCall(t, "answerCallbackQuery")["text"]; text != expired {
				t.Errorf("answer %q", text)
			}
		}
		synctest.Wait()
		if n := a.got.Pending(); n != 0 {
			t.Errorf("%d presses got through", n)
		}
	})
}

func TestButtonsAreBounded(t *testing.T) {
	b := newButtons()
	for range mostButtons + 10 {
		b.keyboard(direct, []chat.Button{{Label: "x", Command: "/x"}})
	}
	if len(b.known) != mostButtons || len(b.order) != mostButtons {
		t.Errorf("%d buttons are remembered", len(b.known))
	}
}
