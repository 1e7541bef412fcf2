package telegram

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const (
	longestText    = 4096
	longestCaption = 1024
	longestData    = 64 // bytes of callback_data
	longestToast   = 200
	widestRow      = 8
	mostButtons    = 100
	generalTopic   = 1
)

// target finds the chat and topic of a send; the lock is held.
func (s *Server) target(c Call) (*chat, int, *reply) {
	to := s.chats[c.Chat()]
	switch {
	case to == nil:
		return nil, 0, badRequest("chat not found")
	case to.blocked != "":
		return nil, 0, refuse(http.StatusForbidden, "Forbidden: %s", to.blocked)
	case to.movedTo != 0:
		r := badRequest("group chat was upgraded to a supergroup chat")
		r.Parameters = &parameters{MigrateTo: to.movedTo}
		return nil, 0, r
	}
	thread := int(c.integer("message_thread_id"))
	if thread == 0 {
		return to, 0, nil
	}
	typing := c.Method == "sendChatAction"
	if thread == generalTopic && typing && to.Forum {
		return to, thread, nil
	}
	if thread == generalTopic || !to.topics[thread] || to.Type == "private" && !s.cfg.TopicsInDMs {
		return nil, 0, badRequest("message thread not found")
	}
	return to, thread, nil
}

// formatted reads a text parameter with its parse mode.
func formatted(c Call, key string, limit int) (string, []Entity, *reply) {
	text, entities := c.Params[key], []Entity(nil)
	switch mode := c.Params["parse_mode"]; mode {
	case "":
	case "HTML":
		var err error
		if text, entities, err = ParseHTML(text); err != nil {
			return "", nil, badRequest("can't parse entities: %v", err)
		}
	default:
		return "", nil, badRequest("unsupported parse_mode")
	}
	if units(text) > limit {
		return "", nil, badRequest("message is too long")
	}
	return strings.TrimSpace(text), entities[:min(len(entities), mostEntities)], nil
}

// mostEntities is how many entities a message keeps; what is more loses its format.
const mostEntities = 100

// replied reads the reference of a send; the lock is held.
func replied(c Call, to *chat) (id int, quote string, err *reply) {
	raw := c.Params["reply_parameters"]
	if raw == "" {
		return 0, "", nil
	}
	var p struct {
		MessageID int    `json:"message_id"`
		Allow     bool   `json:"allow_sending_without_reply"`
		Quote     string `json:"quote"`
	}
	if json.Unmarshal([]byte(raw), &p) != nil {
		return 0, "", badRequest("can't parse reply parameters JSON object")
	}
	m := to.find(p.MessageID)
	switch {
	case m == nil || m.Deleted:
		if p.Allow {
			return 0, "", nil
		}
		return 0, "", badRequest("message to be replied not found")
	case !strings.Contains(m.Text, p.Quote):
		return 0, "", badRequest("QUOTE_TEXT_INVALID")
	}
	return p.MessageID, p.Quote, nil
}

func buttons(c Call) ([]Button, *reply) {
	raw := c.Params["reply_markup"]
	if raw == "" {
		return nil, nil
	}
	var p struct {
		Keyboard [][]Button `json:"inline_keyboard"`
	}
	if json.Unmarshal([]byte(raw), &p) != nil {
		return nil, badRequest("can't parse reply keyboard markup JSON object")
	}
	all := slices.Concat(p.Keyboard...)
	if len(all) > mostButtons || slices.ContainsFunc(p.Keyboard, func(row []Button) bool { return len(row) > widestRow }) {
		return nil, badRequest("reply markup is too long")
	}
	for _, b := range all {
		if len(b.Data) == 0 || len(b.Data) > longestData {
			return nil, badRequest("BUTTON_DATA_INVALID")
		}
		if b.Text == "" {
			return nil, badRequest("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
		}
	}
	return all, nil
}

// compose makes the message of a send that is not a file; the lock is held.
func (s *Server) compose(c Call, textKey string, limit int) (*chat, *Message, *reply) {
	to, thread, err := s.target(c)
	if err != nil {
		return nil, nil, err
	}
	m := &Message{From: s.botID, FromBot: true, Thread: thread, Silent: c.Params["disable_notification"] == "true", Preview: true}
	if m.Text, m.Entities, err = formatted(c, textKey, limit); err != nil {
		return nil, nil, err
	}
	if m.ReplyTo, m.Quote, err = replied(c, to); err != nil {
		return nil, nil, err
	}
	if m.Buttons, err = buttons(c); err != nil {
		return nil, nil, err
	}
	m.markup = c.Params["reply_markup"]
	var preview struct {
		Off bool `json:"is_disabled"`
	}
	if raw := c.Params["link_preview_options"]; raw != "" && json.Unmarshal([]byte(raw), &preview) != nil {
		return nil, nil, badRequest("can't parse link preview options")
	}
	m.Preview = !preview.Off
	return to, m, nil
}

func (s *Server) sendMessage(c Call) (any, *reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to, m, err := s.compose(c, "text", longestText)
	if err != nil {
		return nil, err
	}
	if m.Text == "" {
		return nil, badRequest("message text is empty")
	}
	to.add(m)
	s.touch()
	return s.wire(to, m), nil
}

func (s *Server) edit(c Call) (any, *reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to, _, err := s.target(c)
	if err != nil {
		return nil, err
	}
	m := to.find(int(c.integer("message_id")))
	switch {
	case m == nil || m.Deleted:
		return nil, badRequest("message to edit not found")
	case !m.FromBot:
		return nil, badRequest("message can't be edited")
	}
	text, entities := m.Text, m.Entities
	switch c.Method {
	case "editMessageText":
		if text, entities, err = formatted(c, "text", longestText); err == nil && text == "" {
			err = badRequest("message text is empty")
		}
		if m.Media != "" {
			err = badRequest("there is no text in the message to edit")
		}
	case "editMessageCaption":
		text, entities, err = formatted(c, "caption", longestCaption)
	}
	if err != nil {
		return nil, err
	}
	keys, err := buttons(c)
	if err != nil {
		return nil, err
	}
	if text == m.Text && slices.Equal(entities, m.Entities) && c.Params["reply_markup"] == m.markup {
		return nil, badRequest("message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message")
	}
	m.Versions = append(m.Versions, m.Text)
	m.Text, m.Entities, m.Buttons, m.markup = text, entities, keys, c.Params["reply_markup"]
	s.touch()
	return s.wire(to, m), nil
}

func (s *Server) remove(c Call) (any, *reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to, _, err := s.target(c)
	if err != nil {
		return nil, err
	}
	m := to.find(int(c.integer("message_id")))
	switch {
	case m == nil || m.Deleted:
		return nil, badRequest("message to delete not found")
	case !m.FromBot && to.Type != "private":
		return nil, badRequest("message can't be deleted")
	}
	m.Deleted = true
	s.touch()
	return true, nil
}

func (s *Server) chatAction(c Call) (any, *reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to, thread, err := s.target(c)
	if err != nil {
		return nil, err
	}
	action := c.Params["action"]
	if !slices.Contains(strings.Fields(chatActions), action) {
		return nil, badRequest("wrong parameter action in request")
	}
	if thread != 0 {
		action = fmt.Sprintf("%s@%d", action, thread)
	}
	to.actions = append(to.actions, action)
	s.touch()
	return true, nil
}

// chatActions are the signs that bots may show.
const chatActions = "typing upload_photo record_video upload_video record_voice upload_voice upload_document choose_sticker find_location record_video_note upload_video_note"

// reactionEmoji are some of the emoji that bots may react with.
const reactionEmoji = "👍 👎 ❤ 🔥 🎉 🤔 👀 👌 💯 ⚡ ✍ 👨‍💻 😢 🙏"

func (s *Server) react(c Call) (any, *reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.lookup(c.Chat(), int(c.integer("message_id")))
	if m == nil || m.Deleted {
		return nil, badRequest("message to react not found")
	}
	var list []struct {
		Type  string `json:"type"`
		Emoji string `json:"emoji"`
	}
	if json.Unmarshal([]byte(c.Params["reaction"]), &list) != nil {
		return nil, badRequest("can't parse reaction types JSON object")
	}
	if len(list) > 1 {
		return nil, badRequest("REACTIONS_TOO_MANY")
	}
	for _, r := range list {
		if r.Type != "emoji" || !slices.Contains(strings.Fields(reactionEmoji), r.Emoji) {
			return nil, badRequest("REACTION_INVALID")
		}
	}
	m.reactions = nil
	for _, r := range list {
		m.reactions = append(m.reactions, r.Emoji)
	}
	s.touch()
	return true, nil
}

func (s *Server) setCommands(c Call) (any, *reply) {
	var list []struct {
		Command     string `json:"command"`
		Description string `json:"description"`
	}
	if json.Unmarshal([]byte(c.Params["commands"]), &list) != nil {
		return nil, badRequest("can't parse commands JSON object")
	}
	if len(list) > 100 {
		return nil, badRequest("BOT_COMMANDS_TOO_MUCH")
	}
	for _, cmd := range list {
		valid := cmd.Command != "" && len(cmd.Command) <= 32 && strings.Trim(cmd.Command, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
		if !valid {
			return nil, badRequest("BOT_COMMAND_INVALID")
		}
		if n := units(cmd.Description); n < 1 || n > 256 {
			return nil, badRequest("BOT_COMMAND_DESCRIPTION_INVALID")
		}
	}
	var scope struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal([]byte(c.Params["scope"]), &scope) // absent = default
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands[scope.Type] = json.RawMessage(c.Params["commands"])
	s.touch()
	return true, nil
}

// getCommands returns the commands of a scope.
func (s *Server) getCommands(c Call) any {
	var scope struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal([]byte(c.Params["scope"]), &scope) // absent = default
	s.mu.Lock()
	defer s.mu.Unlock()
	if list := s.commands[scope.Type]; list != nil {
		return list
	}
	return []any{}
}

// getMember tells what the bot is in a chat.
func (s *Server) getMember(c Call) (any, *reply) {
	id, _ := strconv.ParseInt(c.Params["chat_id"], 10, 64)
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.chats[id]
	switch {
	case to == nil:
		return nil, badRequest("chat not found")
	case to.blocked != "":
		return nil, refuse(http.StatusForbidden, "Forbidden: %s", to.blocked)
	case to.Muted:
		return map[string]any{"status": "restricted", "is_member": true, "can_send_messages": false, "user": s.user(s.botID)}, nil
	}
	return map[string]any{"status": "member", "user": s.user(s.botID)}, nil
}

func (s *Server) answerCallback(c Call) (any, *reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pressed := s.callbacks[c.Params["callback_query_id"]]
	toast := c.Params["text"]
	switch {
	case pressed == nil || pressed.answered:
		return nil, badRequest("query is too old and response timeout expired or query ID is invalid")
	case units(toast) > longestToast:
		return nil, badRequest("MESSAGE_TOO_LONG")
	}
	pressed.answered = true
	if toast != "" {
		s.toasts[pressed.user] = append(s.toasts[pressed.user], toast)
	}
	s.touch()
	return true, nil
}
