package discord

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"understudy/channels"
)

// clocksApart is how far Discord's clock may be behind ours.
const clocksApart = 30 * time.Second

// tries remembers which posts of forums were perhaps opened. Discord recognises the key of a message that
// it is sent twice, but not that of a post.
type tries struct {
	mu    sync.Mutex
	first map[string]time.Time // by key, when it was tried first
}

// failed notes that a post was perhaps opened by a try that began at a time.
func (t *tries) failed(key string, began time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first == nil {
		t.first = map[string]time.Time{}
	}
	if len(t.first) >= mostPlanned {
		maps.DeleteFunc(t.first, func(_ string, at time.Time) bool { return began.Sub(at) > time.Hour })
	}
	if _, known := t.first[key]; !known && key != "" && len(t.first) < mostPlanned {
		t.first[key] = began
	}
}

func (t *tries) get(key string) (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.first[key]
	return at, ok && key != ""
}

func (t *tries) done(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.first, key)
}

// posted looks for a post that an earlier try opened all the same: one of the bot in the forum, of this
// name, with this text and from since then. "" = there is none. It fails with channels.Retry: without
// knowing, nothing is to be opened.
func (b *Bot) posted(ctx context.Context, forum, name, text string, since time.Time) (string, error) {
	id, err := b.findPost(ctx, forum, name, text, since.Add(-clocksApart))
	if err != nil {
		v := verdict(err, true)
		return "", &channels.SendError{Verdict: channels.Retry, After: v.After, Code: v.Code, Err: err}
	}
	return id, nil
}

func (b *Bot) findPost(ctx context.Context, forum, name, text string, since time.Time) (string, error) {
	var place struct {
		Guild string `json:"guild_id"`
	}
	if err := b.get(ctx, "get channel", discordgo.EndpointChannel(forum), &place); err != nil {
		return "", err
	}
	var active struct {
		Threads []struct {
			channel
			Owner string `json:"owner_id"`
		} `json:"threads"`
	}
	if err := b.get(ctx, "get threads", discordgo.EndpointGuildActiveThreads(place.Guild), &active); err != nil {
		return "", err
	}
	self := b.self.Load()
	for _, t := range active.Threads {
		if t.Parent != forum || t.Name != name || self != nil && t.Owner != self.ID {
			continue
		}
		data, err := b.api.call(ctx, request{
			what: "get message", method: http.MethodGet, url: discordgo.EndpointChannelMessage(t.ID, t.ID), route: "get message " + t.ID,
		})
		if hasCode(err, codeUnknownMessage) {
			continue
		}
		if err != nil {
			return "", err
		}
		var m message
		if decode(data, &m); m.Content == text && b.skew.Here(timestamp(m.Timestamp)).After(since) {
			return t.ID, nil
		}
	}
	return "", nil
}
