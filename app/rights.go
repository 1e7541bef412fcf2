package app

import (
	"context"
	"slices"
	"sync"

	"understudy/chat"
	"understudy/commands"
	"understudy/reply"
)

// person is somebody whose words are in a turn.
type person struct {
	in    chat.Inbound // what they wrote; of words that are only shown, who wrote them and where
	owner bool
	asks  bool // the turn answers them; else their words stand beside what it answers
	// stranger tells that they would not be let in where the turn answers.
	stranger bool
}

// people are all of them. A model follows what it reads, and nobody can tell whose words led it to call a
// tool: so a call may do what all people of the turn may do, which is what the least of them may. Nobody
// may do anything, as in turns that nobody began.
//
// What tools and earlier turns brought into the conversation is not counted here.
type people []person

// owners reports whether all of them own the bot.
func (p people) owners() bool {
	return len(p) > 0 && !slices.ContainsFunc(p, func(x person) bool { return !x.owner })
}

// strangers reports whether there are some among them.
func (p people) strangers() bool {
	return slices.ContainsFunc(p, func(x person) bool { return x.stranger && !x.owner })
}

// asking are those whom the turn answers.
func (p people) asking() people {
	return slices.DeleteFunc(slices.Clone(p), func(x person) bool { return !x.asks })
}

// calls are the people as they would give a command in the place of a tool call.
func (p people) calls(c reply.Call) []commands.Call {
	list := make([]commands.Call, len(p))
	for i, x := range p {
		list[i] = commands.Call{Agent: c.Agent, Key: c.Session, To: c.To, In: x.in, Owner: x.owner}
	}
	return list
}

// creator is in whose name the turn makes a task: of several people, the first who is no owner, because
// whose task it is may look at it and take it back. "" = nobody asks.
func (p people) creator(to chat.Address) string {
	asking := p.asking()
	if len(asking) == 0 {
		return ""
	}
	i := max(0, slices.IndexFunc(asking, func(x person) bool { return !x.owner }))
	return creator(to, asking[i].in.Sender)
}

// voices collects the people of a turn while it goes on: tool calls run in other goroutines.
type voices struct {
	mu  sync.Mutex
	all people
}

// hear adds a message that the turn answers, and whom it quotes.
func (v *voices) hear(j *job) {
	v.add(person{in: j.in, owner: j.owner, asks: true})
	in := &j.in
	if in.Quote == "" || in.QuoteFrom.Self || in.QuoteFrom.ID != "" && in.QuoteFrom.ID == in.Sender.ID {
		return
	}
	v.see(j, in.QuoteFrom, nil)
}

// overhear adds those whose words are shown above messages.
func (v *voices) overhear(jobs []*job) {
	for _, j := range withTold(jobs) {
		for _, l := range j.overheard {
			v.see(j, l.Sender, l.Roles)
		}
	}
}

// see adds somebody whose words stand beside a message, with the roles they had; no platform tells those of
// whom a message quotes.
func (v *voices) see(j *job, who chat.Sender, roles []string) {
	if !who.Self {
		who.Local = false // what others pass on proves nothing
		v.add(person{in: chat.Inbound{Address: j.in.Address, Space: j.in.Space, Roles: roles, Sender: who}})
	}
}

// add adds somebody, once.
func (v *voices) add(x person) {
	v.mu.Lock()
	defer v.mu.Unlock()
	same := func(y person) bool { return y.asks == x.asks && y.owner == x.owner && y.in.Sender.ID == x.in.Sender.ID }
	if x.in.Sender.ID == "" || !slices.ContainsFunc(v.all, same) {
		v.all = append(v.all, x)
	}
}

func (v *voices) list() people {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.all)
}

// peopleOf returns the people of the turn that a call belongs to.
func (a *App) peopleOf(ctx context.Context, c reply.Call) people {
	if c.Kind != reply.Message {
		return nil
	}
	v, ok := a.turns.byID.Load(c.Turn)
	if !ok {
		return nil
	}
	list := v.(*running).voices.list()
	for i := range list {
		if x := &list[i]; !x.asks {
			x.owner, x.stranger = a.inbound.Owner(ctx, x.in), !a.inbound.Authorised(ctx, x.in)
		}
	}
	return list
}

// scriptOwner is who stands behind the turns of programs: whoever has the token is the owner.
func scriptOwner(_ context.Context, c reply.Call) people {
	return people{{in: chat.Inbound{Address: c.To, Sender: c.Sender}, owner: true, asks: true}}
}
