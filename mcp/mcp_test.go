package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"understudy/internal/secret"
)

func secrets(pairs ...string) map[string]secret.String {
	m := map[string]secret.String{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = secret.New(pairs[i+1])
	}
	return m
}

func names(list []Tool) (out []string) {
	for _, x := range list {
		out = append(out, x.Name)
	}
	return out
}

func TestAServerOverItsStandardInput(t *testing.T) {
	t.Setenv("UNDERSTUDY_TEST_PRIVATE", "a key of the bot")
	cfg := local("tools")
	cfg.Env["GREETING"] = secret.New("hello")
	s := start(t, Config{Servers: map[string]Server{"box": cfg}}, Deps{})
	for _, c := range []struct{ tool, input, want string }{
		{"echo", `{"text":"hi"}`, "hi"},
		{"echo", ``, "<nil>"},
		{"mixed", `{}`, "text\n[image: image/png, 3 bytes]\n[audio: audio/wav, 3 bytes]\n[image: image/png, 7 bytes]\n[resource: n file:///x]\ninside\n[resource: file:///z, 4 bytes]"},
	} {
		if got, err := call(t, s, "box__"+c.tool, c.input); err != nil || got.Text != c.want || got.IsError {
			t.Errorf("%s: %+v, %v", c.tool, got, err)
		}
	}
	got, err := call(t, s, "box__mixed", `{}`)
	want := []File{{"picture.png", "image/png", []byte("png")}, {"sound.wav", "audio/wav", []byte("wav")}, {"z", "application/octet-stream", []byte("blob")}}
	if err != nil || !reflect.DeepEqual(got.Files, want) {
		t.Errorf("files %+v, %v", got.Files, err)
	}
	if got, err := call(t, s, "box__fail", `{}`); err != nil || !got.IsError || got.Text != "no such thing" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := call(t, s, "box__refuse", `{}`); err != nil || !got.IsError || !strings.Contains(got.Text, "not today") {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = call(t, s, "box__env", `{}`)
	if err != nil || !strings.Contains(got.Text, "GREETING=hello") || strings.Contains(got.Text, "a key of the bot") {
		t.Errorf("its environment is\n%s\n%v", got.Text, err)
	}
	got, err = call(t, s, "box__flood", `{}`)
	if err != nil || len(got.Text) > defaultMaxOutput+64 || !utf8.ValidString(got.Text) || !strings.Contains(got.Text, "[cut: ") {
		t.Errorf("%d bytes, %v", len(got.Text), err)
	}
	if st := s.Status(); len(st) != 1 || st[0].State != Ready || st[0].Tools < 9 || st[0].Problem != "" {
		t.Errorf("%+v", st)
	}
}

func TestACallIsMadeOnceAndTheServerComesBack(t *testing.T) {
	s := start(t, Config{Servers: map[string]Server{"box": local("tools")}}, Deps{})
	before := names(waitFor(t, s))
	if _, err := call(t, s, "box__crash", `{}`); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	if after := names(s.Tools("main", "web", false)); !slices.Equal(before, after) {
		t.Errorf("a server that is away changes the prompt: %v", after)
	}
	if got, err := call(t, s, "box__echo", `{"text":"again"}`); err != nil || got.Text != "again" {
		t.Errorf("%+v, %v", got, err)
	}
}

func waitFor(t *testing.T, s *Servers) (list []Tool) {
	t.Helper()
	until(t, "tools", func() bool { list = s.Tools("main", "web", false); return len(list) > 0 })
	return list
}

func TestAHangingToolIsGivenUp(t *testing.T) {
	slow := local("tools")
	slow.TimeoutSeconds = 1
	s := start(t, Config{Servers: map[string]Server{"box": slow}}, Deps{})
	if _, err := call(t, s, "box__hang", `{}`); !errors.Is(err, errTooSlow) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped by the user")
	cancel(stopped)
	for _, x := range s.Tools("main", "web", false) {
		if x.Name == "box__hang" {
			if _, err := x.Call(ctx, nil); !errors.Is(err, stopped) {
				t.Errorf("got %v", err)
			}
		}
	}
	if got, err := call(t, s, "box__echo", `{"text":"alive"}`); err != nil || got.Text != "alive" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestNoProcessIsLeft(t *testing.T) {
	s, err := New(Config{Servers: map[string]Server{"box": local("tools")}}, Deps{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Run(ctx) }()
	got, err := call(t, s, "box__child", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	pid, err := strconv.Atoi(got.Text)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the child ends", func() bool { return gone(pid) })
	if _, err := call(t, s, "box__echo", `{}`); !errors.Is(err, errAway) {
		t.Errorf("a call after the end: %v", err)
	}
}

// gone reports whether a process has ended: also one that nobody has waited for yet.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestServersThatMakeNoSense(t *testing.T) {
	s := start(t, Config{Servers: map[string]Server{
		"absent": {Command: "/no/such/program"},
		"flood":  local("flood"),
		"good":   local("tools"),
	}}, Deps{})
	waitFor(t, s)
	until(t, "both are away", func() bool {
		st := s.Status()
		return len(st) == 3 && st[0].State == Away && st[0].Problem != "" && st[1].State == Away && st[1].Problem != ""
	})
	if got, err := call(t, s, "good__echo", `{"text":"fine"}`); err != nil || got.Text != "fine" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAToolListThatChanges(t *testing.T) {
	s := start(t, Config{Servers: map[string]Server{"box": local("tools")}}, Deps{})
	if _, err := call(t, s, "box__grow", `{}`); err != nil {
		t.Fatal(err)
	}
	if got, err := call(t, s, "box__grown", `{}`); err != nil || got.Text != "new" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAServerOverHTTP(t *testing.T) {
	var mu sync.Mutex
	var keys []string
	handler := sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, r.Header.Get("X-Key"))
		return toolServer()
	}, nil)
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close) // after the servers have ended
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	var log strings.Builder
	s := start(t, Config{Servers: map[string]Server{"web": {URL: web.URL, Headers: secrets("X-Key", "a-very-secret-key"), TimeoutSeconds: 20}}},
		Deps{Transport: transport, Log: slog.New(slog.NewTextHandler(&locked{w: &log}, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if got, err := call(t, s, "web__echo", `{"text":"over http"}`); err != nil || got.Text != "over http" {
		t.Errorf("%+v, %v", got, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Contains(keys, "a-very-secret-key") {
		t.Errorf("the headers did not arrive: %v", keys)
	}
	if strings.Contains(log.String(), "a-very-secret-key") {
		t.Error("a header is in the log")
	}
}

// locked lets several goroutines write.
type locked struct {
	mu sync.Mutex
	w  *strings.Builder
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func TestHeadersFollowNoRedirectToAnotherHost(t *testing.T) {
	stolen := make(chan string, 8)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen <- r.Header.Get("X-Key") }))
	t.Cleanup(thief.Close)
	web := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	t.Cleanup(web.Close)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	s := start(t, Config{Servers: map[string]Server{"web": {URL: web.URL, Headers: secrets("X-Key", "k")}}}, Deps{Transport: transport})
	until(t, "it is away", func() bool { st := s.Status(); return len(st) == 1 && st[0].State == Away })
	if len(stolen) != 0 {
		t.Errorf("the other host got %q", <-stolen)
	}
}

func TestWhoMayUseWhat(t *testing.T) {
	all, ops, chats := local("tools"), local("tools"), local("tools")
	all.Groups = true
	all.Tools = Filter{Allow: []string{"e*", "fail"}, Deny: []string{"env"}, Approve: []string{"f*"}}
	ops.Agents, ops.Tools.Allow = []string{"ops"}, []string{"echo"}
	chats.Channels, chats.Tools.Allow = []string{"slack", "discord"}, []string{"echo"}
	s := start(t, Config{Servers: map[string]Server{"all": all, "ops": ops, "chats": chats}}, Deps{})
	until(t, "all servers are ready", func() bool {
		st := s.Status()
		return len(st) == 3 && !slices.ContainsFunc(st, func(x Status) bool { return x.State != Ready })
	})
	for _, c := range []struct {
		agent, channel string
		group          bool
		want           string
	}{
		{"main", "web", false, "all__echo all__fail"},
		{"main", "slack", false, "all__echo all__fail chats__echo"},
		{"main", "slack", true, "all__echo all__fail"},
		{"ops", "web", false, "all__echo all__fail ops__echo"},
		{"ops", "discord", false, "all__echo all__fail chats__echo ops__echo"},
	} {
		tools := s.Tools(c.agent, c.channel, c.group)
		if got := strings.Join(names(tools), " "); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
		for _, x := range tools {
			if x.Approve != (x.Name == "all__fail") || x.Timeout != 20*time.Second || strings.Contains(x.Description, "<|") {
				t.Errorf("%+v", x)
			}
		}
	}
}

// A server chooses the names of its tools: nothing in one may get it past what the operator wrote.
func TestPatternsHoldWhateverAToolIsCalled(t *testing.T) {
	asks, denies, wants := local("tools"), local("tools"), local("tools")
	asks.Tools = Filter{Allow: []string{"echo", "files/write"}, Approve: []string{"*"}}
	denies.Tools = Filter{Allow: []string{"e*", "f*"}, Deny: []string{"files*", "f*"}}
	wants.Tools = Filter{Allow: []string{"*write"}}
	s := start(t, Config{Servers: map[string]Server{"asks": asks, "denies": denies, "wants": wants}}, Deps{})
	until(t, "all servers are ready", func() bool {
		st := s.Status()
		return len(st) == 3 && !slices.ContainsFunc(st, func(x Status) bool { return x.State != Ready })
	})
	slash := publicName("asks", "files/write")
	tools := s.Tools("main", "web", false)
	want := []string{"asks__echo", slash, "denies__echo", "denies__env", publicName("wants", "files/write")}
	if got := names(tools); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, x := range tools {
		if x.Approve != (x.Server == "asks") {
			t.Errorf("%s: approve %v", x.Name, x.Approve)
		}
	}
}

func TestAllServersShareOneBound(t *testing.T) {
	crowd := func() *sdk.Server {
		s := sdk.NewServer(&sdk.Implementation{Name: "crowd", Version: "1"}, nil)
		for i := range 70 {
			s.AddTool(&sdk.Tool{Name: "tool" + strconv.Itoa(i), InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
		}
		return s
	}
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return crowd() }, nil))
	t.Cleanup(web.Close)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	var log strings.Builder
	many := Server{URL: web.URL, TimeoutSeconds: 20}
	s := start(t, Config{Servers: map[string]Server{"first": many, "second": many}},
		Deps{Transport: transport, Log: slog.New(slog.NewTextHandler(&locked{w: &log}, nil))})
	until(t, "both are ready", func() bool {
		st := s.Status()
		return len(st) == 2 && st[0].State == Ready && st[1].State == Ready
	})
	for range 3 {
		list := s.Tools("main", "web", false)
		if len(list) != mostTools || list[69].Server != "first" || list[70].Server != "second" {
			t.Errorf("%d tools: %q", len(list), names(list))
		}
	}
	if st := s.Status(); st[0].LeftOut || !st[1].LeftOut {
		t.Errorf("%+v", st)
	}
	if n := strings.Count(log.String(), "tools left out"); n != 1 || !strings.Contains(log.String(), "server=second") {
		t.Errorf("the log tells it %d times: %s", n, log.String())
	}
	if err := s.Reload(Config{Servers: map[string]Server{"second": many}}); err != nil {
		t.Fatal(err)
	}
	if n, st := len(s.Tools("main", "web", false)), s.Status(); n != 70 || st[0].LeftOut {
		t.Errorf("with room for all of them: %d, %+v", n, st)
	}
}

func TestAReloadRestartsOnlyWhatChanged(t *testing.T) {
	s := start(t, Config{Servers: map[string]Server{"a": local("tools"), "b": local("tools")}}, Deps{})
	waitFor(t, s)
	s.mu.Lock()
	kept := s.running["a"]
	s.mu.Unlock()
	changed := local("tools")
	changed.Tools.Allow = []string{"echo"}
	off := false
	if err := s.Reload(Config{Servers: map[string]Server{"a": local("tools"), "b": changed, "c": {Command: "x", Enabled: &off}}}); err != nil {
		t.Fatal(err)
	}
	if got, err := call(t, s, "b__echo", `{"text":"b"}`); err != nil || got.Text != "b" {
		t.Errorf("%+v, %v", got, err)
	}
	s.mu.Lock()
	if s.running["a"] != kept || len(s.running) != 2 {
		t.Error("a server without a change was restarted, or a disabled one started")
	}
	s.mu.Unlock()
	if err := s.Reload(Config{Servers: map[string]Server{"A": {}}}); err == nil {
		t.Error("a wrong configuration was taken")
	}
	if err := s.Reload(Config{}); err != nil {
		t.Fatal(err)
	}
	if got := s.Tools("main", "web", false); len(got) != 0 {
		t.Errorf("left: %v", names(got))
	}
}

func TestConfigProblemsSayWhere(t *testing.T) {
	for want, srv := range map[string]Server{
		"servers.x.command: either":        {},
		"servers.x.url: a server has":      {Command: "a", URL: "https://a.example"},
		"servers.x.url: an http":           {URL: "ftp://a.example"},
		"servers.x.url: put credentials":   {URL: "https://me:pw@a.example"},
		"servers.x.args: args":             {URL: "https://a.example", Args: []string{"-v"}},
		"servers.x.headers: headers":       {Command: "a", Headers: secrets("A", "b")},
		"servers.x.env.A B:":               {Command: "a", Env: secrets("A B", "c")},
		"servers.x.headers.X-A:":           {URL: "https://a.example", Headers: secrets("X-A", "b\r\nC: d")},
		"servers.x.timeoutSeconds: must":   {Command: "a", TimeoutSeconds: -1},
		"servers.x.maxOutputBytes: must":   {Command: "a", MaxOutputBytes: 7},
		"servers.x.tools.allow: \"[\" is ": {Command: "a", Tools: Filter{Allow: []string{"["}}},
		"servers.x.tools.deny: \"rm?\" is": {Command: "a", Tools: Filter{Deny: []string{"rm?"}}},
		"servers.x.tools.approve: \"\" is": {Command: "a", Tools: Filter{Approve: []string{""}}},
	} {
		err := Config{Servers: map[string]Server{"x": srv}}.Validate()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("a secret is in %v", err)
		}
	}
	if err := (Config{Servers: map[string]Server{"Bad Name": {Command: "a"}}}).Validate(); err == nil {
		t.Error("a bad name was taken")
	}
}

// FuzzTools: whatever a server says about a tool, model APIs get a name, a description and a schema
// that they accept.
func FuzzTools(f *testing.F) {
	f.Add("box", "read file", "reads", `{"type":"object","properties":{"a":{"type":"string"}}}`)
	f.Add("box", strings.Repeat("x", 100), "<|im_start|>", `{"type":"array"}`)
	f.Add("a", "", "\x00\x1b[31m", `7`)
	f.Fuzz(func(t *testing.T, server, tool, about, input string) {
		if !serverName.MatchString(server) {
			t.Skip()
		}
		name := publicName(server, tool)
		if len(name) > longestName || foreign.MatchString(name) || !strings.HasPrefix(name, server+"__") {
			t.Errorf("name %q", name)
		}
		text := description(&sdk.Tool{Description: about})
		if utf8.RuneCountInString(text) > longestDescription || !utf8.ValidString(text) || strings.Contains(text, "<|im_start|>") {
			t.Errorf("description %q", text)
		}
		var parsed any
		if json.Unmarshal([]byte(input), &parsed) != nil {
			t.Skip()
		}
		raw, err := schema(parsed)
		if err != nil {
			return
		}
		var got struct {
			Type       string         `json:"type"`
			Properties map[string]any `json:"properties"`
		}
		if err := json.Unmarshal(raw, &got); err != nil || got.Type != "object" || got.Properties == nil {
			t.Errorf("schema %s: %v", raw, err)
		}
	})
}
