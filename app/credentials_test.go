package app

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/authstore"
	"understudy/failover/policy"
	"understudy/internal/emulate/llm"
	"understudy/internal/emulate/oauth"
	"understudy/internal/secret"
	words "understudy/llm"
)

// desk is a state directory with a configuration, and what the verbs print there.
type desk struct {
	t     *testing.T
	state string
	file  string
	env   map[string]string
	out   lockedBuffer
}

// lockedBuffer is written by a verb while a test reads it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
	on func(text string)
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.b.Write(p)
	if b.on != nil {
		b.on(string(p))
	}
	return n, err
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func newDesk(t *testing.T, yaml string) *desk {
	t.Helper()
	d := &desk{t: t, state: filepath.Join(t.TempDir(), "state"), env: map[string]string{}}
	d.file = filepath.Join(t.TempDir(), "bot.yaml")
	if err := os.WriteFile(d.file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	d.env["OPENCLAW_STATE_DIR"] = d.state
	return d
}

func (d *desk) options() Options {
	return Options{Config: d.file, Listen: "off", Log: slog.New(slog.NewTextHandler(&d.out, nil)), Env: func(name string) (string, bool) {
		v, ok := d.env[name]
		return v, ok
	}}
}

// do runs a verb with text on standard input and returns its exit code and what it printed.
func (d *desk) do(input string, verb func(context.Context, Options, Std) int) (code int, printed string) {
	d.t.Helper()
	in := filepath.Join(d.t.TempDir(), "in")
	if err := os.WriteFile(in, []byte(input), 0o600); err != nil {
		d.t.Fatal(err)
	}
	f, err := os.Open(in)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	before := len(d.out.String())
	code = verb(d.t.Context(), d.options(), Std{In: f, Out: &d.out, Err: &d.out})
	return code, d.out.String()[before:]
}

func (d *desk) write(name, text string) string {
	d.t.Helper()
	path := filepath.Join(d.state, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
	return path
}

func (d *desk) read(path string) string {
	d.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(b)
}

func signInYAML(base, api string) string {
	return `
agents: {defaults: {model: {primary: house/m1, fallbacks: []}}}
models: {providers: {house: {baseUrl: "` + api + `/v1", api: openai-chat}}}
auth:
  providers:
    house: {authorizeUrl: "` + base + oauth.AuthorizePath + `", tokenUrl: "` + base + oauth.TokenPath + `", deviceUrl: "` + base + oauth.DevicePath + `", clientId: bot}
`
}

var address = regexp.MustCompile(`http://\S+`)

// visit follows the page like a browser does.
func visit(t *testing.T, page string, follow bool) (location string) {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true}
	c := &http.Client{Transport: tr}
	if !follow {
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	resp, err := c.Get(page)
	if err != nil {
		t.Error(err)
		return ""
	}
	resp.Body.Close()
	return resp.Header.Get("Location")
}

func TestSigningInAndBeingRenewed(t *testing.T) {
	house := &oauth.Server{ClientID: "bot", Email: "me@example.com", Lifetime: time.Minute} // so that every turn renews it
	base, stop := house.Listen()
	defer stop()
	model := llm.New()
	api := httptest.NewServer(model)
	defer api.Close()
	d := newDesk(t, signInYAML(base, api.URL))

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
	if code != ExitOK || !strings.Contains(printed, "house:me@example.com") {
		t.Fatalf("%d: %s", code, printed)
	}
	code, printed = d.do("", func(ctx context.Context, o Options, std Std) int {
		return AuthStatus(ctx, o, std, StatusOptions{Probe: true, Check: true})
	})
	if code != ExitOK || !strings.Contains(printed, "it works") || house.Count("refresh_token") != 1 {
		t.Errorf("%d after %d refreshes: %s", code, house.Count("refresh_token"), printed)
	}

	a, err := New(t.Context(), d.options())
	if err != nil {
		t.Fatal(err)
	}
	store, err := a.auth.get(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	cred, err := store.Credential(t.Context(), "house:me@example.com")
	if err != nil || !house.Alive(cred.Secret.Reveal()) || house.Count("refresh_token") != 2 {
		t.Errorf("the running bot: %v after %d refreshes", err, house.Count("refresh_token"))
	}
	a.log.Info("canary", "text", "it said "+cred.Secret.Reveal())
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if strings.Contains(d.out.String(), cred.Secret.Reveal()) {
		t.Error("the log shows a token that is in use")
	}
	for _, r := range model.Requests() {
		if auth := http.Header(r.Header).Get("Authorization"); !strings.HasPrefix(auth, "Bearer access-") {
			t.Errorf("asked with %q", auth)
		}
	}
}

func TestSigningInWithoutABrowser(t *testing.T) {
	house := &oauth.Server{ClientID: "bot", Email: "me@example.com"}
	base, stop := house.Listen()
	defer stop()
	d := newDesk(t, signInYAML(base, base))
	code, printed := d.do("nonsense\n", func(ctx context.Context, o Options, std Std) int {
		return AuthLogin(ctx, o, std, LoginOptions{Who: "house", Paste: true})
	})
	if code != ExitFailed {
		t.Errorf("%d: %s", code, printed)
	}
	// A person at a second terminal: what is pasted depends on what was printed.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	d.out.on = func(text string) {
		if page := address.FindString(text); strings.Contains(page, oauth.AuthorizePath) {
			if _, err := io.WriteString(w, visit(t, page, false)+"\n"); err != nil {
				t.Error(err)
			}
			w.Close()
		}
	}
	code = AuthLogin(t.Context(), d.options(), Std{In: r, Out: &d.out, Err: &d.out}, LoginOptions{Who: "house:work", Paste: true})
	d.out.on = nil
	if code != ExitOK || !strings.Contains(d.out.String(), "stored as house:work") {
		t.Errorf("%d: %s", code, d.out.String())
	}
	for _, lo := range []LoginOptions{{Who: "house", Paste: true, Device: true}, {Who: "nobody"}, {Who: ":x"}} {
		if code, printed := d.do("", func(ctx context.Context, o Options, std Std) int { return AuthLogin(ctx, o, std, lo) }); code == ExitOK {
			t.Errorf("%+v: %s", lo, printed)
		}
	}
}

const canary = "canary-9f2e71-secret"

func TestVerbsShowNoSecret(t *testing.T) {
	d := newDesk(t, "agents: {defaults: {model: {primary: openai/gpt-5.5}}}")
	d.env["HOUSE_KEY"] = canary + "-env"
	add := func(n NewCredential, input string) (int, string) {
		return d.do(input, func(ctx context.Context, o Options, std Std) int { return AuthAdd(ctx, o, std, n) })
	}
	for _, x := range []struct {
		n     NewCredential
		input string
		code  int
	}{
		{NewCredential{Profile: "openai:a", Type: "api_key"}, canary + "\n", ExitOK},
		{NewCredential{Profile: "openai:b", Type: "token", FromEnv: "HOUSE_KEY"}, "", ExitOK},
		{NewCredential{Profile: "openai:c", Type: "oauth"}, canary + "-refresh", ExitOK},
		{NewCredential{Profile: "openai:d", Type: "oauth"}, `{"access":"` + canary + `","refresh":"` + canary + `","expires":1772445600000,"xFuture":"` + canary + `"}`, ExitOK},
		{NewCredential{Profile: "openai:e", Type: "oauth"}, `{"key":"` + canary + `"}`, ExitFailed},
		{NewCredential{Profile: "openai:f", Type: "oauth"}, `{"access":"` + canary, ExitFailed},
		{NewCredential{Profile: "openai:g", Type: "api_key"}, "  \n", ExitFailed},
		{NewCredential{Profile: "openai:h", Type: "api_key", FromEnv: "NOT_SET"}, "", ExitFailed},
		{NewCredential{Profile: "nonsense", Type: "api_key"}, canary, ExitFailed},
	} {
		if code, printed := add(x.n, x.input); code != x.code {
			t.Errorf("%+v: %d: %s", x.n, code, printed)
		}
	}
	export := func(eo ExportOptions) (int, string) {
		return d.do("", func(ctx context.Context, o Options, std Std) int { return AuthExport(ctx, o, std, eo) })
	}
	for _, verb := range []func(context.Context, Options, Std) int{
		func(ctx context.Context, o Options, std Std) int { return AuthStatus(ctx, o, std, StatusOptions{}) },
		func(ctx context.Context, o Options, std Std) int {
			return AuthStatus(ctx, o, std, StatusOptions{JSON: true})
		},
		func(ctx context.Context, o Options, std Std) int {
			return AuthOrderSet(ctx, o, std, "", "openai", []string{"openai:b", "openai:a"})
		},
		func(ctx context.Context, o Options, std Std) int { return AuthOrderGet(ctx, o, std, "", "openai") },
		func(ctx context.Context, o Options, std Std) int { return AuthOrderClear(ctx, o, std, "", "openai") },
		func(ctx context.Context, o Options, std Std) int { return AuthEnable(ctx, o, std, "", "openai") },
		func(ctx context.Context, o Options, std Std) int { return Doctor(ctx, o, std, DoctorOptions{}) },
		func(ctx context.Context, o Options, std Std) int { return AuthRemove(ctx, o, std, "", "openai:c") },
	} {
		if code, printed := d.do("", verb); code != ExitOK {
			t.Errorf("%d: %s", code, printed)
		}
	}
	if code, _ := export(ExportOptions{}); code != ExitOK {
		t.Errorf("export: %d", code)
	}
	if code, _ := export(ExportOptions{Secrets: true}); code != ExitUsage {
		t.Errorf("asked once: %d", code)
	}
	if strings.Contains(d.out.String(), canary[:12]) {
		t.Errorf("a secret was printed:\n%s", d.out.String())
	}
	code, printed := export(ExportOptions{Secrets: true, Really: true})
	var doc struct{ Profiles map[string]map[string]any }
	if err := json.Unmarshal([]byte(printed), &doc); err != nil || code != ExitOK {
		t.Fatal(code, err)
	}
	if p := doc.Profiles["openai:d"]; p["access"] != canary || p["refresh"] != canary || p["xFuture"] != canary || p["expires"] != 1772445600000.0 {
		t.Errorf("exported %v", p)
	}
}

func TestWaitingCredentialsAreToldAndImported(t *testing.T) {
	d := newDesk(t, "agents: {defaults: {model: {primary: openai/gpt-5.5}}}")
	file := d.write("agents/main/agent/auth-profiles.json", `{"version":1,"profiles":{"openai:work":{"type":"api_key","provider":"openai","key":"`+canary+`"},"openai:odd":{"type":"x","provider":"openai"}}}`)
	d.write("credentials/oauth.json", `{"anthropic":{"access":"`+canary+`","refresh":"r","expires":5000000000000}}`)
	a, err := New(t.Context(), d.options())
	if err != nil {
		t.Fatal(err)
	}
	told := strings.Join(a.problems(t.Context()), "\n")
	if !strings.Contains(told, file) || !strings.Contains(told, importCommand) {
		t.Errorf("/status says %q", told)
	}
	if log := d.out.String(); !strings.Contains(log, "credentials_to_import") || !strings.Contains(log, "shared_sign_ins_imported") {
		t.Errorf("the log says %s", log)
	}
	store, err := a.auth.get(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	if p, err := store.Get(t.Context(), "anthropic:default"); err != nil || p.Secret != secret.New(canary) {
		t.Errorf("the shared sign-in: %v", err)
	}
	doctor := func(do DoctorOptions) (int, string) {
		return d.do("", func(ctx context.Context, o Options, std Std) int { return Doctor(ctx, o, std, do) })
	}
	if code, printed := doctor(DoctorOptions{}); code != ExitOK || !strings.Contains(printed, "wait to be imported") {
		t.Errorf("%d: %s", code, printed)
	}
	code, printed := doctor(DoctorOptions{Fix: true, JSON: true}) // beside the running bot
	var report struct {
		OK       bool
		Findings []finding
	}
	if err := json.Unmarshal([]byte(printed), &report); err != nil || code != ExitOK || !report.OK {
		t.Fatalf("%d %v: %s", code, err, printed)
	}
	if !strings.Contains(printed, "openai:odd") {
		t.Errorf("the unusable entry is not named: %s", printed)
	}
	if cred, err := store.Credential(t.Context(), "openai:work"); err != nil || cred.Secret != secret.New(canary) {
		t.Errorf("the running bot does not see it: %v", err)
	}
	if told := a.problems(t.Context()); len(told) > 0 {
		t.Errorf("still told: %v", told)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if strings.Contains(d.out.String(), canary) {
		t.Error("a secret was shown")
	}
}

func TestDoctorFindsWhatIsWrong(t *testing.T) {
	d := newDesk(t, "agents: {defaults: {model: {primary: openai/gpt-5.5}}}\nmodels: {providers: {openai: {apiKey: '${MISSING_KEY}'}}}\n")
	d.write("agents/main/agent/openclaw-agent.sqlite", "this is no database, but it is long enough to have a header of a hundred bytes, which it has not, as one sees here.....")
	d.write("agents/main/agent/auth.json", `{"openai":{"key":`)
	doctor := func(do DoctorOptions) (int, string) {
		return d.do("", func(ctx context.Context, o Options, std Std) int { return Doctor(ctx, o, std, do) })
	}
	code, printed := doctor(DoctorOptions{})
	for _, want := range []string{"MISSING_KEY", "is damaged", "auth.json was left alone", "other users can reach", "chmod 700"} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is not told in\n%s", want, printed)
		}
	}
	if code != ExitFailed {
		t.Errorf("exit code %d", code)
	}
	if code, printed := doctor(DoctorOptions{JSON: true}); code != ExitOK || !strings.Contains(printed, `"ok": false`) {
		t.Errorf("%d: %s", code, printed)
	}
	if _, printed = doctor(DoctorOptions{Fix: true}); !strings.Contains(printed, "from other users") {
		t.Errorf("nothing was fixed:\n%s", printed)
	}
	if info, err := os.Stat(filepath.Join(d.state, "agents")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if code, _ := doctor(DoctorOptions{From: d.state}); code != ExitUsage {
		t.Errorf("--from without --fix: %d", code)
	}
	if code, printed := doctor(DoctorOptions{Fix: true, From: d.state}); code != ExitFailed || !strings.Contains(printed, "another state directory") {
		t.Errorf("%d: %s", code, printed)
	}
	if err := os.WriteFile(d.file, []byte("agnets: 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, printed := doctor(DoctorOptions{}); code != ExitFailed || !strings.Contains(printed, "agnets") {
		t.Errorf("%d: %s", code, printed)
	}
}

func TestCheckNamesModelsWithoutACredential(t *testing.T) {
	d := newDesk(t, "agents: {defaults: {model: {primary: openai/gpt-5.5, fallbacks: [anthropic/claude-opus-4-8]}}}")
	check := func() (int, string) {
		return d.do("", func(ctx context.Context, o Options, std Std) int {
			return AuthStatus(ctx, o, std, StatusOptions{Check: true})
		})
	}
	if code, printed := check(); code != ExitFailed || !strings.Contains(printed, "openai/gpt-5.5") || !strings.Contains(printed, "anthropic/") {
		t.Errorf("%d: %s", code, printed)
	}
	d.env["OPENAI_API_KEY"], d.env["ANTHROPIC_API_KEY"] = "sk-1", "sk-2"
	if code, printed := check(); code != ExitOK {
		t.Errorf("%d: %s", code, printed)
	}
}

func TestReferencedKeysAreUsed(t *testing.T) {
	d := newDesk(t, "")
	d.env["REFERRED_KEY"] = canary
	d.write("agents/main/agent/auth.json", `{"openai":{"key":{"source":"env","id":"REFERRED_KEY"}}}`)
	if code, printed := d.do("", func(ctx context.Context, o Options, std Std) int {
		return Doctor(ctx, o, std, DoctorOptions{Fix: true})
	}); code != ExitOK {
		t.Fatalf("%d: %s", code, printed)
	}
	code := withStore(t.Context(), d.options(), Std{Out: &d.out, Err: &d.out}, "", func(s *authstore.Store) error {
		cred, err := s.Credential(t.Context(), "openai:default")
		if err == nil && (cred.Secret != secret.New(canary) || cred.Kind != words.KindAPIKey) {
			t.Errorf("got %v", cred)
		}
		return err
	})
	if code != ExitOK {
		t.Error(d.out.String())
	}
}

func TestAListOfKeysIsSeveralProfiles(t *testing.T) {
	d := newDesk(t, "agents: {defaults: {model: {primary: openai/gpt-5.5}}}")
	d.env["OPENAI_API_KEY"], d.env["OPENAI_API_KEYS"] = canary+"-1", canary+"-2, "+canary+"-1\n"+canary+"-3"
	a, err := New(t.Context(), d.options())
	if err != nil {
		t.Fatal(err)
	}
	snap := a.current.Load()
	var got []string
	for _, id := range snap.profiles(policy.Snapshot{}, words.ModelRef{Provider: "openai", Model: "gpt-5.5"}, time.Now()) {
		got = append(got, string(id))
	}
	if want := "openai:env openai:env-2 openai:env-3"; strings.Join(got, " ") != want {
		t.Errorf("profiles %v", got)
	}
	if keys := snap.settings.Keys["openai"]; len(keys) != 2 || keys[1].Secret != secret.New(canary+"-3") {
		t.Errorf("keys %v", keys)
	}
	if !(selectable{a}).ProfileExists(t.Context(), "main", "openai:env-3") {
		t.Error("/model cannot name them")
	}
	a.log.Info("canary", "text", canary+"-2")
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if strings.Contains(d.out.String(), canary+"-2") {
		t.Error("the log shows a key of the list")
	}
}
