package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"understudy/internal/emulate/discord"
)

const (
	discordGuild = "500000000000000001"
	discordLobby = "500000000000000002" // the room above all threads
)

type discordSide struct {
	weather
	srv  *discord.Server
	root string
}

func newDiscord() *discordSide {
	d := &discordSide{srv: discord.New(discord.Config{}), root: "http://discord.test"}
	d.srv.AddGuild(discord.Guild{ID: discordGuild, Name: "Soak"})
	d.srv.AddChannel(discord.Channel{ID: discordLobby, Guild: discordGuild, Name: "lobby", Type: discord.TextChannel})
	return d
}

func (d *discordSide) name() string { return "discord" }

func (d *discordSide) listen() (err error) {
	d.root, err = d.srv.Listen()
	return err
}

func (d *discordSide) settings() string {
	return fmt.Sprintf(`  discord:
    botToken: %s
    apiRoot: %q
    dmPolicy: open
    allowFrom: ["*"]
    groupPolicy: open
    guilds: {"*": {}}
    streaming: {mode: partial}
`, d.srv.Token(), d.root)
}

func (d *discordSide) open(i int, kind string) place {
	p := place{kind: kind, user: fmt.Sprintf("3000000000000%05d", i), channel: fmt.Sprintf("4000000000000%05d", i)}
	d.srv.SetUser(discord.User{ID: p.user, Username: fmt.Sprintf("person%d", i)})
	c := discord.Channel{ID: p.channel, Guild: discordGuild, Name: fmt.Sprintf("room-%d", i), Type: discord.TextChannel}
	switch kind {
	case direct:
		c = discord.Channel{ID: p.channel, Type: discord.DirectChannel, Recipients: []string{p.user}}
	case thread:
		c.Type, c.Parent = discord.PublicThread, discordLobby
	}
	d.srv.AddChannel(c)
	return p
}

func (d *discordSide) say(p *place, text string) (id, where string) {
	if p.kind != direct {
		text = d.srv.Mention() + " " + text
	}
	return d.srv.UserSays(p.channel, p.user, text), ""
}

func (d *discordSide) transcript(p place) []heard { return d.in(p.channel) }

func (d *discordSide) in(channel string) []heard {
	var out []heard
	for _, m := range d.srv.Messages(channel) {
		if !m.Deleted {
			out = append(out, heard{id: m.ID, text: m.Content, ref: m.ReplyTo, at: m.At, byBot: m.FromBot})
		}
	}
	return out
}

func (d *discordSide) astray() []heard { return d.in(discordLobby) }

func (d *discordSide) gust(r *rand.Rand) string {
	f := discord.Fault{Method: http.MethodPost, Path: "/messages"}
	switch r.IntN(4) {
	case 0:
		f.Method = http.MethodPatch
	case 1:
		f = discord.Fault{}
	}
	inject := func(change func(*discord.Fault)) func(*rand.Rand) {
		return func(*rand.Rand) { change(&f); d.srv.Inject(f) }
	}
	d.calm() // what met no call is over
	return d.pick(r, []chance{
		{"429", inject(func(f *discord.Fault) { f.Status, f.RetryAfter = 429, seconds(r, 3) })},
		{"global 429", inject(func(f *discord.Fault) { f.Status, f.RetryAfter, f.Global = 429, seconds(r, 2), true })},
		{"lost call", inject(func(f *discord.Fault) { f.Drop = true })},
		{lostReceipt, inject(func(f *discord.Fault) { f.DropAfter = true })},
		{"502", inject(func(f *discord.Fault) { f.Body, f.Status = errorPage, http.StatusBadGateway })},
		{"500", inject(func(f *discord.Fault) { f.Status = http.StatusInternalServerError })},
		{"slow call", inject(func(f *discord.Fault) { f.Delay, f.Times = upTo(r, 4*time.Second), 3 })},
		{"event twice", func(*rand.Rand) { d.srv.Duplicate(2) }},
		{"events reordered", func(*rand.Rand) { d.srv.Reorder(2) }},
	}, []chance{
		{"gateway cut", func(*rand.Rand) { d.srv.Cut() }},
		{"gateway closed", func(r *rand.Rand) { d.srv.CloseWith([]int{1000, 1001, 4000, 4007, 4009}[r.IntN(5)]) }},
		{"asked to reconnect", func(*rand.Rand) { d.srv.Reconnect() }},
		{"session invalid", func(r *rand.Rand) { d.srv.Invalidate(r.IntN(2) == 0) }},
		{"half-open gateway", func(*rand.Rand) { d.srv.Deafen() }},
		{"no welcome", func(r *rand.Rand) {
			d.srv.InjectGateway([]discord.GatewayFault{{NoHello: true}, {NoReady: true}, {Close: 4000}, {Invalid: true}, {Reconnect: true}}[r.IntN(5)])
			d.srv.Cut()
		}},
	})
}

func (d *discordSide) calm() {
	d.srv.ClearFaults()
	d.srv.Duplicate(0)
	d.srv.Dispatch("TYPING_START", map[string]any{}) // an event that waits for a second one has it now
}

func (d *discordSide) tried(text string) int {
	n := 0
	for _, c := range d.srv.Calls(http.MethodPost, "/messages") {
		if strings.Contains(string(c.Body), text) {
			n++
		}
	}
	return n
}

func (d *discordSide) transport() http.RoundTripper { return d.srv.Transport() }

func (d *discordSide) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return d.srv.Dial(ctx, network, address)
}

func (d *discordSide) close() { d.srv.Close() }
