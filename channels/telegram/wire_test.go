package telegram

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"understudy/chat"

	emulator "understudy/internal/emulate/telegram"
)

// A field that is not as it should be costs nothing but itself.
func TestOddFieldsDoNotHideTheMessage(t *testing.T) {
	odd := []string{
		`"entities":"none"`, `"entities":[7,{"type":"bold","offset":"x"}]`, `"photo":{"file_id":1}`, `"sticker":"🦤"`, `"voice":[]`,
		`"reply_to_message":5`, `"reply_to_message":{"message_id":"x","from":[]}`, `"quote":"x"`, `"date":"today"`, `"date":1e30`,
		`"message_thread_id":"x","is_topic_message":true`, `"media_group_id":77`, `"migrate_to_chat_id":{}`, `"caption_entities":{}`,
		`"document":{"file_id":5,"file_size":"big"}`, `"edit_date":[]`, `"forum_topic_created":1`,
	}
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		for i, field := range odd {
			a.srv.PushRaw(fmt.Sprintf(`{"update_id":%%d,"message":{"message_id":%d,"date":946684800,"text":"hi","chat":{"id":1001,"type":"private"},"from":{"id":1001,"first_name":"A"},%s}}`, 100+i, field))
			in := a.got.Next(t)
			if in.Text != "hi" || in.Sender != (chat.Sender{ID: "1001", Name: "A"}) || in.Address.Conversation != "1001" || in.CatchUp || in.ReplyTo != "" || in.At.IsZero() {
				t.Errorf("%s: %+v", field, in)
			}
		}
		if strings.Contains(a.log.String(), "bad update") {
			t.Errorf("log:\n%s", a.log)
		}
	})
}

// Where it is not known who wrote something, or where, nobody may be taken for somebody else.
func TestBadUpdatesAreNamed(t *testing.T) {
	const message = `{"update_id":%%d,"message":{"message_id":%s,"date":1,"text":"hi","chat":%s,"from":%s}}`
	bad := []string{
		`{"update_id":%d,"message":"what?"}`, `"%d"`, `{"update_id":%d,"edited_message":[]}`, `{"update_id":%d,"callback_query":7}`,
		`{"update_id":%d,"callback_query":{"id":"1","data":"m:x:1","from":{"id":"1001"}}}`,
		fmt.Sprintf(message, `"7"`, `{"id":1001,"type":"private"}`, `{"id":1001}`),
		fmt.Sprintf(message, `7`, `{"id":"1001","type":"private"}`, `{"id":1001}`),
		fmt.Sprintf(message, `7`, `{"id":1001,"type":1}`, `{"id":1001}`),
		fmt.Sprintf(message, `7`, `{"id":1001,"type":"private"}`, `{"id":"1001"}`),
		fmt.Sprintf(message, `7`, `{"id":1001,"type":"private"}`, `{"id":1001},"sender_chat":"x"`),
	}
	var noted []string
	full := errors.New("disk full")
	note := func(_ *emulator.Server, _ *Config, d *Deps) {
		d.Bad = func(_ context.Context, key, reason string) error {
			if full != nil && len(noted) == 3 {
				defer func() { full = nil }()
				return full
			}
			noted = append(noted, key)
			return nil
		}
	}
	running(t, emulator.Config{FirstUpdate: 7}, note, func(t *testing.T, a *account) {
		for _, body := range bad {
			a.srv.PushRaw(body)
		}
		a.srv.UserSays(ann, ann, "next")
		if in := a.got.Next(t); in.Text != "next" {
			t.Errorf("got %+v", in)
		}
		for i := range bad {
			if want := fmt.Sprintf("update_id=%d ", 7+i); !strings.Contains(a.log.String(), `msg="bad update skipped"`) || !strings.Contains(a.log.String(), want) {
				t.Errorf("update %s is not named in\n%s", bad[i], a.log)
			}
			if want := fmt.Sprintf("tg:%s:%d:bad", a.cfg.BotID(), 7+i); i >= len(noted) || noted[i] != want {
				t.Errorf("noted %q, want %s at %d", noted, want, i)
			}
		}
	})
}
