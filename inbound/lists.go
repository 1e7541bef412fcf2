package inbound

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"understudy/chat"
)

// anyone in an allowlist stands for every id.
const anyone = "*"

// groupPrefix begins the entry of an allowlist that stands for a named group of ids.
const groupPrefix = "accessGroup:"

// lists reports whether a list names the sender himself.
func lists(list []string, m chat.Inbound) bool {
	return slices.ContainsFunc(list, func(id string) bool { return sameID(id, m.Address.Channel, m.Sender.ID) })
}

// sameID compares a configured id, which may begin with the channel's name, with a sender's.
func sameID(id, channel, sender string) bool {
	id = strings.TrimSpace(id)
	if head, tail, ok := strings.Cut(id, ":"); ok && strings.EqualFold(head, channel) {
		id = strings.TrimSpace(tail)
	}
	return id != anyone && id != "" && id == sender
}

// hasRole reports whether a sender has one of the roles.
func hasRole(roles []string, m chat.Inbound) bool {
	return slices.ContainsFunc(roles, func(id string) bool {
		id = strings.TrimSpace(id)
		return id != "" && slices.Contains(m.Roles, id)
	})
}

// validateGroups reports wrong named groups. They hold ids only: a wildcard or another group in one
// would hide how far an allowlist reaches.
func validateGroups(groups map[string][]string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		if strings.TrimSpace(name) == "" {
			errs = append(errs, errors.New("accessGroups: a group has no name"))
		}
		for _, id := range groups[name] {
			if id = strings.TrimSpace(id); id == "" || id == anyone || strings.HasPrefix(id, groupPrefix) {
				errs = append(errs, fmt.Errorf("accessGroups.%s: %q is not an id", name, id))
			}
		}
	}
	return errors.Join(errs...)
}

// expand puts ids in the place of the named groups in a list. A list never becomes nil, which would
// mean that there is none.
func expand(list []string, groups map[string][]string) ([]string, error) {
	if list == nil {
		return nil, nil
	}
	out := make([]string, 0, len(list))
	var errs []error
	for _, id := range list {
		name, isGroup := strings.CutPrefix(strings.TrimSpace(id), groupPrefix)
		ids, known := groups[name]
		switch {
		case !isGroup:
			out = append(out, id)
		case !known:
			errs = append(errs, fmt.Errorf("there is no accessGroup %q", name))
		default:
			out = append(out, ids...)
		}
	}
	return out, errors.Join(errs...)
}

// resolve returns the rules with ids in the place of named groups.
func (a Access) resolve(groups map[string][]string) (Access, error) {
	var errs []error
	list := func(key string, ids []string) []string {
		out, err := expand(ids, groups)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
		return out
	}
	entry := func(key string, g Group) Group {
		g.AllowFrom = list(key, g.AllowFrom)
		return g
	}
	entries := func(key string, from map[string]Group) map[string]Group {
		if from == nil {
			return nil
		}
		out := make(map[string]Group, len(from))
		for _, id := range slices.Sorted(maps.Keys(from)) {
			out[id] = entry(key+"."+id, from[id])
		}
		return out
	}
	a.AllowFrom, a.GroupAllowFrom = list("allowFrom", a.AllowFrom), list("groupAllowFrom", a.GroupAllowFrom)
	a.Groups = entries("groups", a.Groups)
	spaces := a.Spaces
	a.Spaces = make(map[string]Space, len(spaces))
	for _, id := range slices.Sorted(maps.Keys(spaces)) {
		key := "spaces." + id
		a.Spaces[id] = Space{Group: entry(key, spaces[id].Group), Groups: entries(key, spaces[id].Groups)}
	}
	return a, errors.Join(errs...)
}
