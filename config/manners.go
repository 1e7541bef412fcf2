package config

import (
	"cmp"
	"fmt"
)

// Manners are keys of an account that are alike on all platforms and that no adapter knows of
// (spec/chat.md §2.1).
type Manners struct {
	// TypingMode replaces Messages.TypingMode; "" = that one.
	TypingMode string `yaml:"typingMode" enum:"never|instant|thinking|message"`
	// DMHistoryLimit is how many turns of a direct conversation the model is shown; 0 = all that fits.
	DMHistoryLimit int `yaml:"dmHistoryLimit"`
	// ResponsePrefix replaces Messages.ResponsePrefix; nil = that one, "" = nothing.
	ResponsePrefix *string `yaml:"responsePrefix"`
	// ErrorPolicy replaces Messages.ErrorPolicy; "" = that one.
	ErrorPolicy string `yaml:"errorPolicy" enum:"always|once|silent"`
}

// mostTurns bounds Manners.DMHistoryLimit.
const mostTurns = 10_000

// accountName names an account of a platform.
type accountName struct{ channel, id string }

// Manners returns those of an account that runs, with everything set; for another one, and for page and
// terminal, those of an account that says nothing itself.
func (c *Config) Manners(channel, id string) Manners {
	m := c.manners[accountName{channel, accountID(id)}]
	m.TypingMode = cmp.Or(m.TypingMode, c.Messages.TypingMode)
	m.ErrorPolicy = cmp.Or(m.ErrorPolicy, c.Messages.ErrorPolicy)
	if m.ResponsePrefix == nil {
		m.ResponsePrefix = &c.Messages.ResponsePrefix
	}
	return m
}

func (c *Config) setManners(d *decoder, channel, id, at string, m Manners) {
	if n := m.DMHistoryLimit; n < 0 || n > mostTurns {
		d.fail(at+".dmHistoryLimit", fmt.Sprintf("%d is not between 0 and %d", n, mostTurns), "0 = no limit")
	}
	if c.manners == nil {
		c.manners = map[accountName]Manners{}
	}
	c.manners[accountName{channel, id}] = m
}
