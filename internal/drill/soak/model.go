package soak

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"understudy/internal/emulate/llm"
	"understudy/internal/emulate/pipe"
)

// Every question holds a tag, and what kind of answer it wants: "q003.0012 paced". The answer begins
// and ends with marks of all the tags it answers.
var (
	question = regexp.MustCompile(`q\d{3,}\.\d{4,} (?:short|long|code|paced)`)
	opening  = regexp.MustCompile(`begin (q\d{3,}\.\d{4,})`)
	closing  = regexp.MustCompile(`end (q\d{3,}\.\d{4,})`)
)

// styles are the kinds of answers, the usual ones more often.
var styles = []string{"short", "short", "short", "paced", "paced", "long", "code"}

// models are the emulated model APIs: three models, one behind each API, of which the last is always
// well. They answer what is asked since the assistant's last message.
type models struct {
	srv    *llm.Server
	http   *http.Server
	net    *pipe.Network
	listen net.Listener
	served sync.WaitGroup

	mu    sync.Mutex
	asked map[string]int // tag → when it was first asked, as a number
}

func newModels() *models {
	m := &models{srv: llm.New(), net: pipe.New(), asked: map[string]int{}}
	m.srv.Reply(
		llm.Reply{Match: llm.Match{Contains: " paced"}, Echo: true, ChunkSize: 60, ChunkDelay: 300 * time.Millisecond},
		llm.Reply{Echo: true, ChunkSize: 400},
	)
	m.http = &http.Server{Handler: m, ReadHeaderTimeout: time.Minute}
	m.served.Go(func() { _ = m.http.Serve(m.net) }) // ends with close
	return m
}

// root is the base address of the APIs.
func (m *models) root() string {
	if m.listen == nil {
		return "http://models.test"
	}
	return "http://" + m.listen.Addr().String()
}

// listenLoopback serves on a port, too.
func (m *models) listenLoopback() (err error) {
	if m.listen, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	m.served.Go(func() { _ = m.http.Serve(m.listen) }) // ends with close
	return nil
}

func (m *models) close() {
	m.srv.Close()
	_ = m.http.Close()
	m.served.Wait()
}

// settings is their part of the configuration, in YAML.
func (m *models) settings() string {
	return fmt.Sprintf(`agents: {defaults: {userTimezone: UTC, maxConcurrent: 256, model: {primary: alpha/a1, fallbacks: [beta/b1, gamma/g1]}}}
models:
  providers:
    alpha: {api: openai-chat, baseUrl: "%[1]s/v1", apiKey: sk-soak-alpha, timeoutSeconds: 5}
    beta: {api: anthropic-messages, baseUrl: "%[1]s", apiKey: sk-soak-beta, timeoutSeconds: 5}
    gamma: {api: openai-responses, baseUrl: "%[1]s/v1", apiKey: sk-soak-gamma, timeoutSeconds: 30}
`, m.root())
}

// gust makes the next requests of a model fail.
func (m *models) gust(r *rand.Rand) string {
	half := "begin " + stays + "\n\nThis half answer must not stay."
	list := []struct {
		what string
		f    llm.Fault
	}{
		{"429", llm.Fault{Status: 429}},
		{"429 with a wait", llm.Fault{Status: 429, RetryAfter: seconds(r, 40)}},
		{"500", llm.Fault{Status: 500}},
		{"503", llm.Fault{Status: 503}},
		{"529", llm.Fault{Status: 529}},
		{"hang", llm.Fault{Hang: true}},
		{"hang in the stream", llm.Fault{Hang: true, Say: half}},
		{"reset", llm.Fault{Reset: true}},
		{"reset in the stream", llm.Fault{Reset: true, Say: half}},
		{"cut", llm.Fault{Cut: true, Say: half}},
		{"empty", llm.Fault{Empty: true}},
		{"slow", llm.Fault{Latency: upTo(r, 4*time.Second)}},
		{"page", llm.Fault{Status: 200, Body: errorPage, ContentType: "text/html"}},
	}
	x := list[r.IntN(len(list))]
	x.f.Model, x.f.Times = []string{"a1", "a1", "b1"}[r.IntN(3)], 1+r.IntN(3)
	m.srv.Fault(x.f)
	return x.what
}

// calm makes all models well, and forgets what they were asked.
func (m *models) calm() { m.srv.Heal() }

// order returns when a tag was first asked for, 0 = never.
func (m *models) order(tag string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked[tag]
}

// ServeHTTP decides what is answered, and leaves the rest to the emulator, which echoes it.
func (m *models) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the bot has gone
	}
	body = m.settle(body)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	m.srv.ServeHTTP(w, r)
	m.srv.ClearRequests()
}

// settle puts the answer in the place of the last question, for the emulator to echo.
func (m *models) settle(body []byte) []byte {
	var q map[string]any
	if json.Unmarshal(body, &q) != nil {
		return body
	}
	key := "messages"
	if _, ok := q[key]; !ok {
		key = "input"
	}
	list, _ := q[key].([]any)
	var asked []string
	for i := len(list) - 1; i >= 0; i-- {
		item, _ := list[i].(map[string]any)
		if item["role"] == "assistant" {
			break
		}
		if item["role"] != "user" {
			continue
		}
		for _, text := range texts(item["content"]) {
			asked = append(current(text), asked...)
		}
	}
	if len(asked) == 0 || len(list) == 0 {
		return body
	}
	m.note(asked)
	q[key] = []any{map[string]any{"role": "user", "content": answer(asked)}}
	if out, err := json.Marshal(q); err == nil {
		return out
	}
	return body
}

func (m *models) note(asked []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range asked {
		tag, _, _ := strings.Cut(q, " ")
		if m.asked[tag] == 0 {
			m.asked[tag] = len(m.asked) + 1
		}
	}
}

// texts returns the texts of a message's content, which is one text or a list of parts.
func texts(content any) []string {
	if s, ok := content.(string); ok {
		return []string{s}
	}
	parts, _ := content.([]any)
	var out []string
	for _, p := range parts {
		if part, ok := p.(map[string]any); ok {
			if s, ok := part["text"].(string); ok {
				out = append(out, s)
			}
		}
	}
	return out
}

// current returns the questions of a message, without those that are context only.
func current(text string) []string {
	const label = "[Current message - respond to this]"
	if i := strings.LastIndex(text, label); i >= 0 {
		text = text[i:]
	}
	return question.FindAllString(text, -1)
}

// answer writes what is answered to questions. It is the same whoever is asked.
func answer(asked []string) string {
	var b strings.Builder
	style := ""
	for _, q := range asked {
		var tag string
		tag, style, _ = strings.Cut(q, " ")
		fmt.Fprintf(&b, "begin %s\n", tag)
	}
	line := "The quick brown fox jumps over the lazy dog, and **nobody** minds <that> & `this`."
	b.WriteString("\n")
	switch style {
	case "long":
		for i := range 70 {
			fmt.Fprintf(&b, "%d. %s\n\n", i+1, line)
		}
	case "code":
		b.WriteString("```go\n")
		for i := range 70 {
			fmt.Fprintf(&b, "func number%d() int { return %d } // %s\n", i, i, "a < b && c > d")
		}
		b.WriteString("```\n")
	case "paced":
		for i := range 6 {
			fmt.Fprintf(&b, "- step %d paced: %s\n", i+1, line)
		}
	default:
		b.WriteString(line + "\n")
	}
	b.WriteString("\n")
	for _, q := range asked {
		tag, _, _ := strings.Cut(q, " ")
		fmt.Fprintf(&b, "end %s\n", tag)
	}
	return b.String()
}
