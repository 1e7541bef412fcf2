package discord

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
)

const (
	guildID = "500"
	room    = "200"
	dm      = "400"
	ann     = "1001"
)

// world makes a server with a guild, a channel and a direct message.
func world(cfg Config) *Server {
	s := New(cfg)
	s.AddGuild(Guild{ID: guildID, Name: "Works", Roles: []Role{{ID: "600", Name: "understudy", BotID: s.BotID()}}})
	s.AddChannel(Channel{ID: room, Guild: guildID, Name: "general"})
	s.AddChannel(Channel{ID: "202", Guild: guildID, Name: "help", Type: Forum})
	s.AddChannel(Channel{ID: dm, Type: DirectChannel, Recipients: []string{ann}})
	return s
}

// client speaks REST as a bot does.
type client struct {
	t *testing.T
	s *Server
	h *http.Client
}

func newClient(t *testing.T, s *Server) *client {
	return &client{t, s, &http.Client{Transport: s.Transport()}}
}

func (c *client) do(method, path string, body any) (int, map[string]any) {
	c.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.send(method, path, "application/json", raw)
}

func (c *client) send(method, path, kind string, body []byte) (int, map[string]any) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, Root+"/api/v9"+path, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bot "+c.s.Token())
	req.Header.Set("Content-Type", kind)
	resp, err := c.h.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	var out map[string]any
	_ = json.Unmarshal(data, &out) // lists and empty answers have no fields
	return resp.StatusCode, out
}

func bubble(t *testing.T, cfg Config, test func(t *testing.T, s *Server, c *client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := world(cfg)
		defer s.Close()
		c := newClient(t, s)
		defer c.h.CloseIdleConnections()
		test(t, s, c)
	})
}

func code(out map[string]any) int {
	n, _ := out["code"].(float64)
	return int(n)
}

func TestMessageRules(t *testing.T) {
	type m = map[string]any
	button := func(id string) m { return m{"type": 2, "label": "x", "style": 2, "custom_id": id} }
	rows := func(inside ...any) m {
		return m{"content": "x", "components": []any{m{"type": 1, "components": inside}}}
	}
	tests := []struct {
		name         string
		place        string
		body         m
		status, code int
	}{
		{"fine", room, m{"content": "x"}, 200, 0},
		{"2000 characters", room, m{"content": strings.Repeat("😀", 2000)}, 200, 0},
		{"2001 characters", room, m{"content": strings.Repeat("x", 2001)}, 400, 50035},
		{"nothing", room, m{"content": " \n"}, 400, 50006},
		{"no such channel", "9", m{"content": "x"}, 404, 10003},
		{"a forum", "202", m{"content": "x"}, 400, 50008},
		{"a long nonce", room, m{"content": "x", "nonce": strings.Repeat("n", 26)}, 400, 50035},
		{"a reference to nothing", room, m{"content": "x", "message_reference": m{"message_id": "5"}}, 400, 50035},
		{"one that may fail", room, m{"content": "x", "message_reference": m{"message_id": "5", "fail_if_not_exists": false}}, 200, 0},
		{"five buttons", room, rows(button("1"), button("2"), button("3"), button("4"), button("5")), 200, 0},
		{"six buttons", room, rows(button("1"), button("2"), button("3"), button("4"), button("5"), button("6")), 400, 50035},
		{"one id twice", room, rows(button("1"), button("1")), 400, 50035},
		{"a long id", room, rows(button(strings.Repeat("x", 101))), 400, 50035},
		{"an empty selection", room, rows(m{"type": 3, "custom_id": "s", "options": []any{}}), 400, 50035},
		{"a component outside a row", room, m{"content": "x", "components": []any{button("1")}}, 400, 50035},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, Config{}, func(t *testing.T, s *Server, c *client) {
				status, out := c.do("POST", "/channels/"+tt.place+"/messages", tt.body)
				if status != tt.status || code(out) != tt.code {
					t.Errorf("%d %v", status, out)
				}
				if n := len(s.Sent(tt.place)); (n == 1) != (tt.status == 200) {
					t.Errorf("%d messages", n)
				}
			})
		})
	}
}

func TestNonceIsEnforced(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *Server, c *client) {
		send := func(enforce bool) string {
			_, out := c.do("POST", "/channels/"+room+"/messages", map[string]any{"content": "x", "nonce": "k", "enforce_nonce": enforce})
			id, _ := out["id"].(string)
			return id
		}
		first := send(true)
		if again := send(true); again != first {
			t.Errorf("%s became %s", first, again)
		}
		if other := send(false); other == first {
			t.Error("not asked for, done all the same")
		}
		time.Sleep(nonceLife)
		if late := send(true); late == first {
			t.Error("remembered for too long")
		}
	})
}

func TestPings(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *Server, c *client) {
		asked := s.UserSays(room, ann, "hi")
		text := "@everyone <@7> <@&600>"
		for _, body := range []map[string]any{
			{"content": text, "message_reference": map[string]any{"message_id": asked}},
			{"content": text, "allowed_mentions": map[string]any{"parse": []string{}}},
			{"content": text, "allowed_mentions": map[string]any{"parse": []string{"roles"}, "users": []string{"7"}}},
		} {
			c.do("POST", "/channels/"+room+"/messages", body)
		}
		sent := s.Sent(room)
		for i, want := range []string{"[everyone 7 &600 1001]", "[]", "[7 &600]"} {
			if got := fmt.Sprint(sent[i].Pinged); got != want {
				t.Errorf("message %d notifies %s", i, got)
			}
		}
	})
}

func TestRateLimits(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *Server, c *client) {
		for i := range 7 {
			status, out := c.do("POST", "/channels/"+room+"/messages", map[string]any{"content": "x"})
			if (status == http.StatusTooManyRequests) != (i >= 5) {
				t.Errorf("message %d: %d %v", i, status, out)
			}
			if status == http.StatusTooManyRequests && out["retry_after"] != 5.0 {
				t.Errorf("wait %v", out["retry_after"])
			}
		}
		if status, _ := c.do("POST", "/channels/"+dm+"/messages", map[string]any{"content": "x"}); status != 200 {
			t.Errorf("another channel: %d", status)
		}
		time.Sleep(5 * time.Second)
		if status, _ := c.do("POST", "/channels/"+room+"/messages", map[string]any{"content": "x"}); status != 200 {
			t.Errorf("later: %d", status)
		}
	})
}

func TestUploads(t *testing.T) {
	bubble(t, Config{UploadLimit: 10}, func(t *testing.T, s *Server, c *client) {
		upload := func(data string) (int, map[string]any) {
			var b bytes.Buffer
			w := multipart.NewWriter(&b)
			_ = w.WriteField("payload_json", `{"content":"see"}`)
			f, _ := w.CreateFormFile("files[0]", "a.txt")
			_, _ = f.Write([]byte(data))
			_ = w.Close()
			return c.send("POST", "/channels/"+room+"/messages", w.FormDataContentType(), b.Bytes())
		}
		status, out := upload("ten bytes!")
		files, _ := out["attachments"].([]any)
		if status != 200 || len(files) != 1 {
			t.Fatalf("%d %v", status, out)
		}
		address := files[0].(map[string]any)["url"].(string)
		resp, err := c.h.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(data) != "ten bytes!" {
			t.Errorf("downloaded %q", data)
		}
		if status, out := upload("eleven byte"); status != 413 || code(out) != 40005 {
			t.Errorf("%d %v", status, out)
		}
	})
}

func TestHistoryPages(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *Server, c *client) {
		var ids []string
		for range 7 {
			ids = append(ids, s.UserSays(room, ann, "x"))
		}
		req, _ := http.NewRequestWithContext(t.Context(), "GET", Root+"/api/v9/channels/"+room+"/messages?limit=3&after="+ids[1], nil)
		req.Header.Set("Authorization", "Bot "+s.Token())
		resp, err := c.h.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		var page []struct {
			ID string `json:"id"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&page); err != nil || len(page) != 3 || page[0].ID != ids[4] || page[2].ID != ids[2] {
			t.Errorf("page %v, %v", page, err)
		}
	})
}

func TestInteractionRules(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *Server, c *client) {
		callback := func(i Interaction, kind int) int {
			_, out := c.do("POST", "/interactions/"+i.ID+"/"+i.Token+"/callback", map[string]any{"type": kind, "data": map[string]any{"flags": EphemeralFlag}})
			return code(out)
		}
		edit := func(i Interaction) int {
			_, out := c.do("PATCH", "/webhooks/"+ApplicationID+"/"+i.Token+"/messages/@original", map[string]any{"content": "done"})
			return code(out)
		}
		i := s.Interaction(s.RunCommand(room, ann, "status"))
		if got := edit(i); got != 10015 {
			t.Errorf("a reply before the first answer: %d", got)
		}
		if got := callback(i, AnswerComplete); got != 50035 {
			t.Errorf("suggestions for a command: %d", got)
		}
		if got := callback(i, AnswerLater); got != 0 {
			t.Errorf("first answer: %d", got)
		}
		if got := callback(i, AnswerLater); got != 40060 {
			t.Errorf("second answer: %d", got)
		}
		if got := edit(i); got != 0 || len(s.Replies(i.ID)) != 1 {
			t.Errorf("reply: %d", got)
		}
		time.Sleep(tokenLife + time.Second)
		if got := edit(i); got != 50027 {
			t.Errorf("a reply after 15 minutes: %d", got)
		}
		late := s.Interaction(s.RunCommand(room, ann, "status"))
		time.Sleep(answerWithin + time.Second)
		if got := callback(late, AnswerLater); got != 10062 {
			t.Errorf("an answer after 3 s: %d", got)
		}
	})
}

func TestAuthorization(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *Server, c *client) {
		for _, auth := range []string{"", s.Token(), "Bot x"} {
			req, _ := http.NewRequestWithContext(t.Context(), "GET", Root+"/api/v9/users/@me", nil)
			req.Header.Set("Authorization", auth)
			resp, err := c.h.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%q: %d", auth, resp.StatusCode)
			}
		}
	})
}

// peer is a bot on the gateway.
type peer struct {
	t  *testing.T
	ws *websocket.Conn
}

func connect(t *testing.T, s *Server) *peer {
	t.Helper()
	ws, resp, err := (&websocket.Dialer{NetDialContext: s.Dial}).Dial("ws://discord.test/?v=9&encoding=json", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	p := &peer{t, ws}
	if f := p.next(); f["op"] != float64(opHello) {
		t.Errorf("first %v", f)
	}
	return p
}

func (p *peer) next() map[string]any {
	p.t.Helper()
	var f map[string]any
	if err := p.ws.ReadJSON(&f); err != nil {
		p.t.Error(err)
	}
	return f
}

func (p *peer) say(op int, d any) {
	p.t.Helper()
	if err := p.ws.WriteJSON(map[string]any{"op": op, "d": d}); err != nil {
		p.t.Error(err)
	}
}

// closed reads until the connection ends and returns the code.
func (p *peer) closed() int {
	for {
		if _, _, err := p.ws.ReadMessage(); err != nil {
			if e, ok := err.(*websocket.CloseError); ok { //nolint:errorlint // it is never wrapped
				return e.Code
			}
			return 0
		}
	}
}

func identity(s *Server, intents int) map[string]any {
	return map[string]any{"token": s.Token(), "intents": intents, "properties": map[string]string{"os": "x"}}
}

const usual = intentGuilds | intentGuildMessages | intentDirect

func TestGatewayCloseCodes(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg  Config
		talk func(*peer, *Server)
		want int
	}{
		"no JSON":            {Config{}, func(p *peer, _ *Server) { _ = p.ws.WriteMessage(websocket.TextMessage, []byte("x")) }, closeDecode},
		"unknown operation":  {Config{}, func(p *peer, s *Server) { p.say(opIdentify, identity(s, usual)); p.say(99, nil) }, closeUnknownOp},
		"not identified":     {Config{}, func(p *peer, _ *Server) { p.say(3, nil) }, closeNotIdentified},
		"wrong token":        {Config{}, func(p *peer, s *Server) { d := identity(s, usual); d["token"] = "x"; p.say(opIdentify, d) }, closeToken},
		"identified twice":   {Config{}, func(p *peer, s *Server) { p.say(opIdentify, identity(s, 0)); p.say(opIdentify, identity(s, 0)) }, closeAlready},
		"intents":            {Config{}, func(p *peer, s *Server) { p.say(opIdentify, identity(s, 1<<23)) }, closeIntents},
		"disallowed intents": {Config{NoMessageContent: true}, func(p *peer, s *Server) { p.say(opIdentify, identity(s, intentContent)) }, closeDisallowed},
		"no heartbeats":      {Config{}, func(p *peer, s *Server) { p.say(opIdentify, identity(s, usual)) }, closeTimedOut},
		"number from the future": {Config{}, func(p *peer, s *Server) {
			p.say(opIdentify, identity(s, 0))
			p.next()
			p.say(opResume, map[string]any{"token": s.Token(), "session_id": "session-1", "seq": 50})
		}, closeSequence},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := world(tt.cfg)
				defer s.Close()
				p := connect(t, s)
				defer func() { _ = p.ws.Close() }()
				tt.talk(p, s)
				if got := p.closed(); got != tt.want {
					t.Errorf("closed with %d", got)
				}
			})
		})
	}
}

func TestResumeReplays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := world(Config{})
		defer s.Close()
		p := connect(t, s)
		p.say(opIdentify, identity(s, usual|intentContent))
		for _, want := range []string{"READY", "GUILD_CREATE"} {
			if f := p.next(); f["t"] != want {
				t.Errorf("got %v, want %s", f["t"], want)
			}
		}
		s.UserSays(room, ann, "one")
		if f := p.next(); f["t"] != "MESSAGE_CREATE" || f["s"] != 3.0 {
			t.Errorf("got %v", f)
		}
		_ = p.ws.NetConn().Close()
		synctest.Wait()
		s.UserSays(room, ann, "two")
		p = connect(t, s)
		p.say(opResume, map[string]any{"token": s.Token(), "session_id": "session-1", "seq": 2})
		for i, want := range []string{"MESSAGE_CREATE", "MESSAGE_CREATE", "RESUMED"} {
			if f := p.next(); f["t"] != want || f["s"] != float64(3+i) {
				t.Errorf("got %v %v, want %s", f["t"], f["s"], want)
			}
		}
		_ = p.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(time.Second))
		_ = p.ws.Close()
		synctest.Wait()
		p = connect(t, s)
		p.say(opResume, map[string]any{"token": s.Token(), "session_id": "session-1", "seq": 2})
		if f := p.next(); f["op"] != float64(opInvalid) || f["d"] != false {
			t.Errorf("a session that was closed with 1000: %v", f)
		}
		_ = p.ws.Close()
	})
}

func TestEventsThatGoWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := world(Config{})
		defer s.Close()
		p := connect(t, s)
		defer func() { _ = p.ws.Close() }()
		p.say(opIdentify, identity(s, usual))
		p.next()
		p.next()
		s.Reorder(2)
		s.UserSays(dm, ann, "a")
		s.UserSays(dm, ann, "b")
		s.Duplicate(1)
		s.UserSays(dm, ann, "c")
		s.Lose(1)
		s.UserSays(dm, ann, "d")
		s.UserSays(dm, ann, "e")
		var got string
		for range 5 {
			got += p.next()["d"].(map[string]any)["content"].(string)
		}
		if got != "bacce" {
			t.Errorf("got %q", got)
		}
		s.UserSays(room, ann, "not for you")
		s.UserSays(room, ann, s.Mention())
		for _, want := range []string{"", s.Mention()} {
			if d := p.next()["d"].(map[string]any); d["content"] != want {
				t.Errorf("without the intent the content is %q", d["content"])
			}
		}
	})
}

func TestIdentifyTooSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := world(Config{})
		defer s.Close()
		for _, want := range []int{opDispatch, opInvalid} {
			p := connect(t, s)
			p.say(opIdentify, identity(s, usual))
			if f := p.next(); f["op"] != float64(want) {
				t.Errorf("got %v", f)
			}
			_ = p.ws.Close()
		}
	})
}

func TestLoopback(t *testing.T) {
	s := world(Config{})
	defer s.Close()
	root, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(root + "/api/v9/gateway")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var g struct {
		URL string `json:"url"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&g); err != nil || g.URL != "ws"+strings.TrimPrefix(root, "http") {
		t.Errorf("gateway %q, %v", g.URL, err)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.URL, "ws://"))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

func TestThreadRules(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *Server, c *client) {
		m := s.UserSays(room, ann, "question")
		open := func() int {
			_, out := c.do("POST", "/channels/"+room+"/messages/"+m+"/threads", map[string]any{"name": "x", "auto_archive_duration": 1440})
			return code(out)
		}
		if got := open(); got != 0 {
			t.Errorf("first %d", got)
		}
		if got := open(); got != 160004 {
			t.Errorf("second %d", got)
		}
		s.Archive(m, true)
		if _, out := c.do("POST", "/channels/"+m+"/messages", map[string]any{"content": "x"}); code(out) != 50083 {
			t.Errorf("into a locked thread: %v", out)
		}
		if _, out := c.do("PATCH", "/channels/"+m, map[string]any{"archived": false}); code(out) != 50013 {
			t.Errorf("opened a locked thread: %v", out)
		}
		if _, out := c.do("POST", "/channels/202/threads", map[string]any{"name": strings.Repeat("x", 101), "message": map[string]any{"content": "x"}}); code(out) != 50035 {
			t.Errorf("a long title: %v", out)
		}
		status, out := c.do("POST", "/channels/202/threads", map[string]any{"name": "x", "message": map[string]any{"content": "x"}})
		if id, _ := out["id"].(string); status != 200 || len(s.Sent(id)) != 1 || s.Sent(id)[0].ID != id {
			t.Errorf("%d %v", status, out)
		}
	})
}
