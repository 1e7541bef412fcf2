package app

import (
	"understudy/channels/discord"
	"understudy/channels/slack"
	"understudy/chat"
	"understudy/config"
	"understudy/session"
)

// belonging is where a message belongs: the agent that answers it, the key of its session, and the key
// whose settings that session inherits ("" = none).
type belonging struct{ agent, key, parent string }

// belongs finds out where a message belongs; see the function.
func (a *App) belongs(m chat.Inbound) belonging {
	return belongs(a.cfg(), m, a.inbound.Former(m.Address)...)
}

// belongs finds out where a message belongs (spec/chat.md §1.1, §1.2); former are the ids that its
// conversation had before. It is pure. Without a sender, roles and space it is that of the place in
// general.
func belongs(cfg *config.Config, m chat.Inbound, former ...string) belonging {
	agent := cfg.Route(m, former...)
	at := personal(cfg.Session, m)
	return belonging{agent, session.Key(agent, at, cfg.Session), session.ParentKey(agent, at, cfg.Session)}
}

// personal is the address that a message's key is made of. Where direct messages of all channels share
// one session per person, the person has to stand in it: Slack and Discord call a private conversation
// by an id of its own.
func personal(cfg session.Config, m chat.Inbound) chat.Address {
	at := m.Address
	if cfg.WithDefaults().DMScope == session.ScopePeer && at.Kind == chat.Direct && m.Sender.ID != "" &&
		(at.Channel == slack.Channel || at.Channel == discord.Channel) {
		at.Conversation = m.Sender.ID
	}
	return at
}
