package discord

import (
	"regexp"
	"slices"
	"strings"

	"understudy/chat"
)

// token is a mention in a text: of a user, a role or a channel.
var token = regexp.MustCompile(`<(@!?|@&|#)(\d{1,20})>`)

// addressing fills in the text, and what it says about whom it is for.
func (r *run) addressing(in *chat.Inbound, m *message, self *user) {
	toBot := refer(in, m, self)
	roles := slices.DeleteFunc(slices.Clone(m.Roles), func(id string) bool { return r.mine(id, self) })
	named := strings.Contains(m.Content, "<@"+self.ID+">") || strings.Contains(m.Content, "<@!"+self.ID+">")
	switch {
	case named, len(roles) < len(m.Roles):
		in.Mentioned = true
	case toBot: // a reply also lists the author it answers as mentioned
		in.Mentioned = *r.cfg.ImplicitMentions.ReplyToBot
	case mentionedIn(m.Mentions, self.ID):
		in.Mentioned = true
	}
	text := r.readable(m, self.ID)
	in.Text = strings.TrimSpace(text)
	for _, p := range r.patterns {
		in.Mentioned = in.Mentioned || p.MatchString(in.Text)
	}
	others := slices.ContainsFunc(m.Mentions, func(u user) bool { return u.ID != self.ID && u.ID != in.Sender.ID })
	in.MentionsOthers = !in.Mentioned && (others || len(roles) > 0)
}

// mine reports whether a role is the one that Discord made for this bot.
func (r *run) mine(id string, self *user) bool {
	known, ok := r.directory.role(id)
	return ok && known.Tags != nil && known.Tags.Bot == self.ID
}

// readable is the text of a message with names in place of ids, without the bot's own name in front.
func (r *run) readable(m *message, selfID string) string {
	text := m.Content
	var out strings.Builder
	leading := selfID != ""
	for {
		at := token.FindStringSubmatchIndex(text)
		if at == nil {
			break
		}
		before, kind, id := text[:at[0]], text[at[2]:at[3]], text[at[4]:at[5]]
		leading = leading && strings.TrimSpace(before) == ""
		text = text[at[1]:]
		if leading && r.isSelf(kind, id, selfID) {
			text = strings.TrimLeft(text, " \t\n,:")
			leading = false
			continue
		}
		leading = false
		out.WriteString(before)
		out.WriteString(r.label(m, kind, id))
	}
	out.WriteString(text)
	return out.String()
}

func (r *run) isSelf(kind, id, selfID string) bool {
	if kind == "@&" {
		return r.mine(id, &user{ID: selfID})
	}
	return kind != "#" && id == selfID
}

// label is how people see a mention; what is not known stays as it is.
func (r *run) label(m *message, kind, id string) string {
	switch kind {
	case "#":
		if c, ok := r.directory.channel(id); ok && c.Name != "" {
			return "#" + c.Name
		}
	case "@&":
		if known, ok := r.directory.role(id); ok && known.Name != "" {
			return "@" + strings.TrimPrefix(known.Name, "@")
		}
	default:
		for _, u := range m.Mentions {
			if u.ID == id {
				return "@" + u.name(nil)
			}
		}
		if self := r.self.Load(); self != nil && self.ID == id {
			return "@" + self.name(nil)
		}
	}
	return "<" + kind + id + ">"
}
