package discord

import (
	"context"
	"time"

	"understudy/channels"
	"understudy/chat"
)

const (
	suggestLimit    = 2500 * time.Millisecond // Discord waits 3 s, and for these there is no "later"
	mostSuggestions = 25
	longestChoice   = 100 // characters of its name, and of its value
	mostSuggesting  = 16
)

type choice struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// suggest answers a request for suggestions beside the queue. When too many are asked for at once,
// some get none.
func (r *run) suggest(ctx context.Context, i *interaction) {
	select {
	case r.busy <- struct{}{}:
	default:
		return
	}
	t := r.newTicket(i)
	r.work.Go(func() {
		defer func() { <-r.busy }()
		defer r.survive("INTERACTION_CREATE", func() {})
		ctx, cancel := context.WithTimeout(ctx, suggestLimit)
		defer cancel()
		choices := r.suggestions(ctx, i)
		if ctx.Err() == nil {
			r.answer(ctx, t.via, answerComplete, map[string]any{"choices": choices})
		}
	})
}

// suggestions asks the completer, for a person who may use the command.
func (r *run) suggestions(ctx context.Context, i *interaction) []choice {
	out := []choice{}
	if r.deps.Complete == nil || r.deps.Authorised == nil {
		return out
	}
	q := channels.Completion{Address: r.address(ctx, i.ChannelID, i.Guild), Space: i.Guild, Sender: sender(i), Roles: rolesOf(i)}
	q.Command, _ = r.menu.command(i.Data.Name)
	for _, o := range i.Data.Options {
		if o.Focused {
			q.Option, q.Text = o.Name, o.text()
		}
	}
	asked := chat.Inbound{
		EventKey: r.eventKey("i:" + i.ID), Address: q.Address, Space: q.Space, Sender: q.Sender, Roles: q.Roles,
		Text: "/" + q.Command, Mentioned: true, At: time.Now().UTC(),
	}
	if q.Option == "" || !r.deps.Authorised(ctx, asked) {
		return out
	}
	for _, b := range r.deps.Complete(ctx, q) {
		value := b.Command
		if value == "" {
			value = b.Label
		}
		if value == "" || len([]rune(value)) > longestChoice { // a part of a value would be another one
			continue
		}
		if out = append(out, choice{Name: clip(label(b), longestChoice), Value: value}); len(out) == mostSuggestions {
			break
		}
	}
	return out
}
