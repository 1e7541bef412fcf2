package conversations

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"understudy/internal/emulate/discord"
)

const discordGuild = "500000000000000001"

type discordSide struct {
	srv    *discord.Server
	places map[string]string
	newest map[string][2]string
}

func newDiscord() *discordSide {
	d := &discordSide{srv: discord.New(discord.Config{}), newest: map[string][2]string{}}
	d.places = map[string]string{ops: "400000000000000010", hall: "400000000000000011"}
	members := map[string][]string{}
	for i, who := range people {
		d.srv.SetUser(discord.User{ID: discordID(who), Username: who, Bot: who == "robot"})
		members[discordID(who)] = nil
		id := fmt.Sprintf("40000000000000002%d", i)
		d.places[private+" "+who] = id
		d.srv.AddChannel(discord.Channel{ID: id, Type: discord.DirectChannel, Recipients: []string{discordID(who)}})
	}
	d.srv.AddGuild(discord.Guild{ID: discordGuild, Name: "Office", Members: members})
	d.srv.AddChannel(discord.Channel{ID: d.places[ops], Guild: discordGuild, Name: "ops", Type: discord.TextChannel})
	d.srv.AddChannel(discord.Channel{ID: d.places[hall], Guild: discordGuild, Name: "hall", Type: discord.TextChannel})
	return d
}

func discordID(who string) string {
	return fmt.Sprintf("30000000000000000%d", 1+slices.Index(people, who))
}

func (d *discordSide) settings(more string) string {
	return fmt.Sprintf(`  discord:
    botToken: %s
    apiRoot: %q
    guilds: {"500000000000000001": {channels: {"400000000000000010": {}}}}
    allowFrom: ["300000000000000001", "300000000000000002", "300000000000000004"]
%s`, d.srv.Token(), discord.Root, more)
}

// where finds a channel; a thread is opened below the newest message in ops.
func (d *discordSide) where(who, place string) string {
	switch place {
	case private:
		return d.places[private+" "+who]
	case thread:
		if d.places[thread] == "" {
			d.places[thread] = d.newest[ops][1]
			d.srv.AddChannel(discord.Channel{ID: d.places[thread], Guild: discordGuild, Parent: d.places[ops], Name: "a thread", Type: discord.PublicThread})
		}
	}
	return d.places[place]
}

func (d *discordSide) say(x say) {
	var opts []discord.Say
	switch x.file {
	case "picture":
		opts = append(opts, discord.WithFile("dot.png", "image/png", aPicture))
	case "voice note":
		opts = append(opts, discord.WithFile("note.ogg", "audio/ogg", aNote), discord.AsVoice())
	}
	if x.who == "robot" {
		opts = append(opts, discord.AsBot())
	}
	c := d.where(x.who, x.place)
	id := d.srv.UserSays(c, discordID(x.who), mention(x.text, d.srv.Mention()), opts...)
	d.newest[x.who], d.newest[x.place] = [2]string{c, id}, [2]string{c, id}
	if x.place == ops {
		delete(d.places, thread)
	}
}

func (d *discordSide) edit(who, text string) {
	d.srv.UserEdits(d.newest[who][0], d.newest[who][1], text)
}
func (d *discordSide) remove(who string) { d.srv.UserDeletes(d.newest[who][0], d.newest[who][1]) }

func (d *discordSide) run(who, place, command string) {
	name, arg, _ := strings.Cut(command, " ")
	var args []discord.Argument
	if name == "tts" { // that name is taken
		what, value, _ := strings.Cut(arg, " ")
		name, arg, args = "voice", "", append(args, discord.Argument{Name: "action", Value: what})
		if value != "" {
			args = append(args, discord.Argument{Name: "value", Value: value})
		}
	}
	if arg != "" {
		args = append(args, discord.Argument{Name: name, Value: arg})
	}
	d.srv.RunCommand(d.where(who, place), discordID(who), name, args...)
}

func (d *discordSide) press(who, label string) bool {
	for _, c := range d.channels() {
		for _, m := range slices.Backward(d.srv.Messages(c)) {
			if m.FromBot && !m.Deleted && slices.Contains(m.Labels(), label) && d.srv.Press(c, discordID(who), m.ID, label) != "" {
				return true
			}
		}
	}
	return false
}

func (d *discordSide) channels() (out []string) {
	for _, who := range people {
		out = append(out, d.places[private+" "+who])
	}
	out = append(out, d.places[ops], d.places[hall])
	if d.places[thread] != "" {
		out = append(out, d.places[thread])
	}
	return out
}

func (d *discordSide) away() { d.srv.Away() }
func (d *discordSide) back() { d.srv.Back() }

func (d *discordSide) refuse(status int) {
	d.srv.Inject(discord.Fault{Method: http.MethodPost, Path: "/messages", Status: status, Code: 50013, Message: "Missing Permissions"})
}

func (d *discordSide) loseReceipt() {
	d.srv.Inject(discord.Fault{Method: http.MethodPost, Path: "/messages", DropAfter: true})
}

func (d *discordSide) messages() (out []shown) {
	names := map[string]string{d.srv.BotID(): "bot"}
	for _, who := range people {
		names[discordID(who)] = who
	}
	for _, c := range d.channels() {
		for _, m := range d.srv.Messages(c) {
			x := shown{
				id: m.ID, place: d.placeOf(c), who: names[m.Author], to: m.ReplyTo, text: m.Content, deleted: m.Deleted, only: names[m.For],
				quiet: m.Flags&discord.Silent != 0, buttons: m.Labels(),
			}
			if !m.Ephemeral {
				x.only = ""
			}
			if m.FromBot {
				x.who = "bot"
			}
			if x.place == thread {
				x.place, x.thread = ops, d.rootOf(c)
			}
			for _, f := range m.Files {
				x.files = append(x.files, describe(f.Name, f.Data))
			}
			out = append(out, x)
		}
	}
	return out
}

// rootOf is the message below which a thread was opened; both have the same id.
func (d *discordSide) rootOf(channel string) string {
	for _, m := range d.srv.Messages(d.places[ops]) {
		if m.ID == channel {
			return m.Content
		}
	}
	return ""
}

func (d *discordSide) placeOf(channel string) string {
	for name, c := range d.places {
		if c == channel {
			return name
		}
	}
	return channel
}

func (d *discordSide) transport() http.RoundTripper { return d.srv.Transport() }
func (d *discordSide) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return d.srv.Dial(ctx, network, address)
}
func (d *discordSide) close() { d.srv.Close() }
