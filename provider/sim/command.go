package sim

import (
	"fmt"
	"strings"
	"time"

	"understudy/llm"
)

// maxTrouble bounds how long an ordered trouble may last: a forgotten one must not outlive a day.
const maxTrouble = 24 * time.Hour

// Verb is what a Command asks for.
type Verb uint8

// The verbs. VerbStatus is the zero value: `/sim` alone shows the state.
const (
	VerbStatus Verb = iota
	VerbHelp
	VerbFail
	VerbOK
)

// Command is a parsed `/sim` command.
type Command struct {
	Verb  Verb
	Model string        // "lead" or "understudy"; "" with VerbOK means both
	Kind  llm.Reason    // for VerbFail: a reason, or "hang"
	For   time.Duration // for VerbFail; 0 = until `/sim <model> ok`
}

// ParseCommand reads the words behind `/sim`: nothing or "status", "help", "ok",
// "<model> ok", "<model> <trouble> [[for] <duration>]". The model may be written with its provider
// ("sim/lead"). Its errors are fit for the person who typed the command.
func ParseCommand(args string) (Command, error) {
	words := strings.Fields(strings.ToLower(args))
	switch {
	case len(words) == 0 || len(words) == 1 && words[0] == "status":
		return Command{Verb: VerbStatus}, nil
	case len(words) == 1 && (words[0] == "help" || words[0] == "?"):
		return Command{Verb: VerbHelp}, nil
	case len(words) == 1 && words[0] == "ok":
		return Command{Verb: VerbOK}, nil
	}
	model := strings.TrimPrefix(words[0], Provider+"/")
	if !isModel(model) {
		return Command{}, fmt.Errorf("there is no model %q here: write %s or %s, for example `/sim lead rate_limit 60s`", clip(words[0]), ModelLead, ModelUnderstudy)
	}
	if len(words) == 1 {
		return Command{}, fmt.Errorf("say what %s shall do: %s, or ok", model, kindNames())
	}
	if words[1] == "ok" {
		if len(words) > 2 {
			return Command{}, fmt.Errorf("`ok` takes no time: write `/sim %s ok`", model)
		}
		return Command{Verb: VerbOK, Model: model}, nil
	}
	kind, err := parseKind(words[1])
	if err != nil {
		return Command{}, err
	}
	d, err := parseFor(words[2:])
	if err != nil {
		return Command{}, err
	}
	return Command{Verb: VerbFail, Model: model, Kind: kind, For: d}, nil
}

func parseKind(word string) (llm.Reason, error) {
	kind := llm.Reason(strings.ReplaceAll(word, "-", "_"))
	if !isKind(kind) {
		return "", fmt.Errorf("%q is no trouble I can play: use %s, or ok", clip(word), kindNames())
	}
	return kind, nil
}

// parseFor reads the optional duration of a trouble.
func parseFor(words []string) (time.Duration, error) {
	if len(words) > 0 && words[0] == "for" {
		words = words[1:]
		if len(words) == 0 {
			return 0, fmt.Errorf("say for how long: 60s, 5m or 1h")
		}
	}
	switch len(words) {
	case 0:
		return 0, nil
	case 1:
	default:
		return 0, fmt.Errorf("one time is enough: 60s, 5m or 1h")
	}
	d, err := time.ParseDuration(words[0])
	if err != nil {
		return 0, fmt.Errorf("%q is no length of time: write 60s, 5m or 1h", clip(words[0]))
	}
	if err := checkFor(d); err != nil {
		return 0, err
	}
	if d == 0 {
		return 0, fmt.Errorf("a trouble lasts more than nothing: write 60s, 5m or 1h")
	}
	return d, nil
}

// checkFor accepts 0 (without end) up to maxTrouble.
func checkFor(d time.Duration) error {
	if d < 0 || d > maxTrouble {
		return fmt.Errorf("%v is out of range: at least 1s, at most %v", d, maxTrouble)
	}
	return nil
}

func isKind(kind llm.Reason) bool {
	for _, k := range kinds() {
		if k.kind == kind {
			return true
		}
	}
	return false
}

func kindNames() string {
	var names []string
	for _, k := range kinds() {
		names = append(names, string(k.kind))
	}
	return strings.Join(names, ", ")
}

// clip bounds a stranger's word in a message.
func clip(s string) string { return cut(s, 40) }

// HelpText explains `/sim`, one trouble a line.
func HelpText() string {
	var b strings.Builder
	b.WriteString("`/sim <model> <trouble> [time]` makes a built-in model fail; `/sim <model> ok` heals it, `/sim ok` heals both.\n")
	fmt.Fprintf(&b, "Models: %s, %s. Troubles:\n", ModelLead, ModelUnderstudy)
	for _, k := range kinds() {
		fmt.Fprintf(&b, "- %s: %s\n", k.kind, k.text)
	}
	b.WriteString("Without a time a trouble lasts until you heal it. Example: `/sim lead rate_limit 60s`")
	return b.String()
}
