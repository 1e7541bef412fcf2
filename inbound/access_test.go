package inbound

import (
	"strings"
	"testing"
	"time"

	"understudy/channels"
	"understudy/chat"
)

func ptr[T any](v T) *T { return &v }

func direct(sender string) chat.Inbound {
	return chat.Inbound{Address: chat.Address{Channel: "telegram", Conversation: sender, Kind: chat.Direct}, Sender: chat.Sender{ID: sender}}
}

func inGroup(group, sender string) chat.Inbound {
	return chat.Inbound{Address: chat.Address{Channel: "telegram", Conversation: group, Kind: chat.Group}, Sender: chat.Sender{ID: sender}}
}

// compile makes rules also of what the configuration would not let pass: they must fail closed too.
func compile(t interface{ Fatal(...any) }, a Access) *Rules {
	patterns, err := compilePatterns(a.MentionPatterns)
	if err != nil {
		t.Fatal(err)
	}
	return &Rules{a.WithDefaults(), patterns}
}

// TestGroupSendersUnderEveryPolicy: a list of senders that is there binds, also where every group is
// open; the one for direct messages is none of that kind.
func TestGroupSendersUnderEveryPolicy(t *testing.T) {
	for _, c := range []struct {
		access Access
		sender string
		want   Reason
	}{
		{Access{GroupPolicy: PolicyOpen}, "1", ReasonOpen},
		{Access{GroupPolicy: PolicyOpen, AllowFrom: []string{"7"}}, "1", ReasonOpen},
		{Access{GroupPolicy: PolicyOpen, GroupAllowFrom: []string{"7"}}, "7", ReasonListed},
		{Access{GroupPolicy: PolicyOpen, GroupAllowFrom: []string{"7"}}, "1", ReasonSender},
		{Access{GroupPolicy: PolicyOpen, GroupAllowFrom: []string{"7"}, Groups: map[string]Group{"g": {}}}, "1", ReasonSender},
		{Access{GroupPolicy: PolicyOpen, GroupAllowFrom: []string{"7"}, Groups: map[string]Group{"g": {AllowFrom: []string{"1"}}}}, "1", ReasonListed},
		{Access{GroupPolicy: PolicyOpen, GroupAllowFrom: []string{"*"}}, "1", ReasonListed},
		{Access{GroupPolicy: PolicyOpen, GroupAllowFrom: []string{}}, "1", ReasonSender},
	} {
		if got := compile(t, c.access).Decide(inGroup("g", c.sender), Standing{}); got.Reason != c.want || (got.Verdict == Admit) != (c.want != ReasonSender) {
			t.Errorf("%+v, %s: %+v", c.access, c.sender, got)
		}
	}
}

// TestInTheNameOfAChat: who is behind such a message is not known, so only the id itself lets it in.
func TestInTheNameOfAChat(t *testing.T) {
	listed, everybody := []string{"7"}, []string{"*"}
	for _, c := range []struct {
		access Access
		in     func(sender string) chat.Inbound
		admit  bool
	}{
		{Access{GroupPolicy: PolicyOpen}, func(s string) chat.Inbound { return inGroup("g", s) }, false},
		{Access{GroupPolicy: PolicyOpen, AllowFrom: listed}, func(s string) chat.Inbound { return inGroup("g", s) }, true},
		{Access{GroupAllowFrom: everybody, Groups: map[string]Group{"*": {}}}, func(s string) chat.Inbound { return inGroup("g", s) }, false},
		{Access{GroupAllowFrom: listed, Groups: map[string]Group{"*": {}}}, func(s string) chat.Inbound { return inGroup("g", s) }, true},
		{Access{Groups: map[string]Group{"g": {AllowFrom: []string{"*", "7"}}}}, func(s string) chat.Inbound { return inGroup("g", s) }, true},
		{Access{GroupAllowFrom: listed}, func(s string) chat.Inbound { return inGroup("g", s) }, false}, // the group has no entry
		{Access{DMPolicy: PolicyOpen, AllowFrom: everybody}, direct, false},
		{Access{}, direct, false},
		{Access{AllowFrom: listed}, direct, true},
	} {
		m := c.in("7")
		m.Sender.Anonymous = true
		if got := compile(t, c.access).Decide(m, Standing{Approved: true}); (got.Verdict == Admit) != c.admit || got.Verdict == Pair {
			t.Errorf("%+v: %+v", c.access, got)
		}
	}
}

// TestDirect is the decision order of spec/chat.md §2.2.
func TestDirect(t *testing.T) {
	list := []string{"7", "telegram:8", " 9 ", "slack:10"}
	cases := []struct {
		name   string
		access Access
		sender string
		s      Standing
		want   Verdict
		reason Reason
	}{
		{"default, stranger", Access{}, "1", Standing{}, Pair, ReasonStranger},
		{"default, listed", Access{AllowFrom: list}, "7", Standing{}, Admit, ReasonListed},
		{"listed with the channel's name", Access{AllowFrom: list}, "8", Standing{}, Admit, ReasonListed},
		{"listed with blanks", Access{AllowFrom: list}, "9", Standing{}, Admit, ReasonListed},
		{"listed for another channel", Access{AllowFrom: list}, "10", Standing{}, Pair, ReasonStranger},
		{"approved", Access{}, "1", Standing{Approved: true}, Admit, ReasonApproved},
		{"owner", Access{DMPolicy: PolicyAllowlist, AllowFrom: list}, "1", Standing{Owner: true}, Admit, ReasonOwner},
		{"allowlist, approved once", Access{DMPolicy: PolicyAllowlist, AllowFrom: list}, "1", Standing{Approved: true}, Refuse, ReasonSender},
		{"allowlist, stranger", Access{DMPolicy: PolicyAllowlist, AllowFrom: list}, "1", Standing{}, Refuse, ReasonSender},
		{"star in an allowlist admits nobody", Access{DMPolicy: PolicyAllowlist, AllowFrom: []string{"*"}}, "1", Standing{}, Refuse, ReasonSender},
		{"a sender named star", Access{DMPolicy: PolicyAllowlist, AllowFrom: []string{"*"}}, "*", Standing{}, Refuse, ReasonSender},
		{"open", Access{DMPolicy: PolicyOpen, AllowFrom: []string{"*"}}, "1", Standing{}, Admit, ReasonOpen},
		{"open without star, stranger", Access{DMPolicy: PolicyOpen, AllowFrom: list}, "1", Standing{}, Refuse, ReasonSender},
		{"open without star, listed", Access{DMPolicy: PolicyOpen, AllowFrom: list}, "7", Standing{}, Admit, ReasonListed},
		{"disabled, listed", Access{DMPolicy: PolicyDisabled, AllowFrom: list}, "7", Standing{}, Refuse, ReasonDisabled},
		{"disabled, owner", Access{DMPolicy: PolicyDisabled}, "7", Standing{Owner: true}, Refuse, ReasonDisabled},
		{"anonymous", Access{DMPolicy: PolicyOpen, AllowFrom: []string{"*", ""}}, "", Standing{}, Refuse, ReasonAnonymous},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := compile(t, c.access).Decide(direct(c.sender), c.s)
			if got.Verdict != c.want || got.Reason != c.reason || got.NeedsMention {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestGroup(t *testing.T) {
	entry := map[string]Group{"g": {}}
	cases := []struct {
		name    string
		access  Access
		want    Verdict
		reason  Reason
		mention bool
	}{
		{"default", Access{AllowFrom: []string{"7"}}, Refuse, ReasonGroup, false},
		{"listed group and sender", Access{Groups: entry, GroupAllowFrom: []string{"7"}}, Admit, ReasonListed, true},
		{"senders from allowFrom", Access{Groups: entry, AllowFrom: []string{"7"}}, Admit, ReasonListed, true},
		{"an empty group list is a list", Access{Groups: entry, AllowFrom: []string{"7"}, GroupAllowFrom: []string{}}, Refuse, ReasonSender, false},
		{"other sender", Access{Groups: entry, GroupAllowFrom: []string{"8"}}, Refuse, ReasonSender, false},
		{"everybody in a listed group", Access{Groups: entry, GroupAllowFrom: []string{"*"}}, Admit, ReasonListed, true},
		{"other group", Access{Groups: map[string]Group{"h": {}}, GroupAllowFrom: []string{"7"}}, Refuse, ReasonGroup, false},
		{"star group", Access{Groups: map[string]Group{"*": {RequireMention: ptr(false)}}, GroupAllowFrom: []string{"7"}}, Admit, ReasonListed, false},
		{"own entry before star", Access{Groups: map[string]Group{"*": {}, "g": {Enabled: ptr(false)}}, GroupAllowFrom: []string{"7"}}, Refuse, ReasonDisabled, false},
		{"open", Access{GroupPolicy: PolicyOpen}, Admit, ReasonOpen, true},
		{"open, no mention needed", Access{GroupPolicy: PolicyOpen, RequireMention: ptr(false)}, Admit, ReasonOpen, false},
		{"the entry before the account", Access{GroupPolicy: PolicyOpen, RequireMention: ptr(false), Groups: map[string]Group{"g": {RequireMention: ptr(true)}}}, Admit, ReasonOpen, true},
		{"open, but the entry lists senders", Access{GroupPolicy: PolicyOpen, Groups: map[string]Group{"g": {AllowFrom: []string{"8"}}}}, Refuse, ReasonSender, false},
		{"disabled", Access{GroupPolicy: PolicyDisabled, Groups: entry, GroupAllowFrom: []string{"7"}}, Refuse, ReasonDisabled, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := inGroup("g", "7")
			r := compile(t, c.access)
			got := r.Decide(m, Standing{})
			if got.Verdict != c.want || got.Reason != c.reason || got.NeedsMention != c.mention {
				t.Errorf("got %+v", got)
			}
			m.Mentioned = true
			if again := r.Decide(m, Standing{Owner: true, Approved: true}); again.Verdict != got.Verdict {
				t.Errorf("a mention, a pairing or being owner changed it to %+v", again)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	cases := []struct {
		name   string
		access Access
		want   string // "" = valid
	}{
		{"defaults", Access{}, ""},
		{"open", Access{DMPolicy: "open", AllowFrom: []string{"*"}}, ""},
		{"open to nobody", Access{DMPolicy: "open"}, "allowFrom"},
		{"an empty allowlist", Access{DMPolicy: "allowlist"}, "allowFrom"},
		{"a wrong policy", Access{DMPolicy: "pairng"}, "dmPolicy"},
		{"pairing in groups", Access{GroupPolicy: "pairing"}, "groupPolicy"},
		{"bots", Access{AllowBots: BotsMentioned}, ""},
		{"bots, but how", Access{AllowBots: "yes"}, "allowBots"},
		{"patterns", Access{MentionPatterns: []string{`\bclaw\b`, "лобстер"}}, ""},
		{"a wrong pattern", Access{MentionPatterns: []string{"ok", "(claw"}}, "mentionPatterns[1]"},
		{"a pattern that ends another", Access{MentionPatterns: []string{"a)|(?:"}}, "mentionPatterns[0]"},
		{"a pattern for everything", Access{MentionPatterns: []string{"claw|.*"}}, "matches every message"},
		{"a pattern without end", Access{MentionPatterns: []string{strings.Repeat("x", maxPattern+1)}}, "longer"},
		{"patterns without end", Access{MentionPatterns: make([]string, maxPatterns+1)}, "more than"},
		{"no history", Access{HistoryLimit: ptr(0)}, ""},
		{"less than no history", Access{HistoryLimit: ptr(-1)}, "historyLimit"},
		{"a flood of history", Access{HistoryLimit: ptr(MaxHistory + 1)}, "historyLimit"},
		{"negative ages", Access{CatchUp: channels.CatchUp{MaxAge: -1}}, "catchUp"},
	}
	for _, c := range cases {
		err := c.access.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for _, owner := range []string{"telegram", "telegram:", ":7", "telegram:*", "*"} {
		if (Config{Owners: []string{owner}}).Validate() == nil {
			t.Errorf("owner %q is valid", owner)
		}
	}
	for _, c := range []Config{
		{Debounce: Debounce{Window: -1}},
		{Debounce: Debounce{ByChannel: map[string]time.Duration{"slack": time.Hour}}},
	} {
		if c.Validate() == nil {
			t.Errorf("%+v is valid", c)
		}
	}
	bad := Config{Access: map[Account]Access{{Channel: "telegram"}: {DMPolicy: "x"}}, MaxAge: -1}
	if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), "channels.telegram: dmPolicy") || !strings.Contains(err.Error(), "maxAge") {
		t.Errorf("%v", err)
	}
}
