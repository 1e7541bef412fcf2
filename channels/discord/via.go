package discord

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"
)

// Kinds of interactions, and of first answers to them.
const (
	interactionCommand   = 2
	interactionComponent = 3
	interactionComplete  = 4

	answerMessage  = 4
	answerLater    = 5
	updateLater    = 6
	updateMessage  = 7
	answerComplete = 8
)

const (
	hurryAfter  = 2 * time.Second // Discord waits 3 s for the first answer
	answerLimit = 5 * time.Second
	viaLife     = 14*time.Minute + 30*time.Second // the token lives for 15 minutes
	mostVias    = 1024
	mostHurried = 64
)

// via is an interaction that waits for its reply. Its token never leaves this package.
type via struct {
	id, app, token string
	component      bool // a press; else a command
	until          time.Time

	once     sync.Once
	acked    chan struct{} // closed once there was a first answer, or none is possible
	ackError error         // behind acked

	mu sync.Mutex
	// original tells that the next reply takes the place of the first answer: Discord's "thinking",
	// or the menu that one person sees. key is the piece that took it.
	original bool
	key      string
	dead     bool
}

// vias are the interactions that wait, the oldest of which go first.
type vias struct {
	mu    sync.Mutex
	known map[string]*via
	order []string
}

func newVias() *vias { return &vias{known: map[string]*via{}} }

func (v *vias) add(one *via) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	for len(v.order) > 0 && (len(v.order) >= mostVias || v.known[v.order[0]] == nil || v.known[v.order[0]].until.Before(now)) {
		delete(v.known, v.order[0])
		v.order = v.order[1:]
	}
	if v.known[one.id] != nil {
		return // told twice: the first one knows how far it is
	}
	v.known[one.id] = one
	v.order = append(v.order, one.id)
}

// get returns an interaction that can still be answered; nil = none.
func (v *vias) get(id string) *via {
	if id == "" {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	one := v.known[id]
	if one == nil || time.Now().After(one.until) {
		return nil
	}
	return one
}

// answer gives the first answer to an interaction, if there was none, and reports whether it did.
func (b *Bot) answer(ctx context.Context, v *via, kind int, data any) bool {
	mine := false
	v.once.Do(func() {
		mine = true
		defer close(v.acked)
		body := map[string]any{"type": kind}
		if data != nil {
			body["data"] = data
		}
		_, err := b.api.call(ctx, request{
			what: "answer interaction", method: http.MethodPost, url: discordgo.EndpointInteractionResponse(v.id, v.token),
			route: "answer interaction " + v.id, body: body, limit: answerLimit,
		})
		if err != nil && !hasCode(err, codeAcknowledged) {
			v.ackError = err
			v.kill()
			b.log.Warn("interaction not answered", "interaction", v.id, "error", err)
		}
	})
	return mine
}

// acknowledge tells Discord that a reply will come.
func (b *Bot) acknowledge(ctx context.Context, v *via) {
	if v.component {
		b.answer(ctx, v, updateLater, nil)
		return
	}
	b.answer(ctx, v, answerLater, map[string]any{"flags": flagEphemeral})
}

// whisper tells something to the person who made the interaction alone.
func (b *Bot) whisper(ctx context.Context, v *via, text string) {
	body := outgoing{Content: text, Flags: flagEphemeral}
	if b.answer(ctx, v, answerMessage, body) || v.isDead() {
		return
	}
	r := b.followUp(v, body, nil)
	if v.takeOriginal("") {
		r = b.original(v, http.MethodPatch, edited{Content: &text}, nil)
	}
	if _, err := b.api.call(ctx, r); err != nil {
		b.log.Info("interaction not answered", "interaction", v.id, "error", err)
	}
}

// followUp is the request for a further reply.
func (b *Bot) followUp(v *via, body outgoing, files []*discordgo.File) request {
	return request{
		what: "follow up interaction", method: http.MethodPost, url: discordgo.EndpointFollowupMessage(v.app, v.token) + "?wait=true",
		route: "follow up " + v.id, body: body, files: files, limit: uploadLimit,
	}
}

// original is the request that changes or deletes the first answer.
func (b *Bot) original(v *via, method string, body any, files []*discordgo.File) request {
	return request{
		what: "edit interaction", method: method, url: discordgo.EndpointInteractionResponseActions(v.app, v.token),
		route: "edit " + v.id, body: body, files: files, limit: uploadLimit,
	}
}

// takeOriginal reports whether a piece takes the place of the first answer. A piece that is sent
// again takes it again.
func (v *via) takeOriginal(key string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.original {
		return key != "" && v.key == key
	}
	v.original, v.key = false, key
	return true
}

func (v *via) kill() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dead = true
}

func (v *via) isDead() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.dead
}
