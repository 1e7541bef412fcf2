package inbound

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"understudy/chat"
)

func ptr[T any](v T) *T { return &v }

func direct(sender string) chat.Inbound {
	return chat.Inbound{Address: chat.Address{Channel: "telegram", Conversation: sender, Kind: chat.Direct}, Sender: chat.Sender{ID: sender}}
}

func inGroup(group, sender string) chat.Inbound {
	return chat.Inbound{Address: chat.Address{Channel: "telegram", Conversation: group, Kind: chat.Group}, Sender: chat.Sender{ID: sender}}
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
			got := c.access.Decide(direct(c.sender), c.s)
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
			got := c.access.Decide(m, Standing{})
			if got.Verdict != c.want || got.Reason != c.reason || got.NeedsMention != c.mention {
				t.Errorf("got %+v", got)
			}
			m.Mentioned = true
			if again := c.access.Decide(m, Standing{Owner: true, Approved: true}); again.Verdict != got.Verdict {
				t.Errorf("a mention, a pairing or being owner changed it to %+v", again)
			}
		})
	}
}

// TestDecideInvariants: bots and anonymous senders never pass, local ones always do, nobody is
// paired in a group, and disabled admits nobody.
func TestDecideInvariants(t *testing.T) {
	policy := rapid.SampledFrom([]string{"", PolicyPairing, PolicyAllowlist, PolicyOpen, PolicyDisabled})
	list := rapid.SliceOfN(rapid.SampledFrom([]string{"*", "1", "2", "telegram:1", ""}), 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		a := &Access{
			DMPolicy: policy.Draw(t, "dm"), AllowFrom: list.Draw(t, "allow"),
			GroupPolicy: policy.Draw(t, "group"), GroupAllowFrom: list.Draw(t, "groupAllow"),
		}
		if rapid.Bool().Draw(t, "unconfigured") {
			a = nil
		}
		m := chat.Inbound{Address: chat.Address{Channel: "telegram", Conversation: "g", Kind: chat.Direct}}
		if rapid.Bool().Draw(t, "inGroup") {
			m.Address.Kind = chat.Group
		}
		m.Sender = chat.Sender{
			ID:  rapid.SampledFrom([]string{"", "*", "1", "2", "3"}).Draw(t, "id"),
			Bot: rapid.Bool().Draw(t, "bot"), Local: rapid.Bool().Draw(t, "local"),
		}
		s := Standing{Owner: rapid.Bool().Draw(t, "owner"), Approved: rapid.Bool().Draw(t, "approved")}
		d := a.Decide(m, s)
		switch {
		case m.Sender.Local:
			if d.Verdict != Admit {
				t.Fatalf("the owner of the machine got %+v", d)
			}
		case m.Sender.Bot, m.Sender.ID == "", a == nil:
			if d.Verdict != Refuse {
				t.Fatalf("got %+v", d)
			}
		case m.Address.Kind != chat.Direct && d.Verdict == Pair:
			t.Fatal("paired in a group")
		case m.Address.Kind != chat.Direct && d.Verdict == Admit && a.GroupPolicy != PolicyOpen && len(a.Groups) == 0:
			t.Fatal("admitted in a group that is not listed")
		case m.Address.Kind == chat.Direct && a.DMPolicy == PolicyDisabled && d.Verdict != Refuse:
			t.Fatalf("disabled, and %+v", d)
		}
	})
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
	bad := Config{Access: map[Account]Access{{Channel: "telegram"}: {DMPolicy: "x"}}, MaxAge: -1}
	if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), "channels.telegram: dmPolicy") || !strings.Contains(err.Error(), "maxAge") {
		t.Errorf("%v", err)
	}
}
