package slack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// method is a method of the Web API. It runs with the lock held.
type method struct {
	run   func(*Server, Call) (answer, *refusal)
	scope string // needed, alternatives apart by "|"
	app   bool   // of the app token
}

var methods = map[string]method{
	"auth.test":                   {run: (*Server).authTest},
	"apps.connections.open":       {run: (*Server).openConnection, app: true},
	"bots.info":                   {run: (*Server).botsInfo, scope: "users:read"},
	"users.info":                  {run: (*Server).usersInfo, scope: "users:read"},
	"conversations.open":          {run: (*Server).conversationsOpen, scope: "im:write"},
	"conversations.info":          {run: (*Server).conversationsInfo, scope: "channels:read|groups:read|im:read|mpim:read"},
	"conversations.members":       {run: (*Server).conversationsMembers, scope: "channels:read|groups:read|im:read|mpim:read"},
	"conversations.history":       {run: (*Server).history, scope: "channels:history|groups:history|im:history|mpim:history"},
	"conversations.replies":       {run: (*Server).replies, scope: "channels:history|groups:history|im:history|mpim:history"},
	"chat.postMessage":            {run: (*Server).postMessage, scope: "chat:write"},
	"chat.postEphemeral":          {run: (*Server).postEphemeral, scope: "chat:write"},
	"chat.update":                 {run: (*Server).update, scope: "chat:write"},
	"chat.delete":                 {run: (*Server).remove, scope: "chat:write"},
	"chat.startStream":            {run: (*Server).startStream, scope: "chat:write"},
	"chat.appendStream":           {run: (*Server).appendStream, scope: "chat:write"},
	"chat.stopStream":             {run: (*Server).stopStream, scope: "chat:write"},
	"reactions.add":               {run: (*Server).reactionAdd, scope: "reactions:write"},
	"reactions.remove":            {run: (*Server).reactionRemove, scope: "reactions:write"},
	"reactions.get":               {run: (*Server).reactionsGet, scope: "reactions:read"},
	"assistant.threads.setStatus": {run: (*Server).setStatus, scope: "chat:write|assistant:write"},
	"files.getUploadURLExternal":  {run: (*Server).uploadURL, scope: "files:write"},
	"files.completeUploadExternal": {
		run: (*Server).completeUpload, scope: "files:write",
	},
	"files.info": {run: (*Server).filesInfo, scope: "files:read"},
}

func (s *Server) authTest(Call) (answer, *refusal) {
	return answer{
		"url": "https://understudy.slack.com/", "team": "Understudy", "user": s.cfg.BotName,
		"team_id": s.cfg.Team, "user_id": s.cfg.BotUser, "bot_id": s.cfg.Bot,
	}, nil
}

func (s *Server) openConnection(c Call) (answer, *refusal) {
	ticket := fmt.Sprintf("ticket-%d", s.next())
	s.tickets[ticket] = true
	return answer{"url": "ws://" + c.host + "/link/?ticket=" + ticket + "&app_id=" + s.cfg.SocketApp}, nil
}

func (s *Server) botsInfo(c Call) (answer, *refusal) {
	if c.Params["bot"] != s.cfg.Bot {
		return nil, refuse("bot_not_found")
	}
	return answer{"bot": answer{"id": s.cfg.Bot, "name": s.cfg.BotName, "app_id": s.cfg.App, "user_id": s.cfg.BotUser, "updated": 0}}, nil
}

func (s *Server) usersInfo(c Call) (answer, *refusal) {
	id := c.Params["user"]
	if id == "" || id[0] != 'U' && id[0] != 'W' {
		return nil, refuse("user_not_found")
	}
	u := s.user(id)
	return answer{"user": answer{
		"id": u.ID, "name": strings.ToLower(strings.ReplaceAll(u.Name, " ", ".")), "real_name": u.Name, "is_bot": id == s.cfg.BotUser,
		"profile": answer{"display_name": u.Name, "real_name": u.Name},
	}}, nil
}

func (s *Server) conversationsOpen(c Call) (answer, *refusal) {
	user := c.Params["users"]
	if user == "" || strings.Contains(user, ",") {
		return nil, refuse("invalid_arguments")
	}
	for _, id := range slices.Sorted(maps.Keys(s.channels)) {
		if ch := s.channels[id]; ch.Kind == "im" && ch.With == user {
			return answer{"channel": answer{"id": id}}, nil
		}
	}
	id := "D" + user[1:]
	s.channel(id).With = user
	return answer{"channel": answer{"id": id}}, nil
}

func (s *Server) conversationsInfo(c Call) (answer, *refusal) {
	ch, ok := s.channels[c.Params["channel"]]
	if !ok {
		return nil, refuse("channel_not_found")
	}
	return answer{"channel": answer{
		"id": ch.ID, "name": ch.Name, "is_im": ch.Kind == "im", "is_mpim": ch.Kind == "mpim", "is_channel": ch.Kind == "channel",
		"is_group": ch.Kind == "group", "is_archived": ch.Archived, "is_member": !ch.NotMember, "user": ch.With,
	}}, nil
}

func (s *Server) conversationsMembers(c Call) (answer, *refusal) {
	ch, ok := s.channels[c.Params["channel"]]
	if !ok {
		return nil, refuse("channel_not_found")
	}
	members := []string{s.cfg.BotUser}
	for _, m := range ch.messages {
		if m.User != "" && !slices.Contains(members, m.User) {
			members = append(members, m.User)
		}
	}
	return answer{"members": members}, nil
}

const mostHistory = 999

// history lists messages that are not replies, the newest first.
func (s *Server) history(c Call) (answer, *refusal) {
	ch, no := s.readable(c)
	if no != nil {
		return nil, no
	}
	return s.page(c, ch, func(m *Message) bool { return m.isRoot() || m.subtype == "thread_broadcast" }, true), nil
}

// replies lists a thread, its root first and the oldest first.
func (s *Server) replies(c Call) (answer, *refusal) {
	ch, no := s.readable(c)
	if no != nil {
		return nil, no
	}
	root := c.Params["ts"]
	if ch.find(root) == nil {
		return nil, refuse("thread_not_found")
	}
	out := s.page(c, ch, func(m *Message) bool { return m.Thread == root && m.TS != root }, false)
	out["messages"] = append([]any{s.wire(ch, ch.find(root))}, out["messages"].([]any)...)
	return out, nil
}

func (s *Server) readable(c Call) (*channel, *refusal) {
	ch, ok := s.channels[c.Params["channel"]]
	switch {
	case !ok:
		return nil, refuse("channel_not_found")
	case ch.NotMember:
		return nil, refuse("not_in_channel")
	}
	return ch, nil
}

// page picks the messages between oldest and latest, from the end that its order begins with.
func (s *Server) page(c Call, ch *channel, want func(*Message) bool, newestFirst bool) answer {
	var found []*Message
	for _, m := range ch.messages {
		late := c.has("oldest") && compareTS(m.TS, c.Params["oldest"]) <= 0
		early := c.has("latest") && compareTS(m.TS, c.Params["latest"]) > 0
		if !m.Deleted && m.OnlyFor == "" && want(m) && !late && !early {
			found = append(found, m)
		}
	}
	limit := min(max(c.integer("limit", 100), 1), mostHistory)
	more := len(found) > limit
	if newestFirst {
		slices.Reverse(found)
	}
	found = found[:min(limit, len(found))]
	list := []any{}
	for _, m := range found {
		list = append(list, s.wire(ch, m))
	}
	return answer{"messages": list, "has_more": more, "response_metadata": answer{"next_cursor": ""}}
}

// compareTS orders timestamps, whose parts may differ in length.
func compareTS(a, b string) int {
	pad := func(ts string) string {
		sec, frac, _ := strings.Cut(ts, ".")
		return fmt.Sprintf("%020s.%-6s", sec, frac)
	}
	return cmp.Compare(pad(a), pad(b))
}

func (s *Server) setStatus(c Call) (answer, *refusal) {
	ch, ok := s.channels[c.Params["channel_id"]]
	switch {
	case !ok:
		return nil, refuse("channel_not_found")
	case !c.has("thread_ts"):
		return nil, refuse("invalid_thread_ts")
	case strings.Contains(c.Params["loading_messages"], ","):
		return nil, refuse("invalid_arguments")
	}
	s.statuses[ch.ID+" "+c.Params["thread_ts"]] = c.Params["status"]
	return answer{}, nil
}

func (s *Server) reacted(c Call) (*Message, string, *refusal) {
	name := c.Params["name"]
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_-+'") != "" {
		return nil, "", refuse("invalid_name")
	}
	if s.channels[c.Params["channel"]] == nil {
		return nil, "", refuse("channel_not_found")
	}
	m := s.lookup(c.Params["channel"], c.Params["timestamp"])
	if m == nil || m.Deleted {
		return nil, "", refuse("message_not_found")
	}
	return m, name, nil
}

func (s *Server) reactionAdd(c Call) (answer, *refusal) {
	m, name, no := s.reacted(c)
	switch {
	case no != nil:
		return nil, no
	case slices.Contains(m.reactions[name], s.cfg.BotUser):
		return nil, refuse("already_reacted")
	}
	s.react(m, name, s.cfg.BotUser)
	return answer{}, nil
}

func (s *Server) react(m *Message, name, user string) {
	if m.reactions == nil {
		m.reactions = map[string][]string{}
	}
	m.reactions[name] = append(m.reactions[name], user)
}

func (s *Server) reactionRemove(c Call) (answer, *refusal) {
	m, name, no := s.reacted(c)
	if no != nil {
		return nil, no
	}
	i := slices.Index(m.reactions[name], s.cfg.BotUser)
	if i < 0 {
		return nil, refuse("no_reaction")
	}
	m.reactions[name] = slices.Delete(m.reactions[name], i, i+1)
	return answer{}, nil
}

func (s *Server) reactionsGet(c Call) (answer, *refusal) {
	ch := s.channels[c.Params["channel"]]
	m := s.lookup(c.Params["channel"], c.Params["timestamp"])
	if m == nil || m.Deleted {
		return nil, refuse("message_not_found")
	}
	var list []any
	for _, name := range slices.Sorted(maps.Keys(m.reactions)) {
		list = append(list, answer{"name": name, "users": m.reactions[name], "count": len(m.reactions[name])})
	}
	out := s.wire(ch, m)
	out["reactions"] = list
	return answer{"type": "message", "channel": ch.ID, "message": out}, nil
}
