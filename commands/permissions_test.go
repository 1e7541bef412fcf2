package commands_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"understudy/chat"
	"understudy/commands"
	"understudy/session"
)

// row says who may use a command, and where; shows lists what it may tell somebody who is no owner in a
// group although it is told to nobody else.
type row struct {
	owner bool
	where commands.Where
	shows []string
	// anybody tells that in a private chat also those may use it who may use no commands.
	anybody bool
}

// matrix is what every command has to declare here before it can exist.
func matrix() map[string]row {
	all, owner := row{}, row{owner: true}
	return map[string]row{
		"help": all, "commands": all, "status": all, "why": all, "model": all, "models": all, "think": all,
		"new": all, "reset": all, "stop": all, "compact": all, "queue": all, "usage": all, "verbose": all,
		"btw": all, "steer": all, "context": all, "tts": all, "remind": all,
		"whoami":     {shows: []string{"agent:main:"}, anybody: true},
		"failover":   owner,
		"cron":       owner,
		"loop":       owner,
		"heartbeat":  owner,
		"restart":    owner,
		"sim":        owner,
		"activation": {owner: true, where: commands.GroupOnly},
		"pair":       {owner: true, where: commands.DirectOnly},
	}
}

// TestPermissions tries every command in every tier, on every platform, in every kind of conversation,
// written and through the platform's menu. A command without a line in the matrix fails.
func TestPermissions(t *testing.T) {
	table := matrix()
	for _, platform := range []string{"telegram", "discord", "slack", "web", "console"} {
		w := newWorld(t, furnish(t), func(d *commands.Deps) {
			d.Channels = func() []commands.Channel { return []commands.Channel{{Name: "telegram/bot", State: "connected"}} }
			d.Problems = func(context.Context) []string { return []string{"reload failed"} }
		})
		w.models.health.Health = limited()
		for _, s := range w.reg.Specs() {
			want, ok := table[s.Name]
			if !ok || want.owner != s.Owner || want.where != s.Where {
				t.Fatalf("/%s: the matrix does not say who may use it: %+v", s.Name, want)
			}
			for _, kind := range []chat.Kind{chat.Direct, chat.Group, chat.Room} {
				for _, who := range []string{"stranger", "anna", "owner"} {
					for _, via := range []string{"", "v1"} {
						c := caller(platform, kind, who, via)
						w.set(c, func(s *session.Session) { s.SelectDefault("alpha:p1", false) })
						for _, args := range []string{"", "status", "default"} {
							checkPermission(t, w, s, want, c, who, args)
						}
					}
				}
			}
		}
	}
}

func caller(platform string, kind chat.Kind, who, via string) commands.Call {
	a := chat.Address{Channel: platform, Account: "bot", Conversation: "7", Kind: kind}
	return commands.Call{
		Agent: "main", Key: fmt.Sprintf("agent:main:%s:%s:7", platform, kind), To: a, Owner: who == "owner",
		In: chat.Inbound{ID: "m1", Address: a, Sender: chat.Sender{ID: who}, Via: via},
	}
}

func checkPermission(t *testing.T, w *world, s commands.Spec, want row, c commands.Call, who, args string) {
	t.Helper()
	inGroup := c.To.Kind != chat.Direct
	got := w.reg.Run(t.Context(), commands.Invocation{Spec: s, Args: args}, c)
	at := fmt.Sprintf("%s in %s %s (native %v): /%s %s", who, c.To.Channel, c.To.Kind, c.In.Via != "", s.Name, args)
	refusal, refused := "", true
	switch {
	case who == "stranger" && want.anybody && !inGroup:
		refused = false
	case who == "stranger" && c.In.Via != "":
		refusal = "You are not authorized to use this command here."
	case who == "stranger":
	case want.owner && who != "owner":
		refusal = "Only the bot owner can use /" + s.Name + "."
	case want.where == commands.GroupOnly && !inGroup:
		refusal = "/" + s.Name + " is for groups; there is nothing to set here."
	case want.where == commands.DirectOnly && inGroup:
		refusal = "/" + s.Name + " works in a private chat with me only."
	default:
		refused = false
	}
	switch {
	case refused && (got.Text != refusal || got.Follow != "" || len(got.Buttons)+len(got.Media) > 0):
		t.Errorf("%s: %+v", at, got)
	case refused:
		if list := w.reg.Complete(t.Context(), c, s.Name, firstArg(s), ""); len(list) > 0 {
			t.Errorf("%s: suggests %v", at, list)
		}
		return
	case got.Text == "" && got.Follow == "" || strings.Contains(got.Text, "fault on my side"):
		t.Errorf("%s: %+v", at, got)
	}
	if who == "owner" {
		return
	}
	for _, secret := range []string{"alpha:p1", "alpha:me@example.com", "gamma:p2", "agent:main:", "telegram/bot", "reload failed", "AGENTS.md"} {
		allowed := !inGroup && secret != "reload failed"
		for _, x := range want.shows {
			allowed = allowed || x == secret
		}
		if !allowed && strings.Contains(got.Text, secret) {
			t.Errorf("%s shows %s: %s", at, secret, got.Text)
		}
	}
}

func firstArg(s commands.Spec) string {
	if len(s.Args) == 0 {
		return ""
	}
	return s.Args[0].Name
}
