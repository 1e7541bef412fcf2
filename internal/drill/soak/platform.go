package soak

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// The kinds of places.
const (
	direct = "direct" // a person and the bot
	room   = "room"   // each question is a conversation of its own, where the platform has threads
	thread = "thread" // a thread or topic in a room
)

// kinds are taken in turn.
var kinds = []string{direct, room, thread}

// place is where one conversation is held. Nobody else talks there.
type place struct {
	kind    string
	channel string
	thread  string // "" = none, or not opened yet
	user    string
}

// heard is a message as its readers see it.
type heard struct {
	id, thread string
	ref        string // the message it refers to
	text       string
	at         time.Time
	byBot      bool
}

// platform is an emulator with people in it.
type platform interface {
	name() string
	// listen serves on loopback, too.
	listen() error
	// settings is its block of the configuration, in YAML.
	settings() string
	// open makes the i-th place known.
	open(i int, kind string) place
	// say lets the person of a place write. It returns the message's id and the thread in which the
	// answer has to stand; that of a place of kind thread is kept in p.
	say(p *place, text string) (id, thread string)
	// transcript returns what stands in a place now, in the order of sending.
	transcript(p place) []heard
	// astray returns what the bot said where nobody asked it.
	astray() []heard
	// gust lets something go wrong, and says what.
	gust(r *rand.Rand) string
	// calm ends everything that gust began.
	calm()
	// tried returns how many calls that send a message carried a text.
	tried(text string) int
	transport() http.RoundTripper
	dial(ctx context.Context, network, address string) (net.Conn, error)
	close()
}

// chance is one of several things that go wrong.
type chance struct {
	what string
	do   func(r *rand.Rand)
}

// between is the least time between two things that happen to a connection: a bot that is cut off all
// the time waits longer and longer before it connects again, as it should, and hears nothing.
const between = 100 * time.Second

// weather decides what goes wrong at one platform.
type weather struct{ next time.Time }

// pick lets something happen to a call, or now and then to the connection, and says what.
func (w *weather) pick(r *rand.Rand, calls, links []chance) string {
	list := calls
	if now := time.Now(); now.After(w.next) {
		list, w.next = links, now.Add(between/2+upTo(r, between))
	}
	c := list[r.IntN(len(list))]
	c.do(r)
	return c.what
}

// upTo is a random time of at most d.
func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// seconds is a random number of seconds from 1 to n.
func seconds(r *rand.Rand, n int) time.Duration { return time.Duration(1+r.IntN(n)) * time.Second }

// lostReceipt is a call that is done, and the bot does not hear of it.
const lostReceipt = "lost receipt"

// errorPage is what a proxy says.
const errorPage = "<html><body>502 Bad Gateway</body></html>"
