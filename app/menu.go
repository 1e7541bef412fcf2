package app

import (
	"context"
	"slices"

	"understudy/channels"
	"understudy/chat"
	"understudy/commands"
)

// menu is what platforms show of the commands.
func menu(specs []commands.Spec) []channels.CommandInfo {
	var list []channels.CommandInfo
	for _, s := range specs {
		if !s.Hidden {
			list = append(list, channels.CommandInfo{Name: s.Name, Description: s.Help, Args: s.Usage, Options: options(s)})
		}
	}
	return list
}

// options are the arguments of a command one by one. Choices that are all that is allowed are shown by
// the platform itself.
func options(s commands.Spec) []channels.CommandOption {
	var list []channels.CommandOption
	for _, a := range s.Args {
		list = append(list, channels.CommandOption{
			Name: a.Name, Description: a.Help, Required: a.Required, Choices: a.Choices, Complete: len(a.Choices) == 0 && a.Completes(),
		})
	}
	return list
}

// complete is a channels.Completer.
func (a *App) complete(ctx context.Context, q channels.Completion) []chat.Button {
	in := chat.Inbound{Address: q.Address, Sender: q.Sender, Space: q.Space, Roles: q.Roles}
	at := a.belongs(in)
	return a.commands.Complete(ctx, commands.Call{
		Agent: at.agent, Key: at.key, Parent: at.parent, To: q.Address, In: in, Owner: a.isKnownOwner(ctx, in),
	}, q.Command, q.Option, q.Text)
}

// isKnownOwner reports whether somebody is an owner, as far as that can be told without a message: for
// suggestions, which give no rights.
func (a *App) isKnownOwner(ctx context.Context, m chat.Inbound) bool {
	name := m.Address.Channel + ":" + m.Sender.ID
	if m.Sender.Local || slices.Contains(a.cfg().Commands.OwnerAllowFrom, name) {
		return true
	}
	_, known := a.ownerAddress(ctx, name)
	return known
}

// mayComplete reports whether somebody may be shown what commands could mean.
func (a *App) mayComplete(ctx context.Context, m chat.Inbound) bool {
	return a.inbound.Authorised(ctx, m) && a.mayCommand(m)
}

// mayCommand reports whether somebody who is let in, and is no owner, may use commands.
func (a *App) mayCommand(m chat.Inbound) bool {
	return m.Sender.Local || a.cfg().MayCommand(m.Address.Channel, m.Sender.ID)
}
