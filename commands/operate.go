package commands

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

func activationModes() []string { return []string{"mention", "always"} }

// activation shows or changes whether a group needs to mention the bot.
func (r *Registry) activation(_ context.Context, c Call, args string) (Reply, error) {
	mode := strings.ToLower(args)
	if mode == "" {
		mode, chosen := r.deps.Activations.Activation(c)
		if !chosen {
			mode += " (configured)"
		}
		return Reply{Text: "Activation: " + mode + ". Modes: " + strings.Join(activationModes(), ", ") + "."}, nil
	}
	if !slices.Contains(activationModes(), mode) {
		return Reply{}, unknown("mode", args, activationModes())
	}
	r.deps.Activations.SetActivation(c, mode)
	if mode == "always" {
		return Reply{Text: "Activation: always. I answer here without being mentioned, until the next restart."}, nil
	}
	return Reply{Text: "Activation: mention. I answer here when I am mentioned, until the next restart."}, nil
}

// textRestarting is said before a restart; app says that it is back.
const textRestarting = "🔄 Restarting…"

func (r *Registry) restart(ctx context.Context, c Call, _ string) (Reply, error) {
	if err := r.deps.Restart(ctx, c); err != nil {
		return Reply{}, err
	}
	return Reply{Text: textRestarting}, nil
}

// codeShape is what a pairing code can look like, before anybody is asked about it.
var codeShape = regexp.MustCompile(`^[A-Za-z0-9]{4,16}$`)

// pair lets somebody in, in a private chat only: a code is a secret until it was used.
func (r *Registry) pair(ctx context.Context, c Call, args string) (Reply, error) {
	words := strings.Fields(args)
	if len(words) < 2 || len(words) > 3 || !strings.EqualFold(words[0], "approve") || !codeShape.MatchString(words[len(words)-1]) {
		return Reply{}, r.misused("pair")
	}
	channel := ""
	if len(words) == 3 {
		channel = strings.ToLower(words[1])
	}
	p, err := r.deps.Pair(ctx, c, channel, strings.ToUpper(words[len(words)-1]))
	if err != nil {
		return Reply{}, err
	}
	who := code(clip(p.Sender.ID, maxQuote))
	if p.Sender.Name != "" {
		who = fmt.Sprintf("%s (%s)", quote(p.Sender.Name), who)
	}
	text := fmt.Sprintf("✅ %s may now write to me on %s.", who, p.Channel)
	if p.Owner {
		text += " They are the bot's owner now."
	}
	return Reply{Text: text}, nil
}
