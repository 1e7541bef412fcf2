package config

import (
	"fmt"
	"strings"
	"testing"

	"understudy/chat"
)

// bound is a configuration in which every kind of binding leads to an agent of its own. The least
// specific ones stand first, so that the order of the file decides nothing.
const bound = `
agents: {list: [{id: main, default: true}, {id: channel}, {id: account}, {id: team}, {id: guild}, {id: roles}, {id: kind}, {id: parent}, {id: peer}, {id: topic}]}
bindings:
  - {agentId: channel, match: {channel: discord, accountId: "*"}}
  - {agentId: account, match: {channel: discord, accountId: ops}}
  - {agentId: guild, match: {channel: discord, accountId: "*", guildId: "1"}}
  - {agentId: roles, match: {channel: discord, accountId: "*", guildId: "1", roles: ["7", "8"]}}
  - {agentId: kind, match: {channel: discord, accountId: "*", peer: {kind: direct, id: "*"}}}
  - {agentId: parent, match: {channel: discord, accountId: "*", peer: {kind: channel, id: "20"}}}
  - {agentId: peer, match: {channel: discord, accountId: "*", peer: {kind: channel, id: "21"}}}
  - {agentId: peer, match: {channel: discord, accountId: "*", peer: {kind: direct, id: "30"}}}
  - {agentId: main, match: {channel: discord, accountId: "*", peer: {kind: direct, id: "30"}}}
  - {agentId: team, match: {channel: slack, teamId: T1}}
  - {agentId: topic, match: {channel: telegram, peer: {kind: group, id: "-1:topic:5"}}}
`

func TestTheMostSpecificBindingChoosesTheAgent(t *testing.T) {
	c := must(t, bound)
	room := func(conversation, thread string) chat.Address {
		return chat.Address{Channel: "discord", Kind: chat.Room, Conversation: conversation, Thread: thread}
	}
	topic := func(group, id string) chat.Inbound {
		return chat.Inbound{Address: chat.Address{Channel: "telegram", Kind: chat.Group, Conversation: group, Thread: id}}
	}
	dm := func(from string) chat.Inbound {
		return chat.Inbound{Address: chat.Address{Channel: "discord", Kind: chat.Direct, Conversation: "99"}, Sender: chat.Sender{ID: from}}
	}
	ops := room("10", "")
	ops.Account = "ops"
	for name, x := range map[string]struct {
		in   chat.Inbound
		want string
	}{
		"elsewhere":                   {chat.Inbound{Address: chat.Address{Channel: "console", Kind: chat.Direct}}, "main"},
		"channel":                     {chat.Inbound{Address: room("10", "")}, "channel"},
		"account":                     {chat.Inbound{Address: ops}, "account"},
		"server over account":         {chat.Inbound{Address: ops, Space: "1"}, "guild"},
		"role over server":            {chat.Inbound{Address: room("10", ""), Space: "1", Roles: []string{"8"}}, "roles"},
		"role of another server":      {chat.Inbound{Address: room("10", ""), Space: "2", Roles: []string{"8"}}, "channel"},
		"everybody's direct messages": {dm("31"), "kind"},
		"one person, the first":       {dm("30"), "peer"},
		"conversation over role":      {chat.Inbound{Address: room("21", ""), Space: "1", Roles: []string{"8"}}, "peer"},
		"thread of a conversation":    {chat.Inbound{Address: room("20", "22")}, "parent"},
		"thread over its parent":      {chat.Inbound{Address: room("20", "21")}, "peer"},
		"workspace":                   {chat.Inbound{Address: chat.Address{Channel: "slack", Kind: chat.Room}, Space: "T1"}, "team"},
		"another account":             {chat.Inbound{Address: chat.Address{Channel: "slack", Account: "ops", Kind: chat.Room}, Space: "T1"}, "main"},
		"topic":                       {topic("-1", "5"), "topic"},
		"topic of another group":      {topic("-2", "5"), "main"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.Route(x.in); got != x.want {
				t.Errorf("%s answers", got)
			}
		})
	}
}

// TestABindingFollowsAConversationToItsNewID: what names an old id of a group goes on to hold, behind what
// is as specific and names a newer one.
func TestABindingFollowsAConversationToItsNewID(t *testing.T) {
	const agents = "agents: {list: [{id: main, default: true}, {id: old}, {id: older}, {id: new}, {id: groups}]}\n"
	bind := func(agent, id string) string {
		return fmt.Sprintf("  - {agentId: %s, match: {channel: telegram, peer: {kind: group, id: '%s'}}}\n", agent, id)
	}
	for name, x := range map[string]struct{ bindings, want string }{
		"only the old one is named":   {bind("old", "-2"), "old"},
		"the new one counts":          {bind("old", "-2") + bind("new", "-3"), "new"},
		"the latest of the old ones":  {bind("older", "-1") + bind("old", "-2"), "old"},
		"over what names no group":    {bind("groups", "*") + bind("older", "-1"), "older"},
		"an id that it never had":     {bind("new", "-4"), "main"},
		"without one, every one does": {bind("groups", "*") + bind("new", "-4"), "groups"},
	} {
		t.Run(name, func(t *testing.T) {
			c := must(t, agents+"bindings:\n"+x.bindings)
			m := chat.Inbound{Address: chat.Address{Channel: "telegram", Kind: chat.Group, Conversation: "-3"}}
			if got := c.Route(m, "-2", "-1"); got != x.want {
				t.Errorf("%s answers", got)
			}
		})
	}
}

func TestBindingsThatMakeNoSenseAreErrors(t *testing.T) {
	for text, want := range map[string]string{
		"{agentId: nobody, match: {channel: slack}}":                              "bindings[0].agentId: there is no agent",
		"{agentId: main, match: {channel: slak}}":                                 "did you mean \"slack\"",
		"{agentId: main, match: {channel: slack, guildId: 1}}":                    "only Discord has servers",
		"{agentId: main, match: {channel: discord, teamId: 1}}":                   "only Slack has workspaces",
		"{agentId: main, match: {channel: discord, roles: [1]}}":                  "roles belong to a server",
		"{agentId: main, match: {channel: discord, peer: {id: 1}}}":               "a peer has a kind and an id",
		"{agentId: main, match: {channel: discord, peer: {kind: person, id: 1}}}": "kind",
		"{match: {channel: discord}}":                                             "agentId",
		"{agentId: main}":                                                         "channel",
	} {
		_, _, err := parse("bot.yaml", []byte("bindings: ["+text+"]"), Options{Env: env()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAPartWithoutItsSecretIsSwitchedOffAlone(t *testing.T) {
	c := must(t, `
mcp: {servers: {a: {url: "https://a.example.com", headers: {Authorization: "${MISSING}"}}, b: {command: b}}}
tts: {providers: {x: {baseUrl: "https://x.example.com", apiKey: "${MISSING}"}, y: {preset: espeak-ng}}}
stt: {provider: openai, apiKey: "${MISSING}"}
`)
	if on := c.MCP.Servers["a"].Enabled; on == nil || *on {
		t.Error("the tool server runs without its secret")
	}
	if on := c.MCP.Servers["b"].Enabled; on != nil && !*on {
		t.Error("the other tool server is off")
	}
	if got := c.TTS.WithDefaults().Order(""); len(got) != 1 || got[0] != "y" {
		t.Errorf("%v speak", got)
	}
	if c.STT.Provider != "" {
		t.Error("voice notes are sent without a key")
	}
	if len(c.Unavailable) != 3 {
		t.Errorf("told are: %v", c.Unavailable)
	}
}

func TestModelsOfAllSectionsAreReadAlike(t *testing.T) {
	c := must(t, "agents: {defaults: {models: {openai/gpt-5.5: {alias: gpt}}}}\ncompaction: {model: gpt}\ntts: {summaryModel: GPT}")
	for what, ref := range map[string]string{"compaction": c.CompactionModel().String(), "speech": c.SummaryModel("GPT").String()} {
		if ref != "openai/gpt-5.5" {
			t.Errorf("%s: %s", what, ref)
		}
	}
	// A bare id is a way for people to speak; the file says which provider is meant.
	if _, _, err := parse("bot.yaml", []byte("compaction: {model: gpt-5.5}"), Options{Env: env()}); err == nil {
		t.Error("a bare id is accepted")
	}
}

func TestQueueKeysByChannelNameChannels(t *testing.T) {
	must(t, "queue: {byChannel: {web: collect, slack: followup}, debounceMsByChannel: {console: 0}}")
	for _, text := range []string{"queue: {byChannel: {slak: collect}}", "queue: {mode: later}", "queue: {cap: 1000}", "queue: {debounceMsByChannel: {web: -1}}"} {
		if _, _, err := parse("bot.yaml", []byte(text), Options{Env: env()}); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}
