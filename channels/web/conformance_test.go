package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/channels/channelstest"
	"understudy/chat"
	"understudy/internal/emulate/pipe"
)

func TestConformance(t *testing.T) {
	channelstest.Run(t, func(t *testing.T) *channelstest.Subject {
		a, err := New(Config{}, Deps{})
		if err != nil {
			t.Fatal(err)
		}
		return &channelstest.Subject{
			Adapter: a, Platform: newBrowser(a.Handler()), Close: func() {},
			Person: Owner, Local: true, Direct: address("s1"),
		}
	})
}

// browser is the page: it posts again what the bot could not store, as the page does.
type browser struct {
	net    *pipe.Network
	server *http.Server
	client *http.Client
	ctx    context.Context
	cancel func()
	work   sync.WaitGroup

	mu    sync.Mutex
	posts int
}

func newBrowser(h http.Handler) *browser {
	b := &browser{net: pipe.New(), server: &http.Server{Handler: h}}
	b.client = &http.Client{Transport: b.net.Transport()}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.work.Go(func() { _ = b.server.Serve(b.net) }) // ends with Close
	return b
}

func (b *browser) Close() {
	b.cancel()
	b.client.CloseIdleConnections()
	_ = b.server.Close()
	b.work.Wait()
}

func (*browser) Name() string { return "" }

func (b *browser) Say(_ string, to chat.Address, text, _ string) string {
	b.mu.Lock()
	b.posts++
	body, _ := json.Marshal(posted{ID: fmt.Sprint("c", b.posts), Text: text})
	b.mu.Unlock()
	path := "/api/sessions/" + to.Conversation + "/messages"
	if id, ok := b.post(path, body); ok {
		return id
	}
	b.work.Go(func() {
		for b.ctx.Err() == nil {
			select {
			case <-time.After(time.Second):
			case <-b.ctx.Done():
				return
			}
			if _, ok := b.post(path, body); ok {
				return
			}
		}
	})
	return ""
}

func (b *browser) post(path string, body []byte) (id string, ok bool) {
	req, err := http.NewRequestWithContext(b.ctx, http.MethodPost, "http://page"+path, bytes.NewReader(body))
	if err != nil {
		return "", false
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := b.client.Do(req)
	if err != nil {
		return "", false
	}
	defer func() { _ = res.Body.Close() }()
	var m Message
	if res.StatusCode != http.StatusAccepted || json.NewDecoder(res.Body).Decode(&m) != nil {
		return "", false
	}
	return m.ID, true
}

func (b *browser) messages(to chat.Address) []Message {
	req, err := http.NewRequestWithContext(b.ctx, http.MethodGet, "http://page/api/sessions/"+to.Conversation+"/messages", nil)
	if err != nil {
		return nil
	}
	res, err := b.client.Do(req)
	if err != nil {
		return nil
	}
	defer func() { _ = res.Body.Close() }()
	var s snapshot
	_ = json.NewDecoder(res.Body).Decode(&s) // then there are none, and the test fails
	return s.Messages
}

func (b *browser) Transcript(to chat.Address) []channelstest.Said {
	var out []channelstest.Said
	for _, m := range b.messages(to) {
		out = append(out, channelstest.Said{ID: m.ID, Text: m.Text, ByBot: !m.Own})
	}
	return out
}

// Press sends the command of a button, as a click does.
func (b *browser) Press(person string, to chat.Address, id, label string) {
	for _, m := range b.messages(to) {
		for _, x := range m.Buttons {
			if m.ID == id && strings.Contains(x.Label, label) {
				b.Say(person, to, x.Command, "")
			}
		}
	}
}
