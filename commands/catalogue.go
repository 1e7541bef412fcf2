package commands

// The groups of /commands.
const (
	groupChat     = "Conversation"
	groupModel    = "Models"
	groupOperator = "Operation"
)

func groups() []string { return []string{groupChat, groupModel, groupOperator} }

// catalogue lists the commands in the order of help.
func catalogue(withSim bool) []Spec {
	specs := append(modelCommands(), chatCommands()...)
	if withSim {
		specs = append(specs, Spec{
			Name: "sim", Group: groupOperator, Usage: "[lead | understudy] [failure] [duration]", Owner: true,
			Help:  "make the offline models fail, to watch the understudy step in",
			About: "`/sim lead rate_limit 60s` makes the offline model `sim/lead` answer every request of the next minute with a rate limit. `/sim lead ok` ends that, and clears what the bot holds against the key meanwhile; `/sim ok` ends it for both models. `auth` and `billing` are about the key, which both models share: both rest, as they would at a real provider. Exists only where the offline models are in use.",
			run:   (*Registry).simulate,
		})
	}
	return specs
}

func modelCommands() []Spec {
	return []Spec{
		{
			Name: "help", Group: groupChat, Usage: "[command]", Help: "the most useful commands",
			About: "With the name of a command, what it does in detail.",
			run:   (*Registry).help,
		},
		{
			Name: "commands", Group: groupChat, Help: "all commands",
			About: "Lists every command that you may use.",
			run:   (*Registry).list,
		},
		{
			Name: "status", Group: groupModel, Help: "model, credentials, context and what is wrong",
			About: "Answers at once, also while an answer is being written. Shows the selected model and where the choice comes from; when another model answers in its place, which one and why; the fallbacks, unless the choice is strict; the profile in use; every unhealthy profile with its reason and end; and how full the context is. In groups only the bot owner sees profiles, the session key and the channels. Faults of the installation are shown to the owner alone.",
			run:   (*Registry).status,
		},
		{
			Name: "why", Group: groupModel, Help: "how the last answer came about: who was asked, who failed, why",
			About: "One line for every candidate of the last turn that was tried or skipped, with the time, the profile, the reason and how long it took. In groups only the owner sees profiles; what the provider said is shown only to the owner, in a private chat.",
			run:   (*Registry).why,
		},
		{
			Name: "model", Group: groupModel, Usage: "[number | alias | provider/model[@profile] | default | status]",
			Help: "show or choose the model of this conversation",
			About: "Without an argument, or with `list`, shows what is selected and a numbered list to choose from.\n\n" +
				"`/model 2`, `/model opus` and `/model openai/gpt-5.5` select a model for this conversation. The choice is strict: if that model cannot answer, you get its failure, never an answer from another model. It outlives `/new` and `/reset`; `/model default` returns to the configured model and its fallbacks.\n\n" +
				"`@profile` behind a model (or behind `default` or a number) locks one stored credential: `/model openai/gpt-5.5@work` is short for `…@openai:work`. No other profile of the provider is tried then. The lock ends with the conversation.\n\n" +
				"A model outside `agents.defaults.modelPolicy.allow`, an unknown profile, or one of another provider is refused, and nothing changes. While an answer is being written, the choice holds from its next step. A thread takes the choice of the conversation it belongs to until it makes its own.\n\n" +
				"`/model status` lists, per provider, the endpoint and the profiles with their state; in groups only for the owner. `-s` is accepted and changes nothing: every choice is the session's. The configured default is changed in the configuration.",
			run: (*Registry).model,
		},
		{
			Name: "models", Group: groupModel, Usage: "[provider] [page]", Help: "all models that can be chosen",
			About: "Twenty a page. Marks the selected model, the primary, the fallbacks, and models that cool down or have no credential.",
			run:   (*Registry).listModels,
		},
		{
			Name: "failover", Group: groupModel, Owner: true, Help: "the chain of this conversation with the state of every candidate",
			About: "Lists the candidates in the order in which they are asked, each with its profiles and until when they are blocked.",
			run:   (*Registry).failover,
		},
		{
			Name: "think", Aliases: []string{"t", "thinking"}, Group: groupModel,
			Usage: "[off | minimal | low | medium | high | xhigh | default]", Help: "how long the model may think",
			About: "Holds for this conversation until it is changed, also across `/new`. Without an argument, shows the level.",
			run:   (*Registry).think,
		},
	}
}

func chatCommands() []Spec {
	return []Spec{
		{
			Name: "new", Group: groupChat, Usage: "[model | first message]", Help: "begin a new conversation", Lane: true, Stops: true, Long: true,
			About: "What was said before is archived and no longer sent to the model. If the argument is one word that names a model (a reference, an alias, or `default`), it is selected; any other text becomes the first message. An answer that is being written is stopped. A model you chose earlier stays selected, and the reply says so; a locked profile is released.",
			run:   (*Registry).fresh,
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
			Name: "compact", Group: groupChat, Usage: "[what to keep in mind]", Help: "shorten the conversation so far", Lane: true, Long: true,
			About: "Replaces the older part of the conversation by a summary. The recent part stays as it is, and nothing is deleted from the records. Waits for the answer that is being written.",
			run:   (*Registry).compact,
		},
		{
			Name: "whoami", Aliases: []string{"id"}, Group: groupOperator, Help: "the ids the bot knows you and this place by",
			About: "The ids are what `commands.ownerAllowFrom` and the allowlists of channels want.",
			run:   (*Registry).whoami,
		},
	}
}
