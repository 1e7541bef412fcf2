package discord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/bwmarrin/discordgo"

	"understudy/channels"
)

const (
	mostCommands       = 100
	mostArguments      = 25
	longestDescription = 100 // characters
	freeText           = "text"
	stringOption       = 3

	// Discord has a command named tts of its own.
	speech       = "tts"
	nativeSpeech = "voice"
)

var commandName = regexp.MustCompile(`^[-_\p{Ll}\p{Lo}\p{N}]{1,32}$`)

type command struct {
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Type        int        `json:"type"`
	Options     []argument `json:"options,omitempty"`
}

type argument struct {
	Type        int      `json:"type"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Required    bool     `json:"required,omitempty"`
	Complete    bool     `json:"autocomplete,omitempty"`
	Choices     []choice `json:"choices,omitempty"`
}

// RegisterCommands implements channels.CommandRegistrar: for the servers of devGuildIds, where it
// works at once, else everywhere. Discord counts registrations, so a set that is registered already, and
// still there, is left alone. Commands whose names Discord cannot show are left out; people can type them all the
// same. With `commands.native: false` it does nothing.
func (b *Bot) RegisterCommands(ctx context.Context, cmds []channels.CommandInfo) error {
	if !*b.cfg.Commands.Native {
		return nil
	}
	set, known, options := commandSet(cmds)
	b.menu.set(known, options)
	body, err := json.Marshal(set)
	if err != nil {
		return fmt.Errorf("discord commands: %w", err)
	}
	sum := sha256.Sum256(append(body, strings.Join(b.cfg.DevGuildIDs, ",")...))
	hash := hex.EncodeToString(sum[:])
	addresses, err := b.commandPlaces(ctx)
	if err != nil {
		return err
	}
	if b.deps.Hash != nil {
		if old, err := b.deps.Hash.Load(ctx); err == nil && old == hash && b.stillThere(ctx, addresses, set) {
			return nil
		}
	}
	for _, address := range addresses {
		if _, err := b.api.call(ctx, request{what: "register commands", method: http.MethodPut, url: address, route: "register " + address, body: json.RawMessage(body)}); err != nil {
			return err
		}
	}
	if b.deps.Hash == nil {
		return nil
	}
	if err := b.deps.Hash.Save(ctx, hash); err != nil {
		return fmt.Errorf("discord commands: %w", err)
	}
	return nil
}

// commandPlaces are the addresses that the commands are registered at.
func (b *Bot) commandPlaces(ctx context.Context) ([]string, error) {
	app, err := b.applicationID(ctx)
	if err != nil {
		return nil, err
	}
	if len(b.cfg.DevGuildIDs) == 0 {
		return []string{discordgo.EndpointApplicationGlobalCommands(app)}, nil
	}
	var out []string
	for _, g := range b.cfg.DevGuildIDs {
		out = append(out, discordgo.EndpointApplicationGuildCommands(app, g))
	}
	return out, nil
}

// registered reads the commands that are registered at an address.
func (b *Bot) registered(ctx context.Context, address string) ([]command, error) {
	var list []command
	err := b.get(ctx, "get commands", address, &list)
	return list, err
}

// stillThere reports whether a set that was registered is there. What cannot be read is believed to be.
func (b *Bot) stillThere(ctx context.Context, addresses []string, set []command) bool {
	for _, address := range addresses {
		if list, err := b.registered(ctx, address); err == nil && !sameCommands(list, set) {
			return false
		}
	}
	return true
}

// sameCommands compares sets, whose order means nothing.
func sameCommands(a, b []command) bool {
	text := func(list []command) string {
		list = slices.SortedFunc(slices.Values(list), func(x, y command) int { return strings.Compare(x.Name, y.Name) })
		data, err := json.Marshal(list)
		if err != nil { // only plain values are in it
			return ""
		}
		return string(data)
	}
	return text(a) == text(b)
}

// applicationID is the id of the bot's application, from READY or from Discord.
func (b *Bot) applicationID(ctx context.Context) (string, error) {
	if id := b.application.Load(); id != nil {
		return *id, nil
	}
	a, err := b.describe(ctx)
	if err != nil {
		return "", err
	}
	b.application.Store(&a.ID)
	return a.ID, nil
}

// application is the bot's application.
type application struct {
	ID    string `json:"id"`
	Flags int    `json:"flags"`
}

func (b *Bot) describe(ctx context.Context) (application, error) {
	data, err := b.api.call(ctx, request{what: "get application", method: http.MethodGet, url: discordgo.EndpointApplication("@me"), route: "get application"})
	if err != nil {
		return application{}, err
	}
	var a application
	if decode(data, &a); !isID(a.ID) {
		return application{}, &callError{what: "get application", status: http.StatusOK, garbled: true}
	}
	return a, nil
}

// commandSet is the command set as Discord wants it, with what its names stand for.
func commandSet(cmds []channels.CommandInfo) (set []command, known map[string]string, options map[string][]string) {
	set, known, options = []command{}, map[string]string{}, map[string][]string{}
	for _, c := range cmds {
		name := strings.ToLower(c.Name)
		if name == speech {
			name = nativeSpeech
		}
		if !commandName.MatchString(name) || known[name] != "" {
			continue
		}
		one := command{Name: name, Description: description(c.Description, name), Type: 1, Options: arguments(c)}
		known[name] = c.Name
		for _, o := range one.Options {
			options[name] = append(options[name], o.Name)
		}
		// Discord shows required options first; a person's words keep the order of the command.
		slices.SortStableFunc(one.Options, func(x, y argument) int {
			switch {
			case x.Required == y.Required:
				return 0
			case x.Required:
				return -1
			}
			return 1
		})
		if set = append(set, one); len(set) == mostCommands {
			break
		}
	}
	return set, known, options
}

func arguments(c channels.CommandInfo) []argument {
	if c.Options == nil && c.Args != "" {
		return []argument{{Type: stringOption, Name: freeText, Description: description(c.Args, freeText)}}
	}
	var out []argument
	for _, o := range c.Options {
		name := strings.ToLower(o.Name)
		if !commandName.MatchString(name) || slices.ContainsFunc(out, func(a argument) bool { return a.Name == name }) || len(out) == mostArguments {
			continue
		}
		a := argument{Type: stringOption, Name: name, Description: description(o.Description, name), Required: o.Required, Complete: o.Complete}
		for _, v := range o.Choices {
			if v != "" && len([]rune(v)) <= longestChoice {
				a.Choices = append(a.Choices, choice{Name: v, Value: v})
			}
		}
		switch {
		case len(a.Choices) > mostSuggestions: // more than can be shown: typed freely
			a.Choices = nil
		case len(a.Choices) > 0:
			a.Complete = false // Discord allows one of both
		}
		out = append(out, a)
	}
	return out
}

func description(s, otherwise string) string {
	if s = oneLineOf(s, longestDescription); s == "" {
		return otherwise
	}
	return s
}

func oneLineOf(s string, most int) string { return clip(strings.Join(strings.Fields(s), " "), most) }
