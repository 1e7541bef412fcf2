package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"understudy/channels"
	"understudy/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipeline takes what the adapter receives.
type pipeline struct {
	refuse  error
	quick   func(chat.Inbound) // deals with a message before its sender hears that it is stored
	arrived chan chat.Inbound
	states  chan channels.State
}

func (p *pipeline) Accept(_ context.Context, m chat.Inbound) error {
	if p.refuse != nil {
		return p.refuse
	}
	if p.quick != nil {
		p.quick(m)
	}
	p.arrived <- m
	return nil
}

func (p *pipeline) Status(s channels.Status) { p.states <- s.State }

// past is a History in memory.
type past struct {
	sessions []Session
	entries  map[string][]Entry
	fail     error
}

func (p past) Sessions(context.Context) ([]Session, error) { return p.sessions, p.fail }

func (p past) Transcript(_ context.Context, session string, _ int) ([]Entry, error) {
	return p.entries[session], p.fail
}

func (p past) Waits(_ context.Context, session, id string) (bool, error) {
	return slices.ContainsFunc(p.entries[session], func(e Entry) bool { return e.ID == id }), p.fail
}

// rig is an adapter with a listener on loopback.
type rig struct {
	t *testing.T
	*Adapter
	*pipeline
	server *httptest.Server
	client *http.Client
	stop   func()
}

func start(t *testing.T, cfg Config, h History) *rig {
	t.Helper()
	a, err := New(cfg, Deps{History: h})
	if err != nil {
		t.Fatal(err)
	}
	p := &pipeline{arrived: make(chan chat.Inbound, 16), states: make(chan channels.State, 4)}
	r := &rig{t: t, Adapter: a, pipeline: p, server: httptest.NewServer(a.Handler()), client: &http.Client{}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx, p) }()
	if got := <-p.states; got != channels.Connected {
		t.Fatalf("state %s", got)
	}
	r.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		ended <- nil
	}
	t.Cleanup(func() {
		r.stop()
		r.client.CloseIdleConnections()
		r.server.Close()
	})
	return r
}

// call makes a request and decodes the answer.
func (r *rig) call(method, path string, body, out any) int {
	r.t.Helper()
	var data bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&data).Encode(body); err != nil {
			r.t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.server.URL+path, &data)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	if out != nil {
		if err := json.NewDecoder(res.Body).Decode(out); err != nil {
			r.t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return res.StatusCode
}

func (r *rig) post(session, id, text string) Message {
	r.t.Helper()
	var m Message
	if code := r.call("POST", "/api/sessions/"+session+"/messages", posted{ID: id, Text: text}, &m); code != http.StatusAccepted {
		r.t.Fatalf("post: status %d", code)
	}
	return m
}

func (r *rig) texts(session string) (texts []string) {
	r.t.Helper()
	var s snapshot
	if code := r.call("GET", "/api/sessions/"+session+"/messages", nil, &s); code != http.StatusOK {
		r.t.Fatalf("messages: status %d", code)
	}
	for _, m := range s.Messages {
		texts = append(texts, m.Class.String()+": "+m.Text)
	}
	return texts
}

func address(session string) chat.Address {
	return chat.Address{Channel: Channel, Conversation: session, Kind: chat.Direct}
}

func (r *rig) say(session string, class chat.Class, text string) string {
	r.t.Helper()
	receipt, err := r.Send(r.t.Context(), channels.Piece{To: address(session), Class: class, Text: text})
	if err != nil {
		r.t.Fatal(err)
	}
	return receipt.IDs[0]
}

// feed reads server-sent events.
type feed struct {
	t     *testing.T
	lines *bufio.Scanner
	last  string
	close func()
}

func (r *rig) follow(last string) *feed {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.server.URL+"/api/events", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		r.t.Fatalf("events: status %d", res.StatusCode)
	}
	f := &feed{t: r.t, lines: bufio.NewScanner(res.Body), last: last}
	f.close = func() {
		cancel()
		res.Body.Close()
	}
	r.t.Cleanup(f.close)
	return f
}

func (f *feed) next() event {
	f.t.Helper()
	for f.lines.Scan() {
		if id, ok := strings.CutPrefix(f.lines.Text(), "id: "); ok {
			f.last = id
		}
		if data, ok := strings.CutPrefix(f.lines.Text(), "data: "); ok {
			var e event
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				f.t.Fatal(err)
			}
			return e
		}
	}
	f.t.Fatal("the stream has ended")
	return event{}
}

// short describes an event in a line.
func short(e event) string {
	switch {
	case e.Message != nil && e.Message.Own:
		return "own " + e.Message.Text
	case e.Message != nil:
		return e.Message.Class.String() + " " + e.Message.Text
	}
	return string(e.Type)
}

func (f *feed) expect(want ...string) {
	f.t.Helper()
	var got []string
	for range want {
		got = append(got, short(f.next()))
	}
	if d := cmp.Diff(want, got); d != "" {
		f.t.Errorf("events (-want +got):\n%s", d)
	}
}
