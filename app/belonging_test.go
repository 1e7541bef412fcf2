package app

import (
	"testing"

	"understudy/channels/discord"
	"understudy/channels/slack"
	"understudy/chat"
	"understudy/commands"
	"understudy/config"
	"understudy/inbound"
	"understudy/session"
)

func TestOnePersonIsOneSessionOnAllChannels(t *testing.T) {
	cfg := &config.Config{}
	cfg.Session = session.Config{DMScope: session.ScopePeer, IdentityLinks: map[string][]string{
		"alice": {"telegram:1", slack.Channel + ":U1", discord.Channel + ":300"},
	}}
	dm := func(channel, conversation, sender string) chat.Inbound {
		return chat.Inbound{Address: chat.Address{Channel: channel, Kind: chat.Direct, Conversation: conversation}, Sender: chat.Sender{ID: sender}}
	}
	for _, m := range []chat.Inbound{dm("telegram", "1", "1"), dm(slack.Channel, "D77", "U1"), dm(discord.Channel, "400", "300")} {
		if got := belongs(cfg, m).key; got != session.Key("", chat.Address{Channel: "telegram", Kind: chat.Direct, Conversation: "1"}, cfg.Session) {
			t.Errorf("%s: %s", m.Address.Channel, got)
		}
	}
	// Where the channel stays in the key, the conversation does too: a key is found from an address alone.
	cfg.Session.DMScope = session.ScopeChannelPeer
	m := dm(slack.Channel, "D77", "U1")
	if got, want := belongs(cfg, m).key, session.Key("", m.Address, cfg.Session); got != want {
		t.Errorf("%s instead of %s", got, want)
	}
}

func TestActivationLetsNobodyIn(t *testing.T) {
	yes, everybody := true, []string{"1"}
	message := func(space, conversation, sender string) chat.Inbound {
		return chat.Inbound{
			Address: chat.Address{Channel: discord.Channel, Kind: chat.Room, Conversation: conversation}, Space: space, Sender: chat.Sender{ID: sender},
		}
	}
	for name, x := range map[string]inbound.Access{
		"listed group":               {GroupAllowFrom: everybody, Groups: map[string]inbound.Group{"c": {}}},
		"all groups":                 {GroupAllowFrom: everybody, Groups: map[string]inbound.Group{"*": {RequireMention: &yes}}},
		"no group":                   {GroupAllowFrom: everybody},
		"open":                       {GroupPolicy: inbound.PolicyOpen, GroupAllowFrom: everybody},
		"listed server":              {GroupAllowFrom: everybody, Spaces: map[string]inbound.Space{"s": {}}},
		"all servers":                {GroupAllowFrom: everybody, Spaces: map[string]inbound.Space{"*": {}}},
		"another server":             {GroupAllowFrom: everybody, Spaces: map[string]inbound.Space{"t": {}}},
		"server with its channels":   {GroupAllowFrom: everybody, Spaces: map[string]inbound.Space{"s": {Groups: map[string]inbound.Group{"c": {}}}}},
		"server with other channels": {GroupAllowFrom: everybody, Spaces: map[string]inbound.Space{"s": {Groups: map[string]inbound.Group{"d": {}}}}},
	} {
		after := activated(x, groupOf(commands.Call{To: message("s", "c", "1").Address, In: message("s", "c", "1")}), false)
		old, err := x.Compile()
		if err != nil {
			t.Fatal(err)
		}
		rules, err := after.Compile()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []chat.Inbound{message("s", "c", "1"), message("s", "c", "2"), message("s", "d", "1"), message("t", "c", "1"), message("", "c", "1"), message("", "d", "1")} {
			was, is := old.Decide(m, inbound.Standing{}), rules.Decide(m, inbound.Standing{})
			if was.Verdict != is.Verdict {
				t.Errorf("%s: %s/%s by %s: %v has become %v", name, m.Space, m.Address.Conversation, m.Sender.ID, was, is)
			}
		}
		here := message("s", "c", "1")
		if is := rules.Decide(here, inbound.Standing{}); is.Verdict == inbound.Admit && is.NeedsMention {
			t.Errorf("%s: a mention is still needed", name)
		}
	}
}
