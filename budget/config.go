package budget

import (
	"errors"
	"math"
)

// Config is the `budget` section of the configuration. All of it takes effect on a reload.
type Config struct {
	Background Background `yaml:"background"`
	Fallback   Fallback   `yaml:"fallback"`
}

// Background limits scheduled tasks, heartbeats and probes together (spec/chat.md §6.6).
type Background struct {
	// MaxTokensPerDay is of input and output; 0 = no limit.
	MaxTokensPerDay int64 `yaml:"maxTokensPerDay"`
	// MaxCostPerDay is in US dollars; 0 = no limit. With it, the first work of a day whose price is
	// unknown is the last of that day: nobody can say whether there is anything left.
	MaxCostPerDay float64 `yaml:"maxCostPerDay"`
}

// Fallback limits what stand-ins cost: answers of models other than the one that was asked first.
type Fallback struct {
	// MaxPerDay is in US dollars; 0 = no limit. With it, a stand-in whose price is unknown is passed over.
	MaxPerDay float64 `yaml:"maxPerDay"`
	// Ask has a person agree in the chat before a stand-in that is not known to be free is asked, once a
	// turn. Without an answer within a minute the turn fails. Turns that nobody asked for never ask and
	// are not held up by this.
	Ask bool `yaml:"ask"`
}

// Validate names every value that makes no sense.
func (c Config) Validate() error {
	var errs []error
	if c.Background.MaxTokensPerDay < 0 {
		errs = append(errs, errors.New("background.maxTokensPerDay: must not be negative"))
	}
	if !money(c.Background.MaxCostPerDay) {
		errs = append(errs, errors.New("background.maxCostPerDay: must be an amount of US dollars"))
	}
	if !money(c.Fallback.MaxPerDay) {
		errs = append(errs, errors.New("fallback.maxPerDay: must be an amount of US dollars"))
	}
	return errors.Join(errs...)
}

func money(usd float64) bool { return usd >= 0 && usd <= 1e9 && !math.IsNaN(usd) }
