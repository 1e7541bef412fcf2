package cron

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy/chat"
)

func TestDestinations(t *testing.T) {
	for _, x := range []struct {
		channel, to, thread string
		want                chat.Address
	}{
		{"slack", "channel:C0123AB", "", chat.Address{Channel: "slack", Conversation: "C0123AB", Kind: chat.Room}},
		{"Slack", "slack:channel:C0123AB", "1700000000.000100", chat.Address{Channel: "slack", Conversation: "C0123AB", Thread: "1700000000.000100", Kind: chat.Room}},
		{"slack", "channel:D0123AB", "", chat.Address{Channel: "slack", Conversation: "D0123AB", Kind: chat.Direct}},
		{"", "slack:user:U0123AB", "", chat.Address{Channel: "slack", Conversation: "user:U0123AB", Kind: chat.Direct}},
		{"discord", "channel:200", "", chat.Address{Channel: "discord", Conversation: "200", Kind: chat.Room}},
		{"discord", "user:123456789012345678", "", chat.Address{Channel: "discord", Conversation: "user:123456789012345678", Kind: chat.Direct}},
		{"telegram", "1001", "", chat.Address{Channel: "telegram", Conversation: "1001", Kind: chat.Direct}},
		{"telegram", "-1001500:topic:7", "", chat.Address{Channel: "telegram", Conversation: "-1001500", Thread: "7", Kind: chat.Group}},
		{"telegram", "-1001500", "7", chat.Address{Channel: "telegram", Conversation: "-1001500", Thread: "7", Kind: chat.Group}},
		{"web", "abc", "", chat.Address{Channel: "web", Conversation: "abc", Kind: chat.Direct}},
	} {
		if got, err := Destination(x.channel, x.to, x.thread, ""); err != nil || got != x.want {
			t.Errorf("%s %s %s: %+v, %v", x.channel, x.to, x.thread, got, err)
		}
	}
	for _, x := range []struct{ channel, to, thread string }{
		{"", "", ""},
		{"slack", "", ""},
		{"telegram", "last", ""},
		{"", "channel:C1", ""},
		{"slack", "C0123AB", ""},
		{"slack", "channel:general", ""},
		{"slack", "channel:C0123AB", "now"},
		{"slack", "discord:channel:5", ""},
		{"slack", "user:C0123AB", ""},
		{"discord", "200", ""},
		{"discord", "channel:abc", ""},
		{"discord", "channel:", ""},
		{"discord", "channel:+5", ""},
		{"telegram", "@name", ""},
		{"telegram", "0", ""},
		{"telegram", "-5:topic:", ""},
		{"telegram", "-5:topic:x", ""},
		{"telegram", "-5:topic:7", "8"},
		{"telegram", "99999999999999999999", ""},
		{"telegram", "5 6", ""},
		{"irc", "#chan", ""},
		{"web", strings.Repeat("x", 300), ""},
	} {
		if got, err := Destination(x.channel, x.to, x.thread, ""); !errors.Is(err, ErrDestination) {
			t.Errorf("%q %q %q: %+v, %v", x.channel, x.to, x.thread, got, err)
		}
	}
}

func TestNoDestinationCrashes(t *testing.T) {
	word := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"slack", "discord", "telegram", "channel:", "user:", "C1234", "-100", ":topic:", "7", ":", "", " "}))
	rapid.Check(t, func(rt *rapid.T) {
		to := strings.Join(rapid.SliceOfN(word, 0, 4).Draw(rt, "to"), "")
		a, err := Destination(word.Draw(rt, "channel"), to, word.Draw(rt, "thread"), "")
		if err == nil && (a.Conversation == "" || a.Channel == "" || a.Kind == "" || strings.ContainsAny(a.Conversation+a.Thread, " \n\x00")) {
			rt.Errorf("%q became %+v", to, a)
		}
		if err != nil && len(err.Error()) > 2000+4*len(to) {
			rt.Errorf("%d bytes of error", len(err.Error()))
		}
	})
}

func TestDraftsAreChecked(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.close()
		w.deps = func(d *Deps) {
			d.CheckModel = func(agent, ref string) error {
				if agent != "main" || !strings.HasPrefix(ref, "alpha/") {
					return errors.New("there is no such model; see bot models list")
				}
				return nil
			}
		}
		w.boot()
		chain := []string{"alpha/a2", "beta/b1"}
		for _, x := range []struct {
			field string
			make  func(*Draft)
		}{
			{"schedule", func(d *Draft) { d.Schedule = "whenever" }},
			{"tz", func(d *Draft) { d.Zone = "Moon/Sea" }},
			{"message", func(d *Draft) { d.Message = "  " }},
			{"message", func(d *Draft) { d.Message = strings.Repeat("x", maxMessage+1) }},
			{"message", func(d *Draft) { d.Message = "\xff" }},
			{"name", func(d *Draft) { d.Name = "two\nlines" }},
			{"name", func(d *Draft) { d.Name = strings.Repeat("x", maxName+1) }},
			{"model", func(d *Draft) { d.Model = "beta/b1" }},
			{"fallbacks", func(d *Draft) { d.Model, d.Fallbacks = "alpha/a1", &chain }},
			{"fallbacks", func(d *Draft) { d.Fallbacks = &[]string{""} }},
			{"timeout", func(d *Draft) { d.TimeoutSeconds = -1 }},
			{"timeout", func(d *Draft) { d.TimeoutSeconds = 86_401 }},
			{"to", func(d *Draft) { d.Origin = chat.Address{} }},
			{"to", func(d *Draft) { d.Channel, d.To = "telegram", "somewhere" }},
			{"to", func(d *Draft) { d.Channel, d.To = "telegram", "last" }},
			{"session", func(d *Draft) { d.Target = "elsewhere" }},
			{"session", func(d *Draft) { d.Target = SessionTarget("") }},
			{"session", func(d *Draft) { d.Target = SessionTarget("a:b") }},
			{"session", func(d *Draft) { d.Target = Current }},
			{"session", func(d *Draft) { d.Kind, d.Target = SystemEvent, Isolated }},
			{"payload", func(d *Draft) { d.Kind = "command" }},
			{"wake", func(d *Draft) { d.Wake = "gently" }},
			{"failureAlert", func(d *Draft) { d.FailureAlert.After = -1 }},
			{"failureAlert", func(d *Draft) { d.FailureAlert.Channel = "slack" }},
		} {
			d := Draft{Schedule: "every 1h", Message: "x", Origin: home}
			x.make(&d)
			_, err := w.s.Add(t.Context(), d)
			var invalid *Invalid
			if !errors.As(err, &invalid) || invalid.Field != x.field || invalid.Public() != err.Error() {
				t.Errorf("%s: %v", x.field, err)
			}
		}
		if jobs, err := w.s.store.List(t.Context(), true); err != nil || len(jobs) != 0 {
			t.Errorf("%d jobs were made, %v", len(jobs), err)
		}
	})
}

func TestWhatADraftBecomes(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		single := w.add("1h", func(d *Draft) { d.Message = "  look after the backups of all the machines in the cellar " })
		if j := single.Job; j.Name != "look after the backups of all the machin…" || j.Agent != "main" || j.Target != Isolated || !j.DeleteAfterRun || j.Delivery.To != home ||
			j.Delivery.Mode != Announce || j.Payload.Kind != AgentTurn || j.Payload.Fallbacks != nil || j.Payload.Timeout() != DefaultTimeout {
			t.Errorf("%+v", j)
		}
		event := w.add("every 1h", func(d *Draft) { d.Kind, d.Origin = SystemEvent, chat.Address{} })
		if j := event.Job; j.Target != Main || j.Delivery.Mode != Quiet || j.Wake != WakeNow || j.DeleteAfterRun {
			t.Errorf("%+v", j)
		}
		strict := w.add("every 1h", func(d *Draft) {
			d.Fallbacks, d.Target, d.Channel, d.To, d.Zone = &[]string{}, SessionTarget("news"), "slack", "channel:C0123AB", "Europe/Berlin"
		})
		stored := w.get(strict.ID)
		if f := stored.Payload.Fallbacks; f == nil || len(*f) != 0 || stored.Target.Session() != "news" || stored.Delivery.To.Conversation != "C0123AB" || stored.Origin != home {
			t.Errorf("%+v", stored.Definition)
		}
		var none *[]string
		if _, err := w.s.Edit(t.Context(), strict.ID, Patch{Fallbacks: &none, Place: &Place{Channel: "telegram", To: "5"}}); err != nil {
			t.Fatal(err)
		}
		if j := w.get(strict.ID); j.Payload.Fallbacks != nil || j.Delivery.To.Conversation != "5" || j.Revision != 2 {
			t.Errorf("%+v", j)
		}
	})
}

func TestEnableAndDisable(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("every 1h")
		if _, err := w.s.Disable(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
		w.pass(3*time.Hour + 20*time.Minute)
		if jobs, err := w.s.store.List(t.Context(), false); err != nil || len(jobs) != 0 || w.count() != 0 {
			t.Errorf("%d jobs, %d runs, %v", len(jobs), w.count(), err)
		}
		card, err := w.s.Enable(t.Context(), c.ID)
		if err != nil || card.Next[0].Format("15:04") != "04:00" {
			t.Errorf("%v, %v", card.Next, err)
		}
		w.pass(41 * time.Minute)
		expect(t, w.log(c.ID), "01T04:00:00 schedule ok succeeded")
		for name, do := range map[string]func() error{
			"enable":  func() error { _, err := w.s.Enable(t.Context(), "nothing"); return err },
			"disable": func() error { _, err := w.s.Disable(t.Context(), "nothing"); return err },
			"edit":    func() error { _, err := w.s.Edit(t.Context(), "nothing", Patch{}); return err },
			"show":    func() error { _, err := w.s.store.Get(t.Context(), "nothing"); return err },
			"run log": func() error { _, err := w.s.store.Run(t.Context(), "nothing"); return err },
		} {
			if err := do(); !errors.Is(err, ErrNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestTwoEditsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		c := w.add("every 1h")
		stale := w.get(c.ID)
		name := "first"
		if _, err := w.s.Edit(t.Context(), c.ID, Patch{Name: &name}); err != nil {
			t.Fatal(err)
		}
		stale.Name = "second"
		if _, err := w.s.save(t.Context(), stale, false); !errors.Is(err, ErrEdited) {
			t.Errorf("%v", err)
		}
	})
}

func TestIDs(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := newID()
		if len(id) != 10 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") != "" || seen[id] {
			t.Fatalf("%q", id)
		}
		seen[id] = true
	}
}

func TestTheZoneOfAJob(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.close()
		w.cfg.Timezone = "Europe/Berlin"
		w.boot()
		for zone, want := range map[string]string{"": "08:00", "Asia/Tokyo": "00:00"} {
			c := w.add("0 9 * * *", func(d *Draft) { d.Zone = zone })
			if got := c.State.NextRunAt.UTC().Format("15:04"); got != want && zone == "" || c.Next[0].Format("15:04") != "09:00" {
				t.Errorf("%q: %s UTC, %v", zone, got, c.Next)
			}
		}
		// What somebody chose for the job stays, in words too; everything else follows the configuration.
		own, words, other := w.add("0 9 * * *", func(d *Draft) { d.Zone = "Asia/Tokyo" }), w.add("every day at 9 Asia/Tokyo"), w.add("0 9 * * *")
		w.close()
		w.cfg.Timezone = "America/New_York"
		w.boot()
		for id, zone := range map[string]string{own.ID: "Asia/Tokyo", words.ID: "Asia/Tokyo", other.ID: "America/New_York"} {
			if card := w.s.Card(w.get(id)); card.Description != "every day at 09:00 "+zone || card.Next[0].Format("15:04") != "09:00" {
				t.Errorf("%s, %v", card.Description, card.Next)
			}
		}
	})
}

func TestConfiguration(t *testing.T) {
	good := Config{Timezone: "Europe/Berlin", CatchUp: CatchUpOnce, MaxConcurrentRuns: 2, MissedAtGrace: time.Hour, FailureAlert: Alert{After: 3, Channel: "telegram", To: "5"}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	if d := (Config{}).WithDefaults(); !*d.Enabled || d.MaxConcurrentRuns != 4 || d.CatchUp != CatchUpSkip || d.MissedAtGrace != 24*time.Hour || d.FailureAlert.After != 2 || d.FailureAlert.Cooldown != time.Hour {
		t.Errorf("%+v", d)
	}
	for want, c := range map[string]Config{
		"timezone":             {Timezone: "Moon/Sea"},
		"catchUp":              {CatchUp: "always"},
		"maxConcurrentRuns":    {MaxConcurrentRuns: -1},
		"missedAtGrace":        {MissedAtGrace: -1},
		"failureAlert.after":   {FailureAlert: Alert{After: -1}},
		"failureAlert.to":      {FailureAlert: Alert{Channel: "slack"}},
		"failureAlert.to: not": {FailureAlert: Alert{Channel: "slack", To: "general"}},
	} {
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
