package discord

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"understudy/channels"
	"understudy/chat"
)

// drop is a sink that takes everything.
type drop struct{ n int }

func (d *drop) Accept(context.Context, chat.Inbound) error { d.n++; return nil }
func (*drop) Status(channels.Status)                       {}

// offline is a run without a connection whose calls fail at once.
func offline(tb testing.TB) (*run, *drop) {
	tb.Helper()
	b := newBot(tb, emulatorWithoutServer(), func(c *Config, d *Deps) { c.MentionPatterns = []string{"bot"}; d.Menus = nil })
	b.self.Store(&user{ID: "42", Username: "understudy"})
	b.directory.put(channel{ID: "200", Name: "general"}, channel{ID: "300", Parent: "200", Type: typePublicThread}, channel{ID: "400", Type: typeDirect})
	d := &drop{}
	return &run{Bot: b, sink: d, queue: newQueue(), busy: make(chan struct{}, mostSuggesting)}, d
}

// No payload of an event brings the bot down.
func FuzzEvents(f *testing.F) {
	for _, kind := range []string{"MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK", "GUILD_CREATE", "THREAD_CREATE", "CHANNEL_DELETE", "GUILD_ROLE_CREATE", "INTERACTION_CREATE"} {
		f.Add(kind, []byte(`{"id":"1","channel_id":"200","guild_id":"500","author":{"id":"7","username":"ann"},"content":"<@42> hi <@&1> <#200>","mentions":[{"id":"42"}],"mention_roles":["1"],"edited_timestamp":"x","attachments":[{"url":"x"}],"type":19,"message_reference":{"message_id":"2"},"referenced_message":{"author":null},"message_snapshots":[{"message":null}],"ids":["1"]}`))
		f.Add(kind, []byte(`null`))
		f.Add(kind, []byte(`{"id":"1","token":"t","type":3,"channel_id":"400","user":{"id":"7"},"data":{"custom_id":"p:x:1","values":[""],"options":[{"name":"a","value":{}}]},"message":{}}`))
		f.Add(kind, []byte(`{"id":"1","channels":[{"id":"1","type":11}],"threads":null,"roles":[{"id":"1","tags":{"bot_id":"42"}}],"role":{"id":"1"}}`))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // a channel that is not known is not waited for
	r, _ := offline(f)
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		r.log = r.deps.Log
		if !r.directory.learn(kind, data) {
			r.event(ctx, kind, data)
		}
		for len(r.queue.list) > 0 {
			task, ok := r.queue.take(context.Background())
			if !ok {
				t.Fatal("nothing to take")
			}
			func() { // perform would hide a panic
				switch {
				case task.ticket != nil:
					r.interaction(ctx, task.ticket)
				case task.kind == "MESSAGE_DELETE", task.kind == "MESSAGE_DELETE_BULK":
					r.deleted(ctx, task.data)
				default:
					var m message
					decode(task.data, &m)
					if in, ok := r.inbound(ctx, &m, task.kind == "MESSAGE_UPDATE"); ok && (in.EventKey == "" || in.Address.Conversation == "") {
						t.Errorf("got %+v", in)
					}
				}
			}()
		}
		r.work.Wait()
	})
}

func FuzzCustomIDs(f *testing.F) {
	f.Add("p:abc:1")
	f.Add("p::")
	f.Fuzz(func(t *testing.T, id string) {
		token, what, ok := parseCustomID(id)
		if ok && (token == "" || what == "" || len(token) > longestToken || customPrefix+token+":"+what != id) {
			t.Errorf("%q is %q and %q", id, token, what)
		}
	})
}

// Whatever buttons there are, what is shown keeps to Discord's limits, and every button is on some
// page, once.
func TestComponentsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		button := rapid.Custom(func(t *rapid.T) chat.Button {
			return chat.Button{
				Label: rapid.StringN(0, 150, -1).Draw(t, "label"), Command: rapid.StringN(0, 150, -1).Draw(t, "command"),
				Group: rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e", strings.Repeat("long", 50)}).Draw(t, "group"), Chosen: rapid.Bool().Draw(t, "chosen"),
			}
		})
		buttons := rapid.SliceOfN(button, 1, 300).Draw(t, "buttons")
		found := map[string]int{}
		for page := range 20 {
			rows := components(buttons, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", page)
			if len(rows) == 0 || len(rows) > mostRows {
				t.Fatalf("%d rows", len(rows))
			}
			ids := map[string]bool{}
			for _, row := range rows {
				if len(row.Components) == 0 || len(row.Components) > mostInRow {
					t.Fatalf("%d in a row", len(row.Components))
				}
				for _, c := range row.Components {
					if ids[c.CustomID] || len(c.CustomID) > 100 || c.Type == buttonType && (c.Label == "" || utf8.RuneCountInString(c.Label) > longestLabel) || utf8.RuneCountInString(c.Placeholder) > 150 || len(c.Options) > mostOptions {
						t.Fatalf("component %+v", c)
					}
					ids[c.CustomID] = true
					_, what, ok := parseCustomID(c.CustomID)
					if !ok {
						t.Fatalf("id %q", c.CustomID)
					}
					if c.Type == buttonType && !strings.HasPrefix(what, pageMark) {
						found[what] = max(found[what], 1)
					}
					chosen := 0
					for _, o := range c.Options {
						if o.Label == "" || utf8.RuneCountInString(o.Label) > longestOption {
							t.Fatalf("option %+v", o)
						}
						if o.Default {
							chosen++
						}
						found[o.Value] = max(found[o.Value], 1)
					}
					if chosen > 1 {
						t.Fatal("two options are chosen")
					}
				}
			}
		}
		if len(found) != len(buttons) {
			t.Fatalf("%d of %d buttons can be reached", len(found), len(buttons))
		}
	})
}

// A name for an emoji is safe in an address, whatever it was.
func TestEmojiProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := emojiPath(rapid.String().Draw(t, "emoji"))
		if strings.ContainsAny(name, "/\\?%&= \n@") {
			t.Fatalf("%q", name)
		}
	})
}

func TestDecodeTakesWhatItCan(t *testing.T) {
	var m message
	decode([]byte(`{"id":"1","flags":"many","content":"text","author":{"id":7,"username":"ann"}}`), &m)
	if diff := cmp.Diff([]string{"1", "text", "ann"}, []string{m.ID, m.Content, m.Author.Username}); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkInbound is one message from the gateway's payload to the sink.
func BenchmarkInbound(b *testing.B) {
	r, d := offline(b)
	data := []byte(`{"id":"1","channel_id":"300","guild_id":"500","author":{"id":"7","username":"ann","global_name":"Ann"},"member":{"roles":["601"]},"content":"<@42> what does <#200> mean, and who is <@8>? ` +
		strings.Repeat("words ", 40) + `","mentions":[{"id":"42","username":"understudy"},{"id":"8","username":"bob"}],"mention_roles":[],"attachments":[],"embeds":[],"components":[],"timestamp":"2026-03-02T10:00:00.000000+00:00","type":0,"flags":0}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		r.event(b.Context(), "MESSAGE_CREATE", data)
		t, _ := r.queue.take(b.Context())
		r.perform(b.Context(), t)
	}
	if d.n != b.N {
		b.Fatalf("%d of %d messages arrived", d.n, b.N)
	}
}
