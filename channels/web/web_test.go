package web

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/channels"
	"understudy/chat"
)

func TestConversation(t *testing.T) {
	r := start(t, Config{}, nil)
	f := r.follow("")
	f.expect("reset")
	m := r.post("s1", "c1", "hello")
	in := <-r.arrived
	want := chat.Inbound{
		ID: m.ID, EventKey: "web:s1:c1", Address: address("s1"), Sender: chat.Sender{ID: Owner, Name: "Owner", Local: true},
		Text: "hello", Mentioned: true, At: in.At,
	}
	if d := cmp.Diff(want, in); d != "" {
		t.Errorf("inbound (-want +got):\n%s", d)
	}
	if err := r.Typing(t.Context(), in.Address); err != nil {
		t.Fatal(err)
	}
	r.say("s1", chat.Notice, "changed")
	f.expect("own hello", "typing", "notice changed")
	id := r.say("s1", chat.Assistant, "Hi")
	f.expect("assistant Hi")
	if err := r.Edit(t.Context(), in.Address, id, channels.Piece{Class: chat.Assistant, Text: "Hi **there**"}); err != nil {
		t.Fatal(err)
	}
	e := f.next()
	if e.Message == nil || e.Message.ID != id || e.Message.HTML != "<p>Hi <strong>there</strong></p>\n" {
		t.Errorf("edit: %+v", e.Message)
	}
	r.Finished(in.Address, in.ID, 1)
	f.expect("done")
	if err := r.Delete(t.Context(), in.Address, id); err != nil {
		t.Fatal(err)
	}
	f.expect("delete")
	if d := cmp.Diff([]string{"unknown: hello", "notice: changed"}, r.texts("s1")); d != "" {
		t.Errorf("messages (-want +got):\n%s", d)
	}
}

func TestRepeatedPostIsOneMessage(t *testing.T) {
	r := start(t, Config{}, nil)
	first, again := r.post("s1", "c1", "hello"), r.post("s1", "c1", "hello")
	if first.ID != again.ID {
		t.Errorf("ids %s and %s", first.ID, again.ID)
	}
	if a, b := <-r.arrived, <-r.arrived; a.EventKey != b.EventKey {
		t.Errorf("event keys %s and %s", a.EventKey, b.EventKey)
	}
	if n := len(r.texts("s1")); n != 1 {
		t.Errorf("%d messages", n)
	}
}

func TestRepeatedPieceIsOneMessage(t *testing.T) {
	r := start(t, Config{}, nil)
	p := channels.Piece{To: address("s1"), Class: chat.Assistant, Text: "once", Key: "k"}
	first, err := r.Send(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.Send(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(first, again); d != "" {
		t.Errorf("receipts differ:\n%s", d)
	}
	if n := len(r.texts("s1")); n != 1 {
		t.Errorf("%d messages", n)
	}
}

func TestReconnectContinuesBehindTheLastEvent(t *testing.T) {
	r := start(t, Config{}, nil)
	f := r.follow("")
	f.expect("reset")
	r.say("s1", chat.Assistant, "one")
	f.expect("assistant one")
	f.close()
	id := r.say("s1", chat.Assistant, "two")
	for _, text := range []string{"two and", "two and more"} {
		if err := r.Edit(t.Context(), address("s1"), id, channels.Piece{Class: chat.Assistant, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	r.say("s2", chat.Cron, "three")
	f = r.follow(f.last)
	f.expect("assistant two and more", "cron three")
	r.say("s1", chat.Assistant, "four")
	f.expect("assistant four")
}

func TestReconnectThatCannotContinueResets(t *testing.T) {
	r := start(t, Config{Events: 4}, nil)
	f := r.follow("")
	f.expect("reset")
	r.say("s1", chat.Assistant, "one")
	f.expect("assistant one")
	f.close()
	for i := range 10 {
		r.say("s1", chat.Assistant, fmt.Sprint(i))
	}
	for name, last := range map[string]string{
		"too far back": f.last, "of another process": "elsewhere.1", "from the future": r.board.epoch + ".9999", "nonsense": "x",
	} {
		t.Run(name, func(t *testing.T) {
			g := r.follow(last)
			defer g.close()
			g.expect("reset")
		})
	}
}

func TestRefusedPostLeavesNoTrace(t *testing.T) {
	r := start(t, Config{}, nil)
	r.refuse = errors.New("disk full")
	var p problem
	if code := r.call("POST", "/api/sessions/s1/messages", posted{ID: "c1", Text: "hello"}, &p); code != http.StatusServiceUnavailable {
		t.Errorf("status %d", code)
	}
	if strings.Contains(p.Error, "disk") {
		t.Errorf("an internal error is shown: %s", p.Error)
	}
	if got := r.texts("s1"); len(got) != 0 {
		t.Errorf("messages: %q", got)
	}
	r.refuse = nil
	r.post("s1", "c1", "hello")
	if in := <-r.arrived; in.Text != "hello" {
		t.Errorf("arrived: %q", in.Text)
	}
}

func TestBadPosts(t *testing.T) {
	r := start(t, Config{}, nil)
	good, path := "application/json", "/api/sessions/s1/messages"
	for name, c := range map[string]struct {
		path, kind, body string
		want             int
	}{
		"form":        {path, "text/plain", `{"id":"a","text":"hi"}`, 415},
		"no JSON":     {path, good, `hello`, 400},
		"two values":  {path, good, `{"id":"a","text":"hi"}{}`, 400},
		"unknown key": {path, good, `{"id":"a","text":"hi","owner":true}`, 400},
		"no id":       {path, good, `{"text":"hi"}`, 400},
		"long id":     {path, good, `{"id":"` + strings.Repeat("a", 65) + `","text":"hi"}`, 400},
		"long label":  {path, good, `{"id":"a","text":"hi","label":"` + strings.Repeat("a", maxLabel+1) + `"}`, 400},
		"blank":       {path, good, `{"id":"a","text":" \n"}`, 400},
		"long text":   {path, good, `{"id":"a","text":"` + strings.Repeat("a", MaxText+1) + `"}`, 413},
		"huge body":   {path, good, `{"id":"a","text":"` + strings.Repeat("a", 2*maxBody) + `"}`, 413},
		"bad session": {"/api/sessions/S%2F1/messages", good, `{"id":"a","text":"hi"}`, 404},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := r.client.Post(r.server.URL+c.path, c.kind, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != c.want {
				t.Errorf("status %d, want %d", res.StatusCode, c.want)
			}
		})
	}
	if len(r.arrived) > 0 {
		t.Errorf("arrived: %+v", <-r.arrived)
	}
}

func TestHistory(t *testing.T) {
	at := time.Date(2020, 3, 2, 10, 0, 0, 0, time.UTC)
	h := past{
		sessions: []Session{{ID: "old", Title: "hello again", UpdatedAt: at}, {ID: "older", UpdatedAt: at.Add(-time.Hour)}},
		entries: map[string][]Entry{"old": {
			{Own: true, Text: "hello again", At: at}, {Text: "an *answer*", At: at},
		}},
	}
	r := start(t, Config{}, h)
	want := []string{"unknown: hello again", "assistant: an *answer*"}
	if d := cmp.Diff(want, r.texts("old")); d != "" {
		t.Errorf("transcript (-want +got):\n%s", d)
	}
	// What the outbox sends after a restart is in the transcript already.
	r.say("old", chat.Assistant, "an *answer*")
	if d := cmp.Diff(want, r.texts("old")); d != "" {
		t.Errorf("after the late answer (-want +got):\n%s", d)
	}
	r.say("old", chat.Assistant, "another")
	if n := len(r.texts("old")); n != 3 {
		t.Errorf("%d messages", n)
	}
	r.post("new", "c1", "a new\n one")
	var list struct{ Sessions []Session }
	r.call("GET", "/api/sessions", nil, &list)
	var got []string
	for _, s := range list.Sessions {
		got = append(got, fmt.Sprintf("%s %q %v", s.ID, s.Title, s.Busy))
	}
	if d := cmp.Diff([]string{`new "a new one" true`, `old "hello again" false`, `older "" false`}, got); d != "" {
		t.Errorf("list (-want +got):\n%s", d)
	}
}

func TestUnreadableHistoryIsRetried(t *testing.T) {
	r := start(t, Config{}, past{fail: errors.New("locked")})
	_, err := r.Send(t.Context(), channels.Piece{To: address("s1"), Class: chat.Assistant, Text: "x"})
	var send *channels.SendError
	if !errors.As(err, &send) || send.Verdict != channels.Retry {
		t.Errorf("error %v", err)
	}
	if code := r.call("GET", "/api/sessions", nil, nil); code != http.StatusInternalServerError {
		t.Errorf("status %d", code)
	}
}

func TestVerdicts(t *testing.T) {
	r := start(t, Config{}, nil)
	ctx := t.Context()
	text := channels.Piece{Class: chat.Assistant, Text: "x"}
	_, elsewhere := r.Send(ctx, channels.Piece{To: chat.Address{Channel: "slack", Conversation: "s1"}, Text: "x"})
	_, empty := r.Send(ctx, channels.Piece{To: address("s1")})
	own := r.post("s1", "c1", "mine")
	for name, c := range map[string]struct {
		err  error
		want channels.Verdict
	}{
		"another channel": {elsewhere, channels.Gone},
		"no text":         {empty, channels.Refused},
		"edit nothing":    {r.Edit(ctx, address("s1"), "m99", text), channels.Missing},
		"edit own":        {r.Edit(ctx, address("s1"), own.ID, text), channels.Missing},
		"delete nothing":  {r.Delete(ctx, address("s1"), "m99"), channels.Missing},
	} {
		var send *channels.SendError
		if !errors.As(c.err, &send) || send.Verdict != c.want {
			t.Errorf("%s: %v, want verdict %d", name, c.err, c.want)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	r := start(t, Config{Events: 8, Messages: 5, Sessions: 3}, nil)
	for i := range 20 {
		session := fmt.Sprintf("s%d", i%7)
		for j := range 4 {
			r.say(session, chat.Assistant, fmt.Sprint(i, j))
		}
	}
	r.post("waits", "c1", "hello")
	for i := range 5 {
		r.say(fmt.Sprintf("t%d", i), chat.Assistant, "x")
	}
	if n := len(r.board.rooms); n != 3 {
		t.Errorf("%d sessions in memory", n)
	}
	if r.board.rooms["waits"] == nil {
		t.Error("a session that waits for its answer was forgotten")
	}
	if n := len(r.board.log.events); n != 8 {
		t.Errorf("%d events in memory", n)
	}
	for range 10 {
		r.say("waits", chat.Assistant, "x")
	}
	if n := len(r.texts("waits")); n != 5 {
		t.Errorf("%d messages in memory", n)
	}
}

func TestStoppedChannel(t *testing.T) {
	r := start(t, Config{Streams: 1}, nil)
	f := r.follow("")
	f.expect("reset")
	if code := r.call("GET", "/api/events", nil, nil); code != http.StatusServiceUnavailable {
		t.Errorf("one stream too many: status %d", code)
	}
	r.stop()
	for f.lines.Scan() { // the stream ends with the channel
	}
	if code := r.call("POST", "/api/sessions/s1/messages", posted{ID: "c1", Text: "hello"}, nil); code != http.StatusServiceUnavailable {
		t.Errorf("post: status %d", code)
	}
	if err := r.Run(t.Context(), r); !errors.Is(err, ErrRunTwice) {
		t.Errorf("second run: %v", err)
	}
}

func TestCommands(t *testing.T) {
	r := start(t, Config{}, nil)
	err := r.RegisterCommands(t.Context(), []channels.CommandInfo{{Name: "model", Description: "choose", Args: "[name]"}})
	if err != nil {
		t.Fatal(err)
	}
	var got any
	r.call("GET", "/api/commands", nil, &got)
	want := map[string]any{"commands": []any{map[string]any{"name": "model", "description": "choose", "args": "[name]"}}}
	if d := cmp.Diff(any(want), got); d != "" {
		t.Errorf("commands (-want +got):\n%s", d)
	}
}
