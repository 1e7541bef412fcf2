package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"understudy/channels/discord"
	"understudy/channels/slack"
	"understudy/channels/telegram"
	"understudy/config"
	"understudy/cron"
	"understudy/internal/sqlite"
	"understudy/provider"
	"understudy/provider/sim"
	"understudy/tts"
	"understudy/tts/command"
)

// Bounds of what is normal while the bot works (spec/chat.md §7.2).
const (
	// stuckAfter is the least age of an unanswered message that makes a session stuck; a turn may be
	// allowed more.
	stuckAfter = 30 * time.Minute
	// wrongClock is how far the clock may be from that of others. Sign-ins and signed webhooks begin to
	// fail at a few minutes.
	wrongClock = time.Minute
	// mostFindings bounds how many findings of one kind are shown.
	mostFindings = 20
)

// tasks names the scheduled tasks that the scheduler switched off.
func (d *doctor) tasks(ctx context.Context, db *sqlite.DB) {
	var any int
	if db.Reader().QueryRowContext(ctx, `SELECT count(*) FROM cron_jobs`).Scan(&any) != nil || any == 0 {
		return // a table that is not there yet holds nothing
	}
	jobs, err := cron.NewStore(ctx, db)
	if err != nil {
		d.bad("tasks", "", "the scheduled tasks cannot be read: %s", err)
		return
	}
	list, err := jobs.List(ctx, true)
	if err != nil {
		d.bad("tasks", "", "the scheduled tasks cannot be read: %s", err)
		return
	}
	on, off := 0, 0
	for _, j := range list {
		switch {
		case j.Enabled:
			on++
		case j.State.DisabledReason == "":
		case off == mostFindings:
			d.warn("tasks", "bot cron list --all", "there are more of them")
			return
		default:
			off++
			d.task(j)
		}
	}
	if off == 0 && on > 0 {
		d.ok("tasks", "%d scheduled tasks are on", on)
	}
}

// task tells why one was switched off, since when, and what to do.
func (d *doctor) task(j cron.Job) {
	at := j.State.DisabledAt
	if at.IsZero() {
		at = j.State.LastRunAt
	}
	since := ""
	if !at.IsZero() {
		since = " on " + at.Local().Format(time.DateTime)
	}
	fix := fmt.Sprintf("bot cron runs %s tells more; bot cron enable %s switches it on again", j.ID, j.ID)
	if j.Schedule.At.After(d.now) || j.Schedule.At.IsZero() {
		d.warn("tasks", fix, "%q (%s) was switched off%s: %s", printable(j.Name), j.ID, since, j.State.DisabledReason)
		return
	}
	fix = fmt.Sprintf("bot cron run %s does it now; bot cron remove %s forgets it", j.ID, j.ID)
	d.warn("tasks", fix, "%q (%s) was given up%s: %s", printable(j.Name), j.ID, since, j.State.DisabledReason)
}

// stuck names the conversations in which somebody has waited for an answer for too long.
func (d *doctor) stuck(ctx context.Context, db *sqlite.DB) {
	limit := stuckAfter
	if d.cfg != nil {
		for _, id := range d.cfg.AgentIDs() {
			limit = max(limit, 2*d.cfg.Agent(id).Timeout)
		}
	}
	rows, err := db.Reader().QueryContext(ctx, `SELECT channel, conversation, count(*), min(received_at) FROM inbound
		WHERE state IN ('received', 'dispatched') AND received_at < ? GROUP BY channel, account, conversation ORDER BY min(received_at) LIMIT ?`,
		d.now.Add(-limit).UnixMilli(), mostFindings)
	if err != nil {
		return // a table that is not there yet holds nothing
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var channel, conversation string
		var n, since int64
		if rows.Scan(&channel, &conversation, &n, &since) != nil {
			return
		}
		d.warn("sessions", "start the bot, if it does not run; else write /stop there, and look for the conversation in the log",
			"%s %s is stuck: %d messages have waited for an answer since %s", channel, printable(conversation), n, time.UnixMilli(since).Local().Format(time.DateTime))
	}
}

// voices checks that the programs that speak and listen are there.
func (d *doctor) voices() {
	used := map[string]tts.Provider{}
	for _, p := range speechPolicies(d.cfg) {
		if p.Auto == tts.Off {
			continue
		}
		for _, id := range p.Order("") {
			used[id] = p.Providers[id]
		}
	}
	found := len(d.findings)
	for _, id := range slices.Sorted(maps.Keys(used)) {
		p := used[id]
		if err := command.Installed(p); err != nil {
			d.warn("speech", "install it, or take the provider out of tts.providers", "%s cannot speak: %s", id, err)
		}
		wanted := tts.Format(p.OutputFormat)
		if p.Kind() == tts.Command && wanted != tts.Opus && wanted != tts.MP3 && command.FindFFmpeg(quiet()) == nil {
			d.warn("speech", "install ffmpeg", "ffmpeg is not there: what %s says is sent as %s, not as a voice note", id, wanted)
		}
	}
	if d.cfg.STT.Command != "" {
		if err := command.Installed(tts.Provider{Command: d.cfg.STT.Command}); err != nil {
			d.warn("speech", "install it, or take it out of stt", "voice notes cannot be written down: %s", err)
		}
	}
	if len(used) > 0 && len(d.findings) == found {
		d.ok("speech", "everything that speaks is installed")
	}
}

// speechPolicies are the settings of speech of every agent in every account.
func speechPolicies(cfg *config.Config) (list []tts.Config) {
	for _, agent := range cfg.AgentIDs() {
		list = append(list, cfg.Speech(agent, "", ""))
		for channel, accounts := range map[string][]string{
			slack.Channel: slices.Collect(maps.Keys(cfg.SlackAccounts())), discord.Channel: slices.Collect(maps.Keys(cfg.DiscordAccounts())), telegram.Channel: slices.Collect(maps.Keys(cfg.TelegramAccounts())),
		} {
			for _, id := range accounts {
				list = append(list, cfg.Speech(agent, channel, accountName(id)))
			}
		}
	}
	return list
}

// clock compares the clock with that of a provider, with Probe.
func (d *doctor) clock(ctx context.Context) {
	if !d.do.Probe || d.keys == nil {
		return
	}
	world, err := d.keys.world(ctx, d.opts)
	if err != nil {
		return // said already
	}
	for _, ref := range world.cfg.Configured() {
		host := world.registry.Host(ref.Provider)
		if host == "" || ref.Provider == sim.Provider || world.registry.LocalURL(ref.Provider) != "" {
			continue
		}
		ahead, err := d.ahead(ctx, ref.Provider, host)
		switch {
		case err != nil:
			continue
		case ahead > wrongClock || ahead < -wrongClock:
			d.warn("system", "set the clock, or have it set by NTP", "the clock of this machine is %s %s that of %s", ahead.Abs().Round(time.Second), sideOf(ahead), host)
		default:
			d.ok("system", "the clock agrees with that of %s", host)
		}
		return
	}
}

func sideOf(ahead time.Duration) string {
	if ahead < 0 {
		return "behind"
	}
	return "ahead of"
}

var errNoDate = errors.New("the answer has no date")

// ahead asks a host for the time, without a credential, and tells how far this machine's clock is ahead.
func (d *doctor) ahead(ctx context.Context, id, host string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, "https://"+host+"/", http.NoBody)
	if err != nil {
		return 0, err
	}
	var transport http.RoundTripper = provider.NewTransport()
	if d.opts.Transport != nil {
		transport = d.opts.Transport(id)
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	_ = resp.Body.Close()
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return 0, errNoDate
	}
	return d.opts.Clock.Now().Sub(at), nil
}
