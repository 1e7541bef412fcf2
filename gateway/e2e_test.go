//go:build e2e

package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/channels"
	"understudy/channels/web"
	"understudy/chat"
	"understudy/gateway"
	"understudy/internal/secret"
)

// stage is a gateway with the web channel and no bot behind it: the test says the answers.
type stage struct {
	t       *testing.T
	server  *gateway.Server
	adapter *web.Adapter
	listen  string // where it listened before it was stopped
	stop    func()
	past    shelf
	quick   bool // messages are dealt with before they count as stored
	arrived chan chat.Inbound

	mu      sync.Mutex
	active  string // the answering model, when it is not the selected one
	resting bool   // no credential can serve the selected model
}

func (s *stage) Accept(_ context.Context, m chat.Inbound) error {
	if s.quick {
		s.adapter.Finished(m.Address, m.ID, 1)
	}
	s.arrived <- m
	return nil
}

// shelf is what the bot remembers, by session.
type shelf map[string][]web.Entry

func (x shelf) Sessions(context.Context) (list []web.Session, err error) {
	for id, entries := range x {
		list = append(list, web.Session{ID: id, Title: entries[0].Text, UpdatedAt: entries[len(entries)-1].At})
	}
	return list, nil
}

func (x shelf) Transcript(_ context.Context, session string, _ int) ([]web.Entry, error) {
	return x[session], nil
}

func (x shelf) Waits(_ context.Context, session, id string) (bool, error) {
	return slices.ContainsFunc(x[session], func(e web.Entry) bool { return e.ID == id }), nil
}

func (s *stage) Status(channels.Status) {}

// source tells the status.
type source struct{ *stage }

func (source) Ready(context.Context) (gateway.Readiness, []gateway.Problem) {
	return gateway.Ready, nil
}

func (s source) Status(context.Context, chat.Address) (gateway.Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := gateway.Status{
		Version: "1.0.0", StartedAt: time.Now().Add(-3 * time.Hour), Readiness: gateway.Ready,
		Model: gateway.ModelStatus{
			Selected: "anthropic/claude-opus-5", Source: "default",
			Fallbacks: []string{"openai/gpt-5.5", "ollama/qwen3"},
		},
		Channels: []gateway.ChannelStatus{
			{Channel: "telegram", Account: "default", State: "connected", Since: time.Now()},
			{Channel: "slack", Account: "default", State: "reconnecting", Detail: "the connection was closed", Since: time.Now()},
			{Channel: "web", State: "connected", Since: time.Now()},
		},
	}
	if s.active != "" {
		st.Model.Active, st.Model.Reason = s.active, "rate limited"
		st.Profiles = []gateway.ProfileStatus{{Profile: "anthropic:default", Model: "claude-opus-5", State: "cooldown", Reason: "rate limit", Until: time.Now().Add(5 * time.Minute)}}
	}
	if st.Model.Credential = "ok"; s.resting {
		st.Model.Credential, st.Model.Until = "resting", time.Now().Add(5*time.Minute)
	}
	return st, nil
}

func openStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, arrived: make(chan chat.Inbound, 8), listen: "127.0.0.1:0", past: shelf{}}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

// start begins as a new process does: with what is stored, at the same address.
func (s *stage) start() {
	t := s.t
	t.Helper()
	var err error
	if s.adapter, err = web.New(web.Config{}, web.Deps{History: s.past}); err != nil {
		t.Fatal(err)
	}
	cfg := gateway.Config{Listen: s.listen, Token: secret.New("a token of a bot that starts again")}
	if s.server, err = gateway.New(cfg, gateway.Deps{Status: source{s}}); err != nil {
		t.Fatal(err)
	}
	s.listen = s.server.Addr()
	s.server.Handle("/api/", gateway.Owner, s.adapter.Handler())
	err = s.adapter.RegisterCommands(t.Context(), []channels.CommandInfo{
		{Name: "help", Description: "The common commands"},
		{Name: "model", Description: "Show or choose the model of this chat", Args: "[name]"},
		{Name: "models", Description: "List the models", Args: "[provider] [page]"},
		{Name: "new", Description: "Start over with an empty conversation", Args: "[model]"},
		{Name: "status", Description: "How the bot is doing"},
		{Name: "stop", Description: "Stop the running answer"},
		{Name: "why", Description: "Why this model answered"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.adapter.Run(ctx, s) })
	running.Go(func() { _ = s.server.Run(ctx) })
	s.stop = func() {
		cancel()
		running.Wait()
	}
}

func (s *stage) next() chat.Inbound {
	s.t.Helper()
	select {
	case m := <-s.arrived:
		return m
	case <-time.After(20 * time.Second):
		s.t.Fatal("no message arrived")
	}
	return chat.Inbound{}
}

func (s *stage) send(to chat.Address, class chat.Class, text string, buttons ...chat.Button) string {
	s.t.Helper()
	r, err := s.adapter.Send(s.t.Context(), channels.Piece{To: to, Class: class, Text: text, Buttons: buttons})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.IDs[0]
}

func (s *stage) edit(to chat.Address, id, text string) {
	s.t.Helper()
	if err := s.adapter.Edit(s.t.Context(), to, id, channels.Piece{Class: chat.Assistant, Text: text}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) typing(to chat.Address) {
	s.t.Helper()
	if err := s.adapter.Typing(s.t.Context(), to); err != nil {
		s.t.Fatal(err)
	}
}

const answer = "A **circuit breaker** stops calling a service that keeps failing:\n\n" +
	"1. *Closed*: calls pass, failures are counted.\n2. *Open*: calls fail at once.\n3. *Half open*: one call tries.\n\n" +
	"```go\nif breaker.Open(now) {\n\treturn ErrUnavailable // see https://example.com/a/very/long/address/that/does/not/fit/on/a/phone\n}\n```\n\n" +
	"| State | Calls | Next |\n| --- | ---: | --- |\n| closed | 1,204 | `open` after 5 failures |\n| open | 0 | `half open` after 30 s |\n\n" +
	"More in [the original article](https://martinfowler.com/bliki/CircuitBreaker.html).\n\n" +
	"<script>alert(1)</script><img src=x onerror=alert(2)> [bad](javascript:alert(3)) ![pixel](https://tracker.example/p.png)"

// TestPage walks through the page as its owner does.
func TestPage(t *testing.T) {
	b := openBrowser(t)
	s := openStage(t)
	b.screen(1280, 800, "light")

	// Without the link there is only the sign-in form.
	b.open(s.server.URL())
	b.wait(`!document.querySelector("#sign-in").hidden && document.querySelector("#app").hidden`)
	b.shot("sign-in")

	b.open(s.server.SignInURL())
	b.wait(`!document.querySelector("#app").hidden && document.querySelector(".welcome")`)
	if got := b.eval("location.search + document.cookie"); got != `""` {
		t.Errorf("the token is still in the address bar, or the cookie is readable: %s", got)
	}
	b.wait(`document.querySelector("#pill-text").textContent === "claude-opus-5"`)
	b.shot("welcome")
	s.converse(b)
	s.complete(b)
	s.sessions(b)
	s.reload(b)
	s.pictures(b)
	for _, p := range b.errors() {
		if !strings.Contains(p, "401") { // the requests before signing in
			t.Errorf("the page logged an error: %s", p)
		}
	}
}

// converse sends a message, sees the answer grow below a notice, and stays out of reach of HTML.
func (s *stage) converse(b *browser) {
	b.wait(`document.activeElement.id === "input"`)
	b.keys("What is a circuit breaker, in three sentences?\nWith an example.")
	b.press("Enter", 13)
	m := s.next()
	s.typing(m.Address)
	b.wait(`document.querySelector(".own").textContent.includes("circuit breaker") && document.querySelector(".working")`)
	s.mu.Lock()
	s.active = "openai/gpt-5.5"
	s.mu.Unlock()
	s.send(m.Address, chat.Notice, "↪️ Model Fallback: openai/gpt-5.5 (selected anthropic/claude-opus-5; rate limited)")
	b.wait(`document.querySelector(".notice") && document.querySelector(".working")`)
	id := s.send(m.Address, chat.Assistant, answer[:120])
	b.wait(`document.querySelector(".growing") && !document.querySelector(".working")`)
	b.shot("streaming")
	s.edit(m.Address, id, "…")
	b.wait(`document.querySelector(".answer .body").textContent.trim() === "…"`)
	s.edit(m.Address, id, answer)
	s.adapter.Finished(m.Address, m.ID, 1)
	b.wait(`document.querySelector(".answer table") && !document.querySelector(".growing") && document.querySelector("#stop").hidden`)
	b.wait(`document.querySelector("#pill").dataset.state === "warn"`)
	if got := b.eval(`document.querySelectorAll("#log script, #log img:not([src='/icon.svg']), #log [onerror]").length`); got != "0" {
		s.t.Errorf("HTML of an answer became part of the page: %s elements", got)
	}
	if got := b.eval(`document.querySelector(".answer a").rel`); !strings.Contains(got, "noopener") {
		s.t.Errorf("a link without noopener: %s", got)
	}
}

// complete types a command with the help of the list.
func (s *stage) complete(b *browser) {
	b.keys("/st")
	b.wait(`document.querySelectorAll("#commands li").length === 2`)
	b.press("ArrowDown", 40)
	b.wait(`document.querySelectorAll("#commands li")[1].getAttribute("aria-selected") === "true"`)
	b.press("ArrowUp", 38)
	b.press("Tab", 9)
	b.wait(`document.querySelector("#input").value === "/status" && document.querySelector("#commands").hidden`)
	b.press("Enter", 13)
	m := s.next()
	if m.Text != "/status" || !m.Sender.Local {
		s.t.Errorf("arrived: %+v", m)
	}
	s.send(m.Address, chat.Command, "**Model** anthropic/claude-opus-5 (default)\n**Active** openai/gpt-5.5: rate limited\n**Fallbacks** openai/gpt-5.5, ollama/qwen3",
		chat.Button{Label: "Use openai/gpt-5.5", Command: "/model openai/gpt-5.5"}, chat.Button{Label: "Why?", Command: "/why"})
	s.adapter.Finished(m.Address, m.ID, 1)
	b.wait(`document.querySelectorAll(".command .choices button").length === 2`)
	b.eval(`document.querySelectorAll(".command .choices button")[1].click()`)
	if m = s.next(); m.Text != "/why" {
		s.t.Errorf("a pressed button said %q", m.Text)
	}
	s.send(m.Address, chat.Error, "All models are temporarily rate-limited. The soonest is anthropic/claude-opus-5 in 4 minutes; /model shows others.")
	s.adapter.Finished(m.Address, m.ID, 1)
	b.wait(`document.querySelector(".failure") && !document.querySelector(".working")`)
}

// sessions opens a second chat; what happens in the first one is marked as unread.
func (s *stage) sessions(b *browser) {
	first := strings.Trim(b.eval(`location.hash.slice(1)`), `"`)
	b.eval(`document.querySelector("#new-chat").click()`)
	b.wait(`document.querySelector(".welcome") && location.hash.slice(1) !== "` + first + `"`)
	b.keys("Plan a weekend in Lisbon")
	b.press("Enter", 13)
	m := s.next()
	if m.Address.Conversation == first {
		s.t.Error("both sessions are one conversation")
	}
	s.send(m.Address, chat.Assistant, "With pleasure. **Saturday:** Alfama on foot, lunch at the river, the tram up to Estrela.")
	s.adapter.Finished(m.Address, m.ID, 1)
	b.wait(`document.querySelectorAll("#sessions button").length === 2`)
	s.send(chat.Address{Channel: web.Channel, Conversation: first, Kind: chat.Direct}, chat.Cron, "Daily report: **nothing failed**.")
	b.wait(`document.querySelector("#sessions .unread") && document.title.startsWith("(1)")`)
	b.shot("unread")
	b.eval(`document.querySelector('[data-id="` + first + `"]').click()`)
	b.wait(`document.querySelector(".label") && !document.querySelector("#sessions .unread")`)
}

// reload finds everything again, and continues behind an interruption.
func (s *stage) reload(b *browser) {
	b.call("Page.reload", nil)
	b.wait(`document.querySelectorAll("#log > .row").length === 8`)
	b.call("Network.enable", nil)
	offline := map[string]any{"offline": true, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
	b.call("Network.emulateNetworkConditions", offline)
	first := strings.Trim(b.eval(`location.hash.slice(1)`), `"`)
	s.send(chat.Address{Channel: web.Channel, Conversation: first, Kind: chat.Direct}, chat.Notice, "↪️ Model Fallback cleared: anthropic/claude-opus-5 (was openai/gpt-5.5)")
	offline["offline"] = false
	b.call("Network.emulateNetworkConditions", offline)
	b.wait(`document.querySelectorAll(".notice").length === 2`)
}

// pictures takes the views that people look at.
func (s *stage) pictures(b *browser) {
	for _, scheme := range []string{"light", "dark"} {
		b.screen(1280, 800, scheme)
		b.eval(`document.querySelector("#scroller").scrollTop = 0`)
		b.shot("desktop-" + scheme + "-top")
		b.eval(`document.querySelector("#scroller").scrollTop = 1e6`)
		b.shot("desktop-" + scheme + "-end")
		b.screen(390, 844, scheme)
		b.eval(`document.querySelector("#scroller").scrollTop = 0`)
		b.shot("phone-" + scheme + "-top")
		b.eval(`document.querySelector("#scroller").scrollTop = 1e6`)
		b.shot("phone-" + scheme + "-end")
		if got := b.eval(`document.documentElement.scrollWidth`); got != "390" {
			s.t.Errorf("the page is wider than the phone: %s", got)
		}
		b.eval(`document.querySelector("#open-drawer").click()`)
		b.screen(390, 844, scheme)
		b.shot("phone-" + scheme + "-drawer")
		b.eval(`document.querySelector("#close-drawer").click()`)
		b.eval(`document.querySelector("#pill").click()`)
		b.wait(`document.querySelector("#status").open && document.querySelectorAll(".fact").length > 5`)
		b.shot("phone-" + scheme + "-status")
		b.eval(`document.querySelector("#close-status").click()`)
		b.screen(1280, 800, scheme)
		b.eval(`document.querySelector("#input").focus()`)
		b.keys("/")
		b.wait(`document.querySelectorAll("#commands li").length === 7`)
		b.shot("desktop-" + scheme + "-commands")
		b.press("Escape", 27)
		b.eval(`document.querySelector("#input").value = ""; document.querySelector("#input").dispatchEvent(new Event("input"))`)
	}
}

// TestForeignPage lets a page of another port of this machine try everything a page can.
func TestForeignPage(t *testing.T) {
	b := openBrowser(t)
	s := openStage(t)
	b.open(s.server.SignInURL())
	b.wait(`document.querySelector(".welcome")`)
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<title>foreign</title>"))
	}))
	defer foreign.Close()
	b.open(foreign.URL)
	target := strings.TrimSuffix(s.server.URL(), "/")
	for _, attempt := range []string{
		`fetch("%/api/sessions", {credentials: "include"}).then(() => "read")`,
		`fetch("%/api/sessions/abc/messages", {method: "POST", mode: "no-cors", credentials: "include", body: '{"id":"1","text":"hi"}'}).then((r) => r.type)`,
		`fetch("%/api/sessions/abc/messages", {method: "POST", credentials: "include", headers: {"Content-Type": "application/json"}, body: '{"id":"1","text":"hi"}'}).then(() => "sent")`,
		`new Promise((done) => { const e = new EventSource("%/api/events", {withCredentials: true}); e.onopen = () => done("open"); e.onerror = () => done("refused") })`,
	} {
		got := b.eval("(" + strings.ReplaceAll(attempt, "%", target) + `).catch(() => "refused")`)
		if got != `"refused"` && got != `"opaque"` {
			t.Errorf("%s: %s", attempt, got)
		}
	}
	select {
	case m := <-s.arrived:
		t.Errorf("a foreign page said %q", m.Text)
	default:
	}
}
