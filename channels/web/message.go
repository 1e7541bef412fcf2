package web

import (
	"time"

	"understudy/chat"
)

// Message is one row of a session as the page shows it.
type Message struct {
	ID      string `json:"id"`
	Session string `json:"session"`
	// Own tells that the person at the page wrote it; otherwise Class says what it is.
	Own   bool       `json:"own,omitempty"`
	Class chat.Class `json:"class,omitempty"`
	// Post is the id that the page gave an own message, by which it recognises it.
	Post string `json:"post,omitempty"`
	// Text is Markdown for everything but own messages, which are plain text. HTML is Text
	// rendered by Render; empty for own messages.
	Text    string        `json:"text"`
	HTML    string        `json:"html,omitempty"`
	Buttons []chat.Button `json:"buttons,omitempty"`
	// Label is what stood on the button that sent an own message; people see it instead of Text.
	Label string    `json:"label,omitempty"`
	At    time.Time `json:"at"`
	// Rev grows with every change of any message; of two versions the higher one is newer.
	Rev uint64 `json:"rev"`

	held     bool // not shown yet
	nameless bool // from a transcript, which does not tell the id it had
}

// Session is one conversation in the page's list.
type Session struct {
	ID        string    `json:"id"`
	Title     string    `json:"title"`
	UpdatedAt time.Time `json:"updatedAt"`
	// Busy tells that a message waits for its answer.
	Busy bool `json:"busy,omitempty"`
}

// eventType is what happened.
type eventType string

const (
	eventMessage eventType = "message" // a message is new or has changed
	eventDelete  eventType = "delete"  // a message is gone
	eventTyping  eventType = "typing"  // the bot works on an answer
	eventDone    eventType = "done"    // nothing is waiting for an answer any more
	eventReset   eventType = "reset"   // changes were missed: reload
)

// event is one change, as the page receives it.
type event struct {
	Seq     uint64    `json:"seq"`
	Type    eventType `json:"type"`
	Session string    `json:"session,omitempty"`
	ID      string    `json:"id,omitempty"` // of the deleted message
	Message *Message  `json:"message,omitempty"`
}
