package main

import (
	"context"

	"understudy/app"
)

type sessionVerbs struct {
	List struct {
		Agent string `help:"Only those of this agent." placeholder:"ID"`
		Limit int    `help:"How many, the last changed first." default:"100"`
		JSON  bool   `name:"json" help:"Print JSON."`
	} `cmd:"" help:"Conversations, the last changed first."`
	Show struct {
		Session  string `arg:"" help:"Key, or the name of a conversation of scripts."`
		Messages int    `help:"How many of the last messages." default:"20"`
		JSON     bool   `name:"json" help:"Print JSON."`
	} `cmd:"" help:"A conversation with its last messages."`
	Reset struct {
		Session string `arg:"" help:"Key or name."`
	} `cmd:"" help:"What /reset does, through the running bot."`
	Export struct {
		Session string `arg:"" help:"Key or name."`
		Output  string `help:"Write to this file; default standard output." placeholder:"FILE" type:"path"`
	} `cmd:"" help:"Everything that is stored of a conversation, as JSON Lines."`
	Delete struct {
		Session string `arg:"" help:"Key or name."`
		Yes     bool   `help:"Yes, for good."`
	} `cmd:"" help:"Remove a conversation with everything that was said in it, through the running bot."`
	Cleanup struct {
		DryRun bool `help:"Only say what would go."`
		JSON   bool `name:"json" help:"Print JSON."`
	} `cmd:"" help:"Remove what nobody talks in: old runs of tasks and scripts. Conversations of people stay."`
}

func (c *sessionVerbs) dispatch(ctx context.Context, verb string, o app.Options, std app.Std) int {
	switch verb {
	case "sessions show":
		return app.SessionsShow(ctx, o, std, c.Show.Session, c.Show.Messages, c.Show.JSON)
	case "sessions reset":
		return app.SessionsReset(ctx, o, std, c.Reset.Session)
	case "sessions export":
		return app.SessionsExport(ctx, o, std, c.Export.Session, c.Export.Output)
	case "sessions delete":
		return app.SessionsDelete(ctx, o, std, c.Delete.Session, c.Delete.Yes)
	case "sessions cleanup":
		return app.SessionsCleanup(ctx, o, std, c.Cleanup.DryRun, c.Cleanup.JSON)
	}
	return app.SessionsList(ctx, o, std, c.List.Agent, c.List.Limit, c.List.JSON)
}

type modelVerbs struct {
	List struct {
		Provider string `help:"Only those of this provider." placeholder:"ID"`
		JSON     bool   `name:"json" help:"Print JSON."`
	} `cmd:"" help:"Models the bot can name, those of the configuration first."`
	Status struct {
		JSON bool `name:"json" help:"Print JSON."`
	} `cmd:"" help:"The configured model and its fallbacks, and whether anything can serve them now. Exits 1 when nothing can."`
	Set struct {
		Model  string `arg:"" help:"Reference (provider/model) or alias."`
		DryRun bool   `help:"Only show what would change."`
	} `cmd:"" help:"Change the configured model in the configuration file."`
	Fallbacks struct {
		List struct{} `cmd:"" help:"The configured fallbacks, in order."`
		Add  struct {
			Model  string `arg:"" help:"Reference or alias; it becomes the last one."`
			DryRun bool   `help:"Only show what would change."`
		} `cmd:"" help:"Add a fallback to the configuration file."`
		Remove struct {
			Model  string `arg:"" help:"Reference or alias."`
			DryRun bool   `help:"Only show what would change."`
		} `cmd:"" help:"Take a fallback out of the configuration file."`
		Clear struct {
			DryRun bool `help:"Only show what would change."`
		} `cmd:"" help:"Take all fallbacks out."`
	} `cmd:"" help:"Models that step in when the configured one fails."`
}

func (c *modelVerbs) dispatch(ctx context.Context, verb string, o app.Options, std app.Std) int {
	f := &c.Fallbacks
	switch verb {
	case "models status":
		return app.ModelsStatus(ctx, o, std, c.Status.JSON)
	case "models set":
		return app.ModelsEdit(o, std, app.ModelsChange{Primary: c.Set.Model}, c.Set.DryRun)
	case "models fallbacks list":
		return app.FallbacksList(o, std)
	case "models fallbacks add":
		return app.ModelsEdit(o, std, app.ModelsChange{Add: f.Add.Model}, f.Add.DryRun)
	case "models fallbacks remove":
		return app.ModelsEdit(o, std, app.ModelsChange{Remove: f.Remove.Model}, f.Remove.DryRun)
	case "models fallbacks clear":
		return app.ModelsEdit(o, std, app.ModelsChange{Clear: true}, f.Clear.DryRun)
	}
	return app.ModelsList(ctx, o, std, c.List.Provider, c.List.JSON)
}

// agentVerb is one turn from a script.
type agentVerb struct {
	Session string `help:"Key of a conversation, or a name for one of scripts." required:"" placeholder:"KEY"`
	Message string `help:"What to say; - or nothing = read it from standard input." placeholder:"TEXT"`
	Model   string `help:"Answer this once with this model, and with no other." placeholder:"REF"`
	JSON    bool   `name:"json" help:"Print the result as JSON."`
}

func (c *agentVerb) run(ctx context.Context, o app.Options, std app.Std) int {
	return app.Agent(ctx, o, std, app.AgentTurn{Session: c.Session, Message: c.Message, Model: c.Model, JSON: c.JSON})
}
