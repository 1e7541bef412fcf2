package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"understudy/channels"
	"understudy/channels/discord"
	"understudy/channels/slack"
	"understudy/channels/telegram"
	"understudy/chat"
	"understudy/cron"
	"understudy/cron/webhook"
	"understudy/delivery"
	"understudy/internal/guard"
	"understudy/reply"
	"understudy/session"
)

// announcer says the results of scheduled tasks, and tells the owner what concerns them.
type announcer struct{ a *App }

var (
	_ cron.Announcer = announcer{}
	_ cron.Owner     = announcer{}
)

// How long an announcement waits for the platform before it counts as on its way.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = 2 * time.Second
	longLook  = 10 * time.Second
)

// Announce implements cron.Announcer: the outbox takes it once for each key, whatever happens.
func (n announcer) Announce(ctx context.Context, x cron.Announcement) (cron.Arrival, []string, error) {
	a := n.a
	if x.To.Channel == cron.WebhookChannel {
		return a.postResult(ctx, x)
	}
	to, err := a.directory.place(ctx, a, x.To)
	if errors.Is(err, errNoPlace) {
		return cron.Rejected, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	o := chat.Outbound{To: to, Class: chat.Cron, Markdown: x.Text, Media: x.Media, TurnID: x.Key}
	if x.Alert {
		o.Class = chat.Command
	}
	switch err := a.sayUnasked(ctx, a.agentOfJob(ctx, x.Job), o); {
	case errors.Is(err, delivery.ErrEmpty):
		return cron.Arrived, nil, nil
	case errors.Is(err, delivery.ErrNoChannel):
		a.log.WarnContext(ctx, "announcement_without_channel", "channel", to.Channel, "account", to.Account, "job", x.Job)
		return cron.Rejected, nil, nil
	case err != nil:
		return 0, nil, err
	}
	return a.arrival(ctx, x.Key)
}

// agentOfJob is the agent of a task; the default one where the task is gone.
func (a *App) agentOfJob(ctx context.Context, id string) string {
	if job, err := a.jobs.Get(ctx, id); err == nil {
		return job.Agent
	}
	return a.cfg().DefaultAgent()
}

// sayUnasked puts something into the outbox that an agent says unasked. It is spoken like an answer, if
// answers are spoken there.
func (a *App) sayUnasked(ctx context.Context, agent string, o chat.Outbound) error {
	if o.Class.Speakable() && strings.TrimSpace(o.Markdown) != "" {
		s, err := a.sessions.Get(ctx, session.Key(agent, o.To, a.cfg().Session))
		if err != nil && !errors.Is(err, session.ErrNotFound) {
			return err
		}
		p := a.planSpeech(reply.SpeechRequest{Session: s, Agent: agent, To: o.To, Class: o.Class, Text: o.Markdown})
		o.Markdown, o.Speech = p.Visible, p.Speech
		if strings.TrimSpace(o.Markdown) == "" && o.Speech != nil {
			o.Markdown = o.Speech.Text
		}
		if p.AsVoice {
			o.Media = chat.AsVoice(o.Media)
		}
	}
	return a.delivery.Send(ctx, o)
}

// arrival waits a little for the platform and tells how an announcement stands.
func (a *App) arrival(ctx context.Context, key string) (cron.Arrival, []string, error) {
	began := a.opts.Clock.Now()
	for wait := firstLook; ; wait = min(2*wait, lastLook) {
		how, ids, err := a.delivery.Standing(context.WithoutCancel(ctx), key, 0)
		switch {
		case err != nil:
			return 0, nil, err
		case how == delivery.Delivered:
			return cron.Arrived, ids, nil
		case how == delivery.GivenUp:
			return cron.Rejected, ids, nil
		case how == delivery.Unsettled:
			return cron.Uncertain, ids, nil
		case how == delivery.NotThere:
			return 0, nil, errors.New("the outbox does not have it")
		}
		if a.opts.Clock.Since(began) > longLook || a.opts.Clock.Sleep(ctx, wait) != nil {
			return cron.OnItsWay, ids, nil
		}
	}
}

// postResult posts a result to a webhook.
func (a *App) postResult(ctx context.Context, x cron.Announcement) (cron.Arrival, []string, error) {
	err := a.webhooks.Post(ctx, x.To.Conversation, a.cfg().Cron.WebhookToken, webhook.Message{Run: x.Run, Job: x.Job, Text: withoutDirectives(x.Text), At: a.opts.Clock.Now()})
	var no *webhook.Refusal
	switch {
	case err == nil:
		return cron.Arrived, nil, nil
	case errors.As(err, &no), errors.Is(err, guard.ErrForbidden):
		a.log.WarnContext(ctx, "webhook_refused", "job", x.Job, "run", x.Run, "error", err.Error())
		return cron.Rejected, nil, nil
	}
	return 0, nil, err
}

// errNoOwner tells that there is an owner who cannot be reached yet.
var errNoOwner = errors.New("no owner can be reached")

// Tell implements cron.Owner. Where nobody is known as the owner, the log has to do.
func (n announcer) Tell(ctx context.Context, key, text string) error {
	a := n.a
	to, ok := a.ownerPlace(ctx)
	switch {
	case !ok && len(a.cfg().Commands.OwnerAllowFrom) == 0:
		a.log.WarnContext(ctx, "owner_not_told", "key", key, "text", text)
		return nil
	case !ok:
		return errNoOwner
	}
	return a.delivery.Send(ctx, chat.Outbound{To: to, Class: chat.Command, Markdown: text, TurnID: key})
}

// ownerPlace returns where the first owner who can be reached is told what concerns them: a private chat.
func (a *App) ownerPlace(ctx context.Context) (chat.Address, bool) {
	for _, name := range a.cfg().Commands.OwnerAllowFrom {
		if to, ok := a.personPlace(ctx, name); ok {
			return to, true
		}
	}
	to, ok := a.ownerAddress(ctx, latestOwner)
	return to, ok && a.reachable(to, chat.Address{})
}

// personPlace returns the private chat with somebody, who is named as in an allowlist: telegram:123.
func (a *App) personPlace(ctx context.Context, name string) (chat.Address, bool) {
	channel, id, ok := strings.Cut(name, ":")
	if !ok || id == "" || id == "*" {
		return chat.Address{}, false
	}
	if to, known := a.ownerAddress(ctx, name); known && a.reachable(to, chat.Address{}) {
		return to, true
	}
	for _, x := range a.roster.all() {
		to := chat.Address{Channel: channel, Account: x.key.Name, Conversation: directPrefix + id, Kind: chat.Direct}
		if x.key.Channel != channel || !a.reachable(to, chat.Address{}) {
			continue
		}
		to, err := a.directory.place(ctx, a, to)
		if err == nil {
			return to, true
		}
		a.log.InfoContext(ctx, "person_not_reached", "channel", channel, "error", err.Error())
	}
	return chat.Address{}, false
}

// directPrefix begins the conversation of an address that names a person instead of a place.
const directPrefix = "user:"

// errNoPlace tells that there is no conversation for an address, and never will be.
var errNoPlace = errors.New("there is no such conversation")

// introducer is an adapter that has to open a private conversation before something can be said in it.
type introducer interface {
	// OpenDirect returns the private conversation with a user.
	OpenDirect(ctx context.Context, user string) (conversation string, err error)
}

// directory remembers the private conversations with people.
type directory struct {
	mu    sync.Mutex
	known map[chat.Address]string
}

// mostPeople bounds how many are remembered.
const mostPeople = 10_000

// place returns an address whose conversation is one: that with a person is opened first.
func (d *directory) place(ctx context.Context, a *App, to chat.Address) (chat.Address, error) {
	user, ok := strings.CutPrefix(to.Conversation, directPrefix)
	if !ok {
		return to, nil
	}
	asked := to
	switch to.Channel {
	case telegram.Channel, slack.Channel: // the id of a person stands for the conversation with them
		to.Conversation = user
		return to, nil
	case discord.Channel:
	default:
		return to, errNoPlace
	}
	d.mu.Lock()
	id := d.known[asked]
	d.mu.Unlock()
	if id == "" {
		x, ok := a.roster.of(to)
		if !ok {
			return to, fmt.Errorf("account %s of %s: %w", accountID(to.Account), to.Channel, errNoPlace)
		}
		opener, ok := x.adapter.(introducer)
		if !ok {
			return to, errors.New("the account is not open")
		}
		var err error
		if id, err = opener.OpenDirect(ctx, user); err != nil {
			var refused *channels.SendError
			if errors.As(err, &refused) && (refused.Verdict == channels.Refused || refused.Verdict == channels.Gone) {
				return to, errNoPlace
			}
			return to, err
		}
		d.mu.Lock()
		if d.known == nil || len(d.known) >= mostPeople {
			d.known = map[chat.Address]string{}
		}
		d.known[asked] = id
		d.mu.Unlock()
	}
	to.Conversation = id
	return to, nil
}
