package conversations

import (
	"context"
	"net"
	"net/http"
)

// places where people talk.
const (
	private = "private"
	ops     = "ops"
	hall    = "hall"
	thread  = "thread"
)

// people who talk. Robot is another bot.
var people = []string{"alice", "bob", "carol", "robot"}

// shown is a message of anybody as its readers see it.
type shown struct {
	id, place, who string // who is "bot" for the bot
	thread         string // the thread it stands in: the text of its root; "" = none
	to             string // the id of the message it refers to
	text           string
	quiet, deleted bool
	only           string // who alone sees it
	buttons        []string
	files          []string
}

// say is a message of a person.
type say struct {
	who, place, text string
	file             string // "picture", "voice note" or ""
}

// side is one emulated platform with people in it.
type side interface {
	// settings is its block of the configuration, with more lines for it.
	settings(more string) string
	say(s say)
	edit(who, text string)
	remove(who string)
	run(who, place, command string)
	press(who, label string) bool
	away()
	back()
	refuse(status int)
	loseReceipt()
	messages() []shown
	transport() http.RoundTripper
	dial(ctx context.Context, network, address string) (net.Conn, error)
	close()
}

// aPicture is a picture of one pixel; aNote stands for recorded speech.
var (
	aPicture = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82")
	aNote    = []byte("OggS what time is it")
)
