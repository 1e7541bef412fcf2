package main

import (
	"context"
	"strings"

	"understudy/app"
)

// taskFlags are what can be said about a task when it is made or changed.
type taskFlags struct {
	Name       *string `help:"What it is called." placeholder:"TEXT"`
	TZ         *string `name:"tz" help:"Its time zone, such as Europe/Berlin." placeholder:"ZONE"`
	Model      *string `help:"Its own first model." placeholder:"MODEL"`
	Fallbacks  *string `help:"Its own chain: models separated by commas; empty = no other model." placeholder:"A,B"`
	Thinking   *string `help:"Level of thinking." placeholder:"LEVEL"`
	Session    *string `help:"main, isolated or session:<name>." placeholder:"SESSION"`
	Announce   *bool   `negatable:"" help:"Send the result (the default), or with --no-announce keep it in the run log."`
	Channel    string  `help:"Where the result goes: slack, discord or telegram." placeholder:"NAME"`
	Account    string  `help:"Channel account; default: the default one." placeholder:"ID"`
	To         string  `help:"The place on that channel, such as channel:C0123 or a chat id." placeholder:"ID"`
	ThreadID   string  `name:"thread-id" help:"Thread or topic." placeholder:"ID"`
	Webhook    string  `help:"Post the result to this https URL instead." placeholder:"URL"`
	BestEffort *bool   `negatable:"" help:"A run counts as complete although its result could not be delivered."`
	Timeout    *int    `help:"Seconds that a run may take; default 600." placeholder:"SECONDS"`
	Light      *bool   `name:"light-context" negatable:"" help:"Leave the agent's files out."`
	Keep       *bool   `name:"keep-after-run" negatable:"" help:"Keep a single task in the list after it ran."`
	Exact      *bool   `negatable:"" help:"Keep full hours where they are."`
	AlertAfter int     `name:"alert-after" help:"From which failure in a row on somebody is told; default: as configured." placeholder:"N"`
	AlertTo    string  `name:"alert-to" help:"Who is told, such as slack:channel:C0123." placeholder:"PLACE"`
	NoAlert    bool    `name:"no-alert" help:"Tell nobody of failures. What is said of alerts takes the place of all that was said before."`
}

// change is what the flags say.
func (f taskFlags) change() app.CronChange {
	x := app.CronChange{
		Name: f.Name, Zone: f.TZ, Model: f.Model, Thinking: f.Thinking, Session: f.Session, Announce: f.Announce, Channel: f.Channel,
		Account: f.Account, To: f.To, Thread: f.ThreadID, Webhook: f.Webhook, BestEffort: f.BestEffort, Seconds: f.Timeout, Light: f.Light,
		Keep: f.Keep, Exact: f.Exact,
	}
	if f.NoAlert || f.AlertAfter != 0 || f.AlertTo != "" {
		x.Alert = &app.CronAlert{Off: f.NoAlert, After: f.AlertAfter, To: f.AlertTo}
	}
	if f.Fallbacks != nil {
		list := strings.FieldsFunc(*f.Fallbacks, func(r rune) bool { return r == ',' || r == ' ' })
		if list == nil {
			list = []string{}
		}
		x.Fallbacks = &list
	}
	return x
}

type cronVerbs struct {
	List struct {
		All  bool `help:"Also those that are off or done."`
		JSON bool `name:"json" help:"Print JSON."`
	} `cmd:"" help:"The tasks, in order of their next run."`
	Show struct {
		ID   string `arg:"" help:"Its id."`
		JSON bool   `name:"json" help:"Print JSON."`
	} `cmd:"" help:"Everything about one."`
	Add struct {
		Schedule string `arg:"" help:"When, such as \"every weekday at 9\", 20m, or \"0 9 * * 1-5\"."`
		Prompt   string `arg:"" help:"What is to be done."`
		Agent    string `help:"Whose task; default: the default agent's." placeholder:"ID"`
		Event    bool   `help:"A text for the main session, noticed by a heartbeat, instead of a turn."`
		Wake     string `help:"With --event: now or next-heartbeat." enum:",now,next-heartbeat" default:"" placeholder:"WHEN"`
		taskFlags
	} `cmd:"" help:"Make a task."`
	Edit struct {
		ID       string  `arg:"" help:"Its id."`
		Schedule *string `help:"Another schedule." placeholder:"SCHEDULE"`
		Prompt   *string `help:"Another text." placeholder:"TEXT"`
		taskFlags
	} `cmd:"" help:"Change what is named."`
	Enable struct {
		ID string `arg:"" help:"Its id."`
	} `cmd:"" help:"Switch one on; earlier failures are forgotten."`
	Disable struct {
		ID string `arg:"" help:"Its id."`
	} `cmd:"" help:"Switch one off."`
	Run struct {
		ID   string `arg:"" help:"Its id."`
		Due  bool   `help:"Only if its time has come."`
		Wait bool   `help:"Wait for the end; exit 1 when it did not go well."`
	} `cmd:"" help:"Run one now, beside its schedule."`
	Runs struct {
		ID    string `arg:"" help:"Its id."`
		Limit int    `help:"How many, the newest first." default:"20"`
		JSON  bool   `name:"json" help:"Print JSON."`
	} `cmd:"" help:"The run log."`
	Remove struct {
		ID string `arg:"" help:"Its id."`
	} `cmd:"" help:"Delete one, and stop its run."`
	Next struct {
		Schedule string `arg:"" optional:"" help:"Say what a schedule means, instead."`
		TZ       string `name:"tz" help:"With a schedule: its time zone." placeholder:"ZONE"`
		Limit    int    `help:"How many." default:"5"`
		JSON     bool   `name:"json" help:"Print JSON."`
	} `cmd:"" help:"What runs next."`
}

func (c *cronVerbs) dispatch(ctx context.Context, verb string, o app.Options, std app.Std) int {
	switch verb {
	case "cron add":
		x := c.Add.change()
		x.Schedule, x.Message, x.Agent, x.Event, x.Wake = &c.Add.Schedule, &c.Add.Prompt, c.Add.Agent, c.Add.Event, c.Add.Wake
		return app.CronAdd(ctx, o, std, x)
	case "cron edit":
		x := c.Edit.change()
		x.ID, x.Schedule, x.Message = c.Edit.ID, c.Edit.Schedule, c.Edit.Prompt
		return app.CronEdit(ctx, o, std, x)
	case "cron show":
		return app.CronShow(ctx, o, std, c.Show.ID, c.Show.JSON)
	case "cron enable":
		return app.CronSwitch(ctx, o, std, c.Enable.ID, true)
	case "cron disable":
		return app.CronSwitch(ctx, o, std, c.Disable.ID, false)
	case "cron run":
		return app.CronRunNow(ctx, o, std, c.Run.ID, c.Run.Due, c.Run.Wait)
	case "cron runs":
		return app.CronRuns(ctx, o, std, c.Runs.ID, c.Runs.Limit, c.Runs.JSON)
	case "cron remove":
		return app.CronRemove(ctx, o, std, c.Remove.ID)
	case "cron next":
		return app.CronNextRuns(ctx, o, std, c.Next.Schedule, c.Next.TZ, c.Next.Limit, c.Next.JSON)
	}
	return app.CronList(ctx, o, std, c.List.All, c.List.JSON)
}

type heartbeatVerbs struct {
	Agent string `help:"Whose heartbeat; default: the default agent's." placeholder:"ID"`

	Last struct {
		JSON bool `name:"json" help:"Print JSON."`
	} `cmd:"" help:"How the last one went, and when the next one comes."`
	Now     struct{} `cmd:"" help:"Have one now; exit 1 when it failed or did not happen."`
	Scratch struct {
		Set   *string `help:"Store this text." placeholder:"TEXT" xor:"change"`
		File  string  `help:"Store the text of a file; - = standard input." placeholder:"FILE" xor:"change"`
		Unset bool    `help:"Remove the checklist." xor:"change"`
	} `cmd:"" help:"Show or change the checklist."`
}

func (c *heartbeatVerbs) dispatch(ctx context.Context, verb string, o app.Options, std app.Std) int {
	switch verb {
	case "heartbeat now":
		return app.HeartbeatNow(ctx, o, std, c.Agent)
	case "heartbeat scratch":
		return app.HeartbeatScratch(ctx, o, std, c.Agent, app.ScratchChange{Set: c.Scratch.Set, File: c.Scratch.File, Unset: c.Scratch.Unset})
	}
	return app.HeartbeatLast(ctx, o, std, c.Agent, c.Last.JSON)
}
