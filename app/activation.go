package app

import (
	"context"
	"maps"
	"sync"

	"understudy/chat"
	"understudy/commands"
	"understudy/config"
	"understudy/inbound"
)

// activations are the groups in which an owner chose whether the bot has to be mentioned. They are
// forgotten by a restart.
type activations struct {
	mu     sync.Mutex
	chosen map[group]bool // group → whether a mention is needed
}

// group is one conversation of several people.
type group struct{ channel, account, space, conversation string }

// mostActivations bounds the choices that are kept.
const mostActivations = 1000

const (
	activationMention = "mention"
	activationAlways  = "always"
)

func groupOf(c commands.Call) group {
	return group{c.To.Channel, c.To.Account, c.In.Space, c.To.Conversation}
}

// switchboard implements commands.Activations.
type switchboard struct{ a *App }

// Activation implements commands.Activations.
func (s switchboard) Activation(c commands.Call) (mode string, chosen bool) {
	a := s.a
	a.activations.mu.Lock()
	needed, chosen := a.activations.chosen[groupOf(c)]
	a.activations.mu.Unlock()
	if !chosen {
		needed = a.mentionNeeded(c.In)
	}
	if needed {
		return activationMention, chosen
	}
	return activationAlways, chosen
}

// mentionNeeded is what the configuration says.
func (a *App) mentionNeeded(m chat.Inbound) bool {
	access := a.configuredAccess(a.cfg()).Access[inbound.Account{Channel: m.Address.Channel, Name: m.Address.Account}]
	rules, err := access.Compile()
	return err != nil || rules.Decide(m, inbound.Standing{}).NeedsMention
}

// SetActivation implements commands.Activations.
func (s switchboard) SetActivation(c commands.Call, mode string) {
	a := s.a
	a.activations.mu.Lock()
	if a.activations.chosen == nil || len(a.activations.chosen) >= mostActivations {
		a.activations.chosen = map[group]bool{}
	}
	a.activations.chosen[groupOf(c)] = mode == activationMention
	a.activations.mu.Unlock()
	a.reloading.Lock() // a new configuration must not be replaced by the old one
	defer a.reloading.Unlock()
	if err := a.inbound.Reload(a.access(a.cfg())); err != nil {
		a.log.ErrorContext(context.Background(), "activation_not_applied", "error", err.Error())
	}
}

// access is who may talk to the bot, and when it has to be mentioned.
func (a *App) access(cfg *config.Config) inbound.Config {
	c := a.configuredAccess(cfg)
	a.activations.mu.Lock()
	defer a.activations.mu.Unlock()
	for g, needed := range a.activations.chosen {
		k := inbound.Account{Channel: g.channel, Name: g.account}
		if x, ok := c.Access[k]; ok {
			c.Access[k] = activated(x, g, needed)
		}
	}
	return c
}

// activated is an account's access with one group's choice in it. It lets nobody in: where the group has
// no entry under the allowlist policy, it gets none.
func activated(x inbound.Access, g group, needed bool) inbound.Access {
	const others = "*"
	set := func(entries map[string]inbound.Group, listed bool) map[string]inbound.Group {
		entry, known := entries[g.conversation]
		if !known {
			entry, known = entries[others]
		}
		if !known && !listed {
			return entries
		}
		entry.RequireMention = &needed
		entries = maps.Clone(entries)
		if entries == nil {
			entries = map[string]inbound.Group{}
		}
		entries[g.conversation] = entry
		return entries
	}
	if g.space == "" || len(x.Spaces) == 0 {
		x.Groups = set(x.Groups, x.GroupPolicy == inbound.PolicyOpen)
		return x
	}
	id := g.space
	space, known := x.Spaces[id]
	if !known {
		id = others
		if space, known = x.Spaces[others]; !known {
			return x
		}
	}
	if space.Groups == nil { // with a list of its own every other conversation would be closed
		space.Groups = map[string]inbound.Group{others: {}}
	}
	space.Groups = set(space.Groups, false)
	x.Spaces = maps.Clone(x.Spaces)
	x.Spaces[g.space] = space
	return x
}
