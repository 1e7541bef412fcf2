package telegram

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/channels"
	"understudy/chat"

	emulator "understudy/internal/emulate/telegram"
)

func piece(to chat.Address, text string) channels.Piece {
	return channels.Piece{To: to, Class: chat.Assistant, Text: text, Plain: text}
}

// lastCall returns the parameters of the last call of a method.
func (a *account) lastCall(t *testing.T, method string) map[string]string {
	t.Helper()
	calls := a.srv.Calls(method)
	if len(calls) == 0 {
		t.Errorf("no %s", method)
		return nil
	}
	return calls[len(calls)-1].Params
}

func TestSendParameters(t *testing.T) {
	markup := channels.Piece{To: direct, Class: chat.Assistant, Text: "<b>hi</b>", Plain: "hi"}
	tests := []struct {
		name   string
		piece  channels.Piece
		config func(*Config)
		want   map[string]string
	}{
		{"markup", markup, nil, map[string]string{"chat_id": "1001", "text": "<b>hi</b>", "parse_mode": "HTML"}},
		{"no markup", piece(direct, "a < b"), nil, map[string]string{"chat_id": "1001", "text": "a < b"}},
		{"topic", piece(inTopic, "hi"), nil, map[string]string{"chat_id": "-1001", "message_thread_id": "55", "text": "hi"}},
		{"general topic is left out", piece(general, "hi"), nil, map[string]string{"chat_id": "-1001", "text": "hi"}},
		{"notice", channels.Piece{To: direct, Class: chat.Notice, Plain: "fyi"}, nil, map[string]string{"chat_id": "1001", "text": "fyi", "disable_notification": "true"}},
		{"silent", channels.Piece{To: direct, Class: chat.Assistant, Plain: "psst", Silent: true}, nil, map[string]string{"chat_id": "1001", "text": "psst", "disable_notification": "true"}},
		{
			"reference",
			channels.Piece{To: direct, Class: chat.Assistant, Plain: "yes", ReplyTo: "5"},
			nil,
			map[string]string{"chat_id": "1001", "text": "yes", "reply_parameters": `{"allow_sending_without_reply":true,"message_id":5}`},
		},
		{
			"no previews", piece(direct, "https://example.com"), func(c *Config) { c.LinkPreview = new(bool) },
			map[string]string{"chat_id": "1001", "text": "https://example.com", "link_preview_options": `{"is_disabled":true}`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			prepare := func(_ *emulator.Server, c *Config, _ *Deps) {
				if tt.config != nil {
					tt.config(c)
				}
			}
			running(t, emulator.Config{}, prepare, func(t *testing.T, a *account) {
				if _, err := a.Send(t.Context(), tt.piece); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, a.lastCall(t, "sendMessage")); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestTyping(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		for _, to := range []chat.Address{direct, inTopic, general} {
			if err := a.Typing(t.Context(), to); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Recording(t.Context(), inTopic); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"typing@55", "typing@1", "record_voice@55"}, a.srv.Actions(forum)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"typing"}, a.srv.Actions(ann)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestVerdicts(t *testing.T) {
	tests := []struct {
		fault emulator.Fault
		want  channels.Verdict
		code  string
	}{
		{emulator.Fault{Status: 400, Description: "Bad Request: can't parse entities: Unsupported start tag"}, channels.Markups, "markup"},
		{emulator.Fault{Status: 400, Description: "Bad Request: ENTITIES_TOO_LONG"}, channels.TooLong, "too_long"},
		{emulator.Fault{Status: 400, Description: "Bad Request: ENTITY_BOUNDS_INVALID"}, channels.Markups, "markup"},
		{emulator.Fault{Status: 400, Description: "Bad Request: message is too long"}, channels.TooLong, "too_long"},
		{emulator.Fault{Status: 400, Description: "Bad Request: chat not found"}, channels.Gone, "chat_gone"},
		{emulator.Fault{Status: 400, Description: "Bad Request: message thread not found"}, channels.Gone, "topic_gone"},
		{emulator.Fault{Status: 400, Description: "Bad Request: not enough rights to send text messages to the chat"}, channels.Gone, "no_rights"},
		{emulator.Fault{Status: 400, Description: "Bad Request: something new"}, channels.Refused, "refused"},
		{emulator.Fault{Status: 401}, channels.Refused, "unauthorized"},
		{emulator.Fault{Status: 403, Description: "Forbidden: user is deactivated"}, channels.Gone, "forbidden"},
		{emulator.Fault{Status: 400, Description: "Bad Request: there is no text in the message to edit"}, channels.Missing, "message_gone"},
		{emulator.Fault{Status: 413, Description: "Request Entity Too Large"}, channels.Refused, "file_too_large"},
		{emulator.Fault{Status: 429}, channels.Retry, "rate_limited"},
		{emulator.Fault{Status: 500}, channels.Retry, "server"},
		{emulator.Fault{Status: 502, Body: "<html>"}, channels.Retry, "server"},
		{emulator.Fault{Status: 504, Body: "<html>"}, channels.Unsure, "server"},
		{emulator.Fault{Status: 200, Body: "<html>"}, channels.Unsure, "server"},
		{emulator.Fault{Body: `{"ok":true,"result":true}`}, channels.Unsure, "no_receipt"},
		{emulator.Fault{Drop: true}, channels.Unsure, "network"}, // nobody can tell it from DropAfter
		{emulator.Fault{DropAfter: true}, channels.Unsure, "network"},
		{emulator.Fault{Hang: true}, channels.Unsure, "network"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%+v", tt.fault), func(t *testing.T) {
			running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
				tt.fault.Method = "sendMessage"
				a.srv.Inject(tt.fault)
				_, err := a.Send(t.Context(), piece(inTopic, "hi"))
				checkVerdict(t, err, tt.want, tt.code)
				if strings.Contains(fmt.Sprintf("%v %+v", err, errors.Unwrap(err)), a.srv.Token()) {
					t.Errorf("the token is in the error %v", err)
				}
			})
		})
	}
}

func checkVerdict(t *testing.T, err error, want channels.Verdict, code string) {
	t.Helper()
	var e *channels.SendError
	if !errors.As(err, &e) {
		t.Errorf("got %v, want a *channels.SendError", err)
		return
	}
	if e.Verdict != want || e.Code != code {
		t.Errorf("verdict %d %q, want %d %q: %v", e.Verdict, e.Code, want, code, err)
	}
}

// brokenConn fails before anything is written.
type brokenConn struct{ net.Conn }

func (brokenConn) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// What never left completely can be sent again, and no error shows where it should have gone.
func TestNotSent(t *testing.T) {
	dials := map[string]func() (net.Conn, error){
		"refused": func() (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
		},
		"broken while writing": func() (net.Conn, error) {
			near, far := net.Pipe()
			t.Cleanup(func() { _ = far.Close() })
			return brokenConn{near}, nil
		},
	}
	for name, dial := range dials {
		t.Run(name, func(t *testing.T) {
			b, err := New(Config{BotToken: newToken()}, Deps{Offsets: &memory{}, Transport: func() http.RoundTripper {
				plain := func(context.Context, string, string) (net.Conn, error) { return dial() }
				return &http.Transport{DialContext: plain, DialTLSContext: plain}
			}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = b.Send(t.Context(), piece(direct, strings.Repeat("long ", 2000))) // more than a write buffer holds
			checkVerdict(t, err, channels.Retry, "network")
			_, fetchErr := b.Fetch(t.Context(), chat.Attachment{Ref: "x"}, 10)
			for _, err := range []error{err, fetchErr} {
				if err == nil || strings.Contains(err.Error(), "110:abc") || strings.Contains(err.Error(), "http") {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

func TestEditVerdicts(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		theirs := a.srv.UserSays(ann, ann, "mine")
		a.got.Next(t)
		checkVerdict(t, a.Edit(t.Context(), direct, fmt.Sprint(theirs), piece(direct, "x")), channels.Missing, "message_gone")
		got, err := a.Send(t.Context(), piece(direct, "one"))
		if err != nil {
			t.Fatal(err)
		}
		a.srv.Inject(emulator.Fault{Method: "editMessageText", DropAfter: true})
		checkVerdict(t, a.Edit(t.Context(), direct, got.IDs[0], piece(direct, "two")), channels.Retry, "network")
		if err := a.Edit(t.Context(), direct, got.IDs[0], piece(direct, "two")); err != nil {
			t.Errorf("the repeated edit fails: %v", err)
		}
		if last := a.srv.Sent(ann); len(last) != 1 || last[0].Text != "two" || len(last[0].Versions) != 1 {
			t.Errorf("got %+v", last)
		}
	})
}

// An answer must not be lost because its question was deleted.
func TestAnswerToDeletedMessage(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		id := a.srv.UserSays(ann, ann, "question")
		a.got.Next(t)
		a.srv.UserDeletes(ann, id)
		p := piece(direct, "answer")
		p.ReplyTo = fmt.Sprint(id)
		if _, err := a.Send(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if sent := a.srv.Sent(ann); len(sent) != 1 || sent[0].ReplyTo != 0 {
			t.Errorf("got %+v", sent)
		}
	})
}

func TestMigration(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.srv.Migrate(-500, -1001500)
		_, err := a.Send(t.Context(), piece(chat.Address{Channel: Channel, Conversation: "-500", Kind: chat.Group}, "hi"))
		checkVerdict(t, err, channels.Moved, "moved")
		var e *channels.SendError
		if errors.As(err, &e) && e.MovedTo != "-1001500" {
			t.Errorf("moved to %q", e.MovedTo)
		}
	})
}

// Some servers refuse topics of private chats: the second attempt goes without.
func TestRefusedPrivateTopic(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		to := direct
		to.Thread = "116834"
		_, err := a.Send(t.Context(), piece(to, "hi"))
		checkVerdict(t, err, channels.Retry, "topic_gone")
		for range 2 {
			if _, err := a.Send(t.Context(), piece(to, "hi")); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Typing(t.Context(), to); err != nil {
			t.Error(err)
		}
	})
}

func TestMedia(t *testing.T) {
	photo := chat.Attachment{Name: "/tmp/x/cat.png", MediaType: "image/png", Data: []byte("png")}
	voice := chat.Attachment{MediaType: "audio/ogg; codecs=opus", Data: []byte("ogg"), Voice: true}
	file := chat.Attachment{Name: `C:\x\notes.txt`, MediaType: "text/plain", Data: []byte("txt")}
	long := strings.Repeat("long ", 300)
	tests := []struct {
		name  string
		piece channels.Piece
		want  []string // media: text
	}{
		{"caption", channels.Piece{Text: "<b>cat</b>", Plain: "cat", Media: []chat.Attachment{photo}}, []string{"photo: cat"}},
		{"voice without text", channels.Piece{Media: []chat.Attachment{voice}}, []string{"voice: "}},
		{"text too long for a caption", channels.Piece{Text: long, Plain: long, Media: []chat.Attachment{voice}}, []string{"voice: ", ": " + strings.TrimSpace(long)}},
		{"audio", channels.Piece{Plain: "song", Media: []chat.Attachment{{Name: "a.flac", MediaType: "audio/flac", Data: []byte("x")}}}, []string{"audio: song"}},
		{"a voice that Telegram would not play", channels.Piece{Media: []chat.Attachment{{MediaType: "audio/wav", Voice: true, Data: []byte("x")}}}, []string{"audio: "}},
		{"video", channels.Piece{Media: []chat.Attachment{{MediaType: "video/mp4", Data: []byte("x")}}}, []string{"video: "}},
		{"a picture that is no photo", channels.Piece{Media: []chat.Attachment{{MediaType: "image/gif", Data: []byte("x")}}}, []string{"document: "}},
		{"a picture that is too long for a photo", channels.Piece{Media: []chat.Attachment{{MediaType: "image/png", Data: picture(t, 1, 21)}}}, []string{"document: "}},
		{"a picture", channels.Piece{Media: []chat.Attachment{{MediaType: "image/png", Data: picture(t, 1, 20)}}}, []string{"photo: "}},
		{"caption with what makes it long being markup", channels.Piece{Text: "<b>" + strings.Repeat("é", 1024) + "</b>", Plain: strings.Repeat("é", 1024), Media: []chat.Attachment{voice}}, []string{"voice: " + strings.Repeat("é", 1024)}},
		{"several files", channels.Piece{Plain: "both", Media: []chat.Attachment{photo, file}}, []string{"photo: ", "document: ", ": both"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
				tt.piece.To, tt.piece.Class = direct, chat.Assistant
				got, err := a.Send(t.Context(), tt.piece)
				if err != nil {
					t.Fatal(err)
				}
				var shown []string
				for i, m := range a.srv.Sent(ann) {
					shown = append(shown, m.Media+": "+m.Text)
					if fmt.Sprint(m.ID) != got.IDs[i] {
						t.Errorf("receipt %v, message %d", got, m.ID)
					}
				}
				if diff := cmp.Diff(tt.want, shown); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func picture(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Who takes no voice notes gets the same as music, from the second attempt on.
func TestForbiddenVoice(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.srv.Inject(emulator.Fault{Method: "sendVoice", Status: 400, Times: -1, Description: "Bad Request: VOICE_MESSAGES_FORBIDDEN"})
		p := channels.Piece{To: direct, Class: chat.Assistant, Plain: "listen", Media: []chat.Attachment{{MediaType: "audio/ogg", Voice: true, Data: []byte("ogg")}}}
		_, err := a.Send(t.Context(), p)
		checkVerdict(t, err, channels.Retry, "voice_forbidden")
		if _, err := a.Send(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if sent := a.srv.Sent(ann); len(sent) != 1 || sent[0].Media != "audio" || sent[0].Text != "listen" {
			t.Errorf("got %+v", sent)
		}
	})
}

// A huge wait of one chat is passed on and holds up nobody.
func TestHugeRetryAfter(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.srv.Inject(emulator.Fault{Method: "sendMessage", Chat: group, Times: -1, Status: 429, RetryAfter: 18053 * time.Second})
		began := time.Now()
		_, err := a.Send(t.Context(), piece(inGroup, "slow"))
		checkVerdict(t, err, channels.Retry, "rate_limited")
		var e *channels.SendError
		if errors.As(err, &e) && e.After != 18053*time.Second {
			t.Errorf("wait %v", e.After)
		}
		if _, err := a.Send(t.Context(), piece(direct, "quick")); err != nil {
			t.Error(err)
		}
		if waited := time.Since(began); waited != 0 { // virtual
			t.Errorf("took %v", waited)
		}
	})
}

// When the second of several calls fails, the first must not be repeated.
func TestPartlySent(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.srv.Inject(emulator.Fault{Method: "sendDocument", Status: 500})
		p := channels.Piece{To: direct, Class: chat.Assistant, Media: []chat.Attachment{
			{Name: "a.png", MediaType: "image/png", Data: []byte("1")}, {Name: "b.txt", MediaType: "text/plain", Data: []byte("2")},
		}}
		got, err := a.Send(t.Context(), p)
		checkVerdict(t, err, channels.Unsure, "partly_sent")
		if len(got.IDs) != 1 {
			t.Errorf("receipt %v", got)
		}
	})
}

func TestUploadRefused(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.srv.Block(ann, "bot was blocked by the user")
		p := channels.Piece{To: direct, Media: []chat.Attachment{{Name: "a.txt", Data: []byte("x")}}}
		_, err := a.Send(t.Context(), p)
		checkVerdict(t, err, channels.Gone, "forbidden")
		p.Media[0].Data = make([]byte, largestUploadMB<<20+1)
		_, err = a.Send(t.Context(), p)
		checkVerdict(t, err, channels.Refused, "file_too_large")
	})
}

func TestFetch(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.srv.UserSays(ann, ann, "", emulator.WithFile("document", "a.txt", "text/plain", []byte("content")))
		file := a.got.Next(t).Attachments[0]
		data, err := a.Fetch(t.Context(), file, 100)
		if err != nil || string(data) != "content" {
			t.Errorf("got %q, %v", data, err)
		}
		if _, err := a.Fetch(t.Context(), file, 3); !errors.Is(err, channels.ErrTooLarge) {
			t.Errorf("got %v", err)
		}
		file.Size = 0 // not told beforehand
		if _, err := a.Fetch(t.Context(), file, 3); !errors.Is(err, channels.ErrTooLarge) {
			t.Errorf("got %v", err)
		}
		a.srv.Inject(emulator.Fault{Method: "getFile", Body: `{"ok":true,"result":{"file_path":"no/such file?"}}`})
		if _, err := a.Fetch(t.Context(), file, 100); err == nil || strings.Contains(err.Error(), a.srv.Token()) {
			t.Errorf("got %v", err)
		}
		file.Ref = "unknown"
		if _, err := a.Fetch(t.Context(), file, 100); err == nil {
			t.Error("an unknown file is fetched")
		}
	})
}

func TestRegisterCommands(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		cmds := []channels.CommandInfo{{Name: "status", Description: "What is going on"}, {Name: "dead-letters"}, {Name: "ünfit", Description: "x"}}
		a.srv.Inject(emulator.Fault{Method: "setMyCommands", Status: 400, Description: "Bad Request: BOT_COMMANDS_TOO_MUCH"})
		if err := a.RegisterCommands(t.Context(), cmds); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"all_group_chats", "all_private_chats"}, a.srv.CommandScopes()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(`[{"command":"status","description":"What is going on"}]`, a.srv.Commands("all_private_chats")); diff != "" {
			t.Error(diff)
		}
		for range 150 {
			cmds = append(cmds, channels.CommandInfo{Name: "more", Description: strings.Repeat("é", 300)})
		}
		if err := a.RegisterCommands(t.Context(), cmds); err != nil {
			t.Error(err)
		}
	})
}
