package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"understudy/chat"
	"understudy/failover/policy"
	"understudy/inbound"
	"understudy/llm"
	"understudy/notices"
	"understudy/provider/sim"
)

// credentialCursors is the place among the cursors of what an owner was told about credentials.
const credentialCursors = "credential"

// answerFirst is how long a notice about a credential lets the answer of the turn that met it go first.
const answerFirst = 2 * time.Second

// credentialsChanged sees to it that the owner hears of a credential that is revoked or unpaid: others may
// step in so well that nobody notices before the last one is gone too. It does not block.
func (a *App) credentialsChanged(agent string, changed []policy.Changed) {
	for _, c := range changed {
		id := c.Key.Profile
		if c.Key.Model != "" || id.Provider() == sim.Provider { // of one model only, or a trouble that is played
			continue
		}
		a.work.Go(func() {
			a.pauseOrStop(answerFirst)
			a.oneCredential <- struct{}{}
			defer func() { <-a.oneCredential }()
			if err := a.lookAtCredential(context.Background(), agent, id); err != nil {
				a.log.Warn("credential_notice_dropped", "agent", agent, "profile", string(id), "error", err.Error())
			}
		})
	}
}

// pauseOrStop waits, and no longer than until a stop begins.
func (a *App) pauseOrStop(d time.Duration) {
	over := make(chan struct{})
	defer a.opts.Clock.AfterFunc(d, func() { close(over) }).Stop()
	select {
	case <-over:
	case <-a.draining:
	}
}

// lookAtCredential compares how a credential is with what the owner was told last, on disk, so that a
// restart tells nothing twice.
func (a *App) lookAtCredential(ctx context.Context, agent string, id llm.ProfileID) error {
	store, err := a.auth.get(ctx, agent)
	if err != nil {
		return err
	}
	snap, err := store.Snapshot(ctx)
	if err != nil {
		return err
	}
	if store.Inherits(id) {
		agent = a.auth.main
	}
	c, err := inbound.OpenCursor(ctx, a.db, credentialCursors, agent, string(id))
	if err != nil {
		return err
	}
	stored, err := c.Value(ctx)
	if err != nil {
		return err
	}
	was, is := parseDeath(stored), deathOf(snap.Health[policy.Key{Profile: id}].Disabled)
	if is == was {
		return nil
	}
	if err := c.SetValue(ctx, is.String()); err != nil || is == (death{}) || is.follows(was) {
		return err
	}
	subject := "credential " + agent + " " + string(id)
	a.settled(subject) // what is on disk decides
	if !a.tellOwner(ctx, subject, a.credentialText(agent, snap, id, is), chat.Address{}) {
		return c.SetValue(ctx, "") // the next failure tries again
	}
	return nil
}

// credentialText is what the owner reads.
func (a *App) credentialText(agent string, snap policy.Snapshot, id llm.ProfileID, d death) string {
	zone := a.cfg().Agent(agent).Timezone
	if zone == nil {
		zone = time.UTC
	}
	layout, until := "15:04", time.UnixMilli(d.until)
	if until.Sub(a.opts.Clock.Now()) >= 20*time.Hour {
		layout = "Mon 2 Jan 15:04"
	}
	whose := ""
	if agent != a.auth.main {
		whose = " --agent " + agent
	}
	when := until.In(zone).Format(layout)
	if d.reason == llm.ReasonBilling {
		return notices.CredentialUnpaid(id, when, fmt.Sprintf("bot auth enable %s%s", id, whose))
	}
	command := fmt.Sprintf("bot auth add %s:default%s", id.Provider(), whose) // beside a key of the environment
	if i := slices.IndexFunc(snap.Profiles, func(p policy.Profile) bool { return p.ID == id }); i >= 0 {
		command = fmt.Sprintf("bot auth add %s%s", id, whose)
		if snap.Profiles[i].Kind == llm.KindOAuth {
			command = fmt.Sprintf("bot auth login %s%s", id.Provider(), whose)
		}
	}
	return notices.CredentialRevoked(id, when, command)
}

// death is the rest of a credential that only a person can end for good; zero = none.
type death struct {
	reason       llm.Reason
	since, until int64 // milliseconds since 1970
}

func deathOf(w policy.Window) death {
	if w.Reason != llm.ReasonAuthPermanent && w.Reason != llm.ReasonBilling {
		return death{}
	}
	return death{w.Reason, w.Since.UnixMilli(), w.Until.UnixMilli()}
}

// follows reports whether d is no news after was: the same rest, or the next one of the same trouble. One
// that begins before the last was over is news: somebody had ended that by hand.
func (d death) follows(was death) bool {
	return d.reason == was.reason && (d.since == was.since || d.since >= was.until)
}

// String is the form on disk.
func (d death) String() string {
	if d == (death{}) {
		return ""
	}
	return fmt.Sprintf("%s %d %d", d.reason, d.since, d.until)
}

// parseDeath reads what String wrote; anything else is none.
func parseDeath(s string) (d death) {
	if _, err := fmt.Sscanf(s, "%s %d %d", &d.reason, &d.since, &d.until); err != nil {
		return death{}
	}
	return d
}
