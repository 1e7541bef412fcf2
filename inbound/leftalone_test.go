package inbound

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/channels"
	"understudy/chat"
)

// TestLeftAloneInWords: the operator reads one line for each reason, people one message in each
// conversation where they asked something, and nobody hears of what was not for the bot.
func TestLeftAloneInWords(t *testing.T) {
	bubble(t, func(w *world) {
		var log bytes.Buffer
		w.p.alone = newLeftAlone(slog.New(slog.NewTextHandler(&log, nil)))
		w.rules(func(a *Access) {
			a.AllowBots, a.CatchUp = "true", channels.CatchUp{MaxAge: 10 * time.Minute, MaxMessages: 1}
		})
		missed := func(m chat.Inbound, ago time.Duration) {
			m.CatchUp, m.At = true, time.Now().Add(-ago)
			w.accept(m)
			w.accept(m)
		}
		missed(message(1, "hello?"), 3*time.Hour)
		missed(message(2, "anybody there?"), 2*time.Hour)
		missed(inRoom(3, "1", "lunch?"), 2*time.Hour)
		missed(mention(4, "1", "lunch?"), 2*time.Hour)
		bot := mention(5, "2", "beep")
		bot.Sender.Bot, bot.Address.Conversation = true, "C2"
		missed(bot, 2*time.Hour)
		for n := range 3 {
			missed(message(6+n, "now"), time.Minute)
		}
		told := func() (out []string) {
			for _, o := range w.order {
				if o.Class != chat.Notice || o.Markdown != textAway {
					t.Errorf("said %+v", o)
				}
				out = append(out, fmt.Sprint(o.To.Conversation, " ", o.ReplyTo))
			}
			return out
		}
		if d := cmp.Diff([]string{"9 1", "C1 4"}, told()); d != "" {
			t.Error(d)
		}
		w.pass(aloneWait)
		for _, want := range []string{"reason=too_old count=4 oldest=3h0m0s", "reason=too_many_after_a_gap count=2 oldest=1m0s"} {
			if strings.Count(log.String(), want) != 1 || strings.Count(log.String(), "\n") != 2 {
				t.Errorf("want %q in\n%s", want, log.String())
			}
		}
		w.pass(awayAgain)
		missed(message(20, "and now?"), 2*time.Hour)
		if d := cmp.Diff([]string{"9 1", "C1 4", "9 20"}, told()); d != "" {
			t.Errorf("after another gap: %s", d)
		}
		w.p.Close()
		if !strings.Contains(log.String(), "reason=too_old count=1") {
			t.Errorf("the end hides something:\n%s", log.String())
		}
	})
}

// TestMemoryOfAbsencesIsBounded: many conversations take no more memory than the bound.
func TestMemoryOfAbsencesIsBounded(t *testing.T) {
	l := newLeftAlone(slog.New(slog.DiscardHandler))
	for n := range 3 * mostAway {
		if !l.tell(fmt.Sprint(n), time.Unix(0, 0)) || len(l.told) > mostAway {
			t.Fatalf("conversation %d, %d are known", n, len(l.told))
		}
	}
}
