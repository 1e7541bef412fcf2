package drill

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"understudy/internal/emulate/telegram"
)

// people are the users of Telegram. Everybody's private chat has the same number.
var people = map[string]int64{"alice": 1001, "bob": 1002, "carol": 1003}

// chats are the places that several people share.
var chats = map[string]int64{"ops": -2001, "forum": -1001}

// place is where something is said.
type place struct {
	chat  int64
	topic int
}

// placeOf reads "alice", "ops", "forum/7".
func placeOf(s string) (place, error) {
	name, topic, _ := strings.Cut(s, "/")
	p := place{chat: people[name]}
	if p.chat == 0 {
		p.chat = chats[name]
	}
	if p.chat == 0 {
		return p, fmt.Errorf("nobody knows a place called %q", name)
	}
	if topic != "" {
		if _, err := fmt.Sscanf(topic, "%d", &p.topic); err != nil {
			return p, fmt.Errorf("%q is no topic", topic)
		}
	}
	return p, nil
}

// String is how a script names the place of the bot's words: alice's chat needs no name.
func (p place) String() string {
	s := ""
	for _, names := range []map[string]int64{people, chats} {
		for name, id := range names {
			if id == p.chat {
				s = name
			}
		}
	}
	if p.topic != 0 {
		s += fmt.Sprintf("/%d", p.topic)
	}
	if s == "alice" {
		return "bot"
	}
	return "bot in " + s
}

// screen remembers what of the bot's words has been looked at.
type screen struct {
	srv  *telegram.Server
	seen map[int64]map[int]telegram.Message
}

// news returns a line for everything that changed on people's screens, by place and then in order,
// and how to remember it.
func (s *screen) news() (lines []string, remember func()) {
	next := map[int64]map[int]telegram.Message{}
	ids := []int64{people["alice"], people["bob"], people["carol"], chats["ops"], chats["forum"]}
	for _, id := range ids {
		next[id] = map[int]telegram.Message{}
		all := s.srv.Messages(id)
		for _, m := range all {
			if !m.FromBot {
				continue
			}
			next[id][m.ID] = m
			if line := change(s.seen[id], m, all); line != "" {
				lines = append(lines, line)
			}
		}
	}
	return lines, func() { s.seen = next }
}

// change describes what happened to a message, "" = nothing that anybody sees.
func change(seen map[int]telegram.Message, m telegram.Message, all []telegram.Message) string {
	before, known := seen[m.ID]
	var how []string
	switch {
	case !known && m.Deleted, known && before.Deleted:
		return ""
	case m.Deleted:
		how = append(how, "deletes")
	case known && before.Text == m.Text:
		return ""
	case known:
		how = append(how, "edits")
	}
	if !known {
		if m.Silent {
			how = append(how, "quietly")
		}
		if i := slices.IndexFunc(all, func(o telegram.Message) bool { return o.ID == m.ReplyTo }); i >= 0 {
			how = append(how, fmt.Sprintf("to %q", all[i].Text))
		}
	}
	line := place{m.Chat, m.Thread}.String()
	if len(how) > 0 {
		line += " (" + strings.Join(how, "; ") + ")"
	}
	return line + ": " + m.Text
}

// matches reports whether the lines are what was expected, {*} standing for anything.
func matches(want, got []string) bool {
	return slices.EqualFunc(want, got, func(w, g string) bool {
		if !strings.Contains(w, "{*}") {
			return w == g
		}
		pattern := strings.ReplaceAll(regexp.QuoteMeta(w), regexp.QuoteMeta("{*}"), "(?s:.*)")
		ok, err := regexp.MatchString("^"+pattern+"$", g)
		return err == nil && ok
	})
}
