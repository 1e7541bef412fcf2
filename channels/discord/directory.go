package discord

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/bwmarrin/discordgo"

	"understudy/chat"
)

// most bounds what is remembered of channels, and of roles.
const most = 100_000

// directory knows channels, threads and roles, as far as they were told.
type directory struct {
	mu       sync.Mutex
	channels map[string]channel
	roles    map[string]role
}

func newDirectory() *directory {
	return &directory{channels: map[string]channel{}, roles: map[string]role{}}
}

func (d *directory) put(list ...channel) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range list {
		if len(d.channels) >= most {
			clear(d.channels) // whatever is needed is asked for again
		}
		if old, known := d.channels[c.ID]; known && c.Name == "" {
			c.Name = old.Name // events that are about something else leave it out
		}
		c.Name = oneLine(c.Name)
		d.channels[c.ID] = c
	}
}

func (d *directory) drop(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.channels, id)
}

func (d *directory) channel(id string) (channel, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, ok := d.channels[id]
	return c, ok
}

func (d *directory) putRoles(list ...role) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range list {
		if len(d.roles) >= most {
			clear(d.roles)
		}
		r.Name = oneLine(r.Name)
		d.roles[r.ID] = r
	}
}

func (d *directory) role(id string) (role, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok := d.roles[id]
	return r, ok
}

// join takes the channels, threads and roles of a server.
func (d *directory) join(g guild) {
	d.put(g.Channels...)
	d.put(g.Threads...)
	d.putRoles(g.Roles...)
}

// learn takes what an event says about channels and roles. It reports whether it was such an event.
func (d *directory) learn(kind string, data json.RawMessage) bool {
	switch kind {
	case "GUILD_UPDATE", "THREAD_LIST_SYNC":
		var g guild
		decode(data, &g)
		d.join(g)
	case "CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE":
		var c channel
		if decode(data, &c); c.ID != "" {
			d.put(c)
		}
	case "CHANNEL_DELETE", "THREAD_DELETE":
		var c channel
		decode(data, &c)
		d.drop(c.ID)
	case "GUILD_ROLE_CREATE", "GUILD_ROLE_UPDATE":
		var e struct {
			Role role `json:"role"`
		}
		if decode(data, &e); e.Role.ID != "" {
			d.putRoles(e.Role)
		}
	default:
		return false
	}
	return true
}

// title is what people call the place of an address, as far as that was told: the channel, with the
// thread behind it.
func (b *Bot) title(a chat.Address) string {
	c, _ := b.directory.channel(a.Conversation)
	t, _ := b.directory.channel(a.Thread)
	switch {
	case a.Kind == chat.Direct:
		return ""
	case c.Name != "" && t.Name != "":
		return c.Name + " / " + t.Name
	}
	return c.Name + t.Name // at most one is known
}

// decode reads what can be read: a field of an unexpected kind leaves only itself out.
func decode(data json.RawMessage, into any) { _ = json.Unmarshal(data, into) }

// channel returns what a channel is, from memory or from Discord.
func (b *Bot) channel(ctx context.Context, id string) (channel, error) {
	if c, ok := b.directory.channel(id); ok {
		return c, nil
	}
	data, err := b.api.call(ctx, request{what: "get channel", method: http.MethodGet, url: discordgo.EndpointChannel(id), route: "get channel " + id})
	if err != nil {
		return channel{}, err
	}
	var c channel
	decode(data, &c)
	if c.ID != id {
		return channel{}, &callError{what: "get channel", status: http.StatusOK, garbled: true}
	}
	b.directory.put(c)
	return c, nil
}
