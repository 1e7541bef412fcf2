package inbound

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"understudy/channels"
	"understudy/chat"
)

// Account names a channel account; Name "" is the default one.
type Account struct{ Channel, Name string }

// Config says who is let in, and how long messages wait for what belongs to them.
type Config struct {
	// Access of each channel account. An account that is missing admits local senders only.
	Access map[Account]Access
	// Owners are `commands.ownerAllowFrom`: "telegram:123". Wildcards never make an owner.
	Owners []string
	// MaxAge is `catchUp.maxAge`: an older message is not answered after a restart, but its sender
	// is told, and so is once, in each conversation, who addressed one that is found after a gap in the
	// connection. 0 = one hour.
	MaxAge time.Duration
	// Debounce joins messages that a person sends one after the other.
	Debounce Debounce
	// Loops ends conversations with other bots; zero = DefaultLoops.
	Loops Loops
}

// Defaults of catching up.
const (
	// DefaultMaxAge is the default of Config.MaxAge.
	DefaultMaxAge = time.Hour
	// DefaultCatchUp is how many messages of one conversation are answered after a gap.
	DefaultCatchUp = 50
)

// Debounce is how long a text waits for another one of the same sender in the same conversation, to
// be answered as one (`messages.inbound`). 0 = not at all.
type Debounce struct {
	Window    time.Duration
	ByChannel map[string]time.Duration
}

// maxDebounce bounds the wait, which every answer pays.
const maxDebounce = time.Minute

func (d Debounce) window(channel string) time.Duration {
	if w, ok := d.ByChannel[channel]; ok {
		return w
	}
	return d.Window
}

func (d Debounce) validate() error {
	var errs []error
	check := func(key string, w time.Duration) {
		if w < 0 || w > maxDebounce {
			errs = append(errs, fmt.Errorf("%s: %s is not between 0 and %s", key, w, maxDebounce))
		}
	}
	check("messages.inbound.debounceMs", d.Window)
	for _, channel := range slices.Sorted(maps.Keys(d.ByChannel)) {
		check("messages.inbound.byChannel."+channel, d.ByChannel[channel])
	}
	return errors.Join(errs...)
}

// Validate reports every wrong value.
func (c Config) Validate() error {
	_, err := c.compile()
	return err
}

// settings are a Config ready for use.
type settings struct {
	Config
	rules map[Account]*Rules
}

func (c Config) compile() (*settings, error) {
	s := &settings{Config: c, rules: make(map[Account]*Rules, len(c.Access))}
	if s.MaxAge == 0 {
		s.MaxAge = DefaultMaxAge
	}
	if s.Loops == (Loops{}) {
		s.Loops = DefaultLoops()
	}
	errs := []error{c.Debounce.validate(), s.Loops.validate()}
	for k, a := range c.Access {
		r, err := a.Compile()
		if err != nil {
			errs = append(errs, fmt.Errorf("channels.%s: %w", k.Channel, err))
		}
		s.rules[k] = r
	}
	for _, o := range c.Owners {
		if channel, id, ok := strings.Cut(o, ":"); !ok || channel == "" || id == "" || strings.Contains(o, anyone) {
			errs = append(errs, fmt.Errorf(`commands.ownerAllowFrom: %q is not of the form channel:id`, o))
		}
	}
	if c.MaxAge < 0 {
		errs = append(errs, errors.New("catchUp.maxAge: is negative"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}

// rulesOf returns the rules of an account, nil = none.
func (s *settings) rulesOf(to chat.Address) *Rules { return s.rules[Account{to.Channel, to.Account}] }

// catchUp returns what bounds an account's catching up.
func (s *settings) catchUp(to chat.Address) channels.CatchUp {
	var c channels.CatchUp
	if r := s.rulesOf(to); r != nil {
		c = r.access.CatchUp
	}
	if c.MaxAge == 0 {
		c.MaxAge = s.MaxAge
	}
	if c.MaxMessages == 0 {
		c.MaxMessages = DefaultCatchUp
	}
	return c
}

// owner reports whether a sender is a configured owner.
func (s *settings) owner(m chat.Inbound) bool {
	for _, o := range s.Owners {
		channel, id, _ := strings.Cut(o, ":")
		if strings.EqualFold(strings.TrimSpace(channel), m.Address.Channel) && sameID(id, m.Address.Channel, m.Sender.ID) {
			return true
		}
	}
	return false
}
