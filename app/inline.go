package app

import (
	"context"
	"fmt"
	"slices"

	"understudy/chat"
	"understudy/commands"
)

// inline takes the directives and shortcuts out of a message, does what they say, and queues what is
// left of it (spec/chat.md §3.1).
func (j *job) inline(ctx context.Context) {
	rest, directives, shortcuts := j.a.commands.Extract(j.in.Text)
	switch {
	case len(directives)+len(shortcuts) == 0:
		j.queueTurn(ctx)
	case rest == "" && len(j.in.Attachments) == 0:
		j.a.work.Go(func() { j.inlineAlone(ctx, directives, shortcuts) })
	default:
		j.text = rest
		if j.again || j.directed { // an earlier process has said and stored this
			directives, shortcuts = temporary(directives), nil
		}
		j.renewFor(ctx, directives...)
		j.direct(ctx, directives, false)
		j.markDirected(ctx)
		if len(shortcuts) > 0 {
			x := *j // the turn may begin meanwhile
			j.a.work.Go(func() { x.shortcuts(ctx, shortcuts) })
		}
		j.queueTurn(ctx)
	}
}

// inlineAlone answers a message in which nothing but directives and shortcuts stands.
func (j *job) inlineAlone(ctx context.Context, directives, shortcuts []commands.Invocation) {
	if _, err := j.a.inbound.Dispatched(ctx, j.seq); err != nil {
		j.notBegun(ctx, err)
		return
	}
	if err := j.ensure(ctx); err != nil {
		j.failed(ctx, err, j.say(ctx, chat.Notice, fmt.Sprintf(textNotStored, j.turn)))
		return
	}
	j.renewFor(ctx, directives...)
	said := j.direct(ctx, directives, true)
	j.done(ctx, said+j.shortcuts(ctx, shortcuts))
}

// markDirected notes in the journal that what the message says to the bot is done. It may wait for long,
// also over a restart, and what people choose meanwhile counts.
func (j *job) markDirected(ctx context.Context) {
	if err := j.a.inbound.Directed(ctx, j.seq); err != nil {
		j.a.log.ErrorContext(ctx, "journal_not_written", "turn", j.turn, "error", err.Error())
	}
}

// direct carries out directives and returns how many replies that makes.
func (j *job) direct(ctx context.Context, directives []commands.Invocation, alone bool) int {
	if len(directives) == 0 {
		return 0
	}
	once, r := j.a.commands.Apply(ctx, directives, j.call(), alone)
	j.once = once
	return j.reply(ctx, r, "-directives")
}

// shortcuts answers the commands that stand in a message.
func (j *job) shortcuts(ctx context.Context, list []commands.Invocation) (said int) {
	for i, inv := range list {
		said += j.reply(ctx, j.a.commands.Run(ctx, inv, j.call()), fmt.Sprintf("-inline-%d", i))
	}
	return said
}

// reread takes directives out of the new text of a message that was edited while it waited. Shortcuts
// in it are not answered again.
func (j *job) reread(ctx context.Context) {
	j.text = j.in.Text
	if !j.owner && !j.a.mayCommand(j.in) {
		return
	}
	rest, directives, _ := j.a.commands.Extract(j.in.Text)
	if rest == "" && len(j.in.Attachments) == 0 {
		return // nothing would be left to answer
	}
	j.text = rest
	j.direct(ctx, temporary(directives), false)
}

// temporary are the directives that hold for one message only.
func temporary(directives []commands.Invocation) []commands.Invocation {
	return slices.DeleteFunc(directives, func(d commands.Invocation) bool { return d.Spec.Name == "model" })
}
