package inbound

import (
	"slices"
	"strings"

	"understudy/chat"
)

// anyone in an allowlist stands for every id.
const anyone = "*"

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
