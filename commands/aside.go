package commands

import (
	"context"
	"fmt"
	"strings"
)

// btw asks something beside the conversation.
func (r *Registry) btw(ctx context.Context, c Call, args string) (Reply, error) {
	if args == "" {
		return Reply{}, r.misused("btw")
	}
	text, err := r.deps.Aside(ctx, c, args)
	switch {
	case err != nil:
		return Reply{}, err
	case strings.TrimSpace(text) == "":
		return Reply{Text: "💬 btw: (no answer)"}, nil
	}
	return Reply{Text: "💬 btw: " + text}, nil
}

// steer speaks into the running turn. What nobody takes is a message.
func (r *Registry) steer(ctx context.Context, c Call, args string) (Reply, error) {
	if args == "" {
		return Reply{}, r.misused("steer")
	}
	taken, err := r.deps.Steer(ctx, c, args)
	switch {
	case err != nil:
		return Reply{}, err
	case !taken:
		return Reply{Follow: args}, nil
	}
	return Reply{Text: "↪️ Passed on to the answer that is being written."}, nil
}

// maxFiles bounds the files that /context detail lists.
const maxFiles = 30

// context shows what the model is sent. The names of files are the operator's: in groups only an owner
// reads them.
func (r *Registry) context(ctx context.Context, c Call, args string) (Reply, error) {
	mode := strings.ToLower(args)
	if mode != "" && mode != "list" && mode != "detail" {
		return Reply{}, unknown("view", args, []string{"list", "detail"})
	}
	if _, err := r.ensure(ctx, c); err != nil {
		return Reply{}, err
	}
	x, err := r.deps.Context(ctx, c)
	if err != nil {
		return Reply{}, err
	}
	lines := []string{"📚 Next request: about " + x.share()}
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if x.Reported > 0 {
		add("Last one, as the provider counted: %d tokens", x.Reported)
	}
	files := 0
	for _, f := range x.Files {
		files += f.Tokens
	}
	if mode == "" {
		add("Instructions %d · files %d · tools %d · conversation %d", x.System, files, x.Tools, x.Summary+x.Messages)
		lines = append(lines, "More: /context list")
		return Reply{Text: strings.Join(lines, "\n")}, nil
	}
	add("• instructions: %d", x.System)
	add("• files: %d (%d)", files, len(x.Files))
	if mode == "detail" && c.details() {
		for i, f := range x.Files {
			if i == maxFiles {
				add("   … and %d more", len(x.Files)-i)
				break
			}
			add("   %s: %d", code(clip(f.Name, maxQuote)), f.Tokens)
		}
	}
	add("• tools: %d (%d)", x.Tools, x.ToolCount)
	if x.Summary > 0 {
		add("• summary of what was before: %d", x.Summary)
	}
	add("• messages: %d (%d)", x.Messages, x.MessageCount)
	if x.Window > 0 {
		add("Kept free for the answer: %d · compactions so far: %d", x.Reserve, x.Compactions)
	}
	return Reply{Text: strings.Join(lines, "\n")}, nil
}

// share says how much of the window a request takes.
func (x ContextReport) share() string {
	if x.Window <= 0 {
		return fmt.Sprintf("%d tokens for %s", x.Total, x.Model)
	}
	return fmt.Sprintf("%d of %d tokens (%d%%) for %s", x.Total, x.Window, int64(x.Total)*100/int64(x.Window), x.Model)
}
