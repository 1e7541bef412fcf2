package app

import (
	"slices"
	"testing"

	"understudy/chat"
	"understudy/cron"
)

// Whoever asks together touches what each of them may touch; words of others take the owner's privilege away,
// but nobody's own tasks.
func TestTheTasksOfATurnAreThoseThatEverybodyMayTouch(t *testing.T) {
	to := chat.Address{Channel: "telegram", Conversation: "-1", Kind: chat.Group}
	who := func(id string, owner, asks bool) person {
		return person{in: chat.Inbound{Address: to, Sender: chat.Sender{ID: id}}, owner: owner, asks: asks}
	}
	owner, bob, dave := who("alice", true, true), who("bob", false, true), who("dave", false, true)
	var list []cron.Job
	for _, id := range []string{"alice", "bob", "dave"} {
		list = append(list, cron.Job{ID: id, Definition: cron.Definition{CreatedBy: creator(to, chat.Sender{ID: id})}})
	}
	for name, c := range map[string]struct {
		people people
		want   []string
		maker  string
	}{
		"the owner":                             {people{owner}, []string{"alice", "bob", "dave"}, "alice"},
		"somebody":                              {people{bob}, []string{"bob"}, "bob"},
		"the owner and somebody":                {people{owner, bob}, []string{"bob"}, "bob"},
		"two people":                            {people{bob, dave}, nil, "bob"},
		"the owner, somebody overheard":         {people{owner, who("bob", false, false)}, []string{"alice"}, "alice"},
		"somebody, somebody else overheard":     {people{bob, who("dave", false, false)}, []string{"bob"}, "bob"},
		"the owner, another owner is overheard": {people{owner, who("ann", true, false)}, []string{"alice", "bob", "dave"}, "alice"},
	} {
		var got []string
		for _, j := range c.people.theirs(to, list) {
			got = append(got, j.ID)
		}
		if maker := c.people.creator(to); !slices.Equal(got, c.want) || maker != "telegram:"+c.maker {
			t.Errorf("%s: %q in the name of %s", name, got, maker)
		}
	}
}
