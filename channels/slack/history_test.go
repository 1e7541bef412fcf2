package slack

import (
	"errors"
	"fmt"
	"testing"

	"understudy/chat"

	emulator "understudy/internal/emulate/slack"
)

func TestEarlierMessagesOfAThread(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		root := r.srv.UserSaidUnheard(general, ann, "root &amp; more")
		r.srv.UserSaidUnheard(general, ann, "elsewhere")
		r.srv.UserSaidUnheard(general, bob, "for <@"+ann+">", emulator.InThread(root))
		r.srv.UserSaidUnheard(general, ann, "joined", emulator.InThread(root), emulator.Subtype("channel_join"))
		r.srv.UserSaidUnheard(general, botID, "my own", emulator.InThread(root))
		asked := r.srv.UserSaidUnheard(general, bob, "the question", emulator.InThread(root))
		r.srv.UserSaidUnheard(general, bob, "after it", emulator.InThread(root))
		thread := room
		thread.Thread = root
		for most, want := range map[int][]string{
			0:  nil,
			2:  {bob + "/false for @Ann Lee", botID + "/true my own"},
			20: {ann + "/false root & more", bob + "/false for @Ann Lee", botID + "/true my own"},
		} {
			got := earlier(r, thread, asked, most)
			for i := range got { // names come when they are known
				if got[i] == bob+"/false for @"+ann {
					got[i] = bob + "/false for @Ann Lee"
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				r.Errorf("most %d: %q, want %q", most, got, want)
			}
		}
		if got := earlier(r, room, asked, 20); got != nil {
			r.Errorf("outside of threads: %q", got)
		}
		r.none() // nothing of it is a message to the bot
	})
}

func TestEarlierMessagesOfALongThreadAreTheLatest(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		root := r.srv.UserSaidUnheard(general, ann, "root")
		for n := range 450 {
			r.srv.UserSaidUnheard(general, bob, fmt.Sprint(n), emulator.InThread(root))
		}
		asked := r.srv.UserSaidUnheard(general, bob, "the question", emulator.InThread(root))
		thread := room
		thread.Thread = root
		if got := earlier(r, thread, asked, 3); fmt.Sprint(got) != fmt.Sprint([]string{bob + "/false 447", bob + "/false 448", bob + "/false 449"}) {
			r.Errorf("%q", got)
		}
		if n := len(r.srv.Calls("conversations.replies")); n != 3 {
			r.Errorf("%d calls", n)
		}
	})
}

func TestEarlierMessagesThatSlackKeeps(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		r.srv.Inject(emulator.Fault{Method: "conversations.replies", Error: "missing_scope"})
		thread := room
		thread.Thread = "1.1"
		_, err := r.bot.Earlier(r.Context(), thread, "2.2", 20)
		var e *callError
		if !errors.As(err, &e) || e.code != "missing_scope" {
			r.Errorf("%v", err)
		}
	})
}

// earlier lists what was said: id of the author, whether it is a bot, text.
func earlier(r *rig, to chat.Address, before string, most int) (out []string) {
	r.Helper()
	list, err := r.bot.Earlier(r.Context(), to, before, most)
	if err != nil {
		r.Fatal(err)
	}
	for _, in := range list {
		if in.Sender.Self != (in.Sender.ID == botID) {
			r.Errorf("%s is the bot itself: %v", in.Sender.ID, in.Sender.Self)
		}
		out = append(out, fmt.Sprintf("%s/%v %s", in.Sender.ID, in.Sender.Bot, in.Text))
	}
	return out
}
