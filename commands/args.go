package commands

import "strings"

// Arg is one argument of a command. Platforms with fields offer one for each; what people put into
// them is joined by blanks and read like a text.
type Arg struct {
	Name     string // of the field: lower-case letters
	Help     string // one line, without a full stop
	Required bool
	Choices  []string // all that is allowed; nil = free text
	// Examples are suggestions for a free text. Suggest names a list of what there is at the moment.
	Examples []string
	Suggest  Suggest

	usage string // how help writes it; "" = the choices, or the name
}

// Suggest names a list of what an argument may be at the moment.
type Suggest string

// The lists.
const (
	NoList        Suggest = ""
	ListModels    Suggest = "models"
	ListProviders Suggest = "providers"
	ListCommands  Suggest = "commands"
	ListJobs      Suggest = "jobs"
)

// Completes reports whether Registry.Complete has suggestions beyond Choices.
func (a Arg) Completes() bool { return a.Suggest != NoList || len(a.Examples) > 0 }

// usage writes the arguments of a command for people.
func usage(args []Arg) string {
	parts := make([]string, len(args))
	for i, a := range args {
		text := a.usage
		switch {
		case text != "":
		case len(a.Choices) > 0:
			text = strings.Join(a.Choices, " | ")
		default:
			text = a.Name
		}
		switch {
		case a.Required && len(a.Choices) == 1:
			parts[i] = text // there is nothing to choose
		case a.Required:
			parts[i] = "<" + text + ">"
		default:
			parts[i] = "[" + text + "]"
		}
	}
	return strings.Join(parts, " ")
}

// cutWord splits the first word off a text.
func cutWord(text string) (word, rest string) {
	text = strings.TrimSpace(text)
	if i := strings.IndexAny(text, " \t\r\n"); i >= 0 {
		return text[:i], strings.TrimSpace(text[i:])
	}
	return text, ""
}
