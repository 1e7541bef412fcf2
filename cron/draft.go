package cron

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"understudy/chat"
	"understudy/cron/schedule"
)

// Draft is a job as somebody asks for it. Only Schedule and Message are required.
type Draft struct {
	// ID is what the job will be called, for somebody who has to find out after a crash whether it was made:
	// ten lower-case letters and digits that no job has. "" = a fresh one.
	ID                          string
	Name, Agent, CreatedBy, Tag string
	// Schedule is what the person typed (schedule.Parse); Zone the job's own zone, "" = the configured
	// one. Exact keeps full hours where they are.
	Schedule, Zone string
	Exact          bool
	// Target: "" = Main for a SystemEvent, else Isolated.
	Target Target
	// Origin and Session are the conversation the draft comes from; zero = none.
	Origin  chat.Address
	Session string
	// Kind: "" = AgentTurn.
	Kind                     PayloadKind
	Message, Model, Thinking string
	Fallbacks                *[]string
	TimeoutSeconds           int
	LightContext             bool
	// Quiet keeps the result in the run log. Channel, To, Thread and Account name another place than
	// Origin for it, as in Destination.
	Quiet                        bool
	Channel, To, Thread, Account string
	// Webhook is the https URL that results are posted to instead.
	Webhook    string
	BestEffort bool
	// Keep leaves a single job in the list after it ran.
	Keep         bool
	Wake         Wake
	FailureAlert Alert
}

// Patch changes a job: what is nil stays as it is.
type Patch struct {
	Name, Schedule, Zone, Message, Model, Thinking *string
	Exact                                          *bool
	Target                                         *Target
	// Fallbacks: a pointer to nil takes the job's own list away.
	Fallbacks      **[]string
	TimeoutSeconds *int
	LightContext   *bool
	Quiet          *bool
	// Place names another place for results, all its fields together.
	Place        *Place
	BestEffort   *bool
	Keep         *bool
	Wake         *Wake
	FailureAlert *Alert
}

// Place is a destination as people write it: a place on a channel, or a webhook.
type Place struct{ Channel, To, Thread, Account, Webhook string }

// Invalid tells what is wrong with a draft. It is written for the person who made it.
type Invalid struct {
	Field string
	Err   error
}

// Error names the field.
func (e *Invalid) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *Invalid) Unwrap() error { return e.Err }

// Public is the same text: it repeats only what its reader wrote.
func (e *Invalid) Public() string { return e.Error() }

func invalid(field, format string, args ...any) *Invalid {
	return &Invalid{field, fmt.Errorf(format, args...)}
}

// definition makes a job's definition of a draft; its schedule is parsed by the caller.
func (d Draft) definition() (Definition, error) {
	def := Definition{
		Name: strings.TrimSpace(d.Name), Agent: firstOf(d.Agent, "main"), CreatedBy: d.CreatedBy, Tag: d.Tag, Exact: d.Exact, Target: d.Target,
		Origin: d.Origin, Session: d.Session,
		Payload: Payload{
			Kind: d.Kind, Message: strings.TrimSpace(d.Message), Model: strings.TrimSpace(d.Model), Fallbacks: d.Fallbacks, Thinking: d.Thinking,
			TimeoutSeconds: d.TimeoutSeconds, LightContext: d.LightContext,
		},
		Delivery: Delivery{Mode: Announce, To: d.Origin, BestEffort: d.BestEffort},
		Wake:     d.Wake, FailureAlert: d.FailureAlert,
	}
	if def.Payload.Kind == "" {
		def.Payload.Kind = AgentTurn
	}
	if def.Name == "" {
		def.Name = nameFrom(def.Payload.Message)
	}
	if def.Target == "" {
		def.Target = Isolated
	}
	if def.Payload.Kind == SystemEvent {
		d.Quiet = true
		if d.Target == "" {
			def.Target = Main
		}
		if def.Wake == "" {
			def.Wake = WakeNow
		}
	}
	if d.Quiet {
		def.Delivery = Delivery{Mode: Quiet}
		return def, nil
	}
	return def, def.deliverTo(Place{d.Channel, d.To, d.Thread, d.Account, d.Webhook})
}

// deliverTo sets the place of the results, if one is named.
func (d *Definition) deliverTo(p Place) error {
	switch {
	case p == (Place{}):
		return nil
	case p.Webhook != "" && p != Place{Webhook: p.Webhook}:
		return invalid("webhook", "a result goes to a webhook or to a channel, not to both")
	case p.Webhook != "":
		if err := checkWebhook(p.Webhook); err != nil {
			return &Invalid{"webhook", err}
		}
		d.Delivery.Mode, d.Delivery.To = Webhook, chat.Address{Channel: WebhookChannel, Conversation: p.Webhook}
		return nil
	}
	to, err := Destination(p.Channel, p.To, p.Thread, p.Account)
	if err != nil {
		return &Invalid{"to", err}
	}
	d.Delivery.Mode, d.Delivery.To = Announce, to
	return nil
}

// nameFrom makes a name of the first words of a message.
func nameFrom(message string) string {
	const most = 40
	words := strings.Join(strings.Fields(message), " ")
	if utf8.RuneCountInString(words) <= most {
		return clip(words, maxName)
	}
	return clip(strings.TrimSpace(string([]rune(words)[:most])), maxName-len("…")) + "…"
}

// check finds what is wrong with a definition. model is Deps.CheckModel.
func (d Definition) check(model func(agent, ref string) error) error {
	p := d.Payload
	switch {
	case p.Message == "":
		return invalid("message", "says nothing; write what is to be done")
	case len(p.Message) > maxMessage || !utf8.ValidString(p.Message):
		return invalid("message", "must be text of at most %d KB", maxMessage/1024)
	case len(d.Name) > maxName || !utf8.ValidString(d.Name) || strings.ContainsFunc(d.Name, func(r rune) bool { return r < ' ' }):
		return invalid("name", "must be one line of at most %d bytes", maxName)
	case p.TimeoutSeconds < 0 || p.TimeoutSeconds > int(longestTimeout/time.Second):
		return invalid("timeout", "must be between 1 second and 24 hours")
	case p.Kind != AgentTurn && p.Kind != SystemEvent && p.Kind != Saying:
		return invalid("payload", "%q is none of agentTurn, systemEvent, say", p.Kind)
	case p.Kind == SystemEvent && d.Target != Main:
		return invalid("session", "a systemEvent is for the main session only")
	case d.Wake != "" && d.Wake != WakeNow && d.Wake != WakeNextHeartbeat:
		return invalid("wake", "%q is none of now, next-heartbeat", d.Wake)
	}
	if err := d.checkTarget(); err != nil {
		return err
	}
	if err := d.FailureAlert.validate(); err != nil {
		return &Invalid{"failureAlert", err}
	}
	return p.checkModels(d.Agent, model)
}

func (d Definition) checkTarget() error {
	switch name := d.Target.Session(); {
	case d.Target == Current && d.Session == "":
		return invalid("session", "current is the conversation a task is made in, and this one is made elsewhere; use isolated or session:<name>")
	case d.Target == Main, d.Target == Isolated, d.Target == Current:
	case name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "":
		return invalid("session", "%q is none of main, isolated, current, session:<name>", clip(string(d.Target), 80))
	}
	if d.Delivery.Mode == Announce && (d.Delivery.To.Channel == "" || d.Delivery.To.Conversation == "") {
		return invalid("to", "it is not said where the result goes; name a channel and a place, or deliver nothing")
	}
	return nil
}

// maxFallbacks bounds a job's own chain.
const maxFallbacks = 20

func (p Payload) checkModels(agent string, check func(agent, ref string) error) error {
	models := []string{}
	if p.Model != "" {
		models = append(models, p.Model)
	}
	if p.Fallbacks != nil {
		if len(*p.Fallbacks) > maxFallbacks {
			return invalid("fallbacks", "at most %d models", maxFallbacks)
		}
		models = append(models, *p.Fallbacks...)
	}
	for i, m := range models {
		field := "fallbacks"
		if i == 0 && p.Model != "" {
			field = "model"
		}
		if strings.TrimSpace(m) == "" || len(m) > 200 {
			return &Invalid{field, errors.New("is not a model")}
		}
		if check == nil {
			continue
		}
		if err := check(agent, m); err != nil {
			return &Invalid{field, err}
		}
	}
	return nil
}

// apply changes a definition; the schedule is the caller's.
func (p Patch) apply(d *Definition) error {
	set(&d.Name, p.Name)
	set(&d.Payload.Message, p.Message)
	set(&d.Payload.Model, p.Model)
	set(&d.Payload.Thinking, p.Thinking)
	set(&d.Payload.Fallbacks, p.Fallbacks)
	set(&d.Payload.TimeoutSeconds, p.TimeoutSeconds)
	set(&d.Payload.LightContext, p.LightContext)
	set(&d.Target, p.Target)
	set(&d.Exact, p.Exact)
	set(&d.Wake, p.Wake)
	set(&d.FailureAlert, p.FailureAlert)
	set(&d.Delivery.BestEffort, p.BestEffort)
	if p.Keep != nil {
		d.DeleteAfterRun = !*p.Keep
	}
	if p.Quiet != nil {
		d.Delivery.Mode = Announce
		if d.Delivery.To.Channel == WebhookChannel {
			d.Delivery.Mode = Webhook
		}
		if *p.Quiet {
			d.Delivery.Mode = Quiet
		} else if d.Delivery.To == (chat.Address{}) {
			d.Delivery.To = d.Origin
		}
	}
	if p.Place != nil {
		return d.deliverTo(*p.Place)
	}
	return nil
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// touchesPlan reports whether a patch changes when the job runs.
func (p Patch) touchesPlan() bool { return p.Schedule != nil || p.Zone != nil || p.Exact != nil }

// frame is what the words of a schedule are relative to (spec/chat.md §5.2).
func (s *Scheduler) frame(tz string) (schedule.Frame, error) {
	x := s.cfg.Load()
	f := schedule.Frame{Now: s.now(), Zone: x.zone, Named: x.named}
	if tz != "" {
		zone, err := schedule.Zone(tz, s.zones.find)
		if err != nil {
			return f, &Invalid{"tz", err}
		}
		f.Zone, f.Named, f.Own = zone, true, true
	}
	return f, nil
}
