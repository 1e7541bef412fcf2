package app

import (
	"understudy/commands"
	"understudy/failover"
)

// underway tells commands how far the turn of a conversation has come.
func (a *App) underway(key string) (commands.Underway, bool) {
	u, ok := a.failover.Underway(key)
	if !ok {
		return commands.Underway{}, false
	}
	view := commands.Underway{Began: u.Began, Selected: u.Selected, Pause: u.Pause, Asked: recordView(u.Asked)}
	for _, r := range u.Trail {
		view.Records = append(view.Records, recordView(r))
	}
	return view, true
}

func recordView(r failover.Record) commands.Record {
	return commands.Record{
		Provider: r.Provider, Model: r.Model, Profile: r.Profile, Skipped: r.Skipped, Why: r.Why, Reason: r.Reason,
		Detail: r.Detail, Status: r.Status, Error: r.Error, StartedAt: r.StartedAt, Duration: r.Duration, Until: r.Until,
	}
}
