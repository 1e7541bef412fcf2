package slack

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of messages.
const (
	longestText     = 40_000
	longestMarkdown = 12_000
)

// content is what a message is made of.
type content struct {
	text     string
	markdown bool
	blocks   []Block
}

// compose reads the content of a call: text in mrkdwn, markdown_text, or blocks.
func compose(c Call) (content, *refusal) {
	text, md := c.Params["text"], c.Params["markdown_text"]
	blocks, no := readBlocks(c.Params["blocks"])
	switch {
	case no != nil:
		return content{}, no
	case md != "" && (text != "" || len(blocks) > 0):
		return content{}, refuse("markdown_text_conflict")
	case utf8.RuneCountInString(md) > longestMarkdown:
		return content{}, refuse("msg_too_long")
	case utf8.RuneCountInString(text) > longestText:
		return content{}, refuse("msg_too_long")
	case md != "":
		return content{text: md, markdown: true}, nil
	case len(blocks) > 0:
		shown, markdown := blockText(blocks)
		return content{text: shown, markdown: markdown, blocks: blocks}, nil
	case strings.TrimSpace(text) == "":
		return content{}, refuse("no_text")
	}
	return content{text: unescape(text)}, nil
}

// Slack escapes three characters in text.
var (
	escaper   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	unescaper = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
)

func escape(s string) string   { return escaper.Replace(s) }
func unescape(s string) string { return unescaper.Replace(s) }

// writable returns the channel in which the bot wants to write.
func (s *Server) writable(c Call) (*channel, *refusal) {
	id := c.Params["channel"]
	if strings.HasPrefix(id, "U") { // a person stands for the direct messages with them
		got, no := s.conversationsOpen(Call{Params: map[string]string{"users": id}})
		if no != nil {
			return nil, no
		}
		id, _ = got["channel"].(answer)["id"].(string)
	}
	ch, ok := s.channels[id]
	switch {
	case !ok:
		return nil, refuse("channel_not_found")
	case ch.Archived:
		return nil, refuse("is_archived")
	case ch.NotMember:
		return nil, refuse("not_in_channel")
	}
	if t := c.Params["thread_ts"]; t != "" {
		root := ch.find(t)
		if root == nil || root.Deleted || !root.isRoot() {
			return nil, refuse("thread_not_found")
		}
	}
	return ch, nil
}

// say adds a message of the bot; the lock is held.
func (s *Server) say(ch *channel, c Call, what content) *Message {
	m := &Message{
		TS: s.stamp(), Channel: ch.ID, Thread: c.Params["thread_ts"], User: s.cfg.BotUser, ByBot: true, At: time.Now(),
		Text: what.text, Markdown: what.markdown, Blocks: what.blocks,
		Unfurl: c.Params["unfurl_links"] != "false",
	}
	ch.messages = append(ch.messages, m)
	s.openThread(ch, m)
	return m
}

// openThread makes the root of a thread known as one, and ends a status; the lock is held.
func (s *Server) openThread(ch *channel, m *Message) {
	if m.Thread == "" {
		return
	}
	if root := ch.find(m.Thread); root != nil {
		root.Thread = root.TS
	}
	delete(s.statuses, ch.ID+" "+m.Thread)
}

func (s *Server) postMessage(c Call) (answer, *refusal) {
	what, no := compose(c)
	if no != nil {
		return nil, no
	}
	ch, no := s.writable(c)
	if no != nil {
		return nil, no
	}
	m := s.say(ch, c, what)
	s.announce(ch, m)
	return answer{"channel": ch.ID, "ts": m.TS, "message": s.wire(ch, m)}, nil
}

func (s *Server) postEphemeral(c Call) (answer, *refusal) {
	what, no := compose(c)
	if no != nil {
		return nil, no
	}
	ch, no := s.writable(c)
	switch {
	case no != nil:
		return nil, no
	case !c.has("user"):
		return nil, refuse("user_not_in_channel")
	}
	m := s.say(ch, c, what)
	m.OnlyFor = c.Params["user"]
	return answer{"message_ts": m.TS}, nil
}

// own returns a message of the bot that a call is about.
func (s *Server) own(c Call, otherwise string) (*channel, *Message, *refusal) {
	ch, ok := s.channels[c.Params["channel"]]
	if !ok {
		return nil, nil, refuse("channel_not_found")
	}
	m := ch.find(c.Params["ts"])
	switch {
	case m == nil || m.Deleted || m.OnlyFor != "":
		return nil, nil, refuse("message_not_found")
	case !m.ByBot:
		return nil, nil, refuse(otherwise)
	}
	return ch, m, nil
}

func (s *Server) update(c Call) (answer, *refusal) {
	ch, m, no := s.own(c, "cant_update_message")
	if no != nil {
		return nil, no
	}
	what, no := compose(c)
	switch {
	case no != nil:
		return nil, no
	case m.Streaming:
		return nil, refuse("streaming_state_conflict")
	}
	m.Versions = append(m.Versions, m.Text)
	m.Text, m.Markdown = what.text, what.markdown
	if c.has("blocks") || what.markdown {
		m.Blocks = what.blocks
	}
	s.announceChange(ch, m, m.Versions[len(m.Versions)-1])
	return answer{"channel": ch.ID, "ts": m.TS, "text": m.Text}, nil
}

func (s *Server) remove(c Call) (answer, *refusal) {
	ch, m, no := s.own(c, "cant_delete_message")
	if no != nil {
		return nil, no
	}
	m.Deleted = true
	s.announceDeletion(ch, m)
	return answer{"channel": ch.ID, "ts": m.TS}, nil
}

// streamable checks what a stream needs.
func (s *Server) streamable(c Call) (*channel, *refusal) {
	ch, no := s.writable(c)
	switch {
	case no != nil:
		return nil, no
	case !c.has("thread_ts"):
		return nil, refuse("invalid_thread_ts")
	case ch.Kind != "im" && !c.has("recipient_user_id"):
		return nil, refuse("missing_recipient_user_id")
	case ch.Kind != "im" && c.Params["recipient_team_id"] != s.cfg.Team:
		return nil, refuse("missing_recipient_team_id")
	}
	return ch, nil
}

func (s *Server) startStream(c Call) (answer, *refusal) {
	ch, no := s.streamable(c)
	switch {
	case no != nil:
		return nil, no
	case utf8.RuneCountInString(c.Params["markdown_text"]) > longestMarkdown:
		return nil, refuse("msg_too_long")
	}
	m := s.say(ch, c, content{text: c.Params["markdown_text"], markdown: true})
	m.Streaming, m.Streamed, m.Recipient = true, true, c.Params["recipient_user_id"]
	return answer{"channel": ch.ID, "ts": m.TS}, nil
}

// grow adds to a running stream.
func (s *Server) grow(c Call) (*channel, *Message, *refusal) {
	ch, m, no := s.own(c, "message_not_owned_by_app")
	switch {
	case no != nil:
		return nil, nil, no
	case !m.Streaming:
		return nil, nil, refuse("message_not_in_streaming_state")
	case utf8.RuneCountInString(c.Params["markdown_text"]) > longestMarkdown:
		return nil, nil, refuse("msg_too_long")
	}
	m.Text += c.Params["markdown_text"]
	return ch, m, nil
}

func (s *Server) appendStream(c Call) (answer, *refusal) {
	if !c.has("markdown_text") {
		return nil, refuse("no_text")
	}
	ch, m, no := s.grow(c)
	if no != nil {
		return nil, no
	}
	return answer{"channel": ch.ID, "ts": m.TS}, nil
}

func (s *Server) stopStream(c Call) (answer, *refusal) {
	ch, m, no := s.grow(c)
	if no != nil {
		return nil, no
	}
	m.Streaming = false
	s.announce(ch, m)
	return answer{"channel": ch.ID, "ts": m.TS, "message": s.wire(ch, m)}, nil
}

// readBlocks reads and checks the blocks of a message.
func readBlocks(text string) ([]Block, *refusal) {
	if text == "" || text == "[]" || text == "null" {
		return nil, nil
	}
	var blocks []Block
	if json.Unmarshal([]byte(text), &blocks) != nil {
		return nil, refuse("invalid_blocks_format")
	}
	return blocks, checkBlocks(blocks)
}
