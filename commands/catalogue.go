package commands

import "slices"

// The groups of /commands.
const (
	groupChat     = "Conversation"
	groupModel    = "Models"
	groupTime     = "Time"
	groupOperator = "Operation"
)

func groups() []string { return []string{groupChat, groupModel, groupTime, groupOperator} }

// catalogue lists all commands there can be, in the order of help.
func catalogue() []Spec {
	return slices.Concat(modelCommands(), chatCommands(), moreChatCommands(), timeCommands(), operatorCommands())
}

func modelCommands() []Spec {
	return []Spec{
		{
			Name: "help", Group: groupChat, Inline: Shortcut, Help: "the most useful commands",
			Args:  []Arg{{Name: "command", Help: "name of a command", Suggest: ListCommands}},
			About: "With the name of a command, what it does in detail.",
			run:   (*Registry).help,
		},
		{
			Name: "commands", Group: groupChat, Inline: Shortcut, Help: "all commands",
			About: "Lists every command that you may use.",
			run:   (*Registry).list,
		},
		{
			Name: "status", Group: groupModel, Inline: Shortcut, Help: "model, credentials, context and what is wrong",
			About: "Answers at once, also while an answer is being written. Shows the selected model and where the choice comes from; when another model answers in its place, which one, why and since when; the fallbacks, unless the choice is strict; the profile in use; every unhealthy profile with its reason and end; how full the context is; what the last turn used, and what it cost where the prices are known; the settings of the conversation; and what is scheduled. In groups only the bot owner sees profiles, the session key, the channels and what is scheduled. Faults of the installation are shown to the owner alone.",
			run:   (*Registry).status,
		},
		{
			Name: "why", Group: groupModel, Help: "how the last answer came about: who was asked, who failed, why",
			About: "One line for every candidate of the last turn that was tried or skipped, with the time, the profile, the reason and how long it took. In groups only the owner sees profiles; what the provider said is shown only to the owner, in a private chat.",
			run:   (*Registry).why,
		},
		{
			Name: "model", Group: groupModel, Inline: Directive, Help: "show or choose the model of this conversation",
			Args: []Arg{{
				Name: "model", Help: "a model, an alias, default or status", Suggest: ListModels,
				usage: "number | alias | provider/model[@profile] | default | status",
			}},
			About: "Without an argument, or with `list`, shows what is selected and a numbered list to choose from.\n\n" +
				"`/model 2`, `/model opus` and `/model openai/gpt-5.5` select a model for this conversation. The choice is strict: if that model cannot answer, you get its failure, never an answer from another model. It outlives `/new` and `/reset`; `/model default` returns to the configured model and its fallbacks.\n\n" +
				"`@profile` behind a model (or behind `default` or a number) locks one stored credential: `/model openai/gpt-5.5@work` is short for `…@openai:work`. No other profile of the provider is tried then. The lock ends with the conversation.\n\n" +
				"A model outside `agents.defaults.modelPolicy.allow`, an unknown profile, or one of another provider is refused, and nothing changes. While an answer is being written, the choice holds from its next step. A thread takes over the choice of the conversation it belongs to, in the same way, until it makes its own.\n\n" +
				"`/model status` lists, per provider, the endpoint and the profiles with their state; in groups only for the owner. `-s` is accepted and changes nothing: every choice is the session's. The configured default is changed in the configuration.",
			run: (*Registry).model, take: takesModel, Renews: true,
		},
		{
			Name: "models", Group: groupModel, Help: "all models that can be chosen",
			Args: []Arg{
				{Name: "provider", Help: "only models of this provider", Suggest: ListProviders},
				{Name: "page", Help: "number of the page"},
			},
			About: "First the configured ones, then those that the bot knows of every provider for which there is a credential. Twenty a page. Marks the selected model, the primary, the fallbacks, and models that cool down or have no credential.",
			run:   (*Registry).listModels,
		},
		{
			Name: "failover", Group: groupModel, Owner: true, Help: "the chain of this conversation with the state of every candidate",
			Args:  []Arg{{Name: "action", Help: "show the chain, or ask the selected model whether it is back", Choices: []string{"status", "probe"}}},
			About: "Lists the candidates in the order in which they are asked, each with its profiles and until when they are blocked. `/failover probe` asks the selected model at once whether it is back, instead of waiting for the five-minute check.",
			run:   (*Registry).failover,
		},
		{
			Name: "think", Aliases: []string{"t", "thinking"}, Group: groupModel, Inline: Directive, Help: "how long the model may think",
			Args:  []Arg{{Name: "level", Help: "how long the model may think", Choices: append(thinkLevels(), wordDefault)}},
			About: "Holds for this conversation until it is changed, also across `/new`. Without an argument, shows the level.",
			run:   (*Registry).think, take: takesWord(append(thinkLevels(), wordDefault)...),
		},
	}
}

func chatCommands() []Spec {
	return []Spec{
		{
			Name: "new", Group: groupChat, Help: "begin a new conversation", Lane: true, Stops: true, Long: true,
			Args:  []Arg{{Name: "model", Help: "a model, or the first message", Suggest: ListModels, usage: "model | first message"}},
			About: "What was said before is archived and no longer sent to the model. If the argument is one word that names a model (a reference, an alias, or `default`), it is selected; any other text becomes the first message. An answer that is being written is stopped, unless the model is refused: then nothing changes. A model you chose earlier stays selected, and the reply says so; a locked profile is released.",
			check: (*Registry).checkFresh, run: (*Registry).fresh,
		},
		{
			Name: "reset", Group: groupChat, Help: "begin again from nothing", Lane: true, Stops: true,
			About: "Like `/new` without an argument.",
			run:   (*Registry).reset,
		},
		{
			Name: "stop", Group: groupChat, Help: "stop the answer that is being written",
			About: "Drops your waiting messages first, then stops the answer if it is yours. The owner stops everybody's.",
			run:   (*Registry).stop,
		},
		{
			Name: "compact", Group: groupChat, Help: "shorten the conversation so far", Lane: true, Halts: true, Renews: true, Long: true,
			Args:  []Arg{{Name: "focus", Help: "what to keep in mind", usage: "what to keep in mind"}},
			About: "Replaces the older part of the conversation by a summary. The recent part stays as it is, and nothing is deleted from the records. Waits for the answer that is being written; `/stop` ends it.",
			run:   (*Registry).compact,
		},
		{
			Name: "queue", Group: groupChat, Inline: Directive, Help: "what becomes of messages that come while I answer",
			Args: []Arg{
				{Name: "mode", Help: "what becomes of them", Choices: append(queueModes(), wordDefault)},
				{Name: "options", Help: "how long to wait for more, how many may wait, what gives way", Examples: queueExamples(), usage: "debounce:2s cap:20 drop:summarize"},
			},
			About: "`steer` hands a message to the answer that is being written, at its next step; where it has no steps, messages are collected. `collect` answers all that came meanwhile as one. `followup` answers each by itself, later. `interrupt` stops the answer and takes the newest message.\n\n" +
				"`debounce:` is how long it must be quiet before what waits is answered (in `ms`, `s` or `m`, up to 5 minutes; a bare number is milliseconds), `cap:` how many messages may wait, `drop:` what gives way beyond that: `old`, `new`, or `summarize`, which keeps a line of each. `/queue default` returns to the configuration. Without an argument, shows what counts here.",
			run: (*Registry).queue, take: takesQueue,
		},
		{
			Name: "usage", Group: groupChat, Help: "show what answers use, or what was used so far",
			Args: []Arg{{Name: "mode", Help: "the footer of answers, or a question", Choices: []string{"off", "tokens", "full", "reset", "cost"}}},
			About: "`tokens` puts a line below every answer that says how many tokens it took; `full` adds the cost, where the price is known, and the model; `off` removes it. Without an argument, goes from one to the next.\n\n" +
				"`cost` sums up today, 7 and 30 days of this agent, over all conversations. A price that is not known is not counted, and the number of such answers is told. `reset` begins the counters of this conversation anew; the sums stay.",
			run: (*Registry).usage,
		},
		{
			Name: "verbose", Group: groupChat, Inline: Directive, Help: "show the tools that are used",
			Args:  []Arg{{Name: "mode", Help: "whether tools are shown", Choices: verboseModes()}},
			About: "`on` says when a tool is used, and when one fails; `full` also what it returns. In groups nothing is shown unless the operator allowed it. Without an argument, shows the mode.",
			run:   (*Registry).verbose, take: takesWord(verboseModes()...),
		},
	}
}

func moreChatCommands() []Spec {
	return []Spec{
		{
			Name: "btw", Aliases: []string{"side"}, Group: groupChat, Help: "ask something beside the conversation", Long: true,
			Args:  []Arg{{Name: "question", Help: "what to ask", Required: true}},
			About: "The model sees the conversation, answers without tools, and forgets the question and the answer. Works while another answer is being written.",
			given: func(d Deps) bool { return d.Aside != nil },
			run:   (*Registry).btw,
		},
		{
			Name: "steer", Aliases: []string{"tell"}, Group: groupChat, Help: "say something to the answer that is being written", Long: true,
			Args:  []Arg{{Name: "text", Help: "what to say", Required: true}},
			About: "The text reaches the running answer at its next step, whatever the queue mode is. Where nothing runs, it is a message like any other.",
			given: func(d Deps) bool { return d.Steer != nil },
			run:   (*Registry).steer,
		},
		{
			Name: "context", Group: groupChat, Help: "what the model is sent, and how large it is",
			Args:  []Arg{{Name: "detail", Help: "how much to show", Choices: []string{"list", "detail"}}},
			About: "Estimates in tokens: the system prompt, the operator's files, the tools, the messages, and how much room is left. `list` shows every part, `detail` every file as well.",
			given: func(d Deps) bool { return d.Context != nil },
			run:   (*Registry).context,
		},
		{
			Name: "tts", Aliases: []string{"voice"}, Group: groupChat, Help: "spoken answers",
			Args: []Arg{
				{Name: "action", Help: "what to do", Choices: ttsActions()},
				{Name: "value", Help: "what the action needs", Examples: []string{"on", "off", "default"}, usage: "value"},
			},
			About: "`/tts chat on`, `off` and `default` are about this conversation. `/tts on` and `/tts off` are about all that made no choice of their own. `/tts provider <name>` chooses who speaks, `/tts limit <100-4096>` how many characters are spoken at most. `/tts audio <text>` speaks a text, `/tts latest` the last answer. Without an argument, or with `status`, shows how it stands.\n\n" +
				"Replies of commands and notices are never spoken.",
			given: func(d Deps) bool { return d.Speech != nil },
			run:   (*Registry).tts,
		},
		{
			Name: "activation", Group: groupChat, Owner: true, Where: GroupOnly, Help: "whether I answer in this group without being mentioned",
			Args:  []Arg{{Name: "mode", Help: "when I answer", Choices: activationModes()}},
			About: "`mention` wants a mention of the bot or a reply to it, `always` does not. Lasts until the bot is restarted; the configuration makes it permanent. Who may talk to the bot is not changed.",
			given: func(d Deps) bool { return d.Activations != nil },
			run:   (*Registry).activation,
		},
	}
}

func timeCommands() []Spec {
	return []Spec{
		{
			Name: "remind", Group: groupTime, Help: "remind you of something in this conversation",
			Args:  []Arg{{Name: "reminder", Help: "when and of what", Examples: []string{"list"}, usage: "when what | list | cancel id"}},
			About: "`/remind 20m stretch`, `/remind tomorrow 9:00 call Anna`, `/remind every weekday at 9 look at the mail`. `/remind list` shows your reminders here, `/remind cancel <id>` takes one back.",
			given: func(d Deps) bool { return d.Reminders != nil },
			run:   (*Registry).remind,
		},
		{
			Name: "cron", Group: groupTime, Owner: true, Help: "scheduled tasks",
			Args: []Arg{
				{Name: "action", Help: "what to do", Choices: cronActions()},
				{Name: "task", Help: "id or name of a task, or schedule and text of a new one", Suggest: ListJobs, usage: "task"},
			},
			About: "`/cron list` shows what is on, `/cron list all` everything; `show`, `run`, `runs`, `enable`, `disable` and `remove` take the id of a task, its beginning, or its name.\n\n" +
				"`/cron add \"0 9 * * 1-5\" tz=Europe/Berlin Summarise yesterday's incidents` makes one whose result comes to this conversation. The schedule stands in quotation marks: a cron expression, `every weekday at 9`, `tomorrow 9:00`; one word such as `20m` needs none. Behind it may stand `tz=`, `name=`, `model=`, `think=`, `session=` (isolated, current, main, session:<name>), `timeout=`, `exact=on` (not spread over the full hour), `quiet=on` (the result stays in the log) and `keep=on` (a single task stays in the list), before the text. The reply shows the next three runs.\n\n" +
				"`/cron edit <task>` takes the same options, and `schedule=\"…\"`; a text replaces the old one.",
			given: func(d Deps) bool { return d.Cron != nil },
			run:   (*Registry).cron,
		},
		{
			Name: "loop", Group: groupTime, Owner: true, Help: "ask me the same again and again",
			Args:  []Arg{{Name: "prompt", Help: "interval and text, status, or stop", Examples: []string{"status", "stop"}, usage: "[interval] prompt | status | stop [name]"}},
			About: "`/loop 15m look at the build and tell me when it is red` repeats the text in this conversation every 15 minutes; without an interval, every 10. `/loop status` shows what repeats here, `/loop stop` ends it, by name or id where there are several.",
			given: func(d Deps) bool { return d.Loops != nil },
			run:   (*Registry).loop,
		},
		{
			Name: "heartbeat", Group: groupTime, Owner: true, Help: "the regular look whether something needs you",
			Args:  []Arg{{Name: "action", Help: "what to do", Choices: []string{"status", "now", "on", "off"}}},
			About: "`now` begins one beside the schedule. `on` and `off` last until the bot is restarted; the configuration makes them permanent.",
			given: func(d Deps) bool { return d.Heartbeat != nil },
			run:   (*Registry).heartbeat,
		},
	}
}

func operatorCommands() []Spec {
	return []Spec{
		{
			Name: "whoami", Aliases: []string{"id"}, Group: groupOperator, Inline: Shortcut, Help: "the ids the bot knows you and this place by",
			About: "The ids are what `commands.ownerAllowFrom` and the allowlists of channels want. In a private chat everybody may ask for them who is let in, also whoever may use no other command.",
			run:   (*Registry).whoami, Anybody: true,
		},
		{
			Name: "pair", Group: groupOperator, Owner: true, Where: DirectOnly, Help: "let somebody in who was given a pairing code",
			Args: []Arg{
				{Name: "action", Help: "what to do", Required: true, Choices: []string{"approve"}},
				{Name: "code", Help: "the code, with the channel before it where it is another one", Required: true, usage: "[channel] code"},
			},
			About: "The same as `bot pairing approve`. The code is for the channel you write in unless another one stands before it: `/pair approve discord ABCD2345`.",
			given: func(d Deps) bool { return d.Pair != nil },
			run:   (*Registry).pair,
		},
		{
			Name: "restart", Group: groupOperator, Owner: true, Help: "start the bot anew",
			About: "Answers that are being written are finished first. Whoever supervises the process starts it again; I say so here when I am back.",
			given: func(d Deps) bool { return d.Restart != nil },
			run:   (*Registry).restart,
		},
		{
			Name: "sim", Group: groupOperator, Owner: true, Help: "make the offline models fail, to watch the understudy step in",
			Args: []Arg{
				{Name: "model", Help: "which of the two", Examples: []string{"lead", "understudy"}, usage: "lead | understudy"},
				{Name: "failure", Help: "what goes wrong; ok ends it", Examples: []string{"ok", "rate_limit", "overloaded", "auth", "billing", "timeout"}},
				{Name: "duration", Help: "how long", Examples: []string{"60s", "5m"}},
			},
			About: "`/sim lead rate_limit 60s` makes the offline model `sim/lead` answer every request of the next minute with a rate limit. `/sim lead ok` ends that, and clears what the bot holds against the key meanwhile; `/sim ok` ends it for both models. `auth` and `billing` are about the key, which both models share: both rest, as they would at a real provider. Exists only where the offline models are in use.",
			given: func(d Deps) bool { return d.Sim != nil },
			run:   (*Registry).simulate,
		},
	}
}
