package discord

import (
	"slices"
	"strconv"
	"time"
)

// Types of channels.
const (
	TextChannel   = 0
	DirectChannel = 1
	GroupDirect   = 3
	NewsChannel   = 5
	PublicThread  = 11
	PrivateThread = 12
	Forum         = 15
	Media         = 16
)

// User is a person or a bot.
type User struct {
	ID         string `json:"id"`
	Username   string `json:"username"`
	GlobalName string `json:"global_name,omitempty"`
	Bot        bool   `json:"bot,omitempty"`
}

// Role is a role of a guild. BotID makes it the managed role of a bot.
type Role struct {
	ID, Name, BotID string
}

// Guild is a server. Members lists the roles of its members; who is not listed has none. Of an Unavailable
// one a session learns no more than the id. Forbidden are rights that nobody has there.
type Guild struct {
	ID, Name    string
	Unavailable bool
	Forbidden   int64
	Roles       []Role
	Members     map[string][]string
}

// Channel is a place to talk: a channel, a thread (its Parent is the channel) or a direct message
// (its Recipients are the people). Forbidden and Permitted are rights that it takes from everybody, and gives
// the bot.
type Channel struct {
	ID, Guild, Parent, Name string
	Type                    int
	Recipients              []string
	Archived, Locked        bool
	Forbidden, Permitted    int64
	owner                   string
	typing                  []time.Time
}

func (c *Channel) thread() bool {
	return c.Type == PublicThread || c.Type == PrivateThread || c.Type == 10
}

func (c *Channel) forum() bool { return c.Type == Forum || c.Type == Media }

// AddGuild makes a server known; those who are connected are told.
func (s *Server) AddGuild(g Guild) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.guilds = append(s.guilds, &g)
	s.dispatch("GUILD_CREATE", s.guildWire(&g))
}

// AddChannel makes a channel or thread known; those who are connected are told.
func (s *Server) AddChannel(c Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addChannel(&c)
}

func (s *Server) addChannel(c *Channel) {
	s.channels[c.ID] = c
	switch {
	case c.Guild == "":
	case c.thread():
		s.dispatch("THREAD_CREATE", s.channelWire(c))
	default:
		s.dispatch("CHANNEL_CREATE", s.channelWire(c))
	}
}

// Hide adds a channel without telling anybody.
func (s *Server) Hide(c Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[c.ID] = &c
}

// RemoveChannel deletes a channel or thread; those who are connected are told.
func (s *Server) RemoveChannel(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[id]
	if c == nil {
		return
	}
	delete(s.channels, id)
	kind := "CHANNEL_DELETE"
	if c.thread() {
		kind = "THREAD_DELETE"
	}
	s.dispatch(kind, s.channelWire(c))
}

// Archive archives a thread, and locks it if asked.
func (s *Server) Archive(id string, locked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[id]; c != nil {
		c.Archived, c.Locked = true, locked
		s.dispatch("THREAD_UPDATE", s.channelWire(c))
	}
}

// ChannelState returns what a channel is; the zero value if there is none.
func (s *Server) ChannelState(id string) Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[id]; c != nil {
		out := *c
		out.typing = nil
		return out
	}
	return Channel{}
}

// SetUser gives a user a name.
func (s *Server) SetUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[u.ID] = u
}

// Deny makes every send to a channel fail with a status and a code of Discord; status 0 ends that.
func (s *Server) Deny(channel string, status, code int, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if status == 0 {
		delete(s.denied, channel)
		return
	}
	s.denied[channel] = denial{status, code, message}
}

// Typing returns when the bot showed in a channel that it types.
func (s *Server) Typing(channel string) []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[channel]; c != nil {
		return slices.Clone(c.typing)
	}
	return nil
}

// Commands returns the JSON of the registered commands of a guild, or of "" for all.
func (s *Server) Commands(guild string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.commands[guild])
}

// DropCommands removes all registered commands, as somebody else with the token could.
func (s *Server) DropCommands() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.commands)
}

// user returns a user; the lock is held.
func (s *Server) user(id string) User {
	if id == s.botID {
		return User{ID: id, Username: s.cfg.Name, Bot: true}
	}
	if u, ok := s.users[id]; ok {
		return u
	}
	return User{ID: id, Username: "user" + id}
}

func (s *Server) guild(id string) *Guild {
	i := slices.IndexFunc(s.guilds, func(g *Guild) bool { return g.ID == id })
	if i < 0 {
		return nil
	}
	return s.guilds[i]
}

func (s *Server) channelWire(c *Channel) map[string]any {
	out := map[string]any{"id": c.ID, "type": c.Type, "last_message_id": s.last(c)}
	if c.Guild != "" {
		out["guild_id"], out["name"] = c.Guild, c.Name
	}
	if c.Parent != "" {
		out["parent_id"] = c.Parent
	}
	if c.thread() {
		out["owner_id"] = c.owner
		out["thread_metadata"] = map[string]any{"archived": c.Archived, "locked": c.Locked, "auto_archive_duration": 1440}
	}
	if c.Guild != "" && !c.thread() {
		out["permission_overwrites"] = []any{
			map[string]any{"id": c.Guild, "type": 0, "allow": "0", "deny": strconv.FormatInt(c.Forbidden, 10)},
			map[string]any{"id": s.botID, "type": 1, "allow": strconv.FormatInt(c.Permitted, 10), "deny": "0"},
		}
	}
	if c.Guild == "" {
		people := []User{}
		for _, id := range c.Recipients {
			people = append(people, s.user(id))
		}
		out["recipients"] = people
	}
	return out
}

// last is the id of the last message of a channel, or of the last post of a forum; nil = there is none.
// A message that is deleted stays the last one.
func (s *Server) last(c *Channel) any {
	last := uint64(0)
	for _, m := range s.messages[c.ID] {
		if id, err := strconv.ParseUint(m.ID, 10, 64); err == nil && !m.Ephemeral {
			last = max(last, id)
		}
	}
	for _, t := range s.channels {
		if id, err := strconv.ParseUint(t.ID, 10, 64); err == nil && c.forum() && t.Parent == c.ID {
			last = max(last, id)
		}
	}
	if last == 0 {
		return nil
	}
	return strconv.FormatUint(last, 10)
}

// profile is a guild as REST describes it.
func (s *Server) profile(g *Guild) map[string]any {
	const all = 1<<50 - 1 - 1<<3 // but administrator
	roles := []any{map[string]any{"id": g.ID, "name": "@everyone", "permissions": strconv.FormatInt(all&^g.Forbidden, 10)}}
	for _, r := range g.Roles {
		roles = append(roles, map[string]any{"id": r.ID, "name": r.Name, "permissions": "0"})
	}
	return map[string]any{"id": g.ID, "name": g.Name, "owner_id": "1", "roles": roles}
}

func (s *Server) guildWire(g *Guild) map[string]any {
	rooms, threads, roles := []any{}, []any{}, []any{}
	for _, c := range s.channels {
		switch {
		case c.Guild != g.ID:
		case c.thread() && c.Archived: // only active ones are told
		case c.thread():
			threads = append(threads, s.channelWire(c))
		default:
			room := s.channelWire(c)
			delete(room, "guild_id") // the real event leaves it out
			rooms = append(rooms, room)
		}
	}
	for _, r := range g.Roles {
		role := map[string]any{"id": r.ID, "name": r.Name, "managed": r.BotID != ""}
		if r.BotID != "" {
			role["tags"] = map[string]any{"bot_id": r.BotID}
		}
		roles = append(roles, role)
	}
	return map[string]any{
		"id": g.ID, "name": g.Name, "roles": roles, "channels": rooms, "threads": threads, "member_count": len(g.Members) + 1, "large": false, "unavailable": false,
		"members": []any{map[string]any{"user": s.user(s.botID), "roles": []string{}}}, "emojis": []any{}, "features": []any{}, "voice_states": []any{}, "presences": []any{},
	}
}

// memberWire is a member as events describe it beside the user.
func (s *Server) memberWire(guild, user string) map[string]any {
	roles := []string{}
	if g := s.guild(guild); g != nil && g.Members[user] != nil {
		roles = g.Members[user]
	}
	return map[string]any{"roles": roles, "nick": nil, "joined_at": "2020-01-01T00:00:00+00:00", "deaf": false, "mute": false}
}
