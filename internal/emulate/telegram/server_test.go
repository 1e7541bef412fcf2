package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is a response as a client reads it.
type answer struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	ErrorCode   int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  parameters      `json:"parameters"`
}

// client makes calls; params are pairs.
type client struct {
	http *http.Client
	root string
}

func (c client) call(ctx context.Context, method string, params ...string) (answer, error) {
	form := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		form.Set(params[i], params[i+1])
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.root+"/bot"+DefaultToken+"/"+method, strings.NewReader(form.Encode()))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	var a answer
	return a, json.NewDecoder(resp.Body).Decode(&a)
}

// inBubble gives a test a server, in virtual time.
func inBubble(t *testing.T, cfg Config, test func(*testing.T, *Server, client)) {
	synctest.Test(t, func(t *testing.T) {
		s := New(cfg)
		c := client{http: s.Client(), root: Root}
		defer func() {
			c.http.CloseIdleConnections()
			s.Close()
		}()
		s.AddChat(Chat{ID: 1, Type: "private"})
		test(t, s, c)
	})
}

func TestRefusals(t *testing.T) {
	html := func(text string) []string { return []string{"chat_id", "1", "text", text, "parse_mode", "HTML"} }
	tests := []struct {
		name   string
		method string
		params []string
		want   string // "" = accepted
	}{
		{"text", "sendMessage", []string{"chat_id", "1", "text", "hi"}, ""},
		{"html", "sendMessage", html("<b>hi</b>"), ""},
		{"bad html", "sendMessage", html("<b>hi"), "Bad Request: can't parse entities: can't find end tag corresponding to start tag \"b\""},
		{"empty", "sendMessage", html("<b> </b>"), "Bad Request: message text is empty"},
		{"long", "sendMessage", []string{"chat_id", "1", "text", strings.Repeat("😀", 2049)}, "Bad Request: message is too long"},
		{"only what is seen counts", "sendMessage", html(strings.Repeat("&lt;", 4096)), ""},
		{"parse mode", "sendMessage", []string{"chat_id", "1", "text", "x", "parse_mode", "MarkdownV3"}, "Bad Request: unsupported parse_mode"},
		{"stranger", "sendMessage", []string{"chat_id", "2", "text", "x"}, "Bad Request: chat not found"},
		{"general topic", "sendMessage", []string{"chat_id", "-7", "text", "x", "message_thread_id", "1"}, "Bad Request: message thread not found"},
		{"general topic of an action", "sendChatAction", []string{"chat_id", "-7", "action", "typing", "message_thread_id", "1"}, ""},
		{"unknown action", "sendChatAction", []string{"chat_id", "1", "action", "singing"}, "Bad Request: wrong parameter action in request"},
		{"known topic", "sendMessage", []string{"chat_id", "-7", "text", "x", "message_thread_id", "5"}, ""},
		{"unknown topic", "sendMessage", []string{"chat_id", "-7", "text", "x", "message_thread_id", "6"}, "Bad Request: message thread not found"},
		{"private topic", "sendMessage", []string{"chat_id", "1", "text", "x", "message_thread_id", "6"}, "Bad Request: message thread not found"},
		{"missing reply", "sendMessage", []string{"chat_id", "1", "text", "x", "reply_parameters", `{"message_id":99}`}, "Bad Request: message to be replied not found"},
		{"missing reply, allowed", "sendMessage", []string{"chat_id", "1", "text", "x", "reply_parameters", `{"message_id":99,"allow_sending_without_reply":true}`}, ""},
		{"wrong quote", "sendMessage", []string{"chat_id", "1", "text", "x", "reply_parameters", `{"message_id":1,"quote":"no"}`}, "Bad Request: QUOTE_TEXT_INVALID"},
		{"button data", "sendMessage", []string{"chat_id", "1", "text", "x", "reply_markup", `{"inline_keyboard":[[{"text":"a","callback_data":"` + strings.Repeat("x", 65) + `"}]]}`}, "Bad Request: BUTTON_DATA_INVALID"},
		{"edit of nothing", "editMessageText", []string{"chat_id", "1", "message_id", "99", "text", "x"}, "Bad Request: message to edit not found"},
		{"edit of a user's message", "editMessageText", []string{"chat_id", "1", "message_id", "1", "text", "x"}, "Bad Request: message can't be edited"},
		{"delete of nothing", "deleteMessage", []string{"chat_id", "1", "message_id", "99"}, "Bad Request: message to delete not found"},
		{"reaction", "setMessageReaction", []string{"chat_id", "1", "message_id", "1", "reaction", `[{"type":"emoji","emoji":"👀"}]`}, ""},
		{"no such file", "getFile", []string{"file_id", "x"}, "Bad Request: invalid file_id"},
		{"old query", "answerCallbackQuery", []string{"callback_query_id", "x"}, "Bad Request: query is too old and response timeout expired or query ID is invalid"},
		{"command name", "setMyCommands", []string{"commands", `[{"command":"Status","description":"x"}]`}, "Bad Request: BOT_COMMAND_INVALID"},
		{"method", "sendTelepathy", nil, "Not Found"},
	}
	inBubble(t, Config{}, func(t *testing.T, s *Server, c client) {
		s.AddChat(Chat{ID: -7, Type: "supergroup", Forum: true}, 5)
		s.UserSays(1, 1, "hello")
		for _, tt := range tests {
			a, err := c.call(t.Context(), tt.method, tt.params...)
			if err != nil {
				t.Fatal(err)
			}
			if a.OK != (tt.want == "") || a.Description != tt.want {
				t.Errorf("%s: got %v %q, want %q", tt.name, a.OK, a.Description, tt.want)
			}
		}
		if diff := cmp.Diff([]string{"👀"}, s.Reactions(1, 1)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestLongPolling(t *testing.T) {
	inBubble(t, Config{FirstUpdate: 10}, func(t *testing.T, s *Server, c client) {
		poll := func(offset int) []struct {
			ID int64 `json:"update_id"`
		} {
			a, err := c.call(t.Context(), "getUpdates", "offset", strconv.Itoa(offset), "timeout", "50")
			if err != nil || !a.OK {
				t.Fatalf("%+v, %v", a, err)
			}
			var out []struct {
				ID int64 `json:"update_id"`
			}
			if err := json.Unmarshal(a.Result, &out); err != nil {
				t.Fatal(err)
			}
			return out
		}
		began := time.Now()
		if got := poll(0); len(got) != 0 || time.Since(began) != 50*time.Second { // virtual time
			t.Errorf("an empty poll gives %v after %v", got, time.Since(began))
		}
		s.UserSays(1, 1, "one")
		s.UserSays(1, 1, "two")
		for range 2 { // what is not confirmed comes again
			if got := poll(0); len(got) != 2 || got[0].ID != 10 {
				t.Errorf("got %v", got)
			}
		}
		if got := poll(11); len(got) != 1 || got[0].ID != 11 || s.Unconfirmed() != 1 {
			t.Errorf("got %v", got)
		}
		done := make(chan []struct {
			ID int64 `json:"update_id"`
		})
		go func() { done <- poll(12) }()
		synctest.Wait()
		s.UserSays(1, 1, "three")
		if got := <-done; len(got) != 1 || got[0].ID != 12 {
			t.Errorf("a waiting poll gets %v", got)
		}
	})
}

func TestSecondPollEndsTheFirst(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server, c client) {
		first := make(chan answer)
		go func() {
			a, err := c.call(t.Context(), "getUpdates", "timeout", "50")
			if err != nil {
				t.Error(err)
			}
			first <- a
		}()
		synctest.Wait()
		second, err := c.call(t.Context(), "getUpdates", "timeout", "0")
		if err != nil || !second.OK {
			t.Errorf("second: %+v, %v", second, err)
		}
		if a := <-first; a.ErrorCode != http.StatusConflict {
			t.Errorf("first: %+v", a)
		}
		s.SetWebhook("https://example.com")
		if a, _ := c.call(t.Context(), "getUpdates"); a.ErrorCode != http.StatusConflict {
			t.Errorf("with a webhook: %+v", a)
		}
	})
}

func TestFaults(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server, c client) {
		say := func() (answer, error) { return c.call(t.Context(), "sendMessage", "chat_id", "1", "text", "x") }
		s.Inject(Fault{Method: "sendMessage", After: 1, Times: 2, Status: 429, RetryAfter: 7 * time.Second})
		var codes []int
		for range 4 {
			a, err := say()
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, a.ErrorCode)
			if a.ErrorCode == 429 && a.Parameters.RetryAfter != 7 {
				t.Errorf("got %+v", a)
			}
		}
		if diff := cmp.Diff([]int{0, 429, 429, 0}, codes); diff != "" {
			t.Error(diff)
		}
		s.Inject(Fault{DropAfter: true})
		if _, err := say(); err == nil || len(s.Sent(1)) != 3 {
			t.Errorf("error %v, %d messages", err, len(s.Sent(1)))
		}
		s.Inject(Fault{Drop: true})
		if _, err := say(); err == nil || len(s.Sent(1)) != 3 {
			t.Errorf("error %v, %d messages", err, len(s.Sent(1)))
		}
		s.Inject(Fault{Chat: 2, Status: 500})
		if a, err := say(); err != nil || !a.OK {
			t.Errorf("the fault of another chat: %+v, %v", a, err)
		}
		s.ClearFaults()
		s.Inject(Fault{Hang: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := c.call(ctx, "getMe"); err == nil {
			t.Error("a hanging call ends")
		}
		s.Inject(Fault{Delay: time.Minute})
		began := time.Now()
		if a, err := say(); err != nil || !a.OK || time.Since(began) != time.Minute { // virtual time
			t.Errorf("delayed: %+v, %v after %v", a, err, time.Since(began))
		}
	})
}

func TestTranscript(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server, c client) {
		question := s.UserSays(1, 1, "what?")
		steps := [][]string{
			{"sendMessage", "chat_id", "1", "text", "draft", "reply_parameters", `{"message_id":1}`, "disable_notification", "true"},
			{"editMessageText", "chat_id", "1", "message_id", "2", "text", "final"},
			{"sendMessage", "chat_id", "1", "text", "oops"},
			{"deleteMessage", "chat_id", "1", "message_id", "3"},
		}
		for _, step := range steps {
			if a, err := c.call(t.Context(), step[0], step[1:]...); err != nil || !a.OK {
				t.Fatalf("%v: %+v, %v", step, a, err)
			}
		}
		all := s.Messages(1)
		if len(all) != 3 || !all[2].Deleted || all[0].FromBot {
			t.Fatalf("got %+v", all)
		}
		sent := s.Sent(1)
		if len(sent) != 1 || sent[0].Text != "final" || sent[0].ReplyTo != question || !sent[0].Silent {
			t.Errorf("got %+v", sent)
		}
		if diff := cmp.Diff([]string{"draft"}, sent[0].Versions); diff != "" {
			t.Error(diff)
		}
		a, err := c.call(t.Context(), "editMessageText", "chat_id", "1", "message_id", "2", "text", "final")
		if err != nil || !strings.Contains(a.Description, "message is not modified") {
			t.Errorf("got %+v, %v", a, err)
		}
	})
}

func TestUploadAndDownload(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server, c client) {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		_ = form.WriteField("chat_id", "1")
		part, _ := form.CreateFormFile("voice", "v.ogg")
		_, _ = part.Write([]byte("OggS"))
		_ = form.Close()
		resp, err := c.http.Post(Root+"/bot"+DefaultToken+"/sendVoice", form.FormDataContentType(), &body)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if sent := s.Sent(1); len(sent) != 1 || sent[0].Media != "voice" || string(sent[0].Data) != "OggS" {
			t.Errorf("got %+v", sent)
		}
		s.UserSays(1, 1, "", WithFile("document", "a.txt", "text/plain", []byte("text")))
		a, err := c.call(t.Context(), "getFile", "file_id", "file2")
		if err != nil || !a.OK {
			t.Fatalf("%+v, %v", a, err)
		}
		var f struct {
			Path string `json:"file_path"`
		}
		_ = json.Unmarshal(a.Result, &f)
		resp, err = c.http.Get(Root + "/file/bot" + DefaultToken + "/" + f.Path)
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(data) != "text" {
			t.Errorf("got %q", data)
		}
	})
}

// Many chats at once on loopback, as in the load benchmark.
func TestManyChats(t *testing.T) {
	s := New(Config{})
	defer s.Close()
	root, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 50}
	defer transport.CloseIdleConnections()
	c := client{http: &http.Client{Transport: transport}, root: root}
	var wg sync.WaitGroup
	for chat := int64(1); chat <= 50; chat++ {
		s.AddChat(Chat{ID: chat, Type: "private"})
		wg.Go(func() {
			for range 5 {
				s.UserSays(chat, chat, "hi")
				if a, err := c.call(t.Context(), "sendMessage", "chat_id", strconv.FormatInt(chat, 10), "text", "hello"); err != nil || !a.OK {
					t.Errorf("%+v, %v", a, err)
				}
			}
		})
		wg.Go(func() {
			if err := s.WaitFor(t.Context(), func() bool { return len(s.Sent(chat)) == 5 }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := s.Unconfirmed(); n != 250 {
		t.Errorf("%d updates", n)
	}
	if a, err := c.call(t.Context(), "getMe"); err != nil || !a.OK {
		t.Errorf("%+v, %v", a, err)
	}
	wrong := client{http: c.http, root: root + "/x"}
	if a, err := wrong.call(t.Context(), "getMe"); err != nil || a.ErrorCode != http.StatusUnauthorized {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestWaitForEnds(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server, _ client) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.WaitFor(ctx, func() bool { return false }); err == nil {
			t.Error("waited for nothing")
		}
	})
}
