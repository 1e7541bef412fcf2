package telegram

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
)

// update is the part of an update that is used. The types are our own where the library's lack
// fields or decode more than needed: what is not decoded cannot be malformed. See decode for what is.
type update struct {
	ID            int64          `json:"update_id"`
	Message       *message       `json:"message"`
	EditedMessage *message       `json:"edited_message"`
	Callback      *callbackQuery `json:"callback_query"`
	MyMember      *memberChange  `json:"my_chat_member"`
}

type message struct {
	ID              int                      `json:"message_id"`
	Thread          int                      `json:"message_thread_id"`
	IsTopic         bool                     `json:"is_topic_message"`
	From            *tgbotapi.User           `json:"from"`
	SenderChat      *place                   `json:"sender_chat"`
	Chat            place                    `json:"chat"`
	Date            int64                    `json:"date"`
	EditDate        int64                    `json:"edit_date"`
	Text            string                   `json:"text"`
	Entities        []tgbotapi.MessageEntity `json:"entities"`
	Caption         string                   `json:"caption"`
	CaptionEntities []tgbotapi.MessageEntity `json:"caption_entities"`
	ReplyTo         *message                 `json:"reply_to_message"`
	Quote           *struct {
		Text string `json:"text"`
	} `json:"quote"`
	// Topic stands in the service message that opened a topic.
	Topic *struct {
		Name string `json:"name"`
	} `json:"forum_topic_created"`
	MigrateTo   int64  `json:"migrate_to_chat_id"`
	MigrateFrom int64  `json:"migrate_from_chat_id"`
	Album       string `json:"media_group_id"`

	Photo     []tgbotapi.PhotoSize `json:"photo"`
	Voice     *fileInfo            `json:"voice"`
	VideoNote *fileInfo            `json:"video_note"`
	Audio     *fileInfo            `json:"audio"`
	Video     *fileInfo            `json:"video"`
	Animation *fileInfo            `json:"animation"`
	Document  *fileInfo            `json:"document"`
	Sticker   *sticker             `json:"sticker"`
}

// fileInfo is what all kinds of files have in common.
type fileInfo struct {
	FileID   string `json:"file_id"`
	FileName string `json:"file_name"`
	MimeType string `json:"mime_type"`
	FileSize int64  `json:"file_size"`
}

type sticker struct {
	fileInfo
	Emoji    string `json:"emoji"`
	Animated bool   `json:"is_animated"`
	Video    bool   `json:"is_video"`
}

// place is a chat.
type place struct {
	ID    int64  `json:"id"`
	Type  string `json:"type"`
	Title string `json:"title"`
	Forum bool   `json:"is_forum"`
}

type callbackQuery struct {
	ID      string        `json:"id"`
	From    tgbotapi.User `json:"from"`
	Message *message      `json:"message"`
	Data    string        `json:"data"`
}

type memberChange struct {
	Chat place `json:"chat"`
	New  struct {
		Status string `json:"status"`
	} `json:"new_chat_member"`
}

// identity is the bot as getMe describes it.
type identity struct {
	ID        int64  `json:"id"`
	Username  string `json:"username"`
	HasTopics bool   `json:"has_topics_enabled"`
	CanJoin   bool   `json:"can_join_groups"`
	ReadsAll  bool   `json:"can_read_all_group_messages"` // the privacy mode is off
}

// decode reads an update as far as it can be read: a field of an unexpected type stays empty and costs
// nothing else. It reports whether there is such a field; the error tells that this is no update.
func decode(raw []byte, u *update) (odd bool, err error) {
	err = json.Unmarshal(raw, u)
	var field *json.UnmarshalTypeError
	if errors.As(err, &field) && bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return true, nil
	}
	return false, err
}

// whole reports whether an update has what it takes to act on it: of a message, where it stands and who
// wrote it. Which of them is unreadable cannot be guessed.
func (u *update) whole() bool {
	m := u.Message
	if m == nil {
		m = u.EditedMessage
	}
	switch {
	case u.ID == 0:
		return false
	case m != nil:
		_, known := author(m)
		return m.ID != 0 && m.Chat.ID != 0 && m.Chat.Type != "" && known
	case u.Callback != nil:
		return u.Callback.ID != "" && u.Callback.From.ID != 0
	}
	return u.MyMember != nil && u.MyMember.Chat.ID != 0
}

func id64(n int64) string { return strconv.FormatInt(n, 10) }

func fullName(u *tgbotapi.User) string {
	return strings.TrimSpace(u.FirstName + " " + u.LastName)
}

// jsonText is a parameter that is an object.
func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // only maps and structs of plain values are passed
		return ""
	}
	return string(b)
}
