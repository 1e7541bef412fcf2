package discord

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Flags of messages.
const (
	SuppressEmbeds = 1 << 2
	EphemeralFlag  = 1 << 6
	Loading        = 1 << 7
	Silent         = 1 << 12
	VoiceMessage   = 1 << 13
)

const (
	longestText  = 2000 // characters
	longestNonce = 25
	nonceLife    = 5 * time.Minute
	mostFiles    = 10
)

// Message is a message as its readers see it.
type Message struct {
	ID, Channel, Author string
	FromBot             bool // by the bot under test
	Type, Flags         int
	Content             string
	ReplyTo             string
	Pinged              []string // who was notified: user ids, "&" and role ids, "everyone"
	Components          []Component
	Files               []File
	Versions            []string // earlier texts, oldest first
	Deleted             bool
	Ephemeral           bool   // seen by For alone
	For                 string // the person an interaction's answer is for
	Nonce               string
	Reactions           []string // of the bot
	At, EditedAt        time.Time

	urls    []string
	webhook string
	bot     bool
	names   []string // users mentioned in the text
	roles   []string
	raw     map[string]any // further fields of the event
}

// body is what the bot sends.
type body struct {
	Content      *string         `json:"content"`
	Nonce        json.RawMessage `json:"nonce"`
	EnforceNonce bool            `json:"enforce_nonce"`
	Flags        int             `json:"flags"`
	Components   *[]Component    `json:"components"`
	Reference    *struct {
		MessageID string `json:"message_id"`
		ChannelID string `json:"channel_id"`
		Fail      *bool  `json:"fail_if_not_exists"`
	} `json:"message_reference"`
	Allowed     *allowed `json:"allowed_mentions"`
	Attachments []struct {
		ID       any    `json:"id"`
		Filename string `json:"filename"`
	} `json:"attachments"`
}

type allowed struct {
	Parse       []string `json:"parse"`
	Users       []string `json:"users"`
	Roles       []string `json:"roles"`
	RepliedUser bool     `json:"replied_user"`
}

// Messages returns the whole transcript of a channel, deleted messages included.
func (s *Server) Messages(channel string) []Message {
	return s.transcript(channel, func(*Message) bool { return true })
}

// Sent returns what the bot said in a channel and did not delete, without what only one person sees.
func (s *Server) Sent(channel string) []Message {
	return s.transcript(channel, func(m *Message) bool { return m.FromBot && !m.Deleted && !m.Ephemeral })
}

func (s *Server) transcript(channel string, want func(*Message) bool) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Message
	for _, m := range s.messages[channel] {
		if want(m) {
			out = append(out, m.copy())
		}
	}
	return out
}

func (m *Message) copy() Message {
	one := *m
	one.Versions, one.Reactions = slices.Clone(m.Versions), slices.Clone(m.Reactions)
	return one
}

// find returns a message that was not deleted; the lock is held.
func (s *Server) find(channel, id string) *Message {
	for _, m := range s.messages[channel] {
		if m.ID == id && !m.Deleted {
			return m
		}
	}
	return nil
}

// add puts a message into its channel and tells the sessions, unless it is for one person.
func (s *Server) add(m *Message) {
	if m.ID == "" {
		m.ID = s.newID()
	}
	m.At = time.Now()
	for i, f := range m.Files {
		path := fmt.Sprintf("/attachments/%s/%s/%s", m.Channel, strconv.Itoa(i)+m.ID, f.Name)
		s.files[path] = f
		m.urls = append(m.urls, s.root+(&url.URL{Path: path}).EscapedPath()+"?ex=6&is=7&hm=abc")
	}
	s.messages[m.Channel] = append(s.messages[m.Channel], m)
	if !m.Ephemeral {
		s.dispatch("MESSAGE_CREATE", s.messageWire(m, true))
	}
}

// create handles the bot's sending of a message.
func (s *Server) create(c Call, to *Channel) any {
	if to.forum() {
		return refuse(http.StatusBadRequest, 50008, "Cannot send messages in a non-text channel")
	}
	if to.Archived && to.Locked {
		return refuse(http.StatusBadRequest, 50083, "Thread is archived")
	}
	b, m, r := s.compose(c, c.Body, to)
	if r != nil {
		return r
	}
	key := to.ID + "\x00" + m.Nonce
	if b.EnforceNonce && m.Nonce != "" {
		if old, ok := s.nonces[key]; ok && time.Now().Before(old.until) {
			return s.messageWire(old.message, false)
		}
		s.nonces[key] = nonce{m, time.Now().Add(nonceLife)}
	}
	to.Archived = false
	s.add(m)
	return s.messageWire(m, false)
}

// compose reads and checks a message of the bot.
func (s *Server) compose(c Call, raw json.RawMessage, to *Channel) (*body, *Message, *refusal) {
	var b body
	if json.Unmarshal(raw, &b) != nil {
		return nil, nil, invalid("_errors", "BASE_TYPE_BAD_TYPE", "unreadable")
	}
	m := &Message{Channel: to.ID, Author: s.botID, FromBot: true, Files: c.Files, Flags: b.Flags & (SuppressEmbeds | Silent | VoiceMessage)}
	if b.Content != nil {
		m.Content = strings.TrimSpace(*b.Content)
	}
	if r := s.checkContent(c, m); r != nil {
		return nil, nil, r
	}
	if r := readNonce(b.Nonce, m); r != nil {
		return nil, nil, r
	}
	if b.Components != nil {
		if r := checkComponents(*b.Components); r != nil {
			return nil, nil, r
		}
		m.Components = *b.Components
	}
	if ref := b.Reference; ref != nil && ref.MessageID != "" {
		if r := s.refer(m, ref.MessageID, ref.ChannelID, ref.Fail == nil || *ref.Fail); r != nil {
			return nil, nil, r
		}
	}
	s.ping(m, b.Allowed)
	return &b, m, nil
}

func (s *Server) checkContent(c Call, m *Message) *refusal {
	size := 0
	for _, f := range c.Files {
		size += len(f.Data)
		if f.Name == "" || strings.ContainsAny(f.Name, "/\\\r\n") {
			return invalid("files", "BASE_TYPE_BAD_NAME", "unusable file name")
		}
	}
	switch {
	case size > s.cfg.UploadLimit:
		return refuse(http.StatusRequestEntityTooLarge, 40005, "Request entity too large")
	case len(c.Files) > mostFiles:
		return invalid("files", "BASE_TYPE_MAX_LENGTH", "Must be 10 or fewer in length.")
	case utf8.RuneCountInString(m.Content) > longestText:
		return invalid("content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length.")
	case m.Content == "" && len(c.Files) == 0:
		return refuse(http.StatusBadRequest, 50006, "Cannot send an empty message")
	}
	return nil
}

func readNonce(raw json.RawMessage, m *Message) *refusal {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	if len(text) > longestNonce {
		return invalid("nonce", "NONCE_TYPE_TOO_LONG", "Must be 25 or fewer in length.")
	}
	m.Nonce = text
	return nil
}

func (s *Server) refer(m *Message, id, channel string, must bool) *refusal {
	old := s.find(m.Channel, id)
	known := old != nil && !old.Ephemeral && (channel == "" || channel == m.Channel)
	switch {
	case known:
		m.Type, m.ReplyTo = 19, id
	case must:
		return invalid("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
	}
	return nil
}

// ping works out who is notified by a message of the bot.
func (s *Server) ping(m *Message, a *allowed) {
	s.parse(m)
	every := strings.Contains(m.Content, "@everyone") || strings.Contains(m.Content, "@here")
	may := func(kind string, list []string, id string) bool {
		return a == nil || slices.Contains(a.Parse, kind) || slices.Contains(list, id)
	}
	var users, roles []string
	if a != nil {
		users, roles = a.Users, a.Roles
	}
	if every && may("everyone", nil, "") {
		m.Pinged = append(m.Pinged, "everyone")
	}
	for _, u := range m.names {
		if may("users", users, u) {
			m.Pinged = append(m.Pinged, u)
		}
	}
	for _, r := range m.roles {
		if may("roles", roles, r) {
			m.Pinged = append(m.Pinged, "&"+r)
		}
	}
	if old := s.find(m.Channel, m.ReplyTo); old != nil && (a == nil || a.RepliedUser) {
		m.Pinged = append(m.Pinged, old.Author)
	}
}

// patch handles the bot's edit of a message.
func (s *Server) patch(c Call, m *Message) any {
	if !m.FromBot {
		return refuse(http.StatusForbidden, 50005, "Cannot edit a message authored by another user")
	}
	if r := s.change(c.Body, m); r != nil {
		return r
	}
	s.dispatch("MESSAGE_UPDATE", s.messageWire(m, true))
	return s.messageWire(m, false)
}

// change applies an edit; the lock is held.
func (s *Server) change(raw json.RawMessage, m *Message) *refusal {
	var b body
	if json.Unmarshal(raw, &b) != nil {
		return invalid("_errors", "BASE_TYPE_BAD_TYPE", "unreadable")
	}
	if b.Components != nil {
		if r := checkComponents(*b.Components); r != nil {
			return r
		}
	}
	if b.Content != nil {
		text := strings.TrimSpace(*b.Content)
		switch {
		case utf8.RuneCountInString(text) > longestText:
			return invalid("content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length.")
		case text == "" && len(m.Files) == 0:
			return refuse(http.StatusBadRequest, 50006, "Cannot send an empty message")
		}
		m.Versions = append(m.Versions, m.Content)
		m.Content = text
		s.parse(m)
	}
	if b.Components != nil {
		m.Components = *b.Components
	}
	m.Flags &^= Loading
	m.EditedAt = time.Now()
	return nil
}

// list returns messages as the bot may read them, the newest first.
func (s *Server) list(c Call, to *Channel) any {
	limit, err := strconv.Atoi(c.Query.Get("limit"))
	if err != nil {
		limit = 50
	}
	if limit < 1 || limit > 100 {
		return invalid("limit", "NUMBER_TYPE_MAX", "int value should be less than or equal to 100.")
	}
	after, _ := strconv.ParseUint(c.Query.Get("after"), 10, 64)   // 0 = from the newest
	before, _ := strconv.ParseUint(c.Query.Get("before"), 10, 64) // 0 = up to the newest
	var found []*Message
	for _, m := range s.messages[to.ID] {
		id, _ := strconv.ParseUint(m.ID, 10, 64)
		if !m.Deleted && !m.Ephemeral && id > after && (before == 0 || id < before) {
			found = append(found, m)
		}
	}
	switch {
	case len(found) <= limit:
	case after > 0:
		found = found[:limit]
	default:
		found = found[len(found)-limit:]
	}
	out := []any{}
	for _, m := range slices.Backward(found) {
		out = append(out, s.messageWire(m, false))
	}
	return out
}

func (s *Server) react(c Call, m *Message, emoji string) any {
	known := slices.Contains(m.Reactions, emoji)
	name, id, custom := strings.Cut(emoji, ":")
	if custom && (name == "" || id == "") || !custom && strings.Trim(emoji, "abcdefghijklmnopqrstuvwxyz0123456789_") == "" {
		return refuse(http.StatusBadRequest, 10014, "Unknown Emoji")
	}
	switch {
	case c.Method == http.MethodPut && !known:
		m.Reactions = append(m.Reactions, emoji)
	case c.Method == http.MethodDelete:
		m.Reactions = slices.DeleteFunc(m.Reactions, func(e string) bool { return e == emoji })
	}
	return none{}
}

func (s *Server) deletionWire(m *Message) map[string]any {
	out := map[string]any{"id": m.ID, "channel_id": m.Channel}
	if c := s.channels[m.Channel]; c != nil && c.Guild != "" {
		out["guild_id"] = c.Guild
	}
	return out
}

// messageWire is the message as REST (or the gateway, which says more) describes it.
func (s *Server) messageWire(m *Message, event bool) map[string]any {
	author := s.user(m.Author)
	author.Bot = author.Bot || m.bot
	out := map[string]any{
		"id": m.ID, "channel_id": m.Channel, "author": author, "content": m.Content, "timestamp": m.At.Add(s.cfg.Offset).UTC().Format("2006-01-02T15:04:05.000000+00:00"),
		"edited_timestamp": nil, "tts": false, "pinned": false, "type": m.Type, "flags": m.Flags, "embeds": []any{}, "mention_everyone": strings.Contains(m.Content, "@everyone"),
		"components": m.Components, "mention_roles": slices.Concat([]string{}, m.roles),
	}
	if m.Components == nil {
		out["components"] = []any{}
	}
	if !m.EditedAt.IsZero() {
		out["edited_timestamp"] = m.EditedAt.Add(s.cfg.Offset).UTC().Format("2006-01-02T15:04:05.000000+00:00")
	}
	if m.Nonce != "" && event {
		out["nonce"] = m.Nonce
	}
	if m.webhook != "" {
		out["webhook_id"] = m.webhook
	}
	c := s.channels[m.Channel]
	guild := ""
	if c != nil {
		guild = c.Guild
	}
	if event && guild != "" {
		out["guild_id"] = guild
		if m.webhook == "" {
			out["member"] = s.memberWire(guild, m.Author)
		}
	}
	mentions := []any{}
	for _, id := range m.names {
		mentions = append(mentions, s.mentionWire(guild, id, event))
	}
	if old := s.find(m.Channel, m.ReplyTo); m.ReplyTo != "" {
		out["message_reference"] = map[string]any{"message_id": m.ReplyTo, "channel_id": m.Channel, "guild_id": guild}
		out["referenced_message"] = nil
		if old != nil {
			inner := *old
			inner.ReplyTo = "" // the API shows one level
			out["referenced_message"] = s.messageWire(&inner, false)
		}
	}
	out["mentions"] = mentions
	files := []any{}
	for i, f := range m.Files {
		file := map[string]any{"id": strconv.Itoa(i) + m.ID, "filename": f.Name, "size": len(f.Data), "content_type": f.Type, "url": m.urls[i], "proxy_url": m.urls[i]}
		if m.Flags&VoiceMessage != 0 {
			file["duration_secs"], file["waveform"] = 1.5, "AAAA"
		}
		files = append(files, file)
	}
	out["attachments"] = files
	maps.Copy(out, m.raw)
	return out
}

func (s *Server) mentionWire(guild, id string, event bool) map[string]any {
	u := s.user(id)
	out := map[string]any{"id": u.ID, "username": u.Username, "bot": u.Bot}
	if u.GlobalName != "" {
		out["global_name"] = u.GlobalName
	}
	if event && guild != "" {
		out["member"] = s.memberWire(guild, id)
	}
	return out
}
