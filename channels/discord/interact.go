package discord

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"understudy/channels"
	"understudy/chat"
)

const textBroken = "That did not work. Please try again."

// ticket is an interaction on its way through the queue.
type ticket struct {
	i    *interaction
	via  *via
	done chan struct{} // closed when the worker is done with it
}

func (r *run) newTicket(i *interaction) *ticket {
	v := &via{
		id: i.ID, app: i.Application, token: i.Token, component: i.Type == interactionComponent,
		until: time.Now().Add(viaLife), acked: make(chan struct{}),
	}
	v.original = !v.component || i.Message != nil && i.Message.Flags&flagEphemeral != 0
	if i.Channel != nil && i.Channel.ID == i.ChannelID {
		if _, known := r.directory.channel(i.ChannelID); !known {
			r.directory.put(*i.Channel)
		}
	}
	return &ticket{i: i, via: v, done: make(chan struct{})}
}

// hurry answers an interaction before Discord gives up on it, however slow the journal is.
func (r *run) hurry(ctx context.Context, t *ticket) {
	select {
	case r.hurried <- struct{}{}:
	default:
		return // so many wait that it is answered when its turn comes
	}
	r.work.Go(func() {
		defer func() { <-r.hurried }()
		timer := time.NewTimer(hurryAfter)
		defer timer.Stop()
		select {
		case <-timer.C:
			r.acknowledge(ctx, t.via)
		case <-t.done:
		case <-ctx.Done():
		}
	})
}

// interaction works on a command or a press: first the journal, then Discord.
func (r *run) interaction(ctx context.Context, t *ticket) {
	defer close(t.done)
	in := chat.Inbound{
		EventKey: r.eventKey("i:" + t.i.ID), Space: t.i.Guild, Mentioned: true, At: time.Now().UTC(), Via: t.i.ID,
		Address: r.address(ctx, t.i.ChannelID, t.i.Guild), Sender: sender(t.i), Roles: rolesOf(t.i),
	}
	in.Title = r.title(in.Address)
	if t.via.component {
		if !r.pressed(ctx, t, &in) {
			return
		}
	} else {
		in.Text = r.typed(t.i)
	}
	r.vias.add(t.via)
	var refusal *channels.Refusal
	switch err := r.accept(ctx, in); {
	case errors.As(err, &refusal):
		r.whisper(ctx, t.via, refusal.Text)
	case err == nil:
		r.acknowledge(ctx, t.via)
	}
}

func sender(i *interaction) chat.Sender {
	u := i.author()
	return chat.Sender{ID: u.ID, Name: u.name(i.Member), Bot: u.Bot}
}

func rolesOf(i *interaction) []string {
	if i.Member == nil {
		return nil
	}
	return i.Member.Roles
}

// typed is a command as a person would have typed it.
func (r *run) typed(i *interaction) string {
	values := map[string]string{}
	var order []string
	for _, o := range i.Data.Options {
		values[o.Name] = o.text()
		order = append(order, o.Name)
	}
	name, known := r.menu.command(i.Data.Name)
	if known != nil {
		order = known
	}
	text := "/" + name
	for _, o := range order {
		if v := strings.TrimSpace(values[o]); v != "" {
			text += " " + v
		}
	}
	return text
}

// pressed works out what a press stands for. It reports false when nothing is left to do.
func (r *run) pressed(ctx context.Context, t *ticket, in *chat.Inbound) bool {
	menu, token, what, err := r.menuOf(ctx, t.i.Data.CustomID)
	switch {
	case errors.Is(err, channels.ErrExpired):
		r.whisper(ctx, t.via, channels.TextExpired)
		return false
	case err != nil:
		r.log.Warn("menu not read", "error", err)
		r.whisper(ctx, t.via, textBroken)
		return false
	case menu.To.Conversation != in.Address.Conversation:
		r.whisper(ctx, t.via, channels.TextExpired)
		return false
	case !menu.Allows(in.Address.Conversation, in.Sender.ID):
		r.whisper(ctx, t.via, channels.TextOthers)
		return false
	}
	if page, ok := strings.CutPrefix(what, pageMark); ok {
		r.turn(ctx, t.via, menu, token, page)
		return false
	}
	if strings.HasPrefix(what, selectMark) && len(t.i.Data.Values) > 0 {
		what = t.i.Data.Values[0]
	}
	n, err := strconv.Atoi(what)
	if err != nil || n < 0 || n >= len(menu.Buttons) {
		r.whisper(ctx, t.via, channels.TextExpired)
		return false
	}
	in.Text = menu.Buttons[n].Command
	if m := t.i.Message; m != nil && m.Flags&flagEphemeral == 0 {
		in.ID = m.ID
	}
	return true
}

// menuOf finds the menu that a custom id belongs to, and what of it was used.
func (r *run) menuOf(ctx context.Context, customID string) (m channels.Menu, token, what string, err error) {
	token, what, ok := parseCustomID(customID)
	if !ok || r.deps.Menus == nil {
		return channels.Menu{}, "", "", channels.ErrExpired
	}
	m, err = r.deps.Menus.Get(ctx, token)
	return m, token, what, err
}

// turn shows another page of a menu.
func (r *run) turn(ctx context.Context, v *via, menu channels.Menu, token, page string) {
	n, err := strconv.Atoi(page)
	if err != nil {
		r.whisper(ctx, v, channels.TextExpired)
		return
	}
	body := edited{Components: components(menu.Buttons, token, n)}
	if r.answer(ctx, v, updateMessage, body) || v.isDead() {
		return
	}
	if _, err := r.api.call(ctx, r.original(v, "PATCH", body, nil)); err != nil {
		r.log.Info("page not turned", "error", err)
	}
}
