package commands

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"unicode"

	"understudy/chat"
)

// Call is one use of a command: who, where, in which session.
type Call struct {
	Agent       string
	Key, Parent string // session keys
	To          chat.Address
	In          chat.Inbound
	Owner       bool

	// model tells that a model reads the reply and may repeat it to anybody.
	model bool
	// lane tells that the command itself is what the session's lane is busy with.
	lane bool
}

// group reports whether others than the sender read the reply.
func (c Call) group() bool { return c.model || c.To.Kind != chat.Direct }

// details reports whether the reply may name profiles and session keys: in groups only to owners
// (spec/chat.md §3.5).
func (c Call) details() bool { return c.Owner || !c.group() }

// Reply is what a command says. An empty one says nothing.
type Reply struct {
	Text    string
	Buttons []chat.Button
	Media   []chat.Attachment
	// Follow is a text to be answered as a message, such as the rest of "/new hello".
	Follow string
}

// Where is where a command makes sense.
type Where uint8

// The places.
const (
	Anywhere   Where = iota
	GroupOnly        // groups, rooms and their threads
	DirectOnly       // private chats, because what it says or takes is nobody else's business
)

// Inline is what a command is within other text (spec/chat.md §3.1).
type Inline uint8

// The kinds.
const (
	NotInline Inline = iota // a text like any other
	Directive               // taken out of the text; holds for that message, or is stored like /model
	Shortcut                // taken out of the text and answered at once
)

// Spec describes a command. It is the source of help, menus, completion and documentation.
type Spec struct {
	Name    string
	Aliases []string
	Args    []Arg
	Usage   string // of the arguments, made of Args; "" = none
	Help    string // one line, without a full stop
	// About says more, in Markdown sentences, for /help <name> and the reference page; "" = nothing.
	About  string
	Group  string
	Owner  bool // the owner's alone
	Where  Where
	Inline Inline
	Lane   bool // runs in the session's lane, at its front; all others run also while a turn does
	Stops  bool // of a Lane command: ends the turn that runs there instead of waiting for it
	Halts  bool // of a Lane command: its work ends with the context of the lane, so that /stop ends it
	Renews bool // writes what ends with a session: one that is to begin anew has to do so first
	// Anybody lets everybody use it who is let in, in private chats, also whoever may use no commands.
	Anybody bool
	Hidden  bool // works, but is in no menu
	// Long allows arguments of several lines or more than 4 KB.
	Long bool

	// given reports whether what the command works with is there; nil = always.
	given func(Deps) bool
	// take returns how many of the words behind an inline directive belong to it; 0 = it is none.
	take func(r *Registry, words []string) int
	// check returns what would refuse the command, of a Stops one: nothing may end for it then.
	check func(r *Registry, ctx context.Context, c Call, args string) error
	run   func(r *Registry, ctx context.Context, c Call, args string) (Reply, error)
}

// Invocation is a text recognised as a command.
type Invocation struct {
	Spec Spec
	Args string // "" where they are more than the command takes: it is refused then

	tooLong bool
}

// Registry is the set of commands. It is safe for concurrent use.
type Registry struct {
	deps   Deps
	specs  []Spec
	byName map[string]int
}

// New returns the registry.
func New(deps Deps) *Registry {
	r := &Registry{deps: deps.withDefaults(), byName: map[string]int{}}
	for _, s := range catalogue() {
		if s.given == nil || s.given(deps) {
			s.Usage = usage(s.Args)
			r.specs = append(r.specs, s)
		}
	}
	for i, s := range r.specs {
		for _, name := range append([]string{s.Name}, s.Aliases...) {
			r.byName[name] = i
		}
	}
	return r
}

// Specs returns all commands in the order of help.
func (r *Registry) Specs() []Spec { return slices.Clone(r.specs) }

// maxArgs bounds the arguments of commands that are not Long, in bytes.
const maxArgs = 4 << 10

// Match recognises a command that is the whole message: a text that begins with a slash and a known
// name, perhaps followed by a colon. One with more arguments than it takes is a command too, which Run
// refuses: as a text for a model it would do nothing and seem to have done something. Anything else is an
// ordinary message, in which Extract may find directives and shortcuts (spec/chat.md §3.1).
func (r *Registry) Match(text string) (Invocation, bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "/")
	if !ok {
		return Invocation{}, false
	}
	name, args := rest, ""
	if end := strings.IndexFunc(rest, func(c rune) bool { return c == ':' || unicode.IsSpace(c) }); end >= 0 {
		name = rest[:end]
		args = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rest[end:]), ":"))
	}
	i, ok := r.byName[strings.ToLower(name)]
	if !ok {
		return Invocation{}, false
	}
	s := r.specs[i]
	if s.Inline != NotInline && r.goesOn(s, args) {
		return Invocation{}, false
	}
	if !s.Long && (len(args) > maxArgs || strings.ContainsAny(args, "\r\n")) {
		return Invocation{Spec: s, tooLong: true}, true
	}
	return Invocation{Spec: s, Args: args}, true
}

// Run carries a command out. It always replies; of what went wrong on our side, a panic included,
// the log tells the cause.
func (r *Registry) Run(ctx context.Context, inv Invocation, c Call) Reply {
	return r.guarded(ctx, inv, c, func() (Reply, error) {
		c.lane = inv.Spec.Lane
		return inv.Spec.run(r, ctx, c, inv.Args)
	})
}

// Check reports whether Run would get to what the command is for, and what is to be said when not. It
// changes nothing: before anything is stopped for a command, it has to pass.
func (r *Registry) Check(ctx context.Context, inv Invocation, c Call) (refusal Reply, ok bool) {
	refusal = r.guarded(ctx, inv, c, func() (Reply, error) {
		if inv.Spec.check != nil {
			if err := inv.Spec.check(r, ctx, c, inv.Args); err != nil {
				return Reply{}, err
			}
		}
		ok = true
		return Reply{}, nil
	})
	return refusal, ok
}

// guarded does something about a command if its sender may use it so, and makes a reply of what comes of it.
func (r *Registry) guarded(ctx context.Context, inv Invocation, c Call, do func() (Reply, error)) (reply Reply) {
	fault := Reply{Text: fmt.Sprintf("⚠️ /%s did not work because of a fault on my side; the log says which.", inv.Spec.Name)}
	defer func() {
		if p := recover(); p != nil {
			r.deps.Log.ErrorContext(ctx, "command_panicked", "command", inv.Spec.Name, "session", c.Key,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			reply = fault
		}
	}()
	if reply, may := r.may(inv.Spec, c); !may {
		return reply
	}
	if inv.tooLong {
		return Reply{Text: fmt.Sprintf(textTooLong, inv.Spec.Name)}
	}
	reply, err := do()
	if text, ok := told(err); ok {
		return Reply{Text: text}
	}
	if err != nil {
		r.deps.Log.ErrorContext(ctx, "command_failed", "command", inv.Spec.Name, "session", c.Key, "error", err.Error())
		return fault
	}
	return reply
}

// The refusals of spec/chat.md §3.2.
const (
	textNotAuthorised = "You are not authorized to use this command here."
	textOwnerOnly     = "Only the bot owner can use /%s."
	textGroupOnly     = "/%s is for groups; there is nothing to set here."
	textDirectOnly    = "/%s works in a private chat with me only."
	textTooLong       = "/%s takes one line of at most 4 KB, so I did nothing. A text of several lines has to go without the command."
)

// OpenIn reports whether everybody may use the command where a call is made who is let in there.
func (s Spec) OpenIn(c Call) bool { return s.Anybody && !c.group() }

// may reports whether the sender of a call may use a command there, and what to say when not. Who may
// use no command at all is told so only where a platform waits for a reply.
func (r *Registry) may(s Spec, c Call) (Reply, bool) {
	switch {
	case !c.Owner && !r.deps.Authorised(c) && !s.OpenIn(c):
		if c.In.Via == "" {
			return Reply{}, false
		}
		return Reply{Text: textNotAuthorised}, false
	case s.Owner && !c.Owner:
		return Reply{Text: fmt.Sprintf(textOwnerOnly, s.Name)}, false
	case s.Where == GroupOnly && !c.group():
		return Reply{Text: fmt.Sprintf(textGroupOnly, s.Name)}, false
	case s.Where == DirectOnly && c.group():
		return Reply{Text: fmt.Sprintf(textDirectOnly, s.Name)}, false
	}
	return Reply{}, true
}
