package main

import (
	"context"
	"strings"

	"understudy/app"
)

// commandLine is every verb and flag of the program.
type commandLine struct {
	Config        string `help:"Configuration file; else <state>/bot.yaml, else ./bot.yaml." placeholder:"FILE" type:"path"`
	InsecurePerms bool   `help:"Accept a configuration with secrets that other users can read." hidden:""`

	Run struct {
		Listen string `help:"Address of the web page, or off." placeholder:"HOST:PORT"`
	} `cmd:"" default:"withargs" help:"Serve: connect the channels and answer (the default)."`
	Chat struct {
		Session string `help:"Name of the conversation." default:"main"`
	} `cmd:"" help:"Chat in the terminal; piped, one message a line. Attaches to a running bot."`

	Settings configVerbs  `cmd:"" name:"config" help:"Check, write and show the configuration."`
	Auth     authVerbs    `cmd:"" help:"Manage credentials. Works beside a running bot."`
	Pairing  pairingVerbs `cmd:"" help:"Let people in and out."`
	Sessions sessionVerbs `cmd:"" help:"Conversations: look, reset, export, delete."`
	Models   modelVerbs   `cmd:"" help:"Models: what there is, what is configured, and how they are."`
	Agent    agentVerb    `cmd:"" help:"One turn from a script, through the running bot; exits 1 without an answer."`
	Secrets  struct {
		Audit struct {
			JSON bool `name:"json" help:"Print JSON."`
		} `cmd:"" help:"Look for secrets in plain text and for files that others can read."`
	} `cmd:"" help:"Where secrets stand in plain text."`
	Backup struct {
		File string `arg:"" help:"Archive to write: .tar, .tar.gz or .tgz." type:"path"`
	} `cmd:"" help:"Write the conversations and the configuration without secrets to an archive."`
	Channels  channelVerbs   `cmd:"" help:"How the channels are doing."`
	Cron      cronVerbs      `cmd:"" help:"Scheduled tasks."`
	Heartbeat heartbeatVerbs `cmd:"" help:"The regular look whether something needs you."`
	Message   struct {
		Send struct {
			Channel  string   `help:"Channel: slack, discord or telegram." required:""`
			Account  string   `help:"Channel account; default: the default one." placeholder:"ID"`
			To       string   `help:"Id of the conversation; direct:, group: or channel: in front where the id does not tell." required:"" placeholder:"ID"`
			ThreadID string   `name:"thread-id" help:"Thread or topic." placeholder:"ID"`
			Message  string   `help:"What to say, in Markdown." placeholder:"TEXT"`
			Media    []string `help:"File to send along." placeholder:"FILE" type:"path"`
		} `cmd:"" help:"Say something through the running bot."`
	} `cmd:"" help:"Say something."`
	Doctor struct {
		Fix        bool   `help:"Repair what can be repaired, and import credentials that wait."`
		From       string `help:"With --fix: import the credentials of another program's state directory." placeholder:"DIR" type:"path"`
		AdoptOAuth bool   `name:"adopt-oauth" help:"With --from: take sign-ins too. The other program must not use them any more."`
		Probe      bool   `help:"Send a minimal request with every credential, and ask the platforms of the channels."`
		JSON       bool   `name:"json" help:"Print JSON; the exit code is always 0."`
	} `cmd:"" help:"Check configuration, files, secrets and credentials, and say how to put things right."`

	Status struct {
		JSON bool `name:"json" help:"Print JSON."`
	} `cmd:"" help:"How the running bot is doing."`
	Page   struct{} `cmd:"" help:"Print the address that opens the page and signs the browser in."`
	Health struct{} `cmd:"" help:"Exit 0 when the running bot is ready (container health check)."`
	Reload struct{} `cmd:"" help:"Make the running bot read its configuration again."`

	Classify struct {
		File     string `arg:"" optional:"" help:"JSON Lines; default standard input."`
		Check    bool   `help:"Compare with the labels in the file."`
		Text     string `help:"Classify this text instead."`
		Provider string `help:"Provider of --text."`
	} `cmd:"" help:"What the bot makes of a provider's error."`
	Simulate struct {
		File string `arg:"" help:"Scenario."`
		JSON bool   `name:"json" help:"Print the trace as JSON Lines."`
	} `cmd:"" help:"Fire drill: play an outage on a virtual clock and show what every user would see."`
	Version struct{} `cmd:"" help:"Print the version."`
}

type configVerbs struct {
	Check struct{} `cmd:"" help:"Explain what is wrong with the configuration."`
	Init  struct {
		File string `arg:"" optional:"" help:"Where to write it." default:"bot.yaml"`
	} `cmd:"" help:"Write a commented configuration to start from."`
	Show   struct{} `cmd:"" help:"Print the configuration in use, without secrets."`
	Schema struct{} `cmd:"" help:"Print the JSON schema of the configuration."`
}

type authVerbs struct {
	Agent string `help:"Whose store; default: the default agent's." placeholder:"ID"`

	Add struct {
		Profile string `arg:"" help:"Profile id, such as openai:work."`
		Type    string `help:"Kind of credential; oauth reads a refresh token, or a sign-in as JSON." enum:"api_key,token,oauth" default:"api_key"`
		FromEnv string `help:"Take the secret from this environment variable." placeholder:"NAME"`
	} `cmd:"" help:"Store a key or token; it is read from a prompt or from standard input."`
	Login struct {
		Who    string `arg:"" name:"provider" help:"Provider, or the profile id to store the sign-in under."`
		Paste  bool   `help:"For a machine without a browser: paste the address the browser was sent to."`
		Device bool   `help:"Show a code to type at a page, where the provider offers that."`
	} `cmd:"" help:"Sign in at a provider."`
	List   struct{} `cmd:"" help:"List the stored profiles."`
	Status struct {
		JSON  bool `name:"json" help:"Print JSON."`
		Probe bool `help:"Send a minimal request with every profile."`
		Check bool `help:"Exit 1 when a configured model has no usable credential."`
	} `cmd:"" help:"Show profiles with their health."`
	Order struct {
		Get struct {
			Provider string `arg:"" help:"Provider id."`
		} `cmd:"" help:"Show the stored order."`
		Set struct {
			Provider string   `arg:"" help:"Provider id."`
			Profiles []string `arg:"" optional:"" help:"Profiles in the order to try; none = use none of them."`
		} `cmd:"" help:"Store the order."`
		Clear struct {
			Provider string `arg:"" help:"Provider id."`
		} `cmd:"" help:"Forget the stored order."`
	} `cmd:"" help:"The order in which a provider's profiles are tried."`
	Export struct {
		WithSecrets bool `help:"Print secrets too; needs --really."`
		Really      bool `help:"With --with-secrets: yes, print them."`
	} `cmd:"" help:"Print what is stored as JSON, without secrets."`
	Enable struct {
		Profile string `arg:"" help:"Profile or provider id."`
	} `cmd:"" aliases:"clear-cooldown" help:"Clear every cooldown and disable window of a profile."`
	Remove struct {
		Profile string `arg:"" help:"Profile id."`
	} `cmd:"" help:"Forget a credential."`
}

type pairingVerbs struct {
	Account string `help:"Channel account; default: the default one." placeholder:"ID"`

	List struct {
		Channel string `arg:"" optional:"" help:"Only this channel."`
	} `cmd:"" help:"Who waits for access and who has it."`
	Approve struct {
		Channel string `arg:"" help:"Channel, such as telegram."`
		Code    string `arg:"" help:"The code that the person was shown."`
		Notify  bool   `help:"Have the running bot tell the person."`
	} `cmd:"" help:"Let a person in."`
	Revoke struct {
		Channel string `arg:"" help:"Channel."`
		Sender  string `arg:"" help:"Sender id."`
	} `cmd:"" help:"Take access away."`
}

type channelVerbs struct {
	Status struct {
		Probe bool `help:"Ask the platforms too."`
		JSON  bool `name:"json" help:"Print JSON."`
	} `cmd:"" help:"Connections of the running bot."`
	Smoke struct {
		Channel string `arg:"" optional:"" help:"Only this channel."`
		Account string `help:"Channel account; default: the default one." placeholder:"ID"`
		To      string `help:"Conversation in which messages may be sent, edited and deleted." placeholder:"ID"`
		Thread  string `name:"thread-id" help:"Thread or topic in it." placeholder:"ID"`
	} `cmd:"" help:"A maintainer's check with real tokens: what a program can try, and a list for the rest."`
	DeadLetters struct {
		List struct {
			JSON bool `name:"json" help:"Print JSON."`
		} `cmd:"" help:"Messages that were given up."`
		Resubmit struct {
			ID int64 `arg:"" help:"Its number."`
		} `cmd:"" help:"Answer one after all."`
	} `cmd:"" name:"dead-letters" help:"Messages that were given up after several failures."`
}

// dispatch runs the verb that was parsed. Kong names it by its path and arguments, such as
// "auth add <profile>".
func (c *commandLine) dispatch(ctx context.Context, verb string, o app.Options, std app.Std) int {
	verb, _, _ = strings.Cut(verb, " <")
	verb, _, _ = strings.Cut(verb, " [")
	area, _, _ := strings.Cut(verb, " ")
	switch area {
	case "config":
		return c.Settings.dispatch(verb, o, std)
	case "auth":
		return c.Auth.dispatch(ctx, verb, o, std)
	case "pairing":
		return c.Pairing.dispatch(ctx, verb, o, std)
	case "channels":
		return c.Channels.dispatch(ctx, verb, o, std)
	case "sessions":
		return c.Sessions.dispatch(ctx, verb, o, std)
	case "models":
		return c.Models.dispatch(ctx, verb, o, std)
	case "agent":
		return c.Agent.run(ctx, o, std)
	case "secrets":
		return app.SecretsAudit(ctx, o, std, c.Secrets.Audit.JSON)
	case "backup":
		return app.Backup(ctx, o, std, c.Backup.File)
	case "cron":
		return c.Cron.dispatch(ctx, verb, o, std)
	case "heartbeat":
		return c.Heartbeat.dispatch(ctx, verb, o, std)
	case "message":
		m := c.Message.Send
		return app.MessageSend(ctx, o, std, app.OutgoingMessage{Channel: m.Channel, Account: m.Account, To: m.To, Thread: m.ThreadID, Text: m.Message}, m.Media)
	case "chat":
		return app.Chat(ctx, o, std, c.Chat.Session)
	case "doctor":
		d := c.Doctor
		return app.Doctor(ctx, o, std, app.DoctorOptions{Fix: d.Fix, From: d.From, AdoptOAuth: d.AdoptOAuth, Probe: d.Probe, JSON: d.JSON})
	case "status":
		return app.RemoteStatus(ctx, o, std, c.Status.JSON)
	case "page":
		return app.RemotePage(ctx, o, std)
	case "health":
		return app.RemoteHealth(ctx, o, std)
	case "reload":
		return app.RemoteReload(ctx, o, std)
	case "classify":
		return app.ClassifyVerb(std, c.Classify.File, app.ClassifyOptions{Check: c.Classify.Check, Text: c.Classify.Text, Provider: c.Classify.Provider})
	case "simulate":
		return app.Simulate(ctx, o, std, c.Simulate.File, c.Simulate.JSON)
	case "version":
		return app.PrintVersion(o, std)
	}
	o.Listen = c.Run.Listen
	return app.Serve(ctx, o, std)
}

func (c *configVerbs) dispatch(verb string, o app.Options, std app.Std) int {
	switch verb {
	case "config init":
		return app.ConfigInit(std, c.Init.File)
	case "config show":
		return app.ConfigShow(o, std)
	case "config schema":
		return app.ConfigSchema(std)
	}
	return app.ConfigCheck(o, std)
}

func (c *authVerbs) dispatch(ctx context.Context, verb string, o app.Options, std app.Std) int {
	switch verb {
	case "auth add":
		return app.AuthAdd(ctx, o, std, app.NewCredential{Agent: c.Agent, Profile: c.Add.Profile, Type: c.Add.Type, FromEnv: c.Add.FromEnv})
	case "auth login":
		return app.AuthLogin(ctx, o, std, app.LoginOptions{Agent: c.Agent, Who: c.Login.Who, Paste: c.Login.Paste, Device: c.Login.Device})
	case "auth order get":
		return app.AuthOrderGet(ctx, o, std, c.Agent, c.Order.Get.Provider)
	case "auth order set":
		return app.AuthOrderSet(ctx, o, std, c.Agent, c.Order.Set.Provider, c.Order.Set.Profiles)
	case "auth order clear":
		return app.AuthOrderClear(ctx, o, std, c.Agent, c.Order.Clear.Provider)
	case "auth export":
		return app.AuthExport(ctx, o, std, app.ExportOptions{Agent: c.Agent, Secrets: c.Export.WithSecrets, Really: c.Export.Really})
	case "auth enable":
		return app.AuthEnable(ctx, o, std, c.Agent, c.Enable.Profile)
	case "auth remove":
		return app.AuthRemove(ctx, o, std, c.Agent, c.Remove.Profile)
	}
	return app.AuthStatus(ctx, o, std, app.StatusOptions{Agent: c.Agent, JSON: c.Status.JSON, Probe: c.Status.Probe, Check: c.Status.Check})
}

func (c *pairingVerbs) dispatch(ctx context.Context, verb string, o app.Options, std app.Std) int {
	switch verb {
	case "pairing approve":
		return app.PairingApprove(ctx, o, std, c.Approve.Channel, c.Account, c.Approve.Code, c.Approve.Notify)
	case "pairing revoke":
		return app.PairingRevoke(ctx, o, std, c.Revoke.Channel, c.Account, c.Revoke.Sender)
	}
	return app.PairingList(ctx, o, std, c.List.Channel)
}

func (c *channelVerbs) dispatch(ctx context.Context, verb string, o app.Options, std app.Std) int {
	switch verb {
	case "channels smoke":
		s := c.Smoke
		return app.Smoke(ctx, o, std, app.SmokeOptions{Channel: s.Channel, Account: s.Account, To: s.To, Thread: s.Thread})
	case "channels dead-letters list":
		return app.DeadLetters(ctx, o, std, c.DeadLetters.List.JSON)
	case "channels dead-letters resubmit":
		return app.Resubmit(ctx, o, std, c.DeadLetters.Resubmit.ID)
	}
	return app.ChannelsStatus(ctx, o, std, c.Status.Probe, c.Status.JSON)
}
