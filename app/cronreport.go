package app

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"understudy/cron"
	"understudy/gateway"
)

// CronJob is a scheduled task as verbs and programs see it.
type CronJob struct {
	ID         string      `json:"id"`
	Name       string      `json:"name"`
	Enabled    bool        `json:"enabled"`
	Agent      string      `json:"agent"`
	Tag        string      `json:"tag,omitempty"`
	CreatedBy  string      `json:"createdBy,omitempty"`
	Schedule   string      `json:"schedule"` // in words
	Next       []time.Time `json:"next,omitempty"`
	Zone       string      `json:"zone,omitempty"` // of Next; "" = none has a name
	Kind       string      `json:"kind"`
	Message    string      `json:"message"`
	Model      string      `json:"model,omitempty"`
	Fallbacks  *[]string   `json:"fallbacks,omitempty"`
	Session    string      `json:"session"`
	Delivery   string      `json:"delivery,omitempty"` // in words; "" = nowhere
	Timeout    string      `json:"timeout"`
	Running    bool        `json:"running,omitempty"`
	LastRun    time.Time   `json:"lastRun,omitzero"`
	LastStatus string      `json:"lastStatus,omitempty"`
	Completion string      `json:"lastCompletion,omitempty"`
	LastError  string      `json:"lastError,omitempty"`
	LastModel  string      `json:"lastModel,omitempty"`
	StoodIn    bool        `json:"lastStoodIn,omitempty"` // LastModel stood in for the one that was asked for
	Failures   int         `json:"failures,omitempty"`
	OffBecause string      `json:"offBecause,omitempty"`
	OffSince   time.Time   `json:"offSince,omitzero"`
	Alert      *CronAlert  `json:"alert,omitempty"` // where it is not as configured
}

// CronRun is one line of the run log.
type CronRun struct {
	ID         string          `json:"id"`
	Job        string          `json:"job"`
	Trigger    string          `json:"trigger"`
	Scheduled  time.Time       `json:"scheduledAt"`
	Started    time.Time       `json:"startedAt,omitzero"`
	Finished   time.Time       `json:"finishedAt,omitzero"`
	Status     string          `json:"status"`
	Completion string          `json:"completion,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Error      string          `json:"error,omitempty"` // in words
	Requested  string          `json:"requested,omitempty"`
	Model      string          `json:"model,omitempty"`
	StoodIn    bool            `json:"stoodIn,omitempty"`
	Because    string          `json:"because,omitempty"` // why Model stood in
	Usage      json.RawMessage `json:"usage,omitempty"`
	CostMicros *int64          `json:"costMicros,omitempty"`
	Excerpt    string          `json:"excerpt,omitempty"`
	Receipts   []string        `json:"receipts,omitempty"`
}

// cronReader looks at tasks; it needs no scheduler that runs.
type cronReader struct {
	jobs *cron.Store
	s    *cron.Scheduler
}

// cronQuery is what reading verbs ask for.
type cronQuery struct {
	ID    string `json:"id,omitempty"`
	All   bool   `json:"all,omitempty"`
	Limit int    `json:"limit,omitempty"`
	// Schedule and Zone are for a preview.
	Schedule string `json:"schedule,omitempty"`
	Zone     string `json:"tz,omitempty"`
}

func (r cronReader) list(ctx context.Context, q cronQuery) ([]CronJob, error) {
	list, err := r.jobs.List(ctx, q.All)
	out := make([]CronJob, len(list))
	for i, j := range list {
		out[i] = cronJob(r.s.Card(j))
	}
	return out, err
}

func (r cronReader) show(ctx context.Context, q cronQuery) (CronJob, error) {
	j, err := r.jobs.Get(ctx, q.ID)
	if err != nil {
		return CronJob{}, err
	}
	return cronJob(r.s.Card(j)), nil
}

func (r cronReader) runs(ctx context.Context, q cronQuery) ([]CronRun, error) {
	list, err := r.jobs.Runs(ctx, q.ID, q.Limit)
	out := make([]CronRun, len(list))
	for i, x := range list {
		out[i] = cronRun(x)
	}
	return out, err
}

// CronNext is the coming runs of one schedule, or of all tasks.
type CronNext struct {
	Description string      `json:"description,omitempty"`
	Next        []time.Time `json:"next,omitempty"`
	Zone        string      `json:"zone,omitempty"`
	Jobs        []CronJob   `json:"jobs,omitempty"`
}

func (r cronReader) next(ctx context.Context, q cronQuery) (n CronNext, err error) {
	if q.Schedule != "" {
		n.Description, n.Next, err = r.s.Preview(q.Schedule, q.Zone, q.Limit)
		n.Zone = zoneOf(n.Next)
		return n, err
	}
	list, err := r.list(ctx, cronQuery{})
	slices.SortStableFunc(list, func(a, b CronJob) int { return cmp.Compare(first(a.Next), first(b.Next)) })
	n.Jobs = list[:min(len(list), max(q.Limit, 1))]
	return n, err
}

// zoneOf is the name of the zone of some times; "" = it has none that others know.
func zoneOf(list []time.Time) string {
	if len(list) == 0 || list[0].Location() == time.Local {
		return ""
	}
	return list[0].Location().String()
}

// first is the first of some times, as a number to order by; none is behind all.
func first(list []time.Time) int64 {
	if len(list) == 0 {
		return 1<<63 - 1
	}
	return list[0].UnixMilli()
}

// cronJob is what is shown of a card.
func cronJob(c cron.Card) CronJob {
	st := c.State
	j := CronJob{
		ID: c.ID, Name: c.Name, Enabled: c.Enabled, Agent: c.Agent, Tag: c.Tag, CreatedBy: c.CreatedBy, Schedule: c.Description, Next: c.Next, Zone: zoneOf(c.Next),
		Kind: string(c.Payload.Kind), Message: c.Payload.Message, Model: c.Payload.Model, Fallbacks: c.Payload.Fallbacks, Session: string(c.Target),
		Delivery: placeText(c.Delivery), Timeout: c.Payload.Timeout().String(), Running: st.Running(), LastRun: st.LastRunAt,
		LastStatus: string(st.LastStatus), Completion: string(st.LastCompletion), LastError: st.LastError, StoodIn: st.LastFallback,
		Failures: st.ConsecutiveErrors, OffBecause: st.DisabledReason, OffSince: st.DisabledAt,
	}
	if x := c.FailureAlert; x.Off || x.After > 0 || x.Channel != "" {
		j.Alert = &CronAlert{Off: x.Off, After: x.After}
		if x.Channel != "" {
			j.Alert.To = x.Channel + ":" + x.To
		}
	}
	if !st.LastModel.IsZero() {
		j.LastModel = st.LastModel.String()
	}
	return j
}

// cronRun is what is shown of a line of the run log.
func cronRun(r cron.Run) CronRun {
	x := CronRun{
		ID: r.ID, Job: r.JobID, Trigger: string(r.Trigger), Scheduled: r.ScheduledAt, Started: r.StartedAt, Finished: r.FinishedAt,
		Status: string(r.Status), Completion: string(r.Completion), Reason: string(r.Reason), Error: r.Error, StoodIn: r.FallbackUsed,
		Because: string(r.FallbackReason), CostMicros: r.CostMicros, Excerpt: r.Excerpt, Receipts: r.Receipts,
	}
	if x.Error == "" && r.Reason != "" {
		x.Error = r.Reason.Text()
	}
	if !r.Requested.IsZero() {
		x.Requested = r.Requested.String()
	}
	if !r.Model.IsZero() {
		x.Model = r.Model.String()
	}
	x.Usage, _ = json.Marshal(r.Usage) // plain numbers
	return x
}

// CronChange is a task as a verb makes or changes it; nil = not said.
type CronChange struct {
	ID         string    `json:"id,omitempty"`
	Schedule   *string   `json:"schedule,omitempty"`
	Message    *string   `json:"message,omitempty"`
	Name       *string   `json:"name,omitempty"`
	Agent      string    `json:"agent,omitempty"` // of a new one
	Zone       *string   `json:"tz,omitempty"`
	Model      *string   `json:"model,omitempty"`
	Fallbacks  *[]string `json:"fallbacks,omitempty"`
	Thinking   *string   `json:"thinking,omitempty"`
	Session    *string   `json:"session,omitempty"`
	Announce   *bool     `json:"announce,omitempty"`
	Channel    string    `json:"channel,omitempty"`
	Account    string    `json:"account,omitempty"`
	To         string    `json:"to,omitempty"`
	Thread     string    `json:"thread,omitempty"`
	Webhook    string    `json:"webhook,omitempty"`
	BestEffort *bool     `json:"bestEffort,omitempty"`
	Seconds    *int      `json:"timeoutSeconds,omitempty"`
	Light      *bool     `json:"lightContext,omitempty"`
	Keep       *bool     `json:"keep,omitempty"`
	Exact      *bool     `json:"exact,omitempty"`
	// Event makes a new one a text for the main session; Wake says when it is noticed.
	Event bool   `json:"event,omitempty"`
	Wake  string `json:"wake,omitempty"`
	// Alert is when somebody is told of failures, all of it.
	Alert *CronAlert `json:"alert,omitempty"`
}

// CronAlert says when somebody is told that a task fails. What is zero is as configured.
type CronAlert struct {
	Off   bool   `json:"off,omitempty"`
	After int    `json:"after,omitempty"` // failures in a row
	To    string `json:"to,omitempty"`    // a channel and a place on it, such as slack:channel:C0123
}

// rules is the same for the scheduler.
func (x *CronAlert) rules() (a cron.Alert) {
	if x != nil {
		a.Off, a.After = x.Off, x.After
		a.Channel, a.To, _ = strings.Cut(x.To, ":")
	}
	return a
}

// orZero is the value that was said, or none.
func orZero[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// draft is a new task.
func (c CronChange) draft() cron.Draft {
	d := cron.Draft{
		Name: orZero(c.Name), Agent: c.Agent, CreatedBy: "cli", Schedule: orZero(c.Schedule), Zone: orZero(c.Zone), Exact: orZero(c.Exact),
		Target: cron.Target(orZero(c.Session)), Message: orZero(c.Message), Model: orZero(c.Model), Thinking: orZero(c.Thinking), Fallbacks: c.Fallbacks,
		TimeoutSeconds: orZero(c.Seconds), LightContext: orZero(c.Light), Quiet: c.Announce != nil && !*c.Announce,
		Channel: c.Channel, To: c.To, Thread: c.Thread, Account: accountName(c.Account), Webhook: c.Webhook, BestEffort: orZero(c.BestEffort),
		Keep: orZero(c.Keep), Wake: cron.Wake(c.Wake), FailureAlert: c.Alert.rules(),
	}
	if c.Event {
		d.Kind = cron.SystemEvent
	}
	return d
}

// patch is a change of a task.
func (c CronChange) patch() cron.Patch {
	p := cron.Patch{
		Name: c.Name, Schedule: c.Schedule, Zone: c.Zone, Message: c.Message, Model: c.Model, Thinking: c.Thinking, Exact: c.Exact,
		TimeoutSeconds: c.Seconds, LightContext: c.Light, BestEffort: c.BestEffort, Keep: c.Keep,
	}
	if c.Session != nil {
		target := cron.Target(*c.Session)
		p.Target = &target
	}
	if c.Fallbacks != nil {
		p.Fallbacks = &c.Fallbacks
	}
	if c.Announce != nil {
		quiet := !*c.Announce
		p.Quiet = &quiet
	}
	if place := (cron.Place{Channel: c.Channel, To: c.To, Thread: c.Thread, Account: accountName(c.Account), Webhook: c.Webhook}); place != (cron.Place{}) {
		p.Place = &place
	}
	if c.Alert != nil {
		alert := c.Alert.rules()
		p.FailureAlert = &alert
	}
	if c.Wake != "" {
		wake := cron.Wake(c.Wake)
		p.Wake = &wake
	}
	return p
}

// cronOrderOfRun is what `bot cron run` asks for.
type cronOrderOfRun struct {
	ID   string `json:"id"`
	Due  bool   `json:"due,omitempty"`
	Wait bool   `json:"wait,omitempty"`
}

// unaskedRoutes adds what the verbs about tasks and heartbeats ask for.
func (a *App) unaskedRoutes(c *gateway.Control) {
	r := cronReader{a.jobs, a.cron}
	c.Handle("POST /v1/cron/list", answer(func(ctx context.Context, q cronQuery) (any, error) { return r.list(ctx, q) }))
	c.Handle("POST /v1/cron/show", answer(func(ctx context.Context, q cronQuery) (any, error) { return r.show(ctx, q) }))
	c.Handle("POST /v1/cron/runs", answer(func(ctx context.Context, q cronQuery) (any, error) { return r.runs(ctx, q) }))
	c.Handle("POST /v1/cron/next", answer(func(ctx context.Context, q cronQuery) (any, error) { return r.next(ctx, q) }))
	card := func(c cron.Card, err error) (any, error) { return cronJob(c), err }
	c.Handle("POST /v1/cron/add", answer(func(ctx context.Context, x CronChange) (any, error) { return card(a.cron.Add(ctx, x.draft())) }))
	c.Handle("POST /v1/cron/edit", answer(func(ctx context.Context, x CronChange) (any, error) { return card(a.cron.Edit(ctx, x.ID, x.patch())) }))
	c.Handle("POST /v1/cron/enable", answer(func(ctx context.Context, q cronQuery) (any, error) { return card(a.cron.Enable(ctx, q.ID)) }))
	c.Handle("POST /v1/cron/disable", answer(func(ctx context.Context, q cronQuery) (any, error) { return card(a.cron.Disable(ctx, q.ID)) }))
	c.Handle("POST /v1/cron/remove", answer(func(ctx context.Context, q cronQuery) (any, error) { return struct{}{}, a.cron.Remove(ctx, q.ID) }))
	c.Handle("POST /v1/cron/run", answer(a.cronRunNow))
	a.heartbeatRoutes(c)
}

// cronRunNow runs a task for a verb.
func (a *App) cronRunNow(ctx context.Context, in cronOrderOfRun) (any, error) {
	id, err := a.cron.RunNow(ctx, in.ID, in.Due)
	if err != nil {
		return nil, err
	}
	if in.Wait {
		run, err := a.cron.WaitRun(ctx, id)
		return cronRun(run), err
	}
	run, err := a.jobs.Run(ctx, id)
	return cronRun(run), err
}
