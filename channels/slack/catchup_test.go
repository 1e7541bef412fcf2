package slack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/channels"
	"understudy/chat"

	emulator "understudy/internal/emulate/slack"
)

// seen is a fixed channels.Seen.
type seen []channels.Mark

func (s seen) Marks(_ context.Context, _ time.Time, most int) ([]channels.Mark, error) {
	return s[:min(most, len(s))], nil
}

// missed runs an account over history that it has not seen.
func missed(t *testing.T, s setup, history func(*emulator.Server) []channels.Mark, test func(*rig)) {
	t.Helper()
	s.idle = true
	inBubble(t, s, func(r *rig) {
		<-r.done
		r.bot.deps.Seen = seen(history(r.srv))
		ctx, stop := context.WithCancel(r.Context())
		defer stop()
		go func() { r.done <- r.bot.Run(ctx, r.sink) }()
		settle(time.Second)
		test(r)
	})
}

func mark(a chat.Address, last string) channels.Mark {
	return channels.Mark{Address: a, Space: "T0TEAM001", LastID: last, At: time.Now()}
}

func TestCatchesUpAtTheStart(t *testing.T) {
	missed(t, setup{}, func(srv *emulator.Server) []channels.Mark {
		root := srv.UserSaidUnheard(general, ann, "root")
		old := srv.UserSaidUnheard(dm, ann, "seen before")
		srv.UserSaidUnheard(general, bob, "in the thread", emulator.InThread(root))
		srv.UserSaidUnheard(dm, ann, "one")
		srv.UserSaidUnheard(dm, ann, "odd", emulator.With(func(e map[string]any) { e["blocks"] = []any{map[string]any{"type": "section", "text": 7}} }))
		srv.UserSaidUnheard(dm, botID, "my own")
		srv.UserSaidUnheard(dm, ann, "joined", emulator.Subtype("channel_join"))
		inThread := room
		inThread.Thread = root
		return []channels.Mark{mark(direct, old), mark(inThread, root)}
	}, func(r *rig) {
		for _, want := range []string{"one", "odd", "in the thread"} {
			in := r.sink.Next(r.T)
			if in.Text != want || !in.CatchUp || in.Space != "T0TEAM001" {
				r.Errorf("got %+v, want %q", in, want)
			}
			if want == "one" && in.EventKey != "slack:T0TEAM001:"+dm+":"+in.ID {
				r.Errorf("key %q", in.EventKey)
			}
			if want == "in the thread" && (in.Address.Thread == "" || in.Address.Kind != chat.Room) {
				r.Errorf("address %+v", in.Address)
			}
		}
		r.none()
	})
}

func TestCatchingUpIsBounded(t *testing.T) {
	few := func(c *Config, _ *Deps) { c.CatchUp = channels.CatchUp{MaxAge: 10 * time.Minute, MaxMessages: 5} }
	missed(t, setup{bot: few}, func(srv *emulator.Server) []channels.Mark {
		var marks []channels.Mark
		for i := range 40 {
			a := room
			a.Conversation = fmt.Sprintf("C0ROOM%04d", i)
			srv.UserSaidUnheard(a.Conversation, ann, "too old") // who decides about it is the sink
			marks = append(marks, mark(a, "1.1"))
		}
		settle(11 * time.Minute)
		for i := range 9 {
			srv.UserSaidUnheard("C0ROOM0000", ann, fmt.Sprint(i))
		}
		return marks
	}, func(r *rig) {
		for i := range 5 { // the newest ones
			if in := r.sink.Next(r.T); in.Text != fmt.Sprint(i+4) {
				r.Errorf("message %d is %q", i, in.Text)
			}
		}
		settle(time.Minute)
		for range 39 {
			if in := r.sink.Next(r.T); in.Text != "too old" || !in.CatchUp || time.Since(in.At) < 11*time.Minute {
				r.Errorf("got %+v", in)
			}
		}
		r.none()
		if n := len(r.srv.Calls("conversations.history")); n != 40 {
			r.Errorf("%d conversations", n)
		}
	})
}

// TestCatchesUpInEveryConversation: beyond the latest ones at a pace, and not stopped by a rate limit there.
func TestCatchesUpInEveryConversation(t *testing.T) {
	const many = 200
	missed(t, setup{before: func(srv *emulator.Server) {
		srv.Inject(emulator.Fault{Method: "conversations.history", Channel: "C0ROOM0100", RetryAfter: 20 * time.Second, Times: 2})
	}}, func(srv *emulator.Server) []channels.Mark {
		var marks []channels.Mark
		for i := range many {
			a := room
			a.Conversation = fmt.Sprintf("C0ROOM%04d", i)
			srv.UserSaidUnheard(a.Conversation, ann, fmt.Sprint(i))
			marks = append(marks, mark(a, "1.1"))
		}
		return marks
	}, func(r *rig) {
		settle(many*lookEvery + time.Minute)
		for i := range many {
			if in := r.sink.Next(r.T); in.Text != fmt.Sprint(i) {
				r.Fatalf("message %d is %q", i, in.Text)
			}
		}
		calls := r.srv.Calls("conversations.history")
		if took := calls[len(calls)-1].At.Sub(calls[channels.MostConversations].At); took < (many-channels.MostConversations-1)*lookEvery {
			r.Errorf("%d calls in %s", len(calls), took)
		}
		if look, _ := r.bot.LastLook(); look.Looked != many || look.Left != 0 {
			r.Errorf("the look was %+v", look)
		}
	})
}

// TestCatchesUpInNewThreads: what is said in a thread stands in no other history, and the thread was opened
// in the gap.
func TestCatchesUpInNewThreads(t *testing.T) {
	missed(t, setup{}, func(srv *emulator.Server) []channels.Mark {
		last := srv.UserSaidUnheard(general, ann, "seen")
		root := srv.UserSaidUnheard(general, ann, "question")
		srv.UserSaidUnheard(general, ann, "and more", emulator.InThread(root))
		return []channels.Mark{mark(room, last)}
	}, func(r *rig) {
		for i, want := range []string{"question", "and more"} {
			if in := r.sink.Next(r.T); in.Text != want || !in.CatchUp || (in.Address.Thread != "") != (i == 1) {
				r.Errorf("got %+v", in)
			}
		}
		r.none()
	})
}

func TestCatchingUpStopsAtARateLimit(t *testing.T) {
	missed(t, setup{before: func(srv *emulator.Server) {
		srv.Inject(emulator.Fault{Method: "conversations.history", Channel: "C0ROOM0001", Error: "channel_not_found"})
		srv.Inject(emulator.Fault{Method: "conversations.history", Channel: "C0ROOM0002", RetryAfter: time.Minute})
	}}, func(srv *emulator.Server) []channels.Mark {
		var marks []channels.Mark
		for i := range 5 {
			a := room
			a.Conversation = fmt.Sprintf("C0ROOM%04d", i)
			srv.UserSaidUnheard(a.Conversation, ann, fmt.Sprint(i))
			marks = append(marks, mark(a, "1.1"))
		}
		return marks
	}, func(r *rig) {
		if in := r.sink.Next(r.T); in.Text != "0" {
			r.Errorf("got %q", in.Text)
		}
		settle(time.Hour)
		r.none()
		if n := len(r.srv.Calls("conversations.history")); n != 3 {
			r.Errorf("%d calls", n)
		}
		if look, ok := r.bot.LastLook(); !ok || look.Looked != 1 || look.Found != 1 || look.Left != 3 || !strings.Contains(look.Why, codeRateLimited) {
			r.Errorf("the look was %+v", look)
		}
		r.srv.UserSays(dm, ann, "still listening")
		r.sink.Next(r.T)
	})
}

// TestShortGapsAreSlacksConcern: it delivers again what was not acknowledged.
func TestShortGapsAreSlacksConcern(t *testing.T) {
	marks := seen{mark(direct, "1.1")}
	inBubble(t, setup{bot: func(_ *Config, d *Deps) { d.Seen = marks }}, func(r *rig) {
		looks := func() int { return len(r.srv.Calls("conversations.history")) }
		settle(time.Minute)
		before := looks()
		r.srv.DropSockets()
		settle(time.Minute)
		if r.sink.State() != channels.Connected || looks() != before {
			r.Errorf("state %q, %d looks", r.sink.State(), looks()-before)
		}
		r.srv.Away()
		settle(2 * time.Minute)
		r.srv.Back()
		settle(time.Minute)
		if r.sink.State() != channels.Connected || looks() != before+1 {
			r.Errorf("state %q, %d looks", r.sink.State(), looks()-before)
		}
		synctest.Wait()
	})
}

// TestSecondGapIsLookedIntoToo: also when the look into the first one takes long.
func TestSecondGapIsLookedIntoToo(t *testing.T) {
	missed(t, setup{before: func(srv *emulator.Server) {
		srv.Inject(emulator.Fault{Method: "conversations.history", Hang: true, Times: 4})
	}}, func(*emulator.Server) []channels.Mark {
		return []channels.Mark{mark(direct, "1.1"), mark(room, "1.1"), mark(direct, "1.1"), mark(room, "1.1")}
	}, func(r *rig) {
		r.srv.Away()
		settle(80 * time.Second)
		r.srv.Back()
		settle(5 * time.Minute)
		if n := len(r.srv.Calls("conversations.history")); n != 7+4 { // the first conversation was tried four times
			r.Errorf("%d calls", n)
		}
	})
}

// journal is a sink and its Seen: a mark is the last message of a conversation that was accepted. Reading
// it takes a while.
type journal struct {
	mu   sync.Mutex
	mark channels.Mark
	said []string
}

func (j *journal) Accept(_ context.Context, m chat.Inbound) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.said = append(j.said, m.Text)
	if !m.CatchUp {
		j.mark.LastID = m.ID
	}
	return nil
}

func (*journal) Status(channels.Status) {}

func (j *journal) Marks(context.Context, time.Time, int) ([]channels.Mark, error) {
	timer := time.NewTimer(time.Second)
	<-timer.C
	j.mu.Lock()
	defer j.mu.Unlock()
	return []channels.Mark{j.mark}, nil
}

// TestLiveMessagesDoNotHideTheGap: what comes while the marks are read must not move them.
func TestLiveMessagesDoNotHideTheGap(t *testing.T) {
	for name, change := range modes {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{bot: change, idle: true}, func(r *rig) {
				<-r.done
				old := r.srv.UserSaidUnheard(dm, ann, "seen before")
				r.srv.UserSaidUnheard(dm, ann, "missed")
				j := &journal{mark: mark(direct, old)}
				r.bot.deps.Seen = j
				ctx, stop := context.WithCancel(r.Context())
				defer stop()
				go func() { r.done <- r.bot.Run(ctx, j) }()
				timer := time.NewTimer(500 * time.Millisecond)
				<-timer.C
				r.srv.UserSays(dm, ann, "live")
				settle(10 * time.Minute)
				j.mu.Lock()
				defer j.mu.Unlock()
				if len(j.said) != 2 || !slices.Contains(j.said, "missed") || !slices.Contains(j.said, "live") {
					r.Errorf("accepted %q", j.said)
				}
			})
		})
	}
}

// How long ago something was said is told by Slack's clock: one of ours that is off, in whatever
// direction, hides nothing and makes nothing new.
func TestAWrongClockHidesNothingThatWasMissed(t *testing.T) {
	for _, offset := range []time.Duration{-2 * time.Hour, 26 * time.Hour} {
		missed(t, setup{server: emulator.Config{Offset: offset}}, func(srv *emulator.Server) []channels.Mark {
			last := srv.UserSaidUnheard(dm, ann, "seen")
			srv.UserSaidUnheard(dm, ann, "long ago")
			settle(90 * time.Minute)
			srv.UserSaidUnheard(dm, ann, "lately")
			settle(10 * time.Minute)
			return []channels.Mark{mark(direct, last)}
		}, func(r *rig) {
			for _, want := range []struct {
				text string
				age  time.Duration
			}{{"long ago", 100 * time.Minute}, {"lately", 10 * time.Minute}} {
				if in := r.sink.Next(r.T); in.Text != want.text || (time.Since(in.At)-want.age).Abs() > time.Minute {
					r.Errorf("%v ahead: got %q of %v ago, want %+v", -offset, in.Text, time.Since(in.At), want)
				}
			}
		})
	}
}
