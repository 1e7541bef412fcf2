package app_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	emullm "understudy/internal/emulate/llm"
	"understudy/internal/emulate/telegram"
)

const (
	aliceID, bobID = 1001, 1002
	opsGroup       = -2001
)

// workshop is a tool server that counts how often its tools ran.
type workshop struct {
	ran  atomic.Int64
	more int // tools beside those that do something
}

// RoundTrip implements http.RoundTripper with as much of the protocol as a client needs.
func (w *workshop) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	if r.Method != http.MethodPost {
		rec.WriteHeader(http.StatusMethodNotAllowed)
		return rec.Result(), nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var call struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Version string `json:"protocolVersion"`
			Name    string `json:"name"`
		} `json:"params"`
	}
	if err := json.Unmarshal(body, &call); err != nil {
		return nil, err
	}
	result := ""
	switch call.Method {
	case "initialize":
		result = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"workshop","version":"1"}}`, call.Params.Version)
	case "tools/list":
		result = `{"tools":[{"name":"paint","description":"paints","inputSchema":{"type":"object","properties":{"what":{"type":"string"}}}},{"name":"draw","description":"draws","inputSchema":{"type":"object"}}`
		for i := range w.more {
			result += fmt.Sprintf(`,{"name":"tool%d","inputSchema":{"type":"object"}}`, i)
		}
		result += `]}`
	case "tools/call":
		w.ran.Add(1)
		result = `{"content":[{"type":"text","text":"painted"}]}`
		if call.Params.Name == "draw" {
			result = fmt.Sprintf(`{"content":[{"type":"text","text":"drawn"},{"type":"image","mimeType":"image/png","data":%q}]}`, base64.StdEncoding.EncodeToString([]byte(drawing)))
		}
	case "ping":
		result = `{}`
	}
	if call.ID == nil { // a notification
		rec.WriteHeader(http.StatusAccepted)
		return rec.Result(), nil
	}
	rec.Header().Set("Content-Type", "application/json")
	if result == "" {
		fmt.Fprintf(rec, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"there is no such method"}}`, call.ID)
		return rec.Result(), nil
	}
	fmt.Fprintf(rec, `{"jsonrpc":"2.0","id":%s,"result":%s}`, call.ID, result)
	return rec.Result(), nil
}

// drawing is what the workshop draws.
const drawing = "\x89PNG\r\n\x1a\n of a chart"

// painters is an office with a model that can be told to use the workshop, where Alice is the owner and
// Bob may ask in the group only.
func painters(t *testing.T) (*office, *emullm.Server, *workshop) {
	o := newOffice(t, "")
	models, tools := emullm.New(), &workshop{}
	t.Cleanup(models.Close)
	o.models, o.tools = models.Transport(), tools
	o.configure(o.telegramServer(fmt.Sprintf(`dmPolicy: allowlist, allowFrom: ["%d"], groupAllowFrom: ["%d", "%d"], requireMention: false, groups: {"%d": {}}`, aliceID, aliceID, bobID, opsGroup)) +
		`commands: {ownerAllowFrom: ["telegram:1001"]}` + "\n" +
		`mcp: {servers: {shop: {url: "http://tools.test/mcp", groups: true, tools: {approve: [paint]}}}}` + "\n")
	o.replaceModel("alpha/a1", `alpha: {api: openai-chat, baseUrl: "http://models.test/v1", apiKey: key-for-alpha}`)
	o.person(aliceID, "Alice")
	o.person(bobID, "Bob")
	o.tg.AddChat(telegram.Chat{ID: opsGroup, Type: "supergroup", Title: "Ops"})
	o.open()
	return o, models, tools
}

// question returns the last message with buttons.
func (o *office) question(chat int64) telegram.Message {
	o.t.Helper()
	sent := o.tg.Sent(chat)
	if len(sent) == 0 || len(sent[len(sent)-1].Buttons) != 2 {
		o.t.Fatalf("nobody is asked: %+v\n%s", sent, o.logs)
	}
	return sent[len(sent)-1]
}

func TestAToolThatNeedsConsentAsksInTheChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, models, tools := painters(t)
		ask := func(then string) {
			models.Reply(emullm.Reply{Match: emullm.Match{Times: 1}, ToolCalls: []emullm.ToolCall{{Name: "shop__paint", Arguments: `{"what":"the ` + "```" + ` fence"}`}}})
			models.Reply(emullm.Reply{Match: emullm.Match{Times: 1}, Text: then})
		}
		last := func(chat int64) string { list := o.tg.Sent(chat); return list[len(list)-1].Text }

		ask("It is done.")
		o.tg.UserSays(opsGroup, bobID, "paint it")
		pass(5 * time.Second)
		q := o.question(opsGroup)
		if !strings.Contains(q.Text, "shop__paint") || !strings.Contains(q.Text, "fence") || tools.ran.Load() != 0 {
			t.Fatalf("asked: %q, ran %d times", q.Text, tools.ran.Load())
		}
		o.tg.UserSays(opsGroup, bobID, "/approve ZZZZZZ")
		pass(3 * time.Second)
		if !strings.Contains(last(opsGroup), "or its time is over") {
			t.Errorf("an unknown question: %q", last(opsGroup))
		}
		o.tg.Press(opsGroup, bobID, q.ID, "Allow")
		o.settle()
		if tools.ran.Load() != 1 || last(opsGroup) != "It is done." {
			t.Errorf("ran %d times; said %q\n%s", tools.ran.Load(), last(opsGroup), o.logs)
		}

		ask("It is not done.") // Alice's question is none of Bob's business
		o.tg.UserSays(opsGroup, aliceID, "paint it")
		pass(5 * time.Second)
		q = o.question(opsGroup)
		o.tg.Press(opsGroup, bobID, q.ID, "Allow")
		pass(5 * time.Second)
		if tools.ran.Load() != 1 || !strings.Contains(last(opsGroup), "or the bot owner") {
			t.Errorf("ran %d times; said %q", tools.ran.Load(), last(opsGroup))
		}
		o.tg.Press(opsGroup, aliceID, q.ID, "Deny")
		o.settle()
		if tools.ran.Load() != 1 || last(opsGroup) != "It is not done." {
			t.Errorf("ran %d times; said %q", tools.ran.Load(), last(opsGroup))
		}

		ask("Nobody answered.") // the owner may answer for others, but in time
		o.tg.UserSays(opsGroup, bobID, "paint it")
		pass(5 * time.Second)
		q = o.question(opsGroup)
		pass(2 * time.Minute)
		if last(opsGroup) != "Nobody answered." {
			t.Errorf("said %q", last(opsGroup))
		}
		o.tg.Press(opsGroup, aliceID, q.ID, "Allow")
		o.settle()
		if tools.ran.Load() != 1 {
			t.Error("a late consent runs the tool")
		}
	})
}

func TestARestartTellsWhoAskedForItThatItIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, models, _ := painters(t)
		models.Reply(emullm.Reply{Text: "A long answer that is finished first.", ChunkDelay: time.Second})
		o.tg.UserSays(aliceID, aliceID, "hello")
		pass(time.Second)
		o.tg.UserSays(aliceID, aliceID, "/restart")
		err := <-o.done
		if err == nil || err.Error() != "the owner asked for a restart" {
			t.Fatalf("the bot stopped with: %v", err)
		}
		if err := o.bot.Close(); err != nil {
			t.Fatal(err)
		}
		o.bot = nil
		o.open()
		pass(10 * time.Second)
		var texts []string
		for _, m := range o.tg.Sent(aliceID) {
			texts = append(texts, m.Text)
		}
		want := []string{"🔄 Restarting…", "A long answer that is finished first.", "✅ Back."}
		if strings.Join(texts, "|") != strings.Join(want, "|") {
			t.Errorf("said: %q", texts)
		}
		o.close()
		o.open() // an ordinary start says nothing
		if n := len(o.tg.Sent(aliceID)); n != len(want) {
			t.Errorf("said after another start: %q", o.tg.Sent(aliceID)[n-1].Text)
		}
	})
}
