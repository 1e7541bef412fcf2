package slack

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy/chat"

	emulator "understudy/internal/emulate/slack"
)

const forBot = "<@" + botID + "> hello"

// mentionAlone tells the app of a mention without telling it of the message.
func (r *rig) mentionAlone(place string) (ts string) {
	r.Helper()
	ts = r.srv.UserSaidUnheard(place, ann, forBot)
	r.srv.PushRaw("events_api", fmt.Sprintf(
		`{"type":"event_callback","team_id":"T0TEAM001","event_id":"EvMention%s","event":{"type":"app_mention","channel":%q,"user":%q,"text":%q,"ts":%q}}`,
		strings.ReplaceAll(ts, ".", ""), place, ann, forBot, ts))
	return ts
}

// TestFirstMentionKnowsWhereItIsFrom: a mention does not say whether it is from a channel or from a
// conversation of a few people.
func TestFirstMentionKnowsWhereItIsFrom(t *testing.T) {
	for name, change := range modes {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{server: emulator.Config{MentionsOnly: true}, bot: func(c *Config, d *Deps) {
				if change != nil {
					change(c, d)
				}
				c.DM.GroupEnabled = true
			}}, func(r *rig) {
				for range 2 {
					for place, want := range map[string]chat.Kind{trio: chat.Group, general: chat.Room} {
						r.srv.UserSays(place, ann, forBot)
						if in := r.sink.Next(r.T); in.Address.Kind != want || in.Address.Conversation != place || !in.Mentioned {
							r.Errorf("%s: %+v", place, in)
						}
					}
				}
				if n := len(r.srv.Calls("conversations.info")); n != 2 {
					r.Errorf("asked %d times", n)
				}
				settle(time.Minute)
				if n := r.srv.Pending(); n != 0 {
					r.Errorf("%d not acknowledged", n)
				}
			})
		})
	}
	inBubble(t, setup{server: emulator.Config{MentionsOnly: true}}, func(r *rig) { // and there it is not wanted
		r.srv.UserSays(trio, ann, forBot)
		settle(time.Minute)
		r.none()
	})
}

// TestUnplacedMentionsHoldUpNobody: what Slack does not answer at once is asked again when the mention
// comes again; the others do not wait.
func TestUnplacedMentionsHoldUpNobody(t *testing.T) {
	for _, f := range []emulator.Fault{{Hang: true}, {Error: "internal_error"}, {RetryAfter: time.Second}, {Body: `{"ok":true,"channel":{"id":"C1"}}`}} {
		inBubble(t, setup{bot: func(c *Config, _ *Deps) { c.DM.GroupEnabled = true }}, func(r *rig) {
			f.Method = "conversations.info"
			r.srv.Inject(f)
			began := time.Now()
			r.mentionAlone(trio)
			r.srv.UserSays(dm, ann, "meanwhile")
			if in := r.sink.Next(r.T); in.Text != "meanwhile" || time.Since(began) > time.Second {
				r.Errorf("after %v: %+v", time.Since(began), in)
			}
			if in := r.sink.Next(r.T); in.Address.Kind != chat.Group || in.Address.Conversation != trio {
				r.Errorf("got %+v", in)
			}
			r.none()
		})
	}
}

// TestMessageTellsWhereItsMentionIsFrom: the two come in any order, and make one message.
func TestMessageTellsWhereItsMentionIsFrom(t *testing.T) {
	inBubble(t, setup{bot: func(c *Config, _ *Deps) { c.DM.GroupEnabled = true }}, func(r *rig) {
		r.srv.Inject(emulator.Fault{Method: "conversations.info", Hang: true})
		ts := r.mentionAlone(trio)
		r.srv.TellAgain(trio, ts)
		if in := r.sink.Next(r.T); in.ID != ts || in.Address.Kind != chat.Group || !in.Mentioned {
			r.Errorf("got %+v", in)
		}
		settle(10 * time.Minute)
		r.none()
		if n := r.srv.Pending(); n != 0 {
			r.Errorf("%d not acknowledged", n)
		}
	})
}

// TestMentionsAreNotSwallowed: what came as an ordinary message comes again when it is a mention, once.
func TestMentionsAreNotSwallowed(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		ts := r.srv.UserSays(general, ann, "computer, hello")
		if in := r.sink.Next(r.T); in.Mentioned {
			r.Errorf("got %+v", in)
		}
		for i := range 2 {
			r.srv.PushRaw("events_api", fmt.Sprintf(
				`{"type":"event_callback","team_id":"T0TEAM001","event_id":"Ev%d","event":{"type":"app_mention","channel":%q,"user":%q,"text":"computer, hello","ts":%q}}`, i, general, ann, ts))
		}
		if in := r.sink.Next(r.T); !in.Mentioned || in.ID != ts {
			r.Errorf("got %+v", in)
		}
		r.srv.TellAgain(general, ts)
		r.none()
	})
}

// TestChannelsHaveNames: nobody waits for them.
func TestChannelsHaveNames(t *testing.T) {
	inBubble(t, setup{bot: func(c *Config, _ *Deps) { c.DM.GroupEnabled = true }}, func(r *rig) {
		titles := func() (out []string) {
			for _, place := range []string{general, trio, dm} {
				r.srv.UserSays(place, ann, "hi")
				out = append(out, r.sink.Next(r.T).Title)
			}
			return out
		}
		titles()
		settle(10 * time.Second)
		if got := titles(); got[0] != "general" || got[1] != "" || got[2] != "" {
			r.Errorf("titles %q", got)
		}
		r.srv.Slash("C0NEW0001", ann, "/bot", "status")
		if in := r.sink.Next(r.T); in.Title != "c-C0NEW0001" {
			r.Errorf("got %+v", in)
		}
		settle(time.Hour)
		if n := len(r.srv.Calls("conversations.info")); n != 1 {
			r.Errorf("asked %d times", n)
		}
	})
}
