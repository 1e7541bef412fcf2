package delivery

import (
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"understudy/channels"
	"understudy/chat"
	"understudy/delivery/markup"
)

// accountKey names a channel account.
type accountKey struct{ channel, account string }

// account is a registered adapter with what it can do.
type account struct {
	adapter channels.Adapter
	editor  channels.Editor   // nil = messages cannot be replaced
	typer   channels.Typer    // nil = no sign of work
	reactor channels.Reactor  // nil = no reactions
	stream  channels.Streamer // nil = no native streams
	traits  channels.Traits
	set     Settings
	global  *rate.Limiter // over all destinations
}

func newAccount(a channels.Adapter, set Settings) *account {
	acct := &account{adapter: a, traits: a.Traits(), set: set, global: rate.NewLimiter(rate.Inf, 1)}
	if acct.traits.Edits {
		acct.editor, _ = a.(channels.Editor)
	}
	if set.Typing.wanted() {
		acct.typer, _ = a.(channels.Typer)
	}
	acct.reactor, _ = a.(channels.Reactor)
	acct.stream, _ = a.(channels.Streamer)
	if g := acct.traits.Global; g > 0 {
		acct.global = rate.NewLimiter(rate.Limit(g), max(1, int(g)))
	}
	return acct
}

func (a *account) key() accountKey { return accountKey{a.traits.Channel, a.traits.Account} }

// pace returns a new limiter for one conversation.
func (a *account) pace(k chat.Kind) *rate.Limiter {
	p := a.traits.Pace
	if k != chat.Direct && a.traits.GroupPace.Every > 0 {
		p = a.traits.GroupPace
	}
	if p.Every <= 0 {
		return rate.NewLimiter(rate.Inf, 1)
	}
	return rate.NewLimiter(rate.Every(p.Every), max(1, p.Burst))
}

// editInterval is the least time between two edits of a preview in a conversation.
func (a *account) editInterval(k chat.Kind) time.Duration {
	if k != chat.Direct && a.traits.GroupEditInterval > 0 {
		return max(leastPace, a.traits.GroupEditInterval)
	}
	return max(leastPace, a.traits.EditInterval)
}

// previews reports whether a turn may show its text before it is complete.
func (a *account) previews() bool { return a.set.Previews && a.editor != nil }

// streams reports whether a preview may grow on the platform's side.
func (a *account) streams() bool {
	return a.set.NativeStream && !a.set.Progress && a.stream != nil && a.previews()
}

// rule returns the rule of the slot for a turn at an address that answers target through the
// interaction via; an interaction is no message that one could refer to.
func (a *account) rule(to chat.Address, target, via string, batched bool) Rule {
	if via != "" {
		target = ""
	}
	return Rule{
		Mode: a.set.mode(to.Kind), References: a.traits.References, OpensThreads: a.traits.OpensThreads,
		InThread: to.Thread != "", Batched: batched, Target: target,
	}
}

// limits returns what one message may hold.
func (a *account) limits() markup.Limits {
	l := markup.Limits{Units: a.traits.TextLimit, Lines: a.traits.LineLimit, Visible: a.traits.VisibleLimit, Spans: a.traits.SpanLimit, Newline: a.set.Newline}
	if n := a.set.TextLimit; n > 0 && (l.Units == 0 || n < l.Units) {
		l.Units = n
	}
	return l
}

func (a *account) dialect() markup.Dialect { return markup.Dialect(a.traits.Markup) }

// parts cuts a thing into the messages it will be: the texts first, then one message per file.
func (a *account) parts(o chat.Outbound) []part {
	var out []part
	if !blank(o.Markdown) {
		out = a.texts(o.Markdown, a.limits())
	}
	if n := len(out); n > 0 {
		out[n-1].Buttons = o.Buttons
	}
	for _, m := range o.Media {
		out = append(out, part{Media: []chat.Attachment{m}})
	}
	return out
}

func (a *account) texts(md string, l markup.Limits) []part {
	var out []part
	for _, m := range markup.Messages(md, a.dialect(), l) {
		out = append(out, part{Text: m.Text, Plain: m.Plain, Source: m.Source})
	}
	return out
}

// halved cuts texts again for a channel that found the first of them too long.
func (a *account) halved(parts []part) []part {
	var out []part
	for _, p := range parts {
		if len(p.Media) > 0 {
			out = append(out, p)
			continue
		}
		l := a.limits()
		if n := markup.Units(p.Source); l.Units == 0 || n < l.Units {
			l.Units = n
		}
		l.Units, l.Visible = max(1, l.Units/2), l.Visible/2
		cut := a.texts(p.Source, l)
		if n := len(cut); n > 0 {
			cut[n-1].Buttons = p.Buttons
		}
		out = append(out, cut...)
	}
	return out
}

// textNoFile stands where a file would have stood that the channel does not take (spec/chat.md
// §2.1, mediaMaxMb).
const textNoFile = "📎 %s could not be sent here."

// noFile returns the note that takes a file's place.
func (a *account) noFile(m chat.Attachment) part {
	name := m.Name
	if name == "" {
		name = "A file"
	}
	return a.texts(fmt.Sprintf(textNoFile, name), a.limits())[0]
}
