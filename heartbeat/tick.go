package heartbeat

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"understudy/chat"
	"understudy/llm"
)

// Why a heartbeat began.
const (
	bySchedule = "schedule"
	byHand     = "manual"
	byEvent    = "event"
)

// maxExcerpt bounds what is kept of an alert, in bytes.
const maxExcerpt = 2 << 10

// tick decides whether a heartbeat happens, runs it, and writes down what came of it.
func (p *Pulse) tick(ctx context.Context, a Agent, trigger string) Report {
	report := Report{At: p.deps.Clock.Now(), Trigger: trigger}
	r, err := p.deps.Store.Load(ctx, a.ID)
	var m Moment
	var events []Event
	if err == nil {
		p.resume(ctx, a.ID, r) // what is found now must not take the place of what could not be said
		m, events, err = p.moment(ctx, a, trigger, r)
	}
	if err != nil {
		p.deps.Log.WarnContext(ctx, "heartbeat_not_read", "agent", a.ID, "error", err.Error())
		report.Outcome, report.Reason, report.Detail = Failed, llm.ReasonInternal, "the store cannot be read"
		return report
	}
	report.To = m.To
	if trigger == byEvent && !m.Pending {
		p.noticed(a.ID) // somebody else has noticed it, or it went with its session
		return report
	}
	if report.Why = Decide(m); report.Why != "" {
		return p.skipped(ctx, a, report)
	}
	p.noticed(a.ID)
	return p.run(ctx, a, m, events, report)
}

// moment gathers what decides.
func (p *Pulse) moment(ctx context.Context, a Agent, trigger string, r Record) (m Moment, events []Event, err error) {
	m = Moment{
		Now: p.deps.Clock.Now(), Settings: a.Settings, Manual: trigger == byHand, Event: trigger == byEvent, LastRun: r.LastRun,
	}
	if m.Scratch, _, m.HasScratch, err = p.deps.Store.Scratch(ctx, a.ID); err != nil {
		return m, nil, err
	}
	renewed, err := p.deps.Renewed(ctx, a.ID)
	if err != nil {
		return m, nil, err
	}
	if events, err = p.deps.Store.Events(ctx, a.ID, renewed); err != nil {
		return m, nil, err
	}
	m.Pending = len(events) > 0
	p.mu.Lock()
	m.Off = !p.deps.Enabled() || p.off[a.ID] && trigger == bySchedule
	p.mu.Unlock()
	if a.Settings.Target != TargetNone {
		m.To, m.Routed = p.deps.Route(ctx, a.ID, a.Settings)
	}
	load := p.deps.Load(a.ID, a.Settings)
	m.LaneBusy, m.AgentBusy = load.Lane, load.Agent
	m.Resting = a.Settings.NoFallbacks && p.deps.Resting(ctx, a.ID, a.Settings)
	m.Spent = p.deps.Spent(ctx)
	return m, events, nil
}

// skipped writes down why a heartbeat did not happen. A busy one comes again in a minute, at most until
// the next regular one.
func (p *Pulse) skipped(ctx context.Context, a Agent, report Report) Report {
	report.Outcome = Skipped
	if report.Why == WhyBusy && report.Trigger != byHand {
		p.mu.Lock()
		p.beat(a.ID).retry = p.deps.Clock.Now().Add(busyRetry)
		p.mu.Unlock()
	} else {
		p.noticed(a.ID)
	}
	p.store(ctx, a.ID, func(r *Record) { r.Last = report })
	p.count(report)
	p.deps.Log.DebugContext(ctx, "heartbeat_skipped", "agent", a.ID, "why", string(report.Why))
	return report
}

// noticed forgets that an event asked for a heartbeat.
func (p *Pulse) noticed(agent string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beat(agent).event = false
}

// run has the model look, and says what it found.
func (p *Pulse) run(ctx context.Context, a Agent, m Moment, events []Event, report Report) Report {
	began, err := p.deps.Store.Update(ctx, a.ID, func(r *Record) {
		r.Runs++
		r.LastRun = m.Now
	})
	if err != nil {
		p.deps.Log.WarnContext(ctx, "heartbeat_not_written", "agent", a.ID, "error", err.Error())
		report.Outcome, report.Reason, report.Detail = Failed, llm.ReasonInternal, "the store cannot be written"
		return report
	}
	report.ID = "heartbeat:" + a.ID + ":" + strconv.FormatInt(began.Runs, 10)
	limit, cancel := p.deps.Clock.WithTimeout(ctx, a.Settings.Limit(), llm.ErrTurnTimeout)
	res, err := p.deps.Turn(limit, Turn{
		ID: report.ID, Agent: a.ID, Settings: a.Settings, Text: question(a.Settings.Prompt, m.Scratch, events), To: m.To, Manual: m.Manual,
	})
	cancel()
	if err != nil {
		p.deps.Log.ErrorContext(ctx, "heartbeat_failed", "agent", a.ID, "id", report.ID, "error", err.Error())
		res = Result{Outcome: Failed, Reason: llm.ReasonInternal, Detail: "a fault of the bot; the log has it"}
	}
	report.Took = p.deps.Clock.Since(m.Now)
	report.Outcome, report.Reason, report.Detail, report.Requested, report.Model, report.Usage = res.Outcome, res.Reason, res.Detail, res.Requested, res.Model, res.Usage
	if res.Outcome == Skipped {
		report.Why = WhyBusy
		return p.skipped(ctx, a, report)
	}
	if res.Outcome != Failed {
		if err := p.deps.Store.DropEvents(ctx, events); err != nil {
			p.deps.Log.WarnContext(ctx, "heartbeat_not_written", "agent", a.ID, "error", err.Error())
		}
	}
	return p.conclude(ctx, a, m, res, report)
}

// question is what the model is asked.
func question(prompt, scratch string, events []Event) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(prompt))
	if scratch = strings.TrimSpace(scratch); scratch != "" {
		b.WriteString("\n\n# Checklist\n\n" + scratch)
	}
	if len(events) > 0 {
		b.WriteString("\n\n# What happened meanwhile\n")
		for _, e := range events {
			b.WriteString("\n- " + strings.ReplaceAll(strings.TrimSpace(e.Text), "\n", "\n  "))
		}
	}
	return b.String()
}

// The texts of heartbeats for people.
const (
	textOK      = "💓 Nothing to report."
	textExplain = "_I looked around unasked. `heartbeat.target: none` in the configuration ends such messages, `/heartbeat off` does until the next restart._"
)

// conclude writes down how a heartbeat went together with what is to be said of it, and says that.
func (p *Pulse) conclude(ctx context.Context, a Agent, m Moment, res Result, report Report) Report {
	show := a.Settings.Shows(m.To.Channel)
	text, media := "", []chat.Attachment(nil)
	switch {
	case a.Settings.Target == TargetNone:
	case res.Outcome == Alert && show.Alerts:
		text, media = res.Text, res.Media
	case res.Outcome == OK && show.OK:
		text = textOK
	}
	if res.Outcome == Alert {
		report.Excerpt = clip(res.Text, maxExcerpt)
	}
	alarm := false
	r := p.store(ctx, a.ID, func(r *Record) {
		r.Last, alarm = report, false
		if res.Outcome == Failed {
			r.Failures++
			alarm = r.Failures >= alarmAfter && !r.Told
			r.Told = r.Told || alarm
			return
		}
		r.Failures, r.Told = 0, false
		if text == "" && len(media) == 0 {
			return
		}
		r.Letter = &Letter{Key: report.ID, Agent: a.ID, To: m.To, Text: text, Media: media}
		if res.Outcome == Alert && a.Settings.Implied && !r.Explained {
			r.Explained = true
			r.Letter.Text = strings.TrimSpace(r.Letter.Text + "\n\n" + textExplain)
		}
	})
	p.count(report)
	p.deps.Log.InfoContext(ctx, "heartbeat", "agent", a.ID, "id", report.ID, "outcome", string(report.Outcome), "reason", string(report.Reason),
		"model", report.Model.String(), "seconds", report.Took.Seconds())
	if alarm {
		p.alarm(ctx, a, r)
	}
	if r.Letter == nil {
		return report
	}
	if err := p.say(ctx, a.ID, *r.Letter); err != nil {
		p.deps.Log.WarnContext(ctx, "heartbeat_not_said", "agent", a.ID, "error", err.Error())
	}
	return report
}

// alarm tells the owner that heartbeats keep failing.
func (p *Pulse) alarm(ctx context.Context, a Agent, r Record) {
	text := fmt.Sprintf("💓 The heartbeat of agent %s failed %d times in a row — %s. I go on trying and say no more about it until it works again. bot heartbeat last", a.ID, r.Failures, r.Last.Text())
	if err := p.deps.Tell(ctx, r.Last.ID+":alarm", text); err != nil {
		p.deps.Log.WarnContext(ctx, "heartbeat_alarm_not_said", "agent", a.ID, "error", err.Error())
	}
}

// say puts a letter into safe hands and forgets it then.
func (p *Pulse) say(ctx context.Context, agent string, l Letter) error {
	if err := p.deps.Say(context.WithoutCancel(ctx), l); err != nil {
		return err
	}
	p.store(ctx, agent, func(r *Record) {
		if r.Letter != nil && r.Letter.Key == l.Key {
			r.Letter = nil
		}
	})
	return nil
}

// store changes what is known of an agent; a store that refuses is logged, and life goes on.
func (p *Pulse) store(ctx context.Context, agent string, change func(*Record)) Record {
	r, err := p.deps.Store.Update(ctx, agent, change)
	if err != nil {
		p.deps.Log.WarnContext(ctx, "heartbeat_not_written", "agent", agent, "error", err.Error())
	}
	return r
}

func (p *Pulse) count(r Report) {
	if p.deps.Metrics != nil {
		p.deps.Metrics.Beat(r.Outcome, r.Why)
	}
}

// clip cuts a text to at most so many bytes, at the end of a character.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
