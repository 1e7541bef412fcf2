package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/channels"
	"understudy/chat"

	emulator "understudy/internal/emulate/slack"
)

// replyTo answers an interaction as delivery does.
func replyTo(in chat.Inbound, text string) channels.Piece {
	return channels.Piece{To: in.Address, Class: chat.Command, Text: text, Plain: text, Via: in.Via, For: in.Sender.ID}
}

// whispers are what one person alone reads in a conversation.
func (r *rig) whispers(conversation, person string) []string {
	var out []string
	for _, m := range r.srv.Messages(conversation) {
		if m.OnlyFor == person && !m.Deleted {
			out = append(out, m.Text)
		}
	}
	return out
}

func TestSlashCommandsBecomeCommands(t *testing.T) {
	native := func(c *Config, _ *Deps) { c.Commands.Native = true }
	for _, c := range []struct {
		change        func(*Config, *Deps)
		command, text string
		want          string
	}{
		{nil, "/bot", "status", "/status"},
		{nil, "/bot", "/status", "/status"},
		{nil, "/bot", "  model   openai/gpt-5.5 ", "/model   openai/gpt-5.5"},
		{nil, "/bot", "", "/help"},
		{nil, "/BOT", "new", "/new"},
		{nil, "/claw", "status", "/status"}, // one command, whatever its name in the manifest
		{nil, "/bot", "btw ask <@U0ANN0001|ann> &amp; me", "/btw ask @ann & me"},
		{native, "/bot", "status", "/status"},
		{native, "/model", "gpt", "/model gpt"},
		{native, "/new", "", "/new"},
		{native, "/agentstatus", "", "/status"},
	} {
		t.Run(c.command+" "+c.text, func(t *testing.T) {
			inBubble(t, setup{bot: c.change}, func(r *rig) {
				r.srv.Slash(general, ann, c.command, c.text)
				in := r.sink.Next(r.T)
				if in.Text != c.want || in.Address != room || in.Sender.ID != ann || !in.Mentioned || in.Via == "" || in.ID != "" {
					r.Errorf("got %+v, want %q", in, c.want)
				}
			})
		})
	}
}

func TestSlashCommandsKnowWhereTheyAreTyped(t *testing.T) {
	inBubble(t, setup{bot: func(c *Config, _ *Deps) { c.DM.GroupEnabled = true }}, func(r *rig) {
		r.srv.Slash(dm, ann, "/bot", "status")
		if in := r.sink.Next(r.T); in.Address != direct {
			r.Errorf("got %+v", in.Address)
		}
		r.srv.AddChannel(emulator.Channel{ID: "C0PRIVATE", Kind: "group", Name: "private"})
		for range 2 { // Slack calls both alike, and is asked once
			r.srv.Slash(trio, ann, "/bot", "status")
			if in := r.sink.Next(r.T); in.Address.Kind != chat.Group {
				r.Errorf("got %+v", in.Address)
			}
			r.srv.Slash("C0PRIVATE", ann, "/bot", "status")
			if in := r.sink.Next(r.T); in.Address.Kind != chat.Room {
				r.Errorf("got %+v", in.Address)
			}
		}
		if n := len(r.srv.Calls("conversations.info")); n != 2 {
			r.Errorf("asked %d times", n)
		}
	})
}

// TestSlashCommandsFromNowhereAreRefused: other rules hold among a few people than in a channel, so where
// it cannot be found out which it is, nothing is done and the person is told.
func TestSlashCommandsFromNowhereAreRefused(t *testing.T) {
	for text, f := range map[string]emulator.Fault{textNotStored: {Hang: true}, textNoGroups: {Error: "channel_not_found"}} {
		inBubble(t, setup{bot: func(c *Config, _ *Deps) { c.DM.GroupEnabled = true }}, func(r *rig) {
			f.Method = "conversations.info"
			r.srv.Inject(f)
			began := time.Now()
			r.srv.Slash(trio, ann, "/bot", "status")
			r.srv.UserSays(dm, ann, "meanwhile")
			if in := r.sink.Next(r.T); in.Text != "meanwhile" || time.Since(began) > time.Second {
				r.Errorf("after %v: %+v", time.Since(began), in)
			}
			settle(10 * time.Second)
			if got := r.whispers(trio, ann); !slices.Equal(got, []string{text}) {
				r.Errorf("told %q", got)
			}
			r.none()
			if n := r.srv.Pending(); n != 0 {
				r.Errorf("%d not acknowledged", n)
			}
		})
	}
}

// TestSlowStoreDoesNotShowATimeout: the acknowledgement comes within Slack's three seconds, and the
// command is carried out once.
func TestSlowStoreDoesNotShowATimeout(t *testing.T) {
	for name, change := range modes {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{bot: change}, func(r *rig) {
				slow := &slowSink{Sink: r.bot.inbox.Load().sink, wait: 20 * time.Second}
				r.bot.inbox.Store(&inbox{Bot: r.bot, sink: slow, self: r.bot.inbox.Load().self})
				r.reconnect()
				id := r.srv.Slash(general, ann, "/bot", "model x")
				settle(10 * time.Second)
				if r.bot.Path() != "" { // Slack has its answer, and goes away
					_, client := r.srv.Hook()
					client.CloseIdleConnections()
				}
				r.sink.Next(r.T)
				r.srv.Redeliver(id)
				settle(2 * time.Minute)
				for r.sink.Pending() > 0 { // known to the journal by its key
					if in := r.sink.Next(r.T); !strings.HasPrefix(in.EventKey, "slack:T0TEAM001:") {
						r.Errorf("got %+v", in)
					}
				}
				d := r.srv.Deliveries()[0]
				if took := d.Acked.Sub(d.At); d.Acked.IsZero() || took > 2900*time.Millisecond {
					r.Errorf("acknowledged after %v: %+v", took, d)
				}
				if n := slow.times(d.Envelope); n > 2 {
					r.Errorf("stored %d times", n)
				}
			})
		})
	}
}

var modes = map[string]func(*Config, *Deps){"socket": nil, "http": overHTTP}

// slowSink is a sink that takes its time, or fails in the end.
type slowSink struct {
	channels.Sink
	wait  time.Duration
	err   error
	count int
}

func (s *slowSink) Accept(ctx context.Context, m chat.Inbound) error {
	s.count++
	select {
	case <-time.After(s.wait):
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.err != nil {
		return s.err
	}
	return s.Sink.Accept(ctx, m)
}

func (s *slowSink) times(string) int { return s.count }

// reconnect makes a new connection, so that it uses the inbox of now.
func (r *rig) reconnect() {
	r.srv.DropSockets()
	settle(5 * time.Second)
}

// TestLostInteractionIsTold: acknowledged in time, and not stored in the end.
func TestLostInteractionIsTold(t *testing.T) {
	for name, change := range modes {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{bot: change}, func(r *rig) {
				old := r.bot.inbox.Load()
				r.bot.inbox.Store(&inbox{Bot: r.bot, self: old.self, sink: &slowSink{Sink: old.sink, wait: 10 * time.Second, err: errors.New("disk full")}})
				r.reconnect()
				r.srv.Slash(general, ann, "/bot", "status")
				settle(time.Minute)
				if got := r.whispers(general, ann); !slices.Equal(got, []string{textNotStored}) {
					r.Errorf("the person reads %q", got)
				}
			})
		})
	}
}

// TestUnstoredInteractionComesAgain: a failure that is known in time is not acknowledged.
func TestUnstoredInteractionComesAgain(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		r.sink.Refuse(errors.New("disk full"))
		r.srv.Slash(general, ann, "/bot", "status")
		first := r.sink.Refused(r.T)
		r.sink.Refuse(nil)
		if again := r.sink.Next(r.T); again.EventKey != first.EventKey {
			r.Errorf("keys %q and %q", first.EventKey, again.EventKey)
		}
		if got := r.whispers(general, ann); len(got) != 0 {
			r.Errorf("the person reads %q", got)
		}
	})
}

func TestAnswersReachThePersonAlone(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		r.srv.Slash(general, ann, "/bot", "status")
		in := r.sink.Next(r.T)
		for i := range 6 { // one more than Slack takes through the interaction
			if _, err := r.bot.Send(r.Context(), replyTo(in, fmt.Sprintf("**answer** %d", i))); err != nil {
				r.Fatal(err)
			}
		}
		if got := r.whispers(general, ann); len(got) != 6 || got[0] != "**answer** 0" || got[5] != "**answer** 5" {
			r.Errorf("the person reads %q", got)
		}
		if n := len(r.srv.Calls("respond")); n != responseUses {
			r.Errorf("%d answers through the interaction", n)
		}
		if n := len(r.srv.Calls("chat.postEphemeral")); n != 1 {
			r.Errorf("%d ephemeral messages", n)
		}
		for _, m := range r.srv.Sent(general) {
			if m.OnlyFor == "" {
				r.Errorf("everybody reads %q", m.Text)
			}
		}
	})
}

func TestLateAnswersAreNotLost(t *testing.T) {
	for name, spend := range map[string]func(*rig){
		"used up elsewhere": func(r *rig) { r.srv.SpendResponses() },
		"too old":           func(*rig) { settle(31 * time.Minute) },
		"too old by Slack's clock": func(r *rig) {
			r.srv.Inject(emulator.Fault{Method: "respond", Error: "expired_url", Status: 404})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{}, func(r *rig) {
				for _, place := range []string{general, dm} {
					r.srv.Slash(place, ann, "/bot", "status")
					in := r.sink.Next(r.T)
					spend(r)
					if _, err := r.bot.Send(r.Context(), replyTo(in, "at last")); err != nil {
						r.Errorf("in %s: %v", place, err)
					}
					if m := r.last(place); m.Text != "at last" || (m.OnlyFor == ann) != (place == general) {
						r.Errorf("in %s: %+v", place, m)
					}
				}
			})
		})
	}
}

func TestHandlesOfAnEarlierProcessStillFindThePerson(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		p := channels.Piece{To: room, Class: chat.Command, Text: "after a restart", Plain: "after a restart", Via: "unknown", For: ann}
		if _, err := r.bot.Send(r.Context(), p); err != nil {
			r.Fatal(err)
		}
		if got := r.whispers(general, ann); !slices.Equal(got, []string{"after a restart"}) {
			r.Errorf("the person reads %q", got)
		}
	})
}

func TestRefusalsAreTold(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		r.sink.Refuse(&channels.Refusal{Text: "You may not <!channel> this & that."})
		r.srv.Slash(general, ann, "/bot", "status")
		r.sink.Refused(r.T)
		settle(10 * time.Minute)
		if got := r.whispers(general, ann); !slices.Equal(got, []string{"You may not <!channel> this & that."}) { // shown as it is
			r.Errorf("the person reads %q", got)
		}
		if raw := r.srv.Calls("respond")[0].Params["text"]; strings.Contains(raw, "<") {
			r.Errorf("not escaped: %q", raw)
		}
		if d := r.srv.Deliveries(); len(d) != 1 || d[0].Acked.IsZero() {
			r.Errorf("deliveries %+v", d)
		}
		r.none()
	})
}

func TestGroupConversationsAreOffUnlessEnabled(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		r.srv.UserSays(trio, ann, "hello")
		r.srv.UserSays(trio, ann, "<@"+botID+"> hello")
		r.srv.Slash(trio, ann, "/bot", "status")
		settle(time.Minute)
		r.none()
		if got := r.whispers(trio, ann); !slices.Equal(got, []string{textNoGroups}) {
			r.Errorf("the person reads %q", got)
		}
	})
}

// menuOf makes buttons in three groups, the second one chosen.
func menuOf(n int) []chat.Button {
	var out []chat.Button
	for i := range n {
		out = append(out, chat.Button{
			Label: fmt.Sprintf("Model %d %s", i, strings.Repeat("é", 80)), Command: fmt.Sprintf("/model m%d", i), Group: []string{"", "openai", "anthropic"}[i%3], Chosen: i == 1,
		})
	}
	return out
}

func TestMenusOfEverySizeAreTaken(t *testing.T) {
	for _, n := range []int{1, 5, 6, 99, 100, 101, 250, 3000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inBubble(t, setup{}, func(r *rig) {
				p := channels.Piece{To: direct, Class: chat.Command, Text: "choose", Plain: "choose", Buttons: menuOf(n)}
				id := r.sendPiece(p)
				labels := r.last(dm).Choices()
				if n > mostButtons && !slices.Contains(labels, cancelLabel) {
					r.Errorf("no way out of %q", labels)
				}
				for _, i := range []int{0, min(n, mostMenus*mostOptions) - 1} {
					want := shorten(p.Buttons[i].Label, longestLabel)
					if r.srv.Press(dm, ann, id, want) == "" {
						r.Fatalf("no choice %q", want)
					}
					if in := r.sink.Next(r.T); in.Text != p.Buttons[i].Command {
						r.Errorf("choice %d is %q", i, in.Text)
					}
				}
			})
		})
	}
}

func TestMenusInPlainTextAreTaken(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		plain := strings.Repeat("a < b & c. ", 700) // longer than a block
		id := r.sendPiece(channels.Piece{To: direct, Class: chat.Command, Plain: plain, Buttons: menuOf(2)})
		m := r.last(dm)
		if m.TS != id || m.Markdown || strings.ReplaceAll(m.Text, "\n", "") != plain || len(m.Choices()) != 2 {
			r.Errorf("shown as %.100q with %q", m.Text, m.Choices())
		}
	})
}

func TestCancelTakesAMenuAway(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		r.srv.Slash(general, ann, "/bot", "model")
		in := r.sink.Next(r.T)
		p := replyTo(in, "choose")
		p.Buttons = menuOf(30)
		if _, err := r.bot.Send(r.Context(), p); err != nil {
			r.Fatal(err)
		}
		menu := r.last(general)
		r.srv.Press(general, ann, menu.TS, cancelLabel)
		synctest.Wait()
		r.none()
		if got := r.whispers(general, ann); len(got) != 0 {
			r.Errorf("left over: %q", got)
		}
	})
}

// TestPickedMenuIsReplaced: the answer takes the place of an ephemeral menu, and later ones follow.
func TestPickedMenuIsReplaced(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		r.srv.Slash(general, ann, "/bot", "model")
		p := replyTo(r.sink.Next(r.T), "choose")
		p.Buttons = menuOf(30)
		if _, err := r.bot.Send(r.Context(), p); err != nil {
			r.Fatal(err)
		}
		menu := r.last(general)
		r.srv.Press(general, ann, menu.TS, shorten(p.Buttons[7].Label, longestLabel))
		in := r.sink.Next(r.T)
		for _, text := range []string{"done", "and more"} {
			if _, err := r.bot.Send(r.Context(), replyTo(in, text)); err != nil {
				r.Fatal(err)
			}
		}
		if got := r.whispers(general, ann); !slices.Equal(got, []string{"done", "and more"}) {
			r.Errorf("the person reads %q", got)
		}
	})
}

// TestPressesInAThreadActOnIt: a menu that opens a thread belongs to it.
func TestPressesInAThreadActOnIt(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		root := r.srv.UserSaidUnheard(general, ann, "hi")
		id := r.sendPiece(channels.Piece{To: room, Class: chat.Command, Text: "choose", Buttons: menuOf(2), ReplyTo: root})
		r.srv.Press(general, ann, id, shorten(menuOf(2)[1].Label, longestLabel))
		want := room
		want.Thread = root
		if in := r.sink.Next(r.T); in.Address != want || in.Text != "/model m1" {
			r.Errorf("got %+v", in)
		}
	})
}

func TestForgedPressesDoNothing(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		id := r.sendPiece(channels.Piece{To: room, Class: chat.Command, Text: "choose", Buttons: menuOf(2)})
		other := r.sendPiece(channels.Piece{To: direct, Class: chat.Command, Text: "choose", Buttons: menuOf(2)})
		value := r.srv.Sent(dm)[0].Blocks[1].Elements[0].Value
		for _, v := range []string{"", ":", "x", "x:0", ":0", strings.Repeat("x", 500) + ":1", "/model evil", value[:len(value)-1] + "2", value[:len(value)-1] + "-1", value[:len(value)-1] + "99999999999999999999"} {
			r.srv.PressValue(dm, ann, other, v)
		}
		r.srv.PressValue(general, ann, id, value) // of another conversation
		settle(time.Minute)
		r.none()
		if got := r.whispers(general, ann); !slices.Equal(got, []string{channels.TextOthers}) {
			r.Errorf("told %q", got)
		}
		if r.srv.Pending() != 0 {
			r.Error("presses are not acknowledged")
		}
	})
}

func TestPressesWaitForAStoreThatIsAway(t *testing.T) {
	kept := newMenus()
	inBubble(t, setup{bot: func(_ *Config, d *Deps) { d.Menus = kept }}, func(r *rig) {
		id := r.sendPiece(channels.Piece{To: direct, Class: chat.Command, Text: "choose", Buttons: menuOf(2)})
		kept.fail(errors.New("locked"))
		r.srv.Press(dm, ann, id, shorten(menuOf(2)[0].Label, longestLabel))
		settle(time.Second)
		r.none()
		_, err := r.bot.Send(r.Context(), channels.Piece{To: direct, Text: "choose", Buttons: menuOf(2)})
		wantVerdict(r.T, err, channels.Retry, "store")
		kept.fail(nil)
		if in := r.sink.Next(r.T); in.Text != "/model m0" {
			r.Errorf("got %+v", in)
		}
	})
}

func TestAnswersGoToSlackOnly(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		r.srv.PushRaw("slash_commands", `{"team_id":"T0TEAM001","channel_id":"`+general+`","user_id":"`+ann+`","command":"/bot","text":"x","trigger_id":"1","response_url":"http://evil.test/respond/R1"}`)
		in := r.sink.Next(r.T)
		if _, err := r.bot.Send(r.Context(), replyTo(in, "secret")); err != nil {
			r.Fatal(err)
		}
		if n := len(r.srv.Calls("respond")); n != 0 {
			r.Error("answered to a stranger's address")
		}
		if got := r.whispers(general, ann); !slices.Equal(got, []string{"secret"}) {
			r.Errorf("the person reads %q", got)
		}
	})
}
