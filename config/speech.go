package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"understudy/llm"
	"understudy/tts"
)

// speechLayers are the settings of speech: as they are written, and laid over each other.
type speechLayers struct {
	channels map[string]speechLayer // of those that have accounts
	accounts []accountSpeech        // in the order of their names
	policies map[speechPlace]tts.Config
	models   map[string]llm.ModelRef // what the layers call summaryModel
}

// speechLayer is what one section says of speech, and where it stands.
type speechLayer struct {
	at      string
	written tts.Config
	usable  tts.Config // without the providers that lack a secret
}

// accountSpeech is the layer of an account.
type accountSpeech struct {
	accountName
	speechLayer
}

// speechPlace is where one policy holds. Page and terminal have no accounts in the file: there channel
// and account are "".
type speechPlace struct{ agent, channel, account string }

// Speech returns the complete policy for what an agent says in an account: `tts`, the agent, the channel
// and the account laid over each other (spec/chat.md §4.1). What people chose with /tts is not in it. An
// unknown agent is the default one; an unknown account has no settings of its own.
func (c *Config) Speech(agent, channel, account string) tts.Config {
	if _, known := c.agents[agent]; !known {
		agent = c.defaultAgent
	}
	if p, known := c.speech.policies[speechPlace{agent, channel, accountID(account)}]; known {
		return p
	}
	return c.speech.policies[speechPlace{agent: agent}]
}

// Voices returns the providers that are configured to speak anywhere, by name.
func (c *Config) Voices() []string {
	var ids []string
	for _, p := range c.speech.policies {
		ids = append(ids, p.Order("")...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// SummaryModel is the model that shortens long answers for speech, from the name that a policy calls it
// by; zero = the agent's.
func (c *Config) SummaryModel(name string) llm.ModelRef { return c.speech.models[name] }

// setSpeech keeps what an account that runs says of speech, and what its channel does. The default
// account is the block of the channel itself.
func (c *Config) setSpeech(channel, id string, block, account tts.Config) {
	at := join("channels", channel)
	if c.speech.channels == nil {
		c.speech.channels = map[string]speechLayer{}
	}
	c.speech.channels[channel] = speechLayer{at: at + ".tts", written: block}
	own := accountSpeech{accountName: accountName{channel, id}}
	if id != DefaultAccount {
		own.speechLayer = speechLayer{at: join(at+".accounts", id) + ".tts", written: account}
	}
	c.speech.accounts = append(c.speech.accounts, own)
}

// resolveSpeech checks who speaks and who listens. Of what lacks a secret nothing is used.
func (c *Config) resolveSpeech(d *decoder) {
	err := c.STT.Validate()
	if d.lacks("stt") {
		c.STT.Provider, err = "", withoutKey(err, "apiKey")
	}
	d.component("stt", err)
}

// resolveVoices checks the settings of speech and makes the policies, once, of every agent in every
// account. A layer has to make sense over what is written for everybody; only then are all of them looked
// at together.
func (c *Config) resolveVoices(d *decoder) {
	before := len(d.problems)
	root := speechLayer{at: "tts", written: c.TTS}
	c.prepare(d, &root)
	c.TTS = root.usable
	agents := make(map[string]speechLayer, len(c.agentIDs))
	for i, e := range c.Agents.List {
		l := speechLayer{at: fmt.Sprintf("agents.list[%d].tts", i), written: e.TTS}
		c.prepare(d, &l, root)
		agents[e.ID] = l
	}
	for _, channel := range slices.Sorted(maps.Keys(c.speech.channels)) {
		l := c.speech.channels[channel]
		c.prepare(d, &l, root)
		c.speech.channels[channel] = l
	}
	for i := range c.speech.accounts {
		x := &c.speech.accounts[i]
		c.prepare(d, &x.speechLayer, root, c.speech.channels[x.channel])
	}
	sound := len(d.problems) == before
	c.speech.policies = make(map[speechPlace]tts.Config, len(c.agentIDs)*(1+len(c.speech.accounts)))
	for _, agent := range c.agentIDs {
		c.speech.policies[speechPlace{agent: agent}] = laid(root, agents[agent]).WithDefaults()
		for _, x := range c.speech.accounts {
			layers := []speechLayer{root, agents[agent], c.speech.channels[x.channel], x.speechLayer}
			c.speech.policies[speechPlace{agent, x.channel, x.id}] = laid(layers...).WithDefaults()
			if sound {
				checkTogether(d, agent, layers)
			}
		}
	}
}

// laid lays what can be used of layers over each other.
func laid(layers ...speechLayer) tts.Config {
	all := make([]tts.Config, len(layers))
	for i, l := range layers {
		all[i] = l.usable
	}
	return tts.Merge(all...)
}

// written lays layers over each other as they stand in the file.
func written(layers ...speechLayer) tts.Config {
	all := make([]tts.Config, len(layers))
	for i, l := range layers {
		all[i] = l.written
	}
	return tts.Merge(all...)
}

// prepare checks a layer over those below it, and takes the providers out that lack a secret.
func (c *Config) prepare(d *decoder, l *speechLayer, below ...speechLayer) {
	if len(below) == 0 || written(below...).Validate() == nil { // else what is wrong is told already
		d.component(l.at, written(append(below, *l)...).Validate())
	}
	if name := l.written.SummaryModel; name != "" {
		if c.speech.models == nil {
			c.speech.models = map[string]llm.ModelRef{}
		}
		c.speech.models[name] = c.primary(d, name, l.at+".summaryModel")
	}
	l.usable = l.written
	l.usable.Providers = maps.Clone(l.written.Providers)
	for id, p := range l.usable.Providers {
		if d.lacks(join(l.at+".providers", id)) {
			p.Enabled = new(false)
			l.usable.Providers[id] = p
		}
	}
}

// checkTogether reports layers that make sense one by one and not together.
func checkTogether(d *decoder, agent string, layers []speechLayer) {
	at := ""
	for _, l := range layers {
		if l.at != "" {
			at = l.at
		}
	}
	for _, err := range flatten(written(layers...).Validate()) {
		d.fail(at, fmt.Sprintf("together with the settings of agent %s: %s", quote(agent), err), "")
	}
}

// speechPart returns the provider that a key belongs to, "" = none: tts.providers.x, or the same of a
// layer, such as channels.slack.tts.providers.x.
func speechPart(path string) string {
	const section = "tts.providers"
	i := strings.Index(path, section)
	if i < 0 || i > 0 && path[i-1] != '.' {
		return ""
	}
	at := path[:i+len(section)]
	parts := splitPath(strings.TrimPrefix(path[len(at):], "."))
	if len(parts) < 2 {
		return ""
	}
	return join(at, parts[0])
}
