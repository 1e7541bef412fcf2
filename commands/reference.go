package commands

import (
	"context"
	"fmt"
	"strings"
)

// helpful are the commands that /help shows: few enough for ten lines.
func (r *Registry) helpful(name string) bool {
	switch name {
	case "status", "why", "model", "new", "stop", "compact", "whoami", "sim":
		return true
	case "remind":
		return r.deps.Sim == nil // which takes its line
	}
	return false
}

func (r *Registry) help(_ context.Context, c Call, args string) (Reply, error) {
	if args != "" {
		return r.explain(c, strings.ToLower(strings.TrimPrefix(args, "/"))), nil
	}
	lines := []string{"I answer with a language model, and with another one when that fails. Just write; these help:"}
	for _, s := range r.specs {
		if r.helpful(s.Name) && s.visible(c.Owner) {
			lines = append(lines, fmt.Sprintf("/%s — %s", s.Name, s.Help))
		}
	}
	return Reply{Text: strings.Join(append(lines, "Full list: /commands"), "\n")}, nil
}

// explain is /help with the name of a command.
func (r *Registry) explain(c Call, name string) Reply {
	i, ok := r.byName[name]
	if !ok || !r.specs[i].visible(c.Owner) {
		return Reply{Text: fmt.Sprintf("There is no command %s. Full list: /commands", quote("/"+name))}
	}
	s := r.specs[i]
	text := fmt.Sprintf("%s — %s", s.usage(), s.Help)
	if also := s.also(); also != "" {
		text += "\nAlso: " + also
	}
	if s.About != "" {
		text += "\n\n" + s.About
	}
	return Reply{Text: text}
}

func (r *Registry) list(_ context.Context, c Call, _ string) (Reply, error) {
	var parts []string
	for _, g := range groups() {
		lines := []string{"**" + g + "**"}
		for _, s := range r.specs {
			if s.Group == g && s.visible(c.Owner) {
				lines = append(lines, fmt.Sprintf("%s — %s", s.usage(), s.Help))
			}
		}
		if len(lines) > 1 {
			parts = append(parts, strings.Join(lines, "\n"))
		}
	}
	return Reply{Text: strings.Join(parts, "\n\n")}, nil
}

// visible reports whether lists name the command to an owner or to anybody else.
func (s Spec) visible(owner bool) bool { return !s.Hidden && (owner || !s.Owner) }

// usage is the command with its arguments, as code.
func (s Spec) usage() string { return code(strings.TrimSpace("/" + s.Name + " " + s.Usage)) }

// also lists the other names, as code.
func (s Spec) also() string {
	names := make([]string, len(s.Aliases))
	for i, a := range s.Aliases {
		names[i] = code("/" + a)
	}
	return strings.Join(names, ", ")
}

const referenceIntro = `<!-- Written from the command registry by "go test ./commands -update". Do not edit. -->

# Commands

Write them as messages, in any channel: a slash, the name and perhaps arguments. ` + "`/think: high`" + ` and ` + "`/think high`" + ` are the
same, and capital letters do not matter. In groups, begin with a mention of the bot where it only listens to mentions. A text
that begins with a slash but no known name is an ordinary message.

Some also work within a text. *Directives* are taken out of it and hold for that message alone ("explain this /think high");
` + "`/model`" + ` is stored there too. A message that holds nothing but directives stores all of them. *Shortcuts* are taken out and
answered at once, and the rest is a message like any other. Neither works in code, in quoted lines, or in the middle of a word,
an address or a path.

Everybody who may talk to the bot may use the commands, except those marked *owner*; where ` + "`commands.allowFrom`" + ` is set, only
those it names. Owners are the ids in ` + "`commands.ownerAllowFrom`" + `, the first person who was paired when that is empty, and
whoever sits at the terminal or the web page. Commands that belong to something which is not set up are not there.

Replies to commands are never spoken and never become part of the conversation. Commands marked *waits* take their turn in the
conversation, before the messages that wait there; those marked *stops* end the answer that is being written first. All others
answer at once, also while an answer is being written.
`

// Markdown writes the reference page of the commands, docs/commands.md.
func Markdown(specs []Spec) string {
	var b strings.Builder
	b.WriteString(referenceIntro)
	for _, g := range groups() {
		fmt.Fprintf(&b, "\n## %s\n\n| command | what it does | |\n|---|---|---|\n", g)
		for _, s := range specs {
			if s.Group == g && !s.Hidden {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.ReplaceAll(s.usage(), "|", `\|`), s.Help, s.remarks())
			}
		}
		for _, s := range specs {
			if s.Group != g || s.Hidden || s.About == "" {
				continue
			}
			fmt.Fprintf(&b, "\n### /%s\n\n", s.Name)
			if also := s.also(); also != "" {
				fmt.Fprintf(&b, "Also %s.\n\n", also)
			}
			b.WriteString(s.About + "\n")
		}
	}
	return b.String()
}

// remarks are the marks of the reference table.
func (s Spec) remarks() string {
	var marks []string
	if s.Owner {
		marks = append(marks, "owner")
	}
	switch s.Where {
	case GroupOnly:
		marks = append(marks, "groups")
	case DirectOnly:
		marks = append(marks, "private chats")
	case Anywhere:
	}
	switch s.Inline {
	case Directive:
		marks = append(marks, "directive")
	case Shortcut:
		marks = append(marks, "shortcut")
	case NotInline:
	}
	switch {
	case s.Stops:
		marks = append(marks, "stops")
	case s.Lane:
		marks = append(marks, "waits")
	}
	return strings.Join(marks, ", ")
}
