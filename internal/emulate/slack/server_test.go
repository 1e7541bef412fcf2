package slack

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
)

// client makes calls like a bot would.
type client struct {
	*testing.T
	srv   *Server
	http  *http.Client
	token string
}

func inBubble(t *testing.T, cfg Config, test func(*client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := New(cfg)
		transport := srv.Transport().(*http.Transport)
		defer srv.Close()
		defer transport.CloseIdleConnections()
		srv.AddChannel(Channel{ID: "C1", Kind: "channel"})
		srv.AddChannel(Channel{ID: "D1", Kind: "im", With: "U1"})
		test(&client{T: t, srv: srv, http: &http.Client{Transport: transport}, token: srv.Config().BotToken})
	})
}

// call makes a call and returns its answer; code is its error, "" = ok.
func (c *client) call(method string, pairs ...string) (out map[string]any, code string) {
	c.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	resp := c.post("/api/"+method, "application/x-www-form-urlencoded", form.Encode())
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		c.Fatal(err)
	}
	code, _ = out["error"].(string)
	if ok, _ := out["ok"].(bool); ok != (code == "") {
		c.Errorf("%s: %v", method, out)
	}
	return out, code
}

func (c *client) post(path, kind, body string) *http.Response {
	c.Helper()
	req, err := http.NewRequestWithContext(c.Context(), http.MethodPost, Root+path, strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := c.http.Do(req)
	if err != nil {
		c.Fatal(err)
	}
	return resp
}

func TestRejectsWhatSlackRejects(t *testing.T) {
	actions := func(element string) string {
		return `[{"type":"actions","elements":[` + element + `]}]`
	}
	option := func(text, value string) string {
		return fmt.Sprintf(`{"text":{"type":"plain_text","text":%q},"value":%q}`, text, value)
	}
	menu := func(options ...string) string {
		return actions(`{"type":"static_select","action_id":"a","options":[` + strings.Join(options, ",") + `]}`)
	}
	var many []string
	for i := range 101 {
		many = append(many, option("x", fmt.Sprint(i)))
	}
	for _, c := range []struct {
		method, want string
		pairs        []string
	}{
		{"chat.postMessage", "channel_not_found", []string{"channel", "C404", "text", "x"}},
		{"chat.postMessage", "no_text", []string{"channel", "C1"}},
		{"chat.postMessage", "msg_too_long", []string{"channel", "C1", "text", strings.Repeat("x", 40_001)}},
		{"chat.postMessage", "msg_too_long", []string{"channel", "C1", "markdown_text", strings.Repeat("x", 12_001)}},
		{"chat.postMessage", "", []string{"channel", "C1", "markdown_text", strings.Repeat("é", 12_000)}},
		{"chat.postMessage", "markdown_text_conflict", []string{"channel", "C1", "markdown_text", "x", "text", "x"}},
		{"chat.postMessage", "thread_not_found", []string{"channel", "C1", "text", "x", "thread_ts", "1.1"}},
		{"chat.postMessage", "invalid_blocks_format", []string{"channel", "C1", "blocks", "x"}},
		{"chat.postMessage", "invalid_blocks", []string{"channel", "C1", "blocks", `[{"type":"novel"}]`}},
		{"chat.postMessage", "invalid_blocks", []string{"channel", "C1", "blocks", "[" + strings.Repeat(`{"type":"divider"},`, 50) + `{"type":"divider"}]`}},
		{"chat.postMessage", "invalid_blocks", []string{"channel", "C1", "blocks", `[{"type":"section","text":{"type":"mrkdwn","text":"` + strings.Repeat("x", 3001) + `"}}]`}},
		{"chat.postMessage", "msg_blocks_too_long", []string{"channel", "C1", "blocks", `[{"type":"markdown","text":"` + strings.Repeat("x", 12_001) + `"}]`}},
		{"chat.postMessage", "invalid_blocks", []string{"channel", "C1", "blocks", actions(`{"type":"button","action_id":"a","text":{"type":"plain_text","text":"` + strings.Repeat("x", 76) + `"}}`)}},
		{"chat.postMessage", "invalid_blocks", []string{"channel", "C1", "blocks", menu()}},
		{"chat.postMessage", "invalid_blocks", []string{"channel", "C1", "blocks", menu(many...)}},
		{"chat.postMessage", "", []string{"channel", "C1", "blocks", menu(many[1:]...)}},
		{"chat.postMessage", "invalid_blocks", []string{"channel", "C1", "blocks", menu(option("x", "1"), option("y", "1"))}},
		{"chat.postMessage", "invalid_blocks", []string{"channel", "C1", "blocks", menu(option("x", strings.Repeat("v", 151)))}},
		{"chat.postMessage", "invalid_blocks", []string{"channel", "C1", "blocks", menu(option(strings.Repeat("x", 76), "v"))}},
		{"chat.update", "message_not_found", []string{"channel", "C1", "ts", "1.1", "text", "x"}},
		{"chat.delete", "message_not_found", []string{"channel", "C1", "ts", "1.1"}},
		{"chat.startStream", "invalid_thread_ts", []string{"channel", "C1", "markdown_text", "x"}},
		{"reactions.add", "invalid_name", []string{"channel", "C1", "timestamp", "1.1", "name", "👀"}},
		{"reactions.add", "message_not_found", []string{"channel", "C1", "timestamp", "1.1", "name", "eyes"}},
		{"assistant.threads.setStatus", "invalid_thread_ts", []string{"channel_id", "C1", "status", "x"}},
		{"assistant.threads.setStatus", "invalid_arguments", []string{"channel_id", "C1", "thread_ts", "1.1", "status", "x", "loading_messages", "a,b"}},
		{"files.getUploadURLExternal", "invalid_arguments", []string{"filename", "a", "length", "0"}},
		{"files.completeUploadExternal", "file_not_found", []string{"files", `[{"id":"F404"}]`}},
		{"conversations.replies", "thread_not_found", []string{"channel", "C1", "ts", "1.1"}},
		{"apps.connections.open", "not_allowed_token_type", nil},
		{"no.method", "unknown_method", nil},
	} {
		inBubble(t, Config{}, func(cl *client) {
			if _, code := cl.call(c.method, c.pairs...); code != c.want {
				cl.Errorf("%s %.200q: %q, want %q", c.method, c.pairs, code, c.want)
			}
		})
	}
}

func TestChecksTokensAndScopes(t *testing.T) {
	inBubble(t, Config{Scopes: []string{"chat:write"}}, func(c *client) {
		out, code := c.call("reactions.add", "channel", "C1")
		if code != "missing_scope" || out["needed"] != "reactions:write" || out["provided"] != "chat:write" {
			c.Errorf("got %v", out)
		}
		c.token = "xoxb-forged"
		if _, code := c.call("auth.test"); code != "invalid_auth" {
			c.Errorf("got %q", code)
		}
		c.token = ""
		if _, code := c.call("auth.test"); code != "not_authed" {
			c.Errorf("got %q", code)
		}
		c.token = c.srv.Config().BotToken
		c.srv.Revoke()
		if _, code := c.call("auth.test"); code != "token_revoked" {
			c.Errorf("got %q", code)
		}
	})
}

func TestStreamsNeedTheirReader(t *testing.T) {
	inBubble(t, Config{}, func(c *client) {
		root := c.srv.UserSaidUnheard("C1", "U1", "x")
		if _, code := c.call("chat.startStream", "channel", "C1", "thread_ts", root); code != "missing_recipient_user_id" {
			c.Errorf("got %q", code)
		}
		if _, code := c.call("chat.startStream", "channel", "C1", "thread_ts", root, "recipient_user_id", "U1"); code != "missing_recipient_team_id" {
			c.Errorf("got %q", code)
		}
		out, code := c.call("chat.startStream", "channel", "C1", "thread_ts", root, "recipient_user_id", "U1", "recipient_team_id", "T0TEAM001", "markdown_text", "a")
		if code != "" {
			c.Fatal(code)
		}
		ts, _ := out["ts"].(string)
		c.call("chat.appendStream", "channel", "C1", "ts", ts, "markdown_text", "b")
		if _, code := c.call("chat.update", "channel", "C1", "ts", ts, "text", "x"); code != "streaming_state_conflict" {
			c.Errorf("got %q", code)
		}
		c.call("chat.stopStream", "channel", "C1", "ts", ts, "markdown_text", "c")
		if _, code := c.call("chat.appendStream", "channel", "C1", "ts", ts, "markdown_text", "d"); code != "message_not_in_streaming_state" {
			c.Errorf("got %q", code)
		}
		if m := c.srv.Sent("C1")[0]; m.Text != "abc" || m.Thread != root || m.Streaming {
			c.Errorf("got %+v", m)
		}
	})
}

func TestQuotasAreOfAMethodAndAChannel(t *testing.T) {
	inBubble(t, Config{Quota: map[string]int{"chat.postMessage": 2}}, func(c *client) {
		for range 2 {
			c.call("chat.postMessage", "channel", "C1", "text", "x")
		}
		resp := c.post("/api/chat.postMessage", "application/x-www-form-urlencoded", "channel=C1&text=x")
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "10" {
			c.Errorf("got %d after %q", resp.StatusCode, resp.Header.Get("Retry-After"))
		}
		if _, code := c.call("chat.postMessage", "channel", "D1", "text", "x"); code != "" {
			c.Errorf("another channel: %q", code)
		}
		<-time.After(time.Minute)
		if _, code := c.call("chat.postMessage", "channel", "C1", "text", "x"); code != "" {
			c.Errorf("a minute later: %q", code)
		}
	})
}

// link opens a Socket Mode connection and reads its hello.
func (c *client) link() *websocket.Conn {
	c.Helper()
	c.token = c.srv.Config().AppToken
	out, code := c.call("apps.connections.open")
	c.token = c.srv.Config().BotToken
	if code != "" {
		c.Fatal(code)
	}
	d := websocket.Dialer{NetDialContext: c.srv.Dial}
	conn, resp, err := d.DialContext(c.Context(), out["url"].(string), nil)
	if err != nil {
		c.Fatal(err)
	}
	_ = resp.Body.Close()
	if f := c.frame(conn); f.Type != "hello" || f.Info.App != "A0APP00001" {
		c.Errorf("got %+v", f)
	}
	if _, resp, err := d.DialContext(c.Context(), out["url"].(string), nil); err == nil || resp.StatusCode != http.StatusUnauthorized {
		c.Error("a ticket works twice")
	}
	return conn
}

type frame struct {
	Type     string
	Envelope string          `json:"envelope_id"`
	Payload  json.RawMessage `json:"payload"`
	Attempt  int             `json:"retry_attempt"`
	Reason   string          `json:"retry_reason"`
	Info     struct {
		App string `json:"app_id"`
	} `json:"connection_info"`
}

func (c *client) frame(conn *websocket.Conn) (f frame) {
	c.Helper()
	if err := conn.ReadJSON(&f); err != nil {
		c.Error(err)
	}
	return f
}

func TestEnvelopesComeUntilTheyAreAcknowledged(t *testing.T) {
	inBubble(t, Config{}, func(c *client) {
		conn := c.link()
		defer func() { _ = conn.Close() }()
		began := time.Now()
		c.srv.UserSays("C1", "U1", "<@U0BOT0001> hi")
		message, mention := c.frame(conn), c.frame(conn)
		for i, f := range []frame{message, mention} {
			var p struct {
				Event struct{ Type, TS, Channel string }
			}
			if err := json.Unmarshal(f.Payload, &p); err != nil || p.Event.Channel != "C1" || p.Event.Type != []string{"message", "app_mention"}[i] {
				c.Errorf("got %s, %v", f.Payload, err)
			}
		}
		if err := conn.WriteJSON(map[string]string{"envelope_id": mention.Envelope}); err != nil {
			c.Fatal(err)
		}
		var at []string
		for range 3 {
			f := c.frame(conn)
			if f.Envelope != message.Envelope || f.Reason != "timeout" {
				c.Errorf("got %+v", f)
			}
			at = append(at, fmt.Sprint(f.Attempt, " ", time.Since(began)))
		}
		if want := []string{"1 3s", "2 1m6s", "3 6m9s"}; !slices.Equal(at, want) {
			c.Errorf("repeated at %q, want %q", at, want)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if c.srv.Lost() != 1 || c.srv.Pending() != 0 {
			c.Errorf("%d lost, %d pending", c.srv.Lost(), c.srv.Pending())
		}
	})
}

func TestEnvelopesWaitForAConnectionInOrder(t *testing.T) {
	inBubble(t, Config{}, func(c *client) {
		var want []string
		for i := range 3 {
			want = append(want, c.srv.UserSays("D1", "U1", fmt.Sprint(i)))
		}
		conn := c.link()
		defer func() { _ = conn.Close() }()
		for _, ts := range want {
			if f := c.frame(conn); !strings.Contains(string(f.Payload), ts) || f.Attempt != 0 {
				c.Errorf("got %+v, want %s", f, ts)
			}
		}
	})
}

func TestResponseURLsAreUsedUp(t *testing.T) {
	inBubble(t, Config{}, func(c *client) {
		conn := c.link()
		defer func() { _ = conn.Close() }()
		c.srv.Slash("C1", "U1", "/bot", "status")
		var p struct {
			URL string `json:"response_url"`
		}
		if err := json.Unmarshal(c.frame(conn).Payload, &p); err != nil {
			c.Fatal(err)
		}
		say := func() (int, string) {
			resp := c.post(strings.TrimPrefix(p.URL, Root), "application/json", `{"text":"a &amp; b","response_type":"ephemeral"}`)
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				c.Fatal(err)
			}
			return resp.StatusCode, strings.TrimSpace(string(body))
		}
		for range responseUses {
			if status, body := say(); status != http.StatusOK || body != "ok" {
				c.Errorf("got %d %q", status, body)
			}
		}
		if status, body := say(); status != http.StatusNotFound || !strings.Contains(body, "used_url") {
			c.Errorf("got %d %q", status, body)
		}
		if m := c.srv.Messages("C1")[0]; m.Text != "a & b" || m.OnlyFor != "U1" {
			c.Errorf("got %+v", m)
		}
		<-time.After(responseLife + time.Second)
		if status, body := say(); status != http.StatusNotFound || !strings.Contains(body, "expired_url") {
			c.Errorf("got %d %q", status, body)
		}
	})
}

func TestFilesNeedTheToken(t *testing.T) {
	inBubble(t, Config{}, func(c *client) {
		c.srv.UserSays("D1", "U1", "", WithFile(File{Name: "a.txt", MIME: "text/plain", Data: []byte("data")}))
		id := c.srv.Messages("D1")[0].Files[0]
		get := func(token string) string {
			req, err := http.NewRequestWithContext(c.Context(), http.MethodGet, Root+"/files/"+id+"/a.txt", http.NoBody)
			if err != nil {
				c.Fatal(err)
			}
			req.Header.Set("Authorization", token)
			resp, err := c.http.Do(req)
			if err != nil {
				c.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				c.Fatal(err)
			}
			return resp.Request.URL.Path + " " + string(body)
		}
		if got := get("Bearer " + c.token); !strings.HasSuffix(got, " data") {
			c.Errorf("got %q", got)
		}
		if got := get(""); !strings.HasPrefix(got, "/signin <!DOCTYPE html>") {
			c.Errorf("got %q", got)
		}
	})
}

func TestServesOnLoopback(t *testing.T) {
	srv := New(Config{})
	defer srv.Close()
	root, err := srv.Listen()
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, root+"/api/auth.test", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+srv.Config().BotToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(body), `"ok":true`) {
		t.Errorf("got %q, %v", body, err)
	}
}
