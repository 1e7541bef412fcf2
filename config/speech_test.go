package config

import (
	"slices"
	"strings"
	"testing"
)

// layered has a setting of speech at every level, each of them another one.
const layered = `
agents:
  list:
    - {id: main}
    - {id: quiet, tts: {auto: "off"}}
    - {id: robot, tts: {provider: robot, providers: {robot: {preset: espeak-ng}}, summaryModel: openai/gpt-5.5}}
tts:
  auto: inbound
  provider: openai
  maxLength: 900
  providers:
    openai: {voice: coral, speed: 1.5}
    kokoro: {baseUrl: "http://127.0.0.1:8880/v1", apiKey: "${KOKORO}", voice: bella}
channels:
  telegram:
    botToken: "1:x"
    tts: {auto: always, providers: {openai: {voice: nova}}}
    accounts:
      ops: {botToken: "2:x", tts: {provider: kokoro, maxLength: 300, providers: {kokoro: {baseUrl: "http://10.0.0.1/v1"}}}}
      night: {botToken: "3:x", tts: {auto: tagged}}
  slack: {botToken: xoxb-1, appToken: xapp-1, tts: {modelOverrides: {allowProvider: true}}}
`

// TestSpeechLayers: tts < agent < channel < account, and what a layer does not set stays (spec/chat.md §4.1).
func TestSpeechLayers(t *testing.T) {
	c := must(t, layered, "KOKORO", "sk-kokoro")
	for _, tc := range []struct {
		name, agent, channel, account  string
		auto, provider, voice, summary string
		length                         int
	}{
		{"nobody says anything else", "main", "discord", "", "inbound", "openai", "coral", "", 900},
		{"page and terminal have no account", "main", "web", "", "inbound", "openai", "coral", "", 900},
		{"an agent", "quiet", "web", "", "off", "openai", "coral", "", 900},
		{"an agent with a provider of its own", "robot", "console", "", "inbound", "robot", "en", "openai/gpt-5.5", 900},
		{"an agent that is not there", "nobody", "web", "", "inbound", "openai", "coral", "", 900},
		{"a channel", "main", "telegram", "", "always", "openai", "nova", "", 900},
		{"the default account by its name", "main", "telegram", "default", "always", "openai", "nova", "", 900},
		{"a channel over an agent", "quiet", "telegram", "", "always", "openai", "nova", "", 900},
		{"an account", "main", "telegram", "ops", "always", "kokoro", "bella", "", 300},
		{"an account over channel and agent", "quiet", "telegram", "night", "tagged", "openai", "nova", "", 900},
		{"an account over the provider of an agent", "robot", "telegram", "ops", "always", "kokoro", "bella", "openai/gpt-5.5", 300},
		{"a channel keeps what the agent chose", "robot", "slack", "", "inbound", "robot", "en", "openai/gpt-5.5", 900},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := c.Speech(tc.agent, tc.channel, tc.account)
			first := p.Order("")[0]
			if p.Auto != tc.auto || first != tc.provider || p.Providers[first].Voice != tc.voice || p.SummaryModel != tc.summary || p.MaxLength != tc.length {
				t.Errorf("%s by %s, voice %s, summary by %q, %d characters", p.Auto, first, p.Providers[first].Voice, p.SummaryModel, p.MaxLength)
			}
		})
	}
	if speed := c.Speech("main", "telegram", "ops").Providers["openai"].Speed; speed != 1.5 {
		t.Errorf("a voice of the channel changed the speed to %v", speed)
	}
	if !*c.Speech("main", "slack", "").ModelOverrides.AllowProvider || *c.Speech("main", "telegram", "").ModelOverrides.AllowProvider {
		t.Error("what models may do")
	}
	if key := c.Speech("main", "telegram", "ops").Providers["kokoro"].APIKey; !key.IsZero() {
		t.Error("another address got the key")
	}
	if got := c.SummaryModel("openai/gpt-5.5").String(); got != "openai/gpt-5.5" {
		t.Errorf("summaries by %q", got)
	}
	if got := strings.Join(c.Voices(), " "); got != "kokoro openai robot" {
		t.Errorf("who speaks: %s", got)
	}
	if got := must(t, "").Voices(); len(got) > 0 {
		t.Errorf("nobody is configured, and %q speak", got)
	}
}

// TestMistakesOfSpeechLayers: each names the layer it stands in and what to do, and stands there once.
func TestMistakesOfSpeechLayers(t *testing.T) {
	const (
		root  = "tts: {provider: openai, providers: {kokoro: {baseUrl: \"http://127.0.0.1/v1\"}}}\n"
		slack = "channels: {slack: {botToken: xoxb-1, appToken: xapp-1, "
	)
	for _, tc := range []struct{ name, text, key, says string }{
		{"a provider of an agent", root + "agents: {list: [{id: a}, {id: b, tts: {provider: opnai}}]}", "agents.list[1].tts.provider", `there is no "opnai": add it to providers, or choose kokoro or openai`},
		{"a provider of a channel", root + slack + "tts: {provider: opnai}, accounts: {ops: {botToken: xoxb-2, appToken: xapp-2}}}}", "channels.slack.tts.provider", `there is no "opnai"`},
		{"a provider of an account", root + slack + "accounts: {ops: {botToken: xoxb-2, appToken: xapp-2, tts: {provider: opnai}}}}}", "channels.slack.accounts.ops.tts.provider", `there is no "opnai"`},
		{"a mode", root + slack + "tts: {auto: allways}}}", "channels.slack.tts.auto", `did you mean "always"?`},
		{"a mode of an agent", root + "agents: {list: [{id: a, tts: {mode: finale}}]}", "agents.list[0].tts.mode", `did you mean "final"?`},
		{"a key that is none", root + slack + "tts: {provder: openai}}}", "channels.slack.tts.provder", `did you mean "provider"?`},
		{"a length", root + "agents: {list: [{id: a, tts: {maxLength: 10}}]}", "agents.list[0].tts.maxLength", "10 is not between 100 and 4096"},
		{"a summary", root + "agents: {list: [{id: a, tts: {summaryModel: best}}]}", "agents.list[0].tts.summaryModel", "write provider/model"},
		{"somebody who is switched off", root + slack + "tts: {providers: {openai: {enabled: false}}}}}", "channels.slack.tts.provider", `"openai" is switched off: switch it on, or choose kokoro`},
		{"nobody to speak", "agents: {list: [{id: a, tts: {auto: always}}]}", "agents.list[0].tts.provider", "write provider: openai"},
		{
			"two layers that contradict each other",
			root + "agents: {list: [{id: a, tts: {provider: x, providers: {x: {preset: espeak-ng}}}}]}\n" + slack + "tts: {providers: {x: {enabled: false}}}}}",
			"channels.slack.tts", `together with the settings of agent "a": provider: "x" is switched off`,
		},
		{"the root, told once", "tts: {provider: opnai}\nagents: {list: [{id: a, tts: {auto: always}}]}\n" + slack + "tts: {auto: always}}}", "tts.provider", "add it to providers"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := problems(t, tc.text)
			if len(got) != 1 || !strings.Contains(got[0], ": "+tc.key+": ") || !strings.Contains(got[0], tc.says) {
				t.Errorf("want %s: %s, got:\n%s", tc.key, tc.says, strings.Join(got, "\n"))
			}
		})
	}
}

// TestSpeechWithoutASecret: a provider whose key is missing in a layer is switched off there and nowhere
// else, and the channel runs.
func TestSpeechWithoutASecret(t *testing.T) {
	c := must(t, `
tts: {provider: kokoro, providers: {openai: {}, kokoro: {baseUrl: "http://127.0.0.1/v1"}}}
agents: {list: [{id: main}, {id: ops, tts: {providers: {kokoro: {apiKey: "${MISSING}"}}}}]}
channels: {slack: {botToken: xoxb-1, appToken: xapp-1, tts: {providers: {kokoro: {baseUrl: "http://10.0.0.1/v1", apiKey: "${MISSING}"}}}}}
`)
	for _, tc := range []struct{ agent, channel, want string }{{"main", "web", "kokoro openai"}, {"ops", "web", "openai"}, {"main", "slack", "openai"}} {
		if got := strings.Join(c.Speech(tc.agent, tc.channel, "").Order(""), " "); got != tc.want {
			t.Errorf("%s in %s: %s", tc.agent, tc.channel, got)
		}
	}
	var parts []string
	for _, u := range c.Unavailable {
		parts = append(parts, u.Part)
	}
	slices.Sort(parts)
	if want := []string{"agents.list[1].tts.providers.kokoro", "channels.slack.tts.providers.kokoro"}; !slices.Equal(parts, want) {
		t.Errorf("told are %q", parts)
	}
	if len(c.SlackAccounts()) != 1 {
		t.Error("the channel does not run")
	}
}
