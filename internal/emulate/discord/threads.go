package discord

import (
	"encoding/json"
	"net/http"
	"slices"
	"unicode/utf8"
)

const longestName = 100

type threadBody struct {
	Name    string          `json:"name"`
	Archive int             `json:"auto_archive_duration"`
	Message json.RawMessage `json:"message"`
}

func readThread(c Call) (threadBody, *refusal) {
	var b threadBody
	n := 0
	if json.Unmarshal(c.Body, &b) == nil {
		n = utf8.RuneCountInString(b.Name)
	}
	if n == 0 || n > longestName {
		return b, invalid("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
	}
	if b.Archive != 0 && !slices.Contains([]int{60, 1440, 4320, 10080}, b.Archive) {
		return b, invalid("auto_archive_duration", "BASE_TYPE_CHOICES", "Value must be one of (60, 1440, 4320, 10080).")
	}
	return b, nil
}

// branch opens a thread on a message; it has the id of the message.
func (s *Server) branch(c Call, to *Channel, m *Message) any {
	b, r := readThread(c)
	switch {
	case r != nil:
		return r
	case to.Guild == "" || to.thread() || to.forum():
		return refuse(http.StatusBadRequest, 50024, "Cannot execute action on this channel type")
	case s.channels[m.ID] != nil:
		return refuse(http.StatusBadRequest, 160004, "A thread has already been created for this message")
	}
	t := &Channel{ID: m.ID, Guild: to.Guild, Parent: to.ID, Name: b.Name, Type: PublicThread, owner: s.botID}
	s.addChannel(t)
	return s.channelWire(t)
}

// post opens a post in a forum.
func (s *Server) post(c Call, to *Channel) any {
	b, r := readThread(c)
	if r != nil {
		return r
	}
	if !to.forum() {
		return refuse(http.StatusBadRequest, 50024, "Cannot execute action on this channel type")
	}
	t := &Channel{ID: s.newID(), Guild: to.Guild, Parent: to.ID, Name: b.Name, Type: PublicThread, owner: s.botID}
	_, m, r := s.compose(c, b.Message, t)
	if r != nil {
		return r
	}
	m.ID = t.ID
	s.addChannel(t)
	s.add(m)
	out := s.channelWire(t)
	out["message"] = s.messageWire(m, false)
	return out
}

// Posts returns the ids of the posts of a forum.
func (s *Server) Posts(forum string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, c := range s.channels {
		if c.Parent == forum {
			out = append(out, c.ID)
		}
	}
	slices.Sort(out)
	return out
}

// activeThreads lists the threads of a guild that are not archived.
func (s *Server) activeThreads(guild string) any {
	if s.guild(guild) == nil {
		return refuse(http.StatusNotFound, 10004, "Unknown Guild")
	}
	list := []any{}
	for _, c := range s.channels {
		if c.Guild == guild && c.thread() && !c.Archived {
			list = append(list, s.channelWire(c))
		}
	}
	return map[string]any{"threads": list, "members": []any{}}
}

// modify changes a thread's state.
func (s *Server) modify(c Call, to *Channel) any {
	var b struct {
		Archived *bool `json:"archived"`
		Locked   *bool `json:"locked"`
	}
	if json.Unmarshal(c.Body, &b) != nil || !to.thread() {
		return invalid("_errors", "BASE_TYPE_BAD_TYPE", "unreadable")
	}
	if (to.Locked || b.Locked != nil) && !s.cfg.ManagesThreads {
		return refuse(http.StatusForbidden, 50013, "Missing Permissions")
	}
	if b.Archived != nil {
		to.Archived = *b.Archived
	}
	if b.Locked != nil {
		to.Locked = *b.Locked
	}
	s.dispatch("THREAD_UPDATE", s.channelWire(to))
	return s.channelWire(to)
}
