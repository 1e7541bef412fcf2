package app_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"understudy/failover/policy"
	"understudy/internal/drill"
	emullm "understudy/internal/emulate/llm"
	"understudy/llm"
)

// raw stands in the payload of every failure, together with a key: neither may be seen in chat.
const raw = "RAW-7f3a"

// apiError is the error object of an OpenAI-compatible host. It quotes the key, as hosts do.
func apiError(kind, code, message string) string {
	return fmt.Sprintf(`{"error":{"message":%q,"type":%q,"code":%q,"param":null}}`, message+" ("+raw+", key "+drill.AlphaKey+")", kind, code)
}

// failing is a way a model fails, and what the specification demands of it (spec/failover.md §6.1).
type failing struct {
	name   string
	fault  emullm.Fault
	reason llm.Reason
	detail llm.Detail
	status int
	told   string // what the user is told when nobody else is there
	ref    bool   // … with the id under which the log explains it
	words  string // what the notice says when somebody is; "" = nobody else is asked
	window string // what is stored: "", "model", "profile", "disabled"
	lasts  time.Duration
	asked  int // requests to a lonely model; 0 = 1
	// The oddities: a model that sends no error object, one that cannot be reached, and failures
	// that the bot sits out for minutes, which takes a bubble.
	reply   *emullm.Reply
	primary string
	refused bool
	slow    bool
}

func failings() []failing {
	const ladder = 30 * time.Second
	return []failing{
		{
			name: "auth", fault: emullm.Fault{Status: 401, Body: apiError("invalid_request_error", "invalid_api_key", "Incorrect API key provided")},
			reason: llm.ReasonAuth, status: 401, told: "🔑 Signing in to alpha failed", words: "sign-in problem", window: "profile", lasts: ladder,
		},
		{
			name: "auth_permanent", fault: emullm.Fault{Status: 401, Body: apiError("invalid_request_error", "account_deactivated", "This API key has been revoked")},
			reason: llm.ReasonAuthPermanent, status: 401, told: "🔑 The credential for alpha/a1 was revoked", words: "sign-in problem", window: "disabled", lasts: 10 * time.Minute,
		},
		{
			name: "billing", fault: emullm.Fault{Status: 402, Body: apiError("insufficient_quota", "insufficient_quota", "Insufficient credits")},
			reason: llm.ReasonBilling, status: 402, told: "💳 alpha/a1 does not answer for billing reasons", words: "billing", window: "disabled", lasts: 5 * time.Hour,
		},
		{
			name: "rate_limit", fault: emullm.Fault{Status: 429, Body: apiError("rate_limit_error", "rate_limit_exceeded", "Rate limit reached for requests")},
			reason: llm.ReasonRateLimit, status: 429, told: "⏳ alpha/a1 is rate-limited", words: "rate limit", window: "model", lasts: ladder,
		},
		{
			name: "rate_limit with a stated end", fault: emullm.Fault{Status: 429, Body: apiError("rate_limit_error", "rate_limit_exceeded", "Rate limit reached"), RetryAfter: 20 * time.Minute},
			reason: llm.ReasonRateLimit, status: 429, told: "⏳ alpha/a1 is rate-limited; it is expected back at ", words: "rate limit", window: "model", lasts: 20 * time.Minute,
		},
		{
			name: "overloaded", fault: emullm.Fault{Status: 529, Body: apiError("overloaded_error", "overloaded", "Overloaded")},
			reason: llm.ReasonOverloaded, status: 529, told: "🌊 alpha/a1 is overloaded", words: "overloaded", window: "profile", lasts: ladder, slow: true, asked: 11,
		},
		{
			name: "server_error", fault: emullm.Fault{Status: 502, Body: "<html><body><h1>502 Bad Gateway " + raw + "</h1></body></html>", ContentType: "text/html"},
			reason: llm.ReasonTimeout, detail: llm.DetailServerError, status: 502, told: "🌩 alpha/a1’s server failed (status 502)", words: "server error", window: "model", lasts: ladder, slow: true, asked: 2,
		},
		{
			name: "refused", refused: true,
			reason: llm.ReasonTimeout, detail: llm.DetailNetwork, told: "🔌 I could not get an answer from alpha/a1: the connection failed", words: "connection problem", asked: -1,
		},
		{
			name: "reset", fault: emullm.Fault{Reset: true},
			reason: llm.ReasonTimeout, detail: llm.DetailNetwork, told: "🔌 I could not get an answer from alpha/a1", words: "connection problem", window: "model", lasts: ladder,
		},
		{
			name: "cut", fault: emullm.Fault{Say: "Half an ans", Cut: true},
			reason: llm.ReasonTimeout, detail: llm.DetailNetwork, status: 200, told: "🔌 I could not get an answer from alpha/a1: the connection failed", words: "connection problem", window: "model", lasts: ladder,
		},
		{
			name: "silence", fault: emullm.Fault{Hang: true},
			reason: llm.ReasonTimeout, detail: llm.DetailDeadline, told: "⌛ alpha/a1 timed out", words: "timeout", window: "model", lasts: ladder, slow: true,
		},
		{
			name: "format", fault: emullm.Fault{Status: 400, Body: apiError("invalid_request_error", "invalid_schema", "Invalid schema for function 'x'")},
			reason: llm.ReasonFormat, status: 400, told: "🧩 alpha/a1 rejected the request as malformed (status 400)",
		},
		{
			name: "context_overflow", fault: emullm.Fault{Status: 400, Body: apiError("invalid_request_error", "context_length_exceeded", "This model's maximum context length is 8192 tokens")},
			reason: llm.ReasonContextOverflow, status: 400, told: "This conversation no longer fits alpha/a1's context window",
		},
		{
			name: "model_not_found", fault: emullm.Fault{Status: 404, Body: apiError("invalid_request_error", "model_not_found", "The model a1 does not exist")},
			reason: llm.ReasonModelNotFound, status: 404, told: "🔍 alpha/a1 is not available", words: "model not available",
		},
		{
			name: "session_expired", fault: emullm.Fault{Status: 400, Body: apiError("invalid_request_error", "previous_response_not_found", "Previous response with id 'resp_1' not found.")},
			reason: llm.ReasonSessionExpired, status: 400, told: "🔁 alpha/a1 no longer knows this conversation", words: "session expired", asked: 2,
		},
		{
			name: "refusal", primary: "beta/b1", reply: &emullm.Reply{Finish: "content_filter"},
			reason: llm.ReasonRefusal, status: 200, told: "🚫 beta/b1 declined to answer this for safety reasons",
		},
		{
			name: "empty_response", fault: emullm.Fault{Empty: true},
			reason: llm.ReasonEmptyResponse, status: 200, told: "⚠️ alpha/a1 sent an empty answer", ref: true, words: "empty answer",
		},
		{
			name: "no_error_details", fault: emullm.Fault{Error: `{"error":{"message":"Unknown error (no error details in response)"}}`},
			reason: llm.ReasonNoErrorDetails, status: 200, told: "⚠️ alpha/a1 failed and gave no details", ref: true, words: "unknown error",
		},
		{
			name: "unclassified", fault: emullm.Fault{Error: apiError("quasar", "q17", "The flux is not in phase")},
			reason: llm.ReasonUnclassified, status: 200, told: "⚠️ alpha/a1 failed for a reason I do not know", ref: true, words: "unknown error",
		},
	}
}

// TestReasons lets a model fail in every way there is, over real HTTP: alone, and with another model
// behind it. It checks what the user sees (spec/failover.md §11), what the log tells (§15) and what
// is stored (§6.1, §7).
func TestReasons(t *testing.T) {
	for _, f := range failings() {
		if f.primary == "" {
			f.primary = "alpha/a1"
		}
		t.Run(f.name+"/alone", func(t *testing.T) { f.inWorld(t, f.slow, f.alone) })
		t.Run(f.name+"/with another", func(t *testing.T) { f.inWorld(t, f.slow, f.withAnother) })
	}
}

// inWorld runs a test over sockets, or in a bubble.
func (f failing) inWorld(t *testing.T, bubble bool, test func(*testing.T, bool)) {
	t.Parallel()
	if !bubble {
		test(t, true)
		return
	}
	synctest.Test(t, func(t *testing.T) { test(t, false) })
}

// stage is a bot whose first model fails.
func (f failing) stage(t *testing.T, network bool, model string) *drill.World {
	t.Helper()
	o := drill.Options{Network: network, Config: "agents: {defaults: {userTimezone: UTC, model: " + model + "}}\n"}
	if f.refused {
		o.Unreachable = "http://127.0.0.1:1"
	}
	w := drill.New(t, o)
	_, id, _ := strings.Cut(f.primary, "/")
	if f.reply != nil {
		r := *f.reply
		r.Model = id
		w.Models.Reply(r)
	} else if !f.refused {
		fault := f.fault
		fault.Model = id
		w.Models.Fault(fault)
	}
	w.Models.Reply(emullm.Reply{Match: emullm.Match{Model: "g1"}, Text: "g1 stepped in"})
	return w
}

// say says something and waits until the bot has said so many more messages that are no notices.
func say(t *testing.T, w *drill.World, text string, messages int) {
	t.Helper()
	answers := func() int {
		n := 0
		for _, m := range w.Telegram.Sent(alice) {
			if m.Text != "…" && !strings.HasPrefix("Half an ans", m.Text) && !m.Silent {
				n++
			}
		}
		return n
	}
	before := answers()
	w.Telegram.UserSays(alice, alice, text)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	if err := w.Telegram.WaitFor(ctx, func() bool { return answers() >= before+messages }); err != nil {
		t.Fatalf("waiting for an answer: %v\n%s", err, w.Log())
	}
}

// hear starts the bot, says something, and returns all that was said when the answer came.
func hear(t *testing.T, w *drill.World) []string {
	t.Helper()
	w.Start()
	say(t, w, "hi", 1)
	w.Stop()
	var texts []string
	for _, m := range w.Telegram.Sent(alice) {
		if !m.Silent || !strings.Contains(m.Text, " alpha:env ") { // else what an owner hears of the key
			texts = append(texts, m.Text)
		}
		if n := utf8.RuneCountInString(m.Text); n > 600 || strings.Contains(m.Text, raw) || strings.Contains(m.Text, "<html>") {
			t.Errorf("unfit for people (%d characters): %q", n, m.Text)
		}
	}
	shown.add(t.Name(), w.Outputs())
	return texts
}

func (f failing) alone(t *testing.T, network bool) {
	w := f.stage(t, network, f.primary)
	texts := hear(t, w)
	if f.reason == llm.ReasonOverloaded && len(texts) == 2 {
		texts = texts[1:] // the one status after thirty seconds
	}
	f.checkTold(t, texts)
	f.checkRequests(t, w)
	if f.reason == llm.ReasonOverloaded {
		f.lasts = 5 * time.Minute // after ten more passes it is at the top of the ladder
	}
	f.checkFailure(t, w, "chain_exhausted", "")
	f.checkHealth(t, w)
	if t.Failed() {
		t.Log(w.Log())
	}
}

func (f failing) withAnother(t *testing.T, network bool) {
	w := f.stage(t, network, fmt.Sprintf("{primary: %s, fallbacks: [gamma/g1]}", f.primary))
	texts := hear(t, w)
	if f.words == "" { // nobody else could do better
		f.checkTold(t, texts)
		for _, r := range w.Models.Requests() {
			if r.Model == "g1" {
				t.Error("another model was asked")
			}
		}
		f.checkFailure(t, w, "chain_exhausted", "")
	} else {
		want := []string{fmt.Sprintf("↪️ Model Fallback: gamma/g1 (selected %s; %s)", f.primary, f.words), "g1 stepped in"}
		if diff := cmp.Diff(want, texts); diff != "" {
			t.Errorf("said (-want +got):\n%s", diff)
		}
		f.checkFailure(t, w, "next_fallback", "gamma/g1")
		f.checkSuccess(t, w)
	}
	f.checkHealth(t, w)
	if t.Failed() {
		t.Log(w.Log())
	}
}

// checkTold checks the one text that stands in the place of an answer.
func (f failing) checkTold(t *testing.T, texts []string) {
	t.Helper()
	if len(texts) != 1 || !strings.Contains(texts[0], f.told) || f.ref != strings.Contains(texts[0], "Reference: in-1") {
		t.Errorf("told %q, want %q, reference %t", texts, f.told, f.ref)
	}
}

// checkRequests checks how often a lonely model was asked.
func (f failing) checkRequests(t *testing.T, w *drill.World) {
	t.Helper()
	want := max(f.asked, 1)
	if f.asked < 0 {
		want = 0
	}
	if got := len(w.Models.Requests()); got != want {
		t.Errorf("asked %d times, want %d", got, want)
	}
}

// checkFailure checks the first decision record of the failed model.
func (f failing) checkFailure(t *testing.T, w *drill.World, outcome, to string) {
	t.Helper()
	for _, r := range w.Records("model_fallback_decision") {
		if r["decision"] != "candidate_failed" {
			continue
		}
		if r["fallbackStepToModel"] == f.primary {
			continue // the same model was asked once more
		}
		want := map[string]any{
			"decision": "candidate_failed", "requested": f.primary, "candidate": f.primary, "position": 0.0,
			"reason": string(f.reason), "status": float64(f.status),
			"fallbackStepFromModel": f.primary, "fallbackStepToModel": to,
			"fallbackStepFromFailureReason": string(f.reason), "fallbackStepFromFailureDetail": string(f.detail),
			"fallbackStepFinalOutcome": outcome,
		}
		got := map[string]any{}
		for key := range want {
			got[key] = r[key]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("model_fallback_decision (-want +got):\n%s", diff)
		}
		for _, key := range []string{"code", "preview", "profile", "session", "turn", "agent"} {
			if _, ok := r[key]; !ok {
				t.Errorf("model_fallback_decision has no %s", key)
			}
		}
		return
	}
	t.Errorf("no model_fallback_decision tells of the failure with %s", outcome)
}

// checkSuccess checks that the record of the answer names the failure before it.
func (f failing) checkSuccess(t *testing.T, w *drill.World) {
	t.Helper()
	for _, r := range w.Records("model_fallback_decision") {
		if r["decision"] != "candidate_succeeded" {
			continue
		}
		if r["candidate"] != "gamma/g1" || r["fallbackStepFromModel"] != f.primary || r["fallbackStepToModel"] != "gamma/g1" ||
			r["fallbackStepFromFailureReason"] != string(f.reason) || r["fallbackStepFinalOutcome"] != "succeeded" {
			t.Errorf("candidate_succeeded: %v", r)
		}
		return
	}
	t.Error("no candidate_succeeded record")
}

// checkHealth checks what is stored of the profile that failed: the one row that the reason demands.
func (f failing) checkHealth(t *testing.T, w *drill.World) {
	t.Helper()
	profile := llm.ProfileID("alpha:env")
	if f.primary == "beta/b1" {
		profile = "beta:default"
	}
	_, model, _ := strings.Cut(f.primary, "/")
	windows := 0
	for key, row := range w.Health().Health {
		if key.Profile != profile {
			if row.ErrorCount != 0 || len(row.FailureCounts) > 0 {
				t.Errorf("%v was marked: %+v", key, row)
			}
			continue
		}
		for _, x := range []struct {
			kind string
			policy.Window
		}{{"cooldown", row.Cooldown}, {"disabled", row.Disabled}} {
			if x.Until.IsZero() {
				continue
			}
			windows++
			kind := x.kind
			switch {
			case kind == "cooldown" && key.Model == model:
				kind = "model"
			case kind == "cooldown" && key.Model == "":
				kind = "profile"
			}
			if kind != f.window || x.Reason != f.reason || x.Until.Sub(x.Since) != f.lasts || row.FailureCounts[f.reason] == 0 {
				t.Errorf("stored for %v: %s %+v, want %s for %v", key, kind, x.Window, f.window, f.lasts)
			}
		}
	}
	if windows > 1 || windows == 0 != (f.window == "") {
		t.Errorf("%d windows are stored, want %q", windows, f.window)
	}
}
