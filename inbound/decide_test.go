package inbound

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"understudy/chat"
)

func inSpace(space, room, sender string, roles ...string) chat.Inbound {
	return chat.Inbound{
		Address: chat.Address{Channel: "discord", Conversation: room, Kind: chat.Room}, Space: space,
		Sender: chat.Sender{ID: sender}, Roles: roles,
	}
}

func TestSpaces(t *testing.T) {
	everybody := []string{"*"}
	with := func(s Space) Access {
		return Access{GroupAllowFrom: everybody, Spaces: map[string]Space{"G": s}}
	}
	inThread := inSpace("G", "C", "7")
	inThread.Address.Thread = "T"
	cases := []struct {
		name   string
		access Access
		m      chat.Inbound
		want   Reason // with Admit where it is listed or open
	}{
		{"a listed space", with(Space{}), inSpace("G", "C", "7"), ReasonListed},
		{"another space", with(Space{}), inSpace("H", "C", "7"), ReasonGroup},
		{"the entry of the others", Access{GroupAllowFrom: everybody, Spaces: map[string]Space{"*": {}}}, inSpace("H", "C", "7"), ReasonListed},
		{"a space whose id is the wildcard", with(Space{}), inSpace("*", "C", "7"), ReasonGroup},
		{"a space that is off", with(Space{Group: Group{Enabled: ptr(false)}}), inSpace("G", "C", "7"), ReasonDisabled},
		{"its senders", with(Space{Group: Group{AllowFrom: []string{"7"}}}), inSpace("G", "C", "7"), ReasonListed},
		{"others than its senders", with(Space{Group: Group{AllowFrom: []string{"8"}}}), inSpace("G", "C", "7"), ReasonSender},
		{"its roles", with(Space{Group: Group{Roles: []string{"r1", " r2 "}}}), inSpace("G", "C", "7", "r0", "r2"), ReasonListed},
		{"others than its roles", with(Space{Group: Group{Roles: []string{"r1", ""}}}), inSpace("G", "C", "7", "r0", ""), ReasonSender},
		{"a sender without the role", with(Space{Group: Group{AllowFrom: []string{"7"}, Roles: []string{"r1"}}}), inSpace("G", "C", "7"), ReasonListed},
		{"an empty list", with(Space{Group: Group{Roles: []string{}}}), inSpace("G", "C", "7"), ReasonSender},
		{"a listed room", with(Space{Groups: map[string]Group{"C": {}}}), inSpace("G", "C", "7"), ReasonListed},
		{"a thread of a listed room", with(Space{Groups: map[string]Group{"C": {}}}), inThread, ReasonListed},
		{"another room", with(Space{Groups: map[string]Group{"C": {}}}), inSpace("G", "D", "7"), ReasonGroup},
		{"no room", with(Space{Groups: map[string]Group{}}), inSpace("G", "D", "7"), ReasonGroup},
		{"the other rooms", with(Space{Groups: map[string]Group{"C": {Enabled: ptr(false)}, "*": {}}}), inSpace("G", "D", "7"), ReasonListed},
		{"a room that is off", with(Space{Groups: map[string]Group{"C": {Enabled: ptr(false)}, "*": {}}}), inSpace("G", "C", "7"), ReasonDisabled},
		{"a room in a space that is off", with(Space{Group: Group{Enabled: ptr(false)}, Groups: map[string]Group{"C": {Enabled: ptr(true)}}}), inSpace("G", "C", "7"), ReasonDisabled},
		{"the room's senders before the space's", with(Space{Group: Group{AllowFrom: []string{"8"}}, Groups: map[string]Group{"C": {AllowFrom: []string{"7"}}}}), inSpace("G", "C", "7"), ReasonListed},
		{"the room's roles do not add to the space's", with(Space{Group: Group{Roles: []string{"r1"}}, Groups: map[string]Group{"C": {Roles: []string{"r2"}}}}), inSpace("G", "C", "7", "r1"), ReasonSender},
		{"no list but the account's", Access{AllowFrom: []string{"8"}, Spaces: map[string]Space{"G": {}}}, inSpace("G", "C", "7"), ReasonSender},
		{"open, a space without an entry", Access{GroupPolicy: PolicyOpen, Spaces: map[string]Space{"G": {}}}, inSpace("H", "C", "7"), ReasonOpen},
		{"open, a room that its space does not list", Access{GroupPolicy: PolicyOpen, Spaces: map[string]Space{"G": {Groups: map[string]Group{"C": {}}}}}, inSpace("G", "D", "7"), ReasonGroup},
		{"disabled", Access{GroupPolicy: PolicyDisabled, GroupAllowFrom: everybody, Spaces: map[string]Space{"G": {}}}, inSpace("G", "C", "7"), ReasonDisabled},
		{"rooms without spaces", Access{GroupAllowFrom: everybody, Groups: map[string]Group{"C": {}}}, inSpace("team", "C", "7"), ReasonListed},
		{"a group beside the spaces", Access{GroupAllowFrom: everybody, Groups: map[string]Group{"g": {}}, Spaces: map[string]Space{"G": {}}}, inGroup("g", "7"), ReasonListed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := compile(t, c.access).Decide(c.m, Standing{})
			admitted := c.want == ReasonListed || c.want == ReasonOpen
			if got.Reason != c.want || (got.Verdict == Admit) != admitted || got.Verdict == Pair {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestMentionOfARoom: the narrowest entry that says something counts.
func TestMentionOfARoom(t *testing.T) {
	a := Access{GroupPolicy: PolicyOpen, RequireMention: ptr(false), Spaces: map[string]Space{
		"G": {Group: Group{RequireMention: ptr(true)}, Groups: map[string]Group{"C": {RequireMention: ptr(false)}, "*": {}}},
	}}
	for room, want := range map[string]bool{"C": false, "D": true} {
		if got := compile(t, a).Decide(inSpace("G", room, "7"), Standing{}); got.NeedsMention != want || got.Addressed == want {
			t.Errorf("%s: %+v", room, got)
		}
	}
	if got := compile(t, a).Decide(inSpace("H", "C", "7"), Standing{}); got.NeedsMention {
		t.Errorf("another space: %+v", got)
	}
}

func TestAddressed(t *testing.T) {
	patterns := []string{`\bclaw\b`, "ЛОБСТЕР"}
	cases := []struct {
		name   string
		access Access
		change func(m *chat.Inbound)
		s      Standing
		want   bool
	}{
		{"just talk", Access{MentionPatterns: patterns}, func(m *chat.Inbound) { m.Text = "clawback" }, Standing{Owner: true}, false},
		{"a mention", Access{}, func(m *chat.Inbound) { m.Mentioned = true }, Standing{}, true},
		{"a pattern in other letters", Access{MentionPatterns: patterns}, func(m *chat.Inbound) { m.Text = "Hey CLAW!" }, Standing{}, true},
		{"a pattern of another alphabet", Access{MentionPatterns: patterns}, func(m *chat.Inbound) { m.Text = "лобстер, помоги" }, Standing{}, true},
		{"an interaction", Access{}, func(m *chat.Inbound) { m.Via = "x" }, Standing{}, true},
		{"no mention needed", Access{RequireMention: ptr(false)}, func(m *chat.Inbound) { m.MentionsOthers = true }, Standing{}, true},
		{"somebody else", Access{RequireMention: ptr(false), IgnoreOtherMentions: true}, func(m *chat.Inbound) { m.MentionsOthers = true }, Standing{}, false},
		{"somebody else and the bot", Access{IgnoreOtherMentions: true}, func(m *chat.Inbound) { m.MentionsOthers, m.Mentioned = true, true }, Standing{}, true},
		{"in a thread of the bot", Access{ImplicitThread: true}, func(m *chat.Inbound) { m.Address.Thread = "T" }, Standing{Participates: true}, true},
		{"somebody else in a thread of the bot", Access{ImplicitThread: true, IgnoreOtherMentions: true}, func(m *chat.Inbound) { m.Address.Thread, m.MentionsOthers = "T", true }, Standing{Participates: true}, false},
		{"outside of the threads of the bot", Access{ImplicitThread: true}, func(*chat.Inbound) {}, Standing{Participates: true}, false},
		{"in another thread", Access{ImplicitThread: true}, func(m *chat.Inbound) { m.Address.Thread = "T" }, Standing{}, false},
		{"in a thread of the bot, switched off", Access{}, func(m *chat.Inbound) { m.Address.Thread = "T" }, Standing{Participates: true}, false},
		{"another bot in a thread of the bot", Access{ImplicitThread: true, AllowBots: BotsAlways}, func(m *chat.Inbound) { m.Address.Thread, m.Sender.Bot = "T", true }, Standing{Participates: true}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.access.GroupPolicy = PolicyOpen
			m := inSpace("G", "C", "7")
			c.change(&m)
			if got := compile(t, c.access).Decide(m, c.s); got.Verdict != Admit || got.Addressed != c.want {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestBots(t *testing.T) {
	bot := inGroup("g", "B")
	bot.Sender.Bot = true
	named := bot
	named.Mentioned = true
	private := direct("B")
	private.Sender.Bot = true
	open := Access{GroupPolicy: PolicyOpen, RequireMention: ptr(false)}
	cases := []struct {
		name   string
		allow  string
		access Access
		m      chat.Inbound
		want   Verdict
	}{
		{"never", "", open, named, Refuse},
		{"never, by word", BotsNever, open, named, Refuse},
		{"mentions, without", BotsMentioned, open, bot, Refuse},
		{"mentions, with", BotsMentioned, open, named, Admit},
		{"always", BotsAlways, open, bot, Admit},
		{"always, but not in this group", BotsAlways, Access{GroupAllowFrom: []string{"B"}}, named, Refuse},
		{"always, but not this one", BotsAlways, Access{Groups: map[string]Group{"g": {}}, GroupAllowFrom: []string{"C"}}, named, Refuse},
		{"no pairing", BotsAlways, Access{}, private, Refuse},
		{"a listed one may write", BotsAlways, Access{AllowFrom: []string{"B"}}, private, Admit},
	}
	for _, c := range cases {
		c.access.AllowBots = c.allow
		if got := compile(t, c.access).Decide(c.m, Standing{Owner: true, Approved: true}); got.Verdict != c.want {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// drawAccess draws rules, message and standing from a world so small that everything meets.
func drawAccess(t *rapid.T) (*Rules, chat.Inbound, Standing) {
	list := func(name string) []string {
		if rapid.Bool().Draw(t, name+" is nil") {
			return nil
		}
		return rapid.SliceOfN(rapid.SampledFrom([]string{"*", "1", "2", "telegram:1", ""}), 0, 3).Draw(t, name)
	}
	flag := func(name string) *bool {
		return rapid.SampledFrom([]*bool{nil, ptr(true), ptr(false)}).Draw(t, name)
	}
	entry := func(name string) Group {
		return Group{Enabled: flag(name + " enabled"), RequireMention: flag(name + " mention"), AllowFrom: list(name), Roles: list(name + " roles")}
	}
	entries := func(name string) map[string]Group {
		out := map[string]Group{}
		for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"g", "h", "*"}), 0, 2, rapid.ID).Draw(t, name) {
			out[id] = entry(name + id)
		}
		return out
	}
	policy := rapid.SampledFrom([]string{"", PolicyPairing, PolicyAllowlist, PolicyOpen, PolicyDisabled})
	a := Access{
		DMPolicy: policy.Draw(t, "dm"), AllowFrom: list("allow"), GroupPolicy: policy.Draw(t, "group"), GroupAllowFrom: list("groupAllow"),
		Groups: entries("groups"), RequireMention: flag("mention"), ImplicitThread: rapid.Bool().Draw(t, "implicit"),
		IgnoreOtherMentions: rapid.Bool().Draw(t, "others"),
		AllowBots:           rapid.SampledFrom([]string{"", BotsNever, BotsMentioned, BotsAlways, "odd"}).Draw(t, "bots"),
	}
	if rapid.Bool().Draw(t, "spaces") {
		s := Space{Group: entry("space")}
		if rapid.Bool().Draw(t, "rooms") {
			s.Groups = entries("rooms")
		}
		a.Spaces = map[string]Space{rapid.SampledFrom([]string{"G", "*"}).Draw(t, "spaceID"): s}
	}
	r := compile(t, a)
	if rapid.Bool().Draw(t, "unconfigured") {
		r = nil
	}
	m := chat.Inbound{Address: chat.Address{
		Channel: "telegram", Conversation: rapid.SampledFrom([]string{"g", "k"}).Draw(t, "conversation"),
		Kind: rapid.SampledFrom([]chat.Kind{chat.Direct, chat.Group, chat.Room}).Draw(t, "kind"),
	}}
	if m.Address.Kind != chat.Direct {
		m.Space = rapid.SampledFrom([]string{"", "G", "H"}).Draw(t, "in space")
		m.Address.Thread = rapid.SampledFrom([]string{"", "T"}).Draw(t, "thread")
	}
	m.Roles = rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2", ""}), 0, 2).Draw(t, "has roles")
	m.Mentioned, m.MentionsOthers = rapid.Bool().Draw(t, "mentioned"), rapid.Bool().Draw(t, "mentionsOthers")
	m.Sender = chat.Sender{
		ID:  rapid.SampledFrom([]string{"", "*", "1", "2", "3"}).Draw(t, "id"),
		Bot: rapid.Bool().Draw(t, "bot"), Local: rapid.IntRange(0, 9).Draw(t, "local") == 0,
	}
	s := Standing{Owner: rapid.Bool().Draw(t, "owner"), Approved: rapid.Bool().Draw(t, "approved"), Participates: rapid.Bool().Draw(t, "participates")}
	return r, m, s
}

// invariant names the law that a decision breaks, "" = none.
func invariant(r *Rules, m chat.Inbound, s Standing, d Decision) string {
	admitted := d.Verdict == Admit
	switch {
	case m.Sender.Local:
		return when(!admitted, "the owner of the machine is refused")
	case r == nil || m.Sender.ID == "":
		return when(d.Verdict != Refuse, "no rules or no sender, and not refused")
	case m.Sender.Bot && d.Verdict == Pair:
		return "a bot is paired"
	case m.Sender.Bot && r.access.AllowBots != BotsAlways && !(r.access.AllowBots == BotsMentioned && m.Mentioned):
		return when(admitted, "a bot is heard")
	}
	a := r.access
	if m.Address.Kind == chat.Direct {
		switch {
		case a.DMPolicy == PolicyDisabled:
			return when(d.Verdict != Refuse, "direct messages are off")
		case d.Verdict == Pair:
			return when(a.DMPolicy != PolicyPairing, "paired without the policy")
		case admitted && !lists(a.AllowFrom, m) && !(a.DMPolicy == PolicyOpen && slices.Contains(a.AllowFrom, anyone)):
			return when(m.Sender.Bot || !s.Owner && !(s.Approved && a.DMPolicy == PolicyPairing), "nobody let this sender in")
		}
		return ""
	}
	switch {
	case d.Verdict == Pair:
		return "paired in a group"
	case a.GroupPolicy == PolicyDisabled && admitted:
		return "groups are off"
	case admitted && a.GroupPolicy != PolicyOpen && len(a.Groups) == 0 && len(a.Spaces) == 0:
		return "a group without an entry"
	}
	return ""
}

func when(broken bool, law string) string {
	if broken {
		return law
	}
	return ""
}

// TestDecideInvariants: rules fail closed, local senders always pass, and neither pairing nor being an
// owner nor a thread nor a mention lets anybody into a group.
func TestDecideInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, m, s := drawAccess(t)
		d := r.Decide(m, s)
		if law := invariant(r, m, s, d); law != "" {
			t.Fatalf("%s: %+v", law, d)
		}
		if d.Verdict != Admit && d.Addressed {
			t.Fatalf("refused and addressed: %+v", d)
		}
		if m.Sender.Bot || m.Sender.Local {
			return
		}
		if m.Address.Kind == chat.Direct {
			if d.Verdict == Admit && !d.Addressed {
				t.Fatalf("a direct message is for the bot: %+v", d)
			}
			return
		}
		for i := range 8 {
			other := m
			other.Mentioned = i&1 != 0
			got := r.Decide(other, Standing{Owner: i&2 != 0, Approved: i&2 != 0, Participates: i&4 != 0})
			if got.Verdict != d.Verdict || got.Reason != d.Reason {
				t.Fatalf("a mention, a pairing, being owner or a thread changed %+v to %+v", d, got)
			}
		}
	})
}

// TestInvariantsCanFail: each law of TestDecideInvariants notices a decision that breaks it.
func TestInvariantsCanFail(t *testing.T) {
	bot := inGroup("g", "1")
	bot.Sender.Bot = true
	local := direct("1")
	local.Sender.Local = true
	private := direct("1")
	private.Sender.Bot = true
	admit, pair := Decision{Verdict: Admit}, Decision{Verdict: Pair}
	for i, c := range []struct {
		access *Access
		m      chat.Inbound
		d      Decision
	}{
		{&Access{}, local, Decision{}},
		{nil, direct("1"), admit},
		{&Access{}, direct(""), admit},
		{&Access{AllowBots: BotsAlways}, private, pair},
		{&Access{}, bot, admit},
		{&Access{DMPolicy: PolicyDisabled}, direct("1"), pair},
		{&Access{DMPolicy: PolicyAllowlist}, direct("1"), pair},
		{&Access{}, direct("1"), admit},
		{&Access{}, inGroup("g", "1"), pair},
		{&Access{GroupPolicy: PolicyDisabled}, inGroup("g", "1"), admit},
		{&Access{}, inGroup("g", "1"), admit},
	} {
		var r *Rules
		if c.access != nil {
			r = compile(t, *c.access)
		}
		if invariant(r, c.m, Standing{}, c.d) == "" {
			t.Errorf("%d: nothing noticed", i)
		}
	}
}
