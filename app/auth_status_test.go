package app

import (
	"context"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/authstore"
	"understudy/failover/policy"
	"understudy/internal/emulate/llm"
	words "understudy/llm"
)

var update = flag.Bool("update-auth-status", false, "write what `bot auth status` prints to testdata")

// What `bot auth status --json --probe --check` prints is read by other programs: its shape is that
// of testdata/auth-status.json and of docs/credentials.md.
func TestAuthStatusHasItsDocumentedShape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, "[]") // no model may use the house: --check says so
		_, refresh := h.signIns.SignIn()
		h.put(refresh, "openai:work", "openai:old", "openai:idle")
		now := time.Now()
		s, err := authstore.Open(t.Context(), authstore.Path(h.state, "main"), authstore.Deps{BusyTimeout: -1})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range []policy.Attempt{
			{Profile: "openai:work", Model: "s1", At: now},
			{Profile: "openai:work", Model: "s2", At: now, Failure: &words.Failure{Reason: words.ReasonRateLimit, RetryAfter: time.Hour}},
			{Profile: "openai:old", Model: "s1", At: now, Failure: &words.Failure{Reason: words.ReasonBilling}},
			{Profile: "house:me", Model: "m1", At: now, Failure: &words.Failure{Reason: words.ReasonAuth}},
			{Profile: "mistral:env", Model: "x", At: now},
		} {
			if _, err := s.Settle(t.Context(), policy.DefaultRules(), a); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		h.models.Fault(llm.Fault{Match: llm.Match{Key: "key-openai:old"}, Status: http.StatusUnauthorized})
		before := h.health()
		code, printed := h.do("", func(ctx context.Context, _ Options, std Std) int {
			return AuthStatus(ctx, h.options(), std, StatusOptions{JSON: true, Probe: true, Check: true})
		})
		if code != ExitFailed || !strings.HasSuffix(printed, "bot: some models have no usable credential\n") {
			t.Errorf("exit code %d: %s", code, printed)
		}
		printed = strings.TrimSuffix(printed, "bot: some models have no usable credential\n")
		printed = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`).ReplaceAllString(printed, "LOCAL TIME")
		file := filepath.Join("testdata", "auth-status.json")
		if *update {
			if err := os.WriteFile(file, []byte(printed), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(h.read(file), printed); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(before, h.health()); diff != "" {
			t.Errorf("asking changed the health: %s", diff)
		}
	})
}

func (h *house) health() policy.Health {
	h.t.Helper()
	s, err := authstore.Open(h.t.Context(), authstore.Path(h.state, "main"), authstore.Deps{BusyTimeout: -1})
	if err != nil {
		h.t.Fatal(err)
	}
	snap, err := s.Snapshot(h.t.Context())
	if err := s.Close(); err != nil {
		h.t.Error(err)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return snap.Health
}

// An order that names what is not there is stored, and told.
func TestOrdersNameStrangers(t *testing.T) {
	d := newDesk(t, "agents: {defaults: {model: {primary: openai/gpt-5.5}}}")
	d.env["OPENAI_API_KEY"] = "sk-1"
	set := func(profiles ...string) string {
		code, printed := d.do("", func(ctx context.Context, o Options, std Std) int {
			return AuthOrderSet(ctx, o, std, "", "OpenAI", profiles)
		})
		if code != ExitOK {
			t.Errorf("%v: %d: %s", profiles, code, printed)
		}
		return printed
	}
	if got := set("openai:env"); got != "Profiles of openai are tried in this order: openai:env\n" {
		t.Errorf("the key of the environment is a stranger: %s", got)
	}
	if got := set(); got != "Profiles of openai are tried in this order: none is used\n" {
		t.Errorf("nobody is a stranger: %s", got)
	}
	if got := set("OpenAI:wrok", "openai:env"); !strings.Contains(got, "no openai:wrok yet") || strings.Contains(got, "until then") {
		t.Errorf("told: %s", got)
	}
	if got := set("openai:wrok"); !strings.Contains(got, "the other credentials of openai are used") {
		t.Errorf("told: %s", got)
	}
	if code, printed := d.do("", func(ctx context.Context, o Options, std Std) int {
		return AuthOrderSet(ctx, o, std, "", "openai", []string{"groq:x"})
	}); code != ExitFailed || !strings.Contains(printed, "does not belong") {
		t.Errorf("%d: %s", code, printed)
	}
}

// Every rest of a profile is told, with all the models it is for.
func TestAuthStatusNamesEveryRest(t *testing.T) {
	now := time.Now()
	window := func(r words.Reason, until time.Duration, detail words.Detail) policy.Window {
		return policy.Window{Since: now, Until: now.Add(until), Reason: r, Detail: detail}
	}
	stated := policy.Row{Cooldown: window(words.ReasonRateLimit, time.Hour, "")}
	views := profileViews(policy.Snapshot{
		Profiles: []policy.Profile{{ID: "anthropic:home", Kind: words.KindAPIKey, HasSecret: true}},
		Health: policy.Health{
			{Profile: "anthropic:home", Model: "opus"}:  stated,
			{Profile: "anthropic:home", Model: "haiku"}: stated,
			{Profile: "anthropic:home", Model: "mini"}:  {Cooldown: window(words.ReasonTimeout, time.Minute, words.DetailServerError)},
			{Profile: "anthropic:home"}:                 {Disabled: window(words.ReasonBilling, 5*time.Hour, "")},
		},
	}, now)
	want := "disabled (billing) until " + shownUntil(now.Add(5*time.Hour)) + "; cooling (rate_limit) until " + shownUntil(now.Add(time.Hour)) +
		" for haiku, opus; cooling (timeout: server_error) until " + shownUntil(now.Add(time.Minute)) + " for mini"
	if len(views) != 1 || views[0].State != want {
		t.Errorf("%+v\nwant %s", views, want)
	}
}

// A credential of a provider that does not exist is a slip, and told where it is made and by the doctor.
func TestASlipInAProviderIsTold(t *testing.T) {
	d := newDesk(t, "agents: {defaults: {model: {primary: openai/gpt-5.5}}}")
	code, printed := d.do("sk-1\n", func(ctx context.Context, o Options, std Std) int {
		return AuthAdd(ctx, o, std, NewCredential{Profile: "antropic:default", Type: "api_key"})
	})
	if code != ExitOK || !strings.Contains(printed, `there is no provider "antropic", so nothing uses it (did you mean "anthropic"?)`) || strings.Contains(printed, "uses it from now on") {
		t.Errorf("%d: %s", code, printed)
	}
	if _, printed = d.do("", func(ctx context.Context, o Options, std Std) int {
		return Doctor(ctx, o, std, DoctorOptions{})
	}); !strings.Contains(printed, `antropic:default is used by nothing: there is no provider "antropic"`) {
		t.Error(printed)
	}
	if code, printed = d.do("", func(ctx context.Context, o Options, std Std) int {
		return Smoke(ctx, o, std, SmokeOptions{})
	}); code != ExitFailed || printed != "bot: no chat platform is configured; docs/telegram.md, docs/slack.md and docs/discord.md show how\n" {
		t.Errorf("%d: %s", code, printed)
	}
}
