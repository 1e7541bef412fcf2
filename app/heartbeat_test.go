package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy/app"
	"understudy/cron"
	emullm "understudy/internal/emulate/llm"
	"understudy/internal/sqlite"
)

// beats is a configuration with heartbeats; more are further keys of the section.
func beats(more string) string {
	return fmt.Sprintf("agents: {defaults: {model: {primary: alpha/a1, fallbacks: [beta/b1]}, heartbeat: {every: 30m%s}}}\n", more)
}

// last is how the last heartbeat went.
func (w *clockwork) last() app.HeartbeatReport {
	w.t.Helper()
	var out bytes.Buffer
	if app.HeartbeatLast(w.t.Context(), w.Options(), app.Std{Out: &out, Err: &out}, "", true) != app.ExitOK {
		w.t.Fatal(out.String())
	}
	var r app.HeartbeatReport
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		w.t.Fatal(err)
	}
	return r
}

func TestNothingToDoChatterIsNotDelivered(t *testing.T) {
	ticking(t, beats(""), func(w *clockwork) {
		for _, answer := range []string{"HEARTBEAT_OK", "**HEARTBEAT_OK**", "HEARTBEAT_OK — all quiet", "All is well.\n\nHEARTBEAT_OK"} {
			w.Models.Reply(emullm.Reply{Match: emullm.Match{Contains: "Heartbeat", Times: 1}, Text: answer})
		}
		w.pass(2*time.Hour + time.Minute)
		if got := w.asked(); len(got) != 4 {
			t.Errorf("asked %q", got)
		}
		w.Models.Fault(emullm.Fault{Status: 429})
		w.pass(30 * time.Minute)
		w.hears(w.texts())
		if r := w.last(); r.Last.Outcome != "failed" || r.Last.Reason != "rate_limit" {
			t.Errorf("%+v", r)
		}
	})
}

func TestWhatAHeartbeatFindsIsSaidToTheOwner(t *testing.T) {
	ticking(t, beats(""), func(w *clockwork) {
		const bob = 1002
		w.Telegram.UserSays(bob, bob, "hello")
		w.pass(10 * time.Second)
		w.says("hello")
		before := len(w.texts())
		w.Models.Reply(emullm.Reply{Match: emullm.Match{Contains: "Heartbeat"}, Text: "The disk is nearly full."})
		w.pass(62 * time.Minute)
		got := w.texts()[before:]
		if len(got) != 2 || !strings.HasPrefix(got[0], "The disk is nearly full.") || !strings.Contains(got[0], "heartbeat.target: none") || got[1] != "The disk is nearly full." {
			t.Errorf("said %q\n%s", got, w.Log())
		}
		if n := len(w.Telegram.Sent(bob)); n != 1 {
			t.Errorf("bob reads %d messages", n)
		}
	})
}

func TestAHeartbeatsModelStaysItsOwn(t *testing.T) {
	ticking(t, "session: {dmScope: main}\n"+beats(", model: gamma/g1"), func(w *clockwork) {
		w.says("my cat is called Tom")
		w.Models.Reply(emullm.Reply{Match: emullm.Match{Contains: "Heartbeat"}, Text: "HEARTBEAT_OK"})
		status := w.says("/status")
		w.asked()
		w.pass(31 * time.Minute)
		if got := w.asked(); len(got) != 1 || !strings.HasPrefix(got[0], "g1: ") {
			t.Errorf("asked %q", got)
		}
		w.Models.ClearRequests()
		said := w.says("hello")
		r := w.Models.Requests()
		if len(r) != 1 || r[0].Model != "a1" || !strings.Contains(string(r[0].Body), "Tom") || strings.Contains(string(r[0].Body), "HEARTBEAT_OK") {
			t.Errorf("the chat went on with %d requests: %s", len(r), r[0].Body)
		}
		if len(said) != 1 {
			t.Errorf("said %q", said)
		}
		now := w.says("/status")
		for _, line := range []string{"🧠", "📚"} {
			if a, b := lineOf(status, line), lineOf(now, line); line == "🧠" && a != b || strings.Contains(b, "Compactions: 1") {
				t.Errorf("%q became %q", a, b)
			}
		}
	})
}

// lineOf is the line of a card that begins with a sign.
func lineOf(said []string, sign string) string {
	for line := range strings.Lines(strings.Join(said, "\n")) {
		if strings.HasPrefix(line, sign) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

func TestASlowHeartbeatHoldsNobodyUp(t *testing.T) {
	for _, more := range []string{", isolatedSession: true", ""} {
		t.Run(more, func(t *testing.T) {
			ticking(t, "session: {dmScope: main}\n"+beats(", model: gamma/g1"+more), func(w *clockwork) {
				w.Models.Reply(emullm.Reply{Match: emullm.Match{Model: "g1"}, Text: "HEARTBEAT_OK", Latency: 4 * time.Minute})
				w.pass(30 * time.Minute) // it began a moment ago
				if w.Models.InFlight() != 1 {
					t.Fatalf("%d requests under way", w.Models.InFlight())
				}
				if said := w.says("hello"); len(said) != 1 {
					t.Errorf("after ten seconds: %q", said)
				}
			})
		})
	}
}

func TestABusySessionBringsOneHeartbeatAfterwards(t *testing.T) {
	ticking(t, "session: {dmScope: main}\n"+strings.Replace(beats(", model: gamma/g1"), "30m", "1m", 1), func(w *clockwork) {
		w.Models.Reply(emullm.Reply{Match: emullm.Match{Model: "a1"}, Text: strings.Repeat("one moment, ", 9), ChunkDelay: time.Minute}, emullm.Reply{Text: "HEARTBEAT_OK"})
		w.Telegram.UserSays(alice, alice, "think long")
		w.pass(8*time.Minute + 30*time.Second)
		w.asked()
		if r := w.last(); r.Last.Why != "busy" {
			t.Errorf("%+v", r.Last)
		}
		w.pass(110 * time.Second)
		if got := w.asked(); len(got) != 1 {
			t.Errorf("%d heartbeats when the turn had ended", len(got))
		}
	})
}

func TestAStaleAutomaticOverrideIsCleared(t *testing.T) {
	ticking(t, "session: {dmScope: main}\n"+beats(""), func(w *clockwork) {
		w.says("hello")
		w.overrideAuto("beta/b1", "old/o1")
		w.Models.ClearRequests()
		w.pass(31 * time.Minute)
		if got := w.asked(); len(got) != 1 || !strings.HasPrefix(got[0], "a1: ") {
			t.Errorf("asked %q", got)
		}
		if said := w.says("/model"); len(said) == 0 || strings.Contains(said[0], "beta/b1 (") {
			t.Errorf("%q", said)
		}
	})
}

func TestAModelWithoutQuotaIsNotAskedAtEveryBeat(t *testing.T) {
	ticking(t, beats(", model: gamma/g1, allowFallbacks: false"), func(w *clockwork) {
		w.says("hello")
		w.asked()
		w.Models.Fault(emullm.Fault{Match: emullm.Match{Model: "g1"}, Status: 429, RetryAfter: 24 * time.Hour})
		before := len(w.texts())
		w.pass(23 * time.Hour)
		if got := w.asked(); len(got) > 2 {
			t.Errorf("asked %d times", len(got))
		}
		if said := w.texts()[before:]; len(said) > 1 {
			t.Errorf("said %q", said)
		}
		if r := w.last(); r.Last.Why != "primary-cooldown" {
			t.Errorf("%+v", r.Last)
		}
	})
}

func TestAStandInAnswersForAHeartbeatWithoutANotice(t *testing.T) {
	ticking(t, beats(", model: gamma/g1"), func(w *clockwork) {
		w.Models.Fault(emullm.Fault{Match: emullm.Match{Model: "g1"}, Status: 429})
		w.Models.Reply(emullm.Reply{Text: "HEARTBEAT_OK"})
		w.pass(31 * time.Minute)
		if got := w.asked(); len(got) != 2 || !strings.HasPrefix(got[1], "b1: ") {
			t.Errorf("asked %q", got)
		}
		w.hears(w.texts())
		if r := w.last().Last; r.Outcome != "ok" || r.Requested.String() != "gamma/g1" || r.Model.String() != "beta/b1" {
			t.Errorf("%+v", r)
		}
	})
}

func TestTheChecklistAndTheQuietHours(t *testing.T) {
	ticking(t, strings.Replace(beats(`, activeHours: {start: "02:00", end: "24:00", timezone: UTC}`), "defaults: {", "defaults: {userTimezone: UTC, ", 1), func(w *clockwork) {
		text := "- look at the disk"
		var out bytes.Buffer
		set := func(x app.ScratchChange) {
			if app.HeartbeatScratch(w.t.Context(), w.Options(), app.Std{Out: &out, Err: &out}, "", x) != app.ExitOK {
				w.t.Fatal(out.String())
			}
		}
		set(app.ScratchChange{Set: &text})
		w.pass(100 * time.Minute)
		w.hears(w.asked())
		if r := w.last(); r.Last.Why != "quiet-hours" {
			t.Errorf("%+v", r.Last)
		}
		w.pass(30 * time.Minute)
		if body := string(w.Models.Requests()[0].Body); !strings.Contains(body, "look at the disk") {
			t.Errorf("asked with %s", body)
		}
		w.asked()
		empty := "# nothing today\n- [ ]\n"
		set(app.ScratchChange{Set: &empty})
		w.pass(30 * time.Minute)
		w.hears(w.asked())
		if r := w.last(); r.Last.Why != "empty-heartbeat-file" {
			t.Errorf("%+v", r.Last)
		}
		set(app.ScratchChange{Unset: true})
		w.pass(30 * time.Minute)
		if got := w.asked(); len(got) != 1 {
			t.Errorf("asked %q", got)
		}
	})
}

func TestAnEventOfATaskWakesTheHeartbeat(t *testing.T) {
	ticking(t, still, func(w *clockwork) {
		w.says("hello")
		before := len(w.texts())
		w.Models.Reply(emullm.Reply{Match: emullm.Match{Contains: "the build is red"}, Text: "The build is red!"})
		w.addEvent("20m", "the build is red")
		w.pass(22 * time.Minute)
		got := w.texts()[before:]
		if len(got) != 1 || !strings.HasPrefix(got[0], "The build is red!") {
			t.Errorf("said %q\n%s", got, w.Log())
		}
	})
}

func TestANewSessionForgetsWhatWaitedForAHeartbeat(t *testing.T) {
	ticking(t, "session: {dmScope: main}\n"+strings.Replace(beats(""), "30m", "10m", 1), func(w *clockwork) {
		w.Models.Reply(emullm.Reply{Match: emullm.Match{Contains: "Heartbeat"}, Text: "HEARTBEAT_OK"})
		w.says("hello")
		for _, command := range []string{"/new", "/reset"} {
			w.state(func(db *sqlite.DB) { // beside the bot, which finds them
				for schedule, text := range map[string]string{"2m": "the build is red", "6m": "the build is green"} {
					addTask(w.t, db, cron.Draft{Schedule: schedule, Message: text, Kind: cron.SystemEvent, Wake: cron.WakeNextHeartbeat})
				}
			})
			w.pass(4 * time.Minute)
			w.says(command)
			w.Models.ClearRequests()
			w.pass(6 * time.Minute)
			r := w.Models.Requests()
			if len(r) == 0 || strings.Contains(string(r[0].Body), "is red") || !strings.Contains(string(r[0].Body), "is green") {
				t.Errorf("%s: %d requests\n%s", command, len(r), w.Log())
			}
		}
	})
}

func TestHeartbeatsAreControlledFromTheChat(t *testing.T) {
	ticking(t, beats(""), func(w *clockwork) {
		w.Models.Reply(emullm.Reply{Match: emullm.Match{Contains: "Heartbeat"}, Text: "HEARTBEAT_OK"})
		if said := w.says("/heartbeat now"); len(said) != 1 || !strings.Contains(said[0], "begins") {
			t.Errorf("%q", said)
		}
		if got := w.asked(); len(got) != 1 {
			t.Errorf("asked %q", got)
		}
		if said := w.says("/heartbeat"); len(said) != 1 || !strings.Contains(said[0], "every 30 min, last ok 10 s ago\nNext: ") {
			t.Errorf("%q", said)
		}
		w.says("/heartbeat off")
		w.pass(2 * time.Hour)
		if got := w.asked(); len(got) != 0 {
			t.Errorf("asked %q", got)
		}
		w.says("/heartbeat on")
		w.pass(31 * time.Minute)
		if got := w.asked(); len(got) != 1 {
			t.Errorf("asked %q", got)
		}
	})
}

func TestOneProbeForAllAndNoneWithoutNeed(t *testing.T) {
	ticking(t, still, func(w *clockwork) {
		w.says("hello")
		w.Models.ClearRequests()
		w.pass(2 * time.Hour)
		if got := w.asked(); len(got) != 0 {
			t.Fatalf("nothing fell back, but asked %q", got)
		}
		w.Models.Fault(emullm.Fault{Match: emullm.Match{Model: "a1"}, Status: 429, RetryAfter: 10 * time.Hour})
		const bob = 1002
		w.Telegram.UserSays(bob, bob, "hello")
		w.says("hello")
		w.Models.ClearRequests()
		w.pass(31 * time.Minute)
		n := 0
		for _, r := range w.Models.Requests() {
			if r.Model != "a1" || r.LastUser != "ping" {
				t.Errorf("asked %s: %q", r.Model, r.LastUser)
			}
			n++
		}
		if n < 5 || n > 7 {
			t.Errorf("%d probes in half an hour", n)
		}
		w.Models.Heal()
		w.pass(6 * time.Minute)
		before := len(w.texts())
		w.pass(time.Hour)
		w.hears(w.texts()[before:]) // nobody is told by a probe
		said := w.says("back?")
		if len(said) != 2 || !strings.HasPrefix(said[0], "↪️ Model Fallback cleared: alpha/a1") {
			t.Errorf("%q", said)
		}
		w.Models.ClearRequests()
		if said := w.says("/failover probe"); len(said) != 1 || !strings.Contains(said[0], "was not asked") || len(w.Models.Requests()) != 0 {
			t.Errorf("%q", said)
		}
	})
}
