package commands

import (
	"context"
	"strings"

	"understudy/session"
)

// wordDefault takes a choice back.
const wordDefault = "default"

// Once is what the directives of a message set for that message alone. An empty field is as the
// conversation has it.
type Once struct {
	Think   string // "default" = the model's own
	Verbose string
	Queue   session.Queue
}

// Apply carries out the directives that Extract found in a message of c. Where nothing else stands in
// the message (alone), each is what it is as a command: stored and acknowledged. Within other text
// only /model is; the rest is returned, and holds for that message (spec/chat.md §3.1). A refusal does
// not keep the message from being answered.
func (r *Registry) Apply(ctx context.Context, directives []Invocation, c Call, alone bool) (Once, Reply) {
	var once Once
	var reply Reply
	for _, d := range directives {
		if _, may := r.may(d.Spec, c); !may {
			continue
		}
		if alone || d.Spec.Name == "model" {
			got := r.Run(ctx, d, c)
			reply.Text = strings.TrimSpace(reply.Text + "\n" + got.Text)
			reply.Buttons = append(reply.Buttons, got.Buttons...)
			continue
		}
		args := strings.ToLower(d.Args)
		switch d.Spec.Name {
		case "think":
			once.Think = args
		case "verbose":
			once.Verbose = args
		case "queue":
			if args == wordDefault {
				once.Queue = r.deps.Queue().For(c.To.Channel, session.Queue{})
				continue
			}
			once.Queue, _ = session.ParseQueue(args) // every word of it was tried
		}
	}
	return once, reply
}
