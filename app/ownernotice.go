package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"understudy/channels"
	"understudy/chat"
	"understudy/inbound"
)

// owners knows where the owners can be told what concerns them: an owner is known by the ids of the
// configuration, and a platform cannot be asked for a conversation with an id.
type owners struct {
	mu    sync.Mutex
	known map[string]chat.Address // by owner, as in commands.ownerAllowFrom
	told  map[string]bool         // subjects of which they were told
}

// The place of the addresses among the cursors, and the name of the latest one: the only one for an
// owner by pairing, who is in no list.
const (
	ownerCursors = "owner"
	latestOwner  = "latest"
)

// mostSubjects bounds how many subjects are remembered.
const mostSubjects = 1024

// noteOwner remembers the conversation of an owner who writes privately.
func (a *App) noteOwner(ctx context.Context, m inbound.Message) {
	to := m.In.Address
	if !m.Owner || m.In.Sender.Local || to.Kind != chat.Direct {
		return
	}
	to.Thread = ""
	for _, name := range []string{to.Channel + ":" + m.In.Sender.ID, latestOwner} {
		a.owners.mu.Lock()
		same := a.owners.known[name] == to
		if a.owners.known == nil {
			a.owners.known = map[string]chat.Address{}
		}
		a.owners.known[name] = to
		a.owners.mu.Unlock()
		if same {
			continue
		}
		text, err := json.Marshal(to)
		if err == nil {
			err = a.setOwner(ctx, name, string(text))
		}
		if err != nil {
			a.log.WarnContext(ctx, "owner_not_remembered", "error", err.Error())
		}
	}
}

func (a *App) setOwner(ctx context.Context, name, address string) error {
	c, err := inbound.OpenCursor(ctx, a.db, ownerCursors, "", name)
	if err != nil {
		return err
	}
	return c.SetValue(ctx, address)
}

// ownerAddress returns the conversation of an owner.
func (a *App) ownerAddress(ctx context.Context, name string) (to chat.Address, ok bool) {
	a.owners.mu.Lock()
	to, ok = a.owners.known[name]
	a.owners.mu.Unlock()
	if ok {
		return to, true
	}
	c, err := inbound.OpenCursor(ctx, a.db, ownerCursors, "", name)
	if err != nil {
		return to, false
	}
	text, err := c.Value(ctx)
	if err != nil || text == "" {
		return to, false
	}
	return to, json.Unmarshal([]byte(text), &to) == nil
}

// tellOwner says something once about a subject to the first owner who can be reached: not through the
// account or conversation that it is about. Nobody there is no error, only false; the log has it anyway.
func (a *App) tellOwner(ctx context.Context, subject, text string, about chat.Address) bool {
	a.owners.mu.Lock()
	told := a.owners.told[subject]
	if a.owners.told == nil || len(a.owners.told) >= mostSubjects {
		a.owners.told = map[string]bool{}
	}
	a.owners.told[subject] = true
	a.owners.mu.Unlock()
	if told {
		return true
	}
	for _, name := range append(append([]string(nil), a.cfg().Commands.OwnerAllowFrom...), latestOwner) {
		to, ok := a.ownerAddress(ctx, name)
		if !ok || !a.reachable(to, about) {
			continue
		}
		if err := a.delivery.Send(ctx, chat.Outbound{To: to, Class: chat.Notice, Markdown: text}); err == nil {
			return true
		}
	}
	a.settled(subject)
	a.log.InfoContext(ctx, "owner_not_told", "about", cmp.Or(about.Channel, subject), "account", about.Account)
	return false
}

// broken tells the owner that nothing can be said at a destination; see delivery.Deps.Broken.
func (a *App) broken(ctx context.Context, to chat.Address, code string) {
	x := account{key: inbound.Account{Channel: to.Channel, Name: to.Account}}
	text := fmt.Sprintf("📪 I cannot write to %s on %s any more (%s): the bot was removed or blocked there, or the place is gone.", to.Conversation, x.name(), code)
	to.Thread = ""
	subject := "broken " + to.Destination()
	a.settled(subject) // delivery tells of each time once
	a.work.Go(func() { a.tellOwner(ctx, subject, text, to) })
}

// tellMoved tells the owner that a group has a new id, which the configuration should name.
func (a *App) tellMoved(ctx context.Context, from chat.Address, conversation string) {
	x := account{key: inbound.Account{Channel: from.Channel, Name: from.Account}}
	text := fmt.Sprintf("🔁 The group %s on %s has a new id: %s. What is configured for the old one goes on to hold; please put the new one in its place (channels.%s).",
		from.Conversation, x.name(), conversation, from.Channel)
	a.work.Go(func() { a.tellOwner(ctx, "moved "+from.Destination(), text, from) })
}

// settled forgets that the owners were told about a subject: when it happens again it is news.
func (a *App) settled(subject string) {
	a.owners.mu.Lock()
	defer a.owners.mu.Unlock()
	delete(a.owners.told, subject)
}

// reachable reports whether something about one place can be said at another.
func (a *App) reachable(to, about chat.Address) bool {
	if to.Channel == about.Channel && to.Account == about.Account && (about.Conversation == "" || about.Conversation == to.Conversation) {
		return false
	}
	x, ok := a.roster.of(to)
	if !ok || x.adapter == nil {
		return false
	}
	s, _ := a.states.get(x.key)
	return s.State != channels.Stopped
}
