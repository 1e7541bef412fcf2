package app

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/authstore"
	"understudy/internal/emulate/llm"
	"understudy/internal/emulate/oauth"
	"understudy/internal/secret"
	words "understudy/llm"
)

// house is a desk in a bubble, with a sign-in server and a model API in memory.
type house struct {
	*desk
	signIns *oauth.Server
	models  *llm.Server
	rt      http.RoundTripper
}

func newHouse(t *testing.T, order string) *house {
	t.Helper()
	h := &house{signIns: &oauth.Server{ClientID: "bot", Lifetime: 24 * time.Hour}, models: llm.New()}
	rt, stop := h.signIns.Transport()
	t.Cleanup(stop)
	t.Cleanup(h.models.Close)
	h.rt = rt
	h.desk = newDesk(t, `
agents: {defaults: {model: {primary: house/m1, fallbacks: [openai/s1]}}}
models: {providers: {house: {baseUrl: "http://models.test/v1", api: openai-chat}, openai: {baseUrl: "http://models.test/v1", api: openai-chat}}}
auth:
  order: {house: `+order+`}
  providers:
    house: {authorizeUrl: "http://127.0.0.1`+oauth.AuthorizePath+`", tokenUrl: "http://127.0.0.1`+oauth.TokenPath+`", clientId: bot}
`)
	return h
}

func (h *house) options() Options {
	o := h.desk.options()
	o.BusyTimeout, o.NoControl, o.SignIn = -1, true, h.rt
	o.Transport = func(string) http.RoundTripper { return h.models.Transport() }
	return o
}

// put stores credentials: house:me, a sign-in that has expired, and the keys of others.
func (h *house) put(refresh string, keys ...words.ProfileID) {
	h.t.Helper()
	s, err := authstore.Open(h.t.Context(), authstore.Path(h.state, "main"), authstore.Deps{BusyTimeout: -1})
	if err != nil {
		h.t.Fatal(err)
	}
	err = s.Put(h.t.Context(), authstore.Profile{
		ID: "house:me", Kind: words.KindOAuth, Secret: secret.New("old"), Refresh: secret.New(refresh), Expires: time.UnixMilli(1),
	})
	for _, id := range keys {
		err = errors.Join(err, s.Put(h.t.Context(), authstore.Profile{ID: id, Kind: words.KindAPIKey, Secret: secret.New("key-" + string(id))}))
	}
	if err := errors.Join(err, s.Close()); err != nil {
		h.t.Fatal(err)
	}
}

// chat says lines to a bot that lives as long as they take.
func (h *house) chat(lines ...string) string {
	h.t.Helper()
	code, printed := h.do(strings.Join(lines, "\n"), func(ctx context.Context, _ Options, std Std) int {
		return Chat(ctx, h.options(), std, "terminal")
	})
	if code != ExitOK {
		h.t.Errorf("%d: %s", code, printed)
	}
	return printed
}

// keys returns what the model API was asked with.
func (h *house) keys() string {
	var list []string
	for _, r := range h.models.Requests() {
		list = append(list, strings.SplitN(r.Key, "-", 3)[0]+" "+r.Model)
	}
	return strings.Join(list, ", ")
}

// A sign-in that is dead is asked about once, not with every message.
func TestADeadSignInIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, "[house:me, house:backup]")
		h.put("unknown to the server", "house:backup")
		for range 10 {
			h.chat("hello")
			<-time.After(50 * time.Second)
		}
		if n := h.signIns.Count("refresh_token"); n != 1 {
			t.Errorf("%d refreshes", n)
		}
		if got, want := h.keys(), strings.TrimSuffix(strings.Repeat("key m1, ", 10), ", "); got != want {
			t.Errorf("asked with %s", got)
		}
	})
}

// A token endpoint that fails once costs the sign-in one step of the ladder.
func TestAFailingTokenEndpointCostsHalfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, "[house:me]")
		_, refresh := h.signIns.SignIn()
		h.put(refresh, "openai:default")
		h.signIns.Fault(oauth.Fault{Path: oauth.TokenPath, Status: 503, Times: 1})
		h.chat("hello")
		<-time.After(31 * time.Second)
		h.chat("hello")
		if got, want := h.keys(), "key s1, access m1"; got != want {
			t.Errorf("asked with %s, want %s", got, want)
		}
	})
}

// A token that lasts a day is renewed once, not by the seconds of its lifetime.
func TestARenewedSignInLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, "[house:me]")
		h.signIns.Lifetime = time.Hour
		_, refresh := h.signIns.SignIn()
		h.put(refresh)
		for range 10 {
			h.chat("hello")
			<-time.After(3 * time.Minute)
		}
		if n := h.signIns.Count("refresh_token"); n != 1 {
			t.Errorf("%d refreshes in the first half hour", n)
		}
		<-time.After(31 * time.Minute)
		h.chat("hello")
		if n := h.signIns.Count("refresh_token"); n != 2 {
			t.Errorf("%d refreshes after an hour", n)
		}
	})
}

// A legacy file without credentials, or with those of somebody else, keeps no key of the environment
// from being used.
func TestLegacyFilesBlockNobody(t *testing.T) {
	for _, text := range []string{`{"version":1,"profiles":{}}`, `{"profiles":{"other:a":{"type":"api_key","provider":"other","key":"k"}}}`} {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t, "[]")
			file := h.write("agents/main/agent/auth-profiles.json", text)
			h.env["OPENAI_API_KEY"] = "env-key"
			h.chat("hello")
			if got := h.keys(); got != "env s1" {
				t.Errorf("asked with %q", got)
			}
			if log := h.out.String(); strings.Count(log, "credentials_to_import") != 1 || !strings.Contains(log, file) {
				t.Errorf("the log says %s", log)
			}
		})
	}
}

// One agent's damaged store is that agent's trouble.
func TestADamagedStoreIsItsAgentsTrouble(t *testing.T) {
	d := newDesk(t, "agents: {defaults: {model: {primary: openai/gpt-5.5}}, list: [{id: main, default: true}, {id: ops}]}")
	if code, printed := d.do(canary, func(ctx context.Context, o Options, std Std) int {
		return AuthAdd(ctx, o, std, NewCredential{Profile: "openai:work", Type: "api_key"})
	}); code != ExitOK {
		t.Fatal(printed)
	}
	torn := strings.Repeat("torn", 2500)
	path := d.write("agents/ops/agent/openclaw-agent.sqlite", torn)
	a, err := New(t.Context(), d.options())
	if err != nil {
		t.Fatal(err)
	}
	if snap, err := a.health(t.Context(), "main"); err != nil || len(snap.Profiles) != 1 {
		t.Errorf("main: %v, %v", snap.Profiles, err)
	}
	if _, err := a.health(t.Context(), "ops"); err == nil || !strings.Contains(foreignHint(err), "damaged") {
		t.Errorf("ops: %v", err)
	}
	if told := strings.Join(a.problems(t.Context()), "\n"); !strings.Contains(told, "agent ops") || strings.Contains(told, "agent main") {
		t.Errorf("/status says %q", told)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	code, printed := d.do("", func(ctx context.Context, o Options, std Std) int { return Doctor(ctx, o, std, DoctorOptions{}) })
	if code != ExitFailed || !strings.Contains(printed, path+" is damaged") {
		t.Errorf("doctor: %d: %s", code, printed)
	}
	if got := d.read(path); got != torn {
		t.Error("the file was changed")
	}
}
