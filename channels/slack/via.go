package slack

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"understudy/channels"
	"understudy/chat"
)

// Bounds of answers to interactions. Slack takes five within half an hour.
const (
	responseUses = 5
	responseLife = 29 * time.Minute
	mostVias     = 1024
	mostAnswers  = 64
	answerLimit  = 10 * time.Second
)

// via is an interaction that can be answered so that one person alone sees it.
type via struct {
	address            string // response_url: whoever has it may answer, so it leaves this package nowhere
	user, conversation string
	until              time.Time
	uses               int
	replace            bool // the first answer takes the place of the message that was pressed
}

// vias keeps interactions under handles that mean nothing to anybody else.
type vias struct {
	mu    sync.Mutex
	known *recent[*via]
}

func newVias() *vias { return &vias{known: newRecent[*via](mostVias)} }

func (v *vias) put(one via) string {
	handle := rand.Text()
	v.known.put(handle, &one)
	return handle
}

// use returns an interaction and counts one use of it. It reports false when it is used up; the person
// is known even then.
func (v *vias) use(handle string) (via, bool) {
	one, ok := v.known.get(handle)
	if !ok {
		return via{}, false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	now := *one
	if one.uses++; one.uses > responseUses || time.Now().After(one.until) || one.address == "" {
		return now, false
	}
	one.replace = false
	return now, true
}

// spend makes an interaction unusable.
func (v *vias) spend(handle string) {
	if one, ok := v.known.get(handle); ok {
		v.mu.Lock()
		defer v.mu.Unlock()
		one.uses = responseUses
	}
}

// mayRespond reports whether an address is one of Slack's or of the server that is used instead.
func (a *api) mayRespond(address string) bool {
	u, err := url.Parse(address)
	root, rootErr := url.Parse(a.endpoint)
	if err != nil || rootErr != nil {
		return false
	}
	return u.Scheme == "https" && slackHost(u.Hostname()) || u.Scheme == root.Scheme && strings.EqualFold(u.Host, root.Host)
}

// reply is what is posted to a response_url.
type reply struct {
	Type    string        `json:"response_type,omitempty"`
	Replace bool          `json:"replace_original"`
	Delete  bool          `json:"delete_original,omitempty"`
	Text    string        `json:"text,omitempty"`
	Blocks  []slack.Block `json:"blocks,omitempty"`
	Thread  string        `json:"thread_ts,omitempty"`
}

// sendPrivately answers an interaction: through its response_url, else as a message that the person
// alone sees. It reports false when neither is possible, and the answer is to be an ordinary message.
func (b *Bot) sendPrivately(ctx context.Context, p channels.Piece) (bool, error) {
	v, usable := b.vias.use(p.Via)
	if usable && b.api.mayRespond(v.address) {
		what, err := b.layout(ctx, p)
		if err != nil {
			return true, b.verdict(err, false)
		}
		err = b.show(what, func(what layout) error {
			return b.api.respond(ctx, v.address, reply{
				Type: "ephemeral", Replace: v.replace, Text: what.fallback(), Blocks: what.blocks, Thread: p.To.Thread,
			})
		})
		if !spent(err) {
			return true, b.verdictOrNil(err, false)
		}
		b.vias.spend(p.Via)
	}
	person := p.For
	if person == "" {
		person = v.user
	}
	if person == "" || p.To.Kind == chat.Direct {
		return false, nil
	}
	return true, b.postEphemeral(ctx, person, p)
}

// spent reports whether a response_url refused because it is used up or too old.
func spent(err error) bool {
	var e *callError
	return errors.As(err, &e) && (e.code == "used_url" || e.code == "expired_url" || e.code == "expired_trigger_id")
}

func (b *Bot) postEphemeral(ctx context.Context, person string, p channels.Piece) error {
	what, err := b.layout(ctx, p)
	if err == nil {
		err = b.show(what, func(what layout) error {
			return b.api.call(ctx, "chat.postEphemeral", func(ctx context.Context, c *slack.Client) error {
				_, err := c.PostEphemeralContext(ctx, p.To.Conversation, person, options(what, p)...)
				return err
			})
		})
	}
	return b.verdictOrNil(err, false)
}

func (b *Bot) verdictOrNil(err error, repeatable bool) error {
	if err == nil {
		return nil
	}
	return b.verdict(err, repeatable)
}

// private is a short answer to an interaction that the adapter gives itself.
type private struct {
	via    string
	text   string
	beside bool // leave the message that was pressed as it is
	remove bool // take the message that was pressed away
}

// answer queues an answer. When the queue is full the person hears nothing, which is better than to
// hold up messages.
func (b *Bot) answer(a private) {
	select {
	case b.answers <- a:
	default:
		b.log.Warn("interaction not answered")
	}
}

// answerPrivately gives answers until ctx ends.
func (b *Bot) answerPrivately(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-b.answers:
			b.answerOne(ctx, a)
		}
	}
}

func (b *Bot) answerOne(ctx context.Context, a private) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	v, ok := b.vias.use(a.via)
	if !ok || !b.api.mayRespond(v.address) {
		return
	}
	err := b.api.respond(ctx, v.address, reply{
		Type: "ephemeral", Text: escaper.Replace(a.text), Replace: v.replace && !a.beside && !a.remove, Delete: a.remove,
	})
	if err != nil && ctx.Err() == nil {
		b.log.Debug("interaction not answered", "error", err)
	}
}
