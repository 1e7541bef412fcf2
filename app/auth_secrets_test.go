package app

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"understudy/authstore"
	"understudy/authstore/imports"
	"understudy/failover/policy"
	"understudy/internal/emulate/llm"
	"understudy/internal/emulate/oauth"
	words "understudy/llm"
)

// Every server quotes the secret that it was given, every file that is read holds one where it does
// not belong, and no verb shows any (spec/failover.md §16.10).
func TestNothingQuotesASecret(t *testing.T) {
	signIns := &oauth.Server{ClientID: "bot", Email: "me@example.com"}
	base, stop := signIns.Listen()
	defer stop()
	models := llm.New()
	api := httptest.NewServer(models)
	defer api.Close()
	d := newDesk(t, signInYAML(base, api.URL))
	d.env["HOUSE_API_KEY"] = canary + "-env"

	secrets := []string{canary}
	verb := func(name, input string, v func(context.Context, Options, Std) int) string {
		_, printed := d.do(input, v)
		for _, s := range secrets {
			for _, form := range []string{s, s[:len(s)/2], s[len(s)/2:]} {
				if strings.Contains(printed, form) {
					t.Errorf("%s shows a secret: %s", name, printed)
				}
			}
		}
		return printed
	}
	signInAt(t, d)
	p := mustGet(t, d, "house:me@example.com")
	secrets = append(secrets, p.Secret.Reveal(), p.Refresh.Reveal())
	add := func(profile, kind, input string) {
		verb("auth add "+profile, input, func(ctx context.Context, o Options, std Std) int {
			return AuthAdd(ctx, o, std, NewCredential{Profile: profile, Type: kind})
		})
	}
	add("house:key", "api_key", canary+"-key")
	add("house:dead", "oauth", canary+"-dead-refresh")
	add("house:broken", "oauth", `{"access":"`+canary+`-access","refresh":["`+canary+`"]}`)
	add("house:torn", "oauth", `{"access":"`+canary+`-access","refresh":"`+canary)
	add("house:long", "api_key", strings.Repeat(canary, 5000))

	for _, secret := range []string{secrets[1], canary + "-key"} {
		models.Fault(llm.Fault{Match: llm.Match{Key: secret}, Status: 401, Body: `{"error":{"message":"` + secret + ` is no key","type":"x","code":"` + secret + `"}}`})
	}
	signIns.Fault(oauth.Fault{Path: oauth.TokenPath, Grant: "refresh_token", Status: 400, Body: `{"error":"` + canary + `-dead-refresh","error_description":"` + canary + `"}`})
	status := verb("auth status --probe", "", func(ctx context.Context, o Options, std Std) int {
		return AuthStatus(ctx, o, std, StatusOptions{Probe: true, Check: true})
	})
	if strings.Count(status, "asked: auth") != 3 {
		t.Errorf("nobody was asked: %s", status)
	}
	for name, do := range map[string]DoctorOptions{
		"doctor": {}, "doctor --probe": {Probe: true}, "doctor --probe --json": {Probe: true, JSON: true},
	} {
		verb(name, "", func(ctx context.Context, o Options, std Std) int { return Doctor(ctx, o, std, do) })
	}

	// Legacy files with every kind of damage, here and in another directory.
	other := filepath.Join(t.TempDir(), "other")
	for i, text := range []string{
		`{"a":{"key":"` + canary,
		`{"a":7,"b":{"key":["` + canary + `"]},"c":{"type":"` + canary + `","key":"` + canary + `"}}`,
		`{"profiles":{"x:a":{"type":"oauth","provider":"x","access":"` + canary + `","refresh":"` + canary + `"},"x:b":{"type":"api_key","key":"` + canary + `"}}}`,
	} {
		for j, name := range []string{"auth-profiles.json", "auth.json", "auth-state.json", "../../../credentials/oauth.json"} {
			if i == 1 && j == 3 {
				continue
			}
			path := filepath.Join(other, "agents", []string{"main", "ops", "third"}[i], "agent", name)
			for _, file := range []string{path, filepath.Join(d.state, strings.TrimPrefix(path, other))} {
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, do := range []DoctorOptions{{}, {Fix: true}, {Fix: true, JSON: true}, {Fix: true, From: other}, {Fix: true, From: other, AdoptOAuth: true, JSON: true}} {
		verb("doctor", "", func(ctx context.Context, o Options, std Std) int { return Doctor(ctx, o, std, do) })
	}
	for _, r := range imports.Pending(t.Context(), imports.Options{StateDir: other, Main: "main", Rules: policy.DefaultRules(), Now: d.options().Clock.Now}) {
		if strings.Contains(r.Error, canary) {
			t.Errorf("%s: %s", r.Source, r.Error)
		}
	}
	verb("auth export", "", func(ctx context.Context, o Options, std Std) int { return AuthExport(ctx, o, std, ExportOptions{}) })
	verb("auth remove", "", func(ctx context.Context, o Options, std Std) int { return AuthRemove(ctx, o, std, "", "house:dead") })

	// A bot that runs with all that.
	verb("bot chat", "hello\n/status\n/why\n/models\n", func(ctx context.Context, o Options, std Std) int { return Chat(ctx, o, std, "terminal") })
}

// signInAt signs in as a person with a browser does.
func signInAt(t *testing.T, d *desk) {
	t.Helper()
	var wg sync.WaitGroup
	d.out.on = func(text string) {
		if page := address.FindString(text); strings.Contains(page, oauth.AuthorizePath) {
			wg.Go(func() { visit(t, page, true) })
		}
	}
	code, printed := d.do("", func(ctx context.Context, o Options, std Std) int {
		return AuthLogin(ctx, o, std, LoginOptions{Who: "house"})
	})
	wg.Wait()
	d.out.on = nil
	if code != ExitOK {
		t.Fatal(printed)
	}
}

func mustGet(t *testing.T, d *desk, id words.ProfileID) (p authstore.Profile) {
	t.Helper()
	s, err := authstore.Open(t.Context(), authstore.Path(d.state, "main"), authstore.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if p, err = s.Get(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return p
}
