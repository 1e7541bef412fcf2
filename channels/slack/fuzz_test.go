package slack

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"understudy/channels"
	"understudy/chat"
)

// counter is a sink that checks what it gets.
type counter struct {
	t     testing.TB
	count int
}

func (c *counter) Accept(_ context.Context, m chat.Inbound) error {
	c.count++
	if m.EventKey == "" || m.Address.Channel != Channel || m.Address.Conversation == "" || m.Address.Kind == "" {
		c.t.Errorf("got %+v", m)
	}
	if m.Sender.ID == botID || len(m.Attachments) > mostFiles {
		c.t.Errorf("got %+v", m)
	}
	if !utf8.ValidString(m.Text) || !utf8.ValidString(m.Sender.Name) {
		c.t.Errorf("text %q of %q", m.Text, m.Sender.Name)
	}
	return nil
}

func (*counter) Status(channels.Status) {}

// everythingIsAChannel answers what a conversation is.
type everythingIsAChannel struct{}

func (everythingIsAChannel) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"ok":true,"channel":{"is_channel":true}}`))}, nil
}

// testInbox takes payloads without a connection.
func testInbox(t testing.TB) (*inbox, *counter) {
	b, err := New(valid(), Deps{Menus: newMenus(), Transport: func() http.RoundTripper { return everythingIsAChannel{} }})
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{t: t}
	return &inbox{Bot: b, sink: c, self: identity{user: botID, bot: "B0BOT0001", name: "understudy", team: "T0TEAM001"}}, c
}

func fuzz(f *testing.F, kind string) {
	f.Fuzz(func(t *testing.T, payload []byte) {
		in, _ := testInbox(t)
		if err := in.take(t.Context(), kind, payload); err != nil {
			t.Errorf("%q is not acknowledged: %v", payload, err)
		}
	})
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte(eventBody))
	f.Add([]byte(`{"event_id":"E","event":{"type":"message","subtype":"message_changed","channel":"C1","channel_type":"channel","message":{"ts":"1.1","user":"U1","text":"<@U0BOT0001> a","edited":{"ts":"2"}},"previous_message":{}}}`))
	f.Add([]byte(`{"event":{"type":"message","subtype":"message_deleted","channel":"C1","deleted_ts":"1.1","previous_message":{"user":"U1"}}}`))
	f.Add([]byte(`{"event":{"type":"app_mention","channel":"C1","ts":"1","text":"<@U0BOT0001|x> <!here> <http://a|b> &lt;","files":[{"id":"F1"},3],"attachments":[{"is_share":true,"text":"<"}]}}`))
	f.Add([]byte(`{"event":{"type":"message","message":{"message":{"message":null}}}}`))
	f.Add([]byte(`{"event":7}`))
	f.Add([]byte("{\"event\":{\"type\":\"message\",\"channel\":\"D1\",\"ts\":\"1.1\",\"text\":\"\xff<\xc3\"}}"))
	fuzz(f, kindEvents)
}

func FuzzSlash(f *testing.F) {
	f.Add([]byte(`{"command":"/bot","text":"status <@U1|a>","user_id":"U1","channel_id":"C1","trigger_id":"1","response_url":"https://hooks.slack.com/x"}`))
	f.Add([]byte(`{"command":7,"user_id":"U1","channel_id":"C1"}`))
	fuzz(f, kindSlash)
}

func FuzzInteractions(f *testing.F) {
	f.Add([]byte(`{"type":"block_actions","user":{"id":"U1"},"channel":{"id":"C1"},"actions":[{"value":"token:1"}],"response_url":"x"}`))
	f.Add([]byte(`{"type":"block_actions","user":{"id":"U1"},"container":{"channel_id":"C1","is_ephemeral":1},"actions":[{"selected_option":null}]}`))
	f.Add([]byte(`{"type":"block_actions","actions":[]}`))
	fuzz(f, kindInteractive)
}

func FuzzRequests(f *testing.F) {
	f.Add("application/json", []byte(eventBody))
	f.Add("application/x-www-form-urlencoded", []byte("payload=%7B%7D"))
	f.Add("application/x-www-form-urlencoded", []byte("command=%2Fbot&text=x&user_id=U1&channel_id=C1"))
	f.Add("application/x-www-form-urlencoded; charset=utf-8", []byte("%zz;&&=&a"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		in, _ := testInbox(t)
		kind, payload := classify(contentType, body)
		if err := in.take(t.Context(), kind, payload); err != nil {
			t.Errorf("%q is not acknowledged: %v", body, err)
		}
	})
}

// BenchmarkInbound is the way of a message from the decoded envelope to the sink.
func BenchmarkInbound(b *testing.B) {
	in, got := testInbox(b)
	payload := []byte(`{"token":"x","team_id":"T0TEAM001","type":"event_callback","event_id":"Ev1","event":{"client_msg_id":"1","type":"message","user":"U0ANN0001",` +
		`"text":"<@U0BOT0001> please look at <https://example.com/a?b=1&amp;c=2|this page> and tell <@U0BOB0001|bob> what &lt;you&gt; think","ts":"1772445600.000100",` +
		`"blocks":[{"type":"rich_text","block_id":"x","elements":[{"type":"rich_text_section","elements":[{"type":"user","user_id":"U0BOT0001"},{"type":"text","text":" please"}]}]}],` +
		`"team":"T0TEAM001","channel":"C0GENERAL","event_ts":"1772445600.000100","channel_type":"channel"}}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(payload)))
	for b.Loop() {
		in.stored = newRecent[bool](1) // every one is new
		if err := in.take(b.Context(), kindEvents, payload); err != nil {
			b.Fatal(err)
		}
	}
	if got.count == 0 {
		b.Fatal("nothing arrived")
	}
}
