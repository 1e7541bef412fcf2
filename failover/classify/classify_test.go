package classify_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"understudy/failover/classify"
	"understudy/llm"
)

// payload is one line of testdata/*.jsonl; testdata/README.md explains the fields.
type payload struct {
	ID        string            `json:"id"`
	Provider  string            `json:"provider"`
	API       string            `json:"api"`
	Status    int               `json:"status"`
	Headers   map[string]string `json:"headers"`
	Body      string            `json:"body"`
	Stream    bool              `json:"stream"`
	Position  string            `json:"stream_position"`
	Message   string            `json:"message"`
	ErrorType string            `json:"error_type"`
	Label     string            `json:"label"`
	Sublabel  string            `json:"sublabel"`
	Scope     string            `json:"scope"`
	RetryMS   *int64            `json:"retry_after_ms"`
	ResetAt   string            `json:"reset_at"`
}

func (p payload) input() classify.Input {
	return classify.Input{
		Provider: p.Provider, API: p.API, Status: p.Status, Header: p.Headers, Body: []byte(p.Body), Stream: p.Stream,
		Position: p.Position, Message: p.Message, ErrorType: p.ErrorType, Transport: classify.TransportOf(p.ErrorType, p.Message),
	}
}

func payloads(tb testing.TB) []payload {
	tb.Helper()
	var all []payload
	for _, name := range []string{"testdata/errors.jsonl", "testdata/more.jsonl", "testdata/field.jsonl"} {
		f, err := os.Open(name)
		if err != nil {
			tb.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var p payload
			if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
				tb.Fatalf("%s: %v", name, err)
			}
			all = append(all, p)
		}
	}
	if len(all) < 1500 {
		tb.Fatalf("only %d payloads", len(all))
	}
	return all
}

// Every labelled payload gets its label, and the detail, scope and times where they are labelled.
func TestPayloads(t *testing.T) {
	for _, p := range payloads(t) {
		t.Run(p.ID, func(t *testing.T) {
			f, failed := classify.Classify(p.input())
			got := string(f.Reason)
			if !failed {
				got = "none"
			}
			if got != p.Label {
				t.Fatalf("reason %s, want %s (rule %s)", got, p.Label, f.Rule)
			}
			if p.Sublabel != "" && string(f.Detail) != p.Sublabel {
				t.Errorf("detail %q, want %q (rule %s)", f.Detail, p.Sublabel, f.Rule)
			}
			if p.Scope != "" && string(f.Scope) != p.Scope {
				t.Errorf("scope %q, want %q (rule %s)", f.Scope, p.Scope, f.Rule)
			}
			if p.RetryMS != nil && (f.RetryAfter-time.Duration(*p.RetryMS)*time.Millisecond).Abs() > time.Second {
				t.Errorf("retry after %v, want %d ms", f.RetryAfter, *p.RetryMS)
			}
			if p.RetryMS == nil && f.RetryAfter != 0 {
				t.Errorf("retry after %v out of nothing", f.RetryAfter)
			}
			if got := f.ResetAt.Format(time.RFC3339); p.ResetAt != "" && got != p.ResetAt {
				t.Errorf("reset at %s, want %s", got, p.ResetAt)
			}
			if p.ResetAt == "" && !f.ResetAt.IsZero() {
				t.Errorf("reset at %v out of nothing", f.ResetAt)
			}
			if failed && f.Rule == "" {
				t.Error("no rule id")
			}
		})
	}
}

// Rules of one provider never fire for another (spec/failover.md §6, principle 4).
func TestProviderRulesStayHome(t *testing.T) {
	for _, tt := range []struct {
		name, provider string
		status         int
		body           string
		want           llm.Reason
	}{
		{"key limit at OpenRouter", "openrouter", 403, `{"error":{"message":"Key limit exceeded","code":403}}`, llm.ReasonBilling},
		{"key limit elsewhere", "alpha", 403, `{"error":{"message":"Key limit exceeded","code":403}}`, llm.ReasonAuth},
		{"bare sentence at OpenRouter", "openrouter", 502, `{"error":{"message":"Provider returned error","code":502}}`, llm.ReasonTimeout},
		{"bare sentence elsewhere, in a stream", "alpha", 200, `{"error":{"message":"Provider returned error"}}`, llm.ReasonUnclassified},
		{"insufficient_quota at DashScope", "qwen-like", 429, `{"error":{"code":"insufficient_quota","message":"Allocated quota exceeded, please increase your quota limit."}}`, llm.ReasonRateLimit},
		{"insufficient_quota elsewhere", "openai", 429, `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota, please check your plan and billing details."}}`, llm.ReasonBilling},
		{"Alibaba behind a router", "alpha", 429, `{"error":{"message":"Error from provider (Alibaba): You exceeded your current quota, please check your plan and billing details."}}`, llm.ReasonRateLimit},
		{"Google behind OpenRouter", "openrouter", 429, `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"You exceeded your current quota, please check your plan and billing details.","provider_name":"Google AI Studio"}}}`, llm.ReasonRateLimit},
		{"OpenAI behind OpenRouter", "openrouter", 429, `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"You exceeded your current quota, please check your plan and billing details.","provider_name":"OpenAI"}}}`, llm.ReasonBilling},
		{"a ChatGPT plan", "openai-codex", 0, `{"error":{"message":"To use Codex with your ChatGPT plan, upgrade to Plus"}}`, llm.ReasonBilling},
		{"a ChatGPT plan elsewhere", "alpha", 0, `{"error":{"message":"To use Codex with your ChatGPT plan, upgrade to Plus"}}`, llm.ReasonUnclassified},
		{"1113 at Zhipu", "zai", 400, `{"error":{"code":"1113","message":"x"}}`, llm.ReasonBilling},
		{"1113 elsewhere", "alpha", 400, `{"error":{"code":"1113","message":"x"}}`, llm.ReasonFormat},
		{"1008 at MiniMax", "minimax", 500, `{"error":{"message":"x (1008)"}}`, llm.ReasonBilling},
		{"1008 elsewhere", "alpha", 500, `{"error":{"message":"x (1008)"}}`, llm.ReasonTimeout},
		{"long context at Anthropic", "anthropic", 429, `{"error":{"message":"Extra usage is required for long context requests."}}`, llm.ReasonBilling},
		{"long context elsewhere", "alpha", 429, `{"error":{"message":"Extra usage is required for long context requests."}}`, llm.ReasonRateLimit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, _ := classify.Classify(classify.Input{Provider: tt.provider, Status: tt.status, Body: []byte(tt.body)})
			if f.Reason != tt.want {
				t.Errorf("%s, want %s (rule %s)", f.Reason, tt.want, f.Rule)
			}
		})
	}
}

// Nothing a model or a user wrote decides, whatever it says.
func TestAnswerTextNeverMatches(t *testing.T) {
	var texts []string
	for _, p := range payloads(t) {
		texts = append(texts, p.Body+p.Message)
	}
	rapid.Check(t, func(t *rapid.T) {
		text, _ := json.Marshal("answer: " + rapid.SampledFrom(texts).Draw(t, "text"))
		shape := rapid.SampledFrom([]string{
			`{"choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}]}`,
			`{"type":"message","content":[{"type":"text","text":%s}],"stop_reason":"end_turn"}`,
			`{"candidates":[{"content":{"parts":[{"text":%s}]},"finishReason":"STOP"}]}`,
			"data: {\"choices\":[{\"delta\":{\"content\":%s},\"finish_reason\":null}]}\n\n",
			`{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":%s}]}]}`,
			`{"message":{"role":"assistant","content":%s},"done":true,"done_reason":"stop"}`,
		}).Draw(t, "shape")
		body := fmt.Sprintf(shape, text)
		if f, failed := classify.Classify(classify.Input{Provider: "openrouter", Status: 200, Body: []byte(body)}); failed {
			t.Fatalf("%s by %s for %s", f.Reason, f.Rule, body)
		}
	})
}

// What a request echoes, and what something is named, says nothing about why it was rejected.
func TestEchoesNeverMatch(t *testing.T) {
	phrases := []string{
		"insufficient balance", "rate limit exceeded", "prompt is too long", "model not found", "overloaded", "key has been revoked",
		"weekly limit reached", "content filter", "invalid api key", "余额不足", "session not found", "429 too many requests",
	}
	rapid.Check(t, func(t *rapid.T) {
		phrase := rapid.SampledFrom(phrases).Draw(t, "phrase")
		shape := rapid.SampledFrom([]string{
			"Invalid type for 'messages[0].content': got \"%s\" instead", "Unknown name `%s` at 'tools[0]'", "Unexpected value “%s” here", "See https://host.example/docs/%s?x=1",
			"Field 'a' must be one of: \"%s\"",
		}).Draw(t, "shape")
		if strings.HasPrefix(shape, "See") {
			phrase = strings.ReplaceAll(strings.ReplaceAll(phrase, " ", "-"), "余额不足", "overdue-payment") // addresses are ASCII
		}
		msg, _ := json.Marshal(fmt.Sprintf(shape, phrase))
		body := fmt.Sprintf(`{"error":{"type":"invalid_request_error","message":%s},"detail":[{"msg":"x","input":%s}]}`, msg, msg)
		f, _ := classify.Classify(classify.Input{Provider: "alpha", Status: 400, Body: []byte(body)})
		if f.Reason != llm.ReasonFormat {
			t.Fatalf("%s by %s for %s", f.Reason, f.Rule, body)
		}
	})
}

// Numbers inside ids, models, ports and prose are no status.
func TestNumbersInsideNames(t *testing.T) {
	for _, msg := range []string{
		"tool result 429 of 512 could not be merged", "request req-429-402-529 was odd", "model gpt-529b said 503 things", "line 402 column 429",
		"wrote to 10.0.0.2:50402", "chunk 413", "status of order 4290", "error 42901", "http 40400",
	} {
		if f, _ := classify.Classify(classify.Input{Provider: "alpha", API: classify.APITransport, Message: msg}); f.Reason != llm.ReasonUnclassified {
			t.Errorf("%q: %s by %s", msg, f.Reason, f.Rule)
		}
	}
}

// Our own context decides before anything the provider said (principle 1).
func TestTransportDecidesFirst(t *testing.T) {
	body := []byte(`{"error":{"code":"insufficient_quota","message":"x"}}`)
	for transport, want := range map[llm.Transport]struct {
		reason  llm.Reason
		detail  llm.Detail
		notSent bool
	}{
		llm.TransportCancelled:    {llm.ReasonAborted, "", false},
		llm.TransportIdle:         {llm.ReasonTimeout, llm.DetailDeadline, false},
		llm.TransportFirstContent: {llm.ReasonTimeout, llm.DetailDeadline, false},
		llm.TransportDeadline:     {llm.ReasonTimeout, llm.DetailDeadline, false},
		llm.TransportRefused:      {llm.ReasonTimeout, llm.DetailNetwork, true},
		llm.TransportDNS:          {llm.ReasonTimeout, llm.DetailNetwork, true},
		llm.TransportDial:         {llm.ReasonTimeout, llm.DetailNetwork, true},
		llm.TransportTLS:          {llm.ReasonTimeout, llm.DetailNetwork, true},
		llm.TransportReset:        {llm.ReasonTimeout, llm.DetailNetwork, false},
		llm.TransportEOF:          {llm.ReasonTimeout, llm.DetailNetwork, false},
		llm.TransportGoAway:       {llm.ReasonTimeout, llm.DetailNetwork, false},
		llm.TransportOther:        {llm.ReasonBilling, "", false},
	} {
		f, failed := classify.Classify(classify.Input{Provider: "openai", Status: 429, Body: body, Transport: transport})
		if !failed || f.Reason != want.reason || f.Detail != want.detail || f.NotSent != want.notSent {
			t.Errorf("transport %d: %+v, want %+v", transport, f, want)
		}
	}
}

// Times are measured from Input.Now; what is past or more than a week away is not believed.
func TestTimesNeedAPresent(t *testing.T) {
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name   string
		header map[string]string
		body   string
		after  time.Duration
		reset  time.Time
	}{
		{"seconds until a window ends", nil, `{"error":{"type":"usage_limit_reached","resets_in_seconds":90}}`, 90 * time.Second, now.Add(90 * time.Second)},
		{"the absolute time wins", nil, `{"error":{"type":"usage_limit_reached","resets_at":1772445700,"resets_in_seconds":90}}`, 90 * time.Second, now.Add(100 * time.Second)},
		{"milliseconds since the epoch", nil, `{"error":{"type":"usage_limit_reached","resets_at":1772445700000}}`, 0, now.Add(100 * time.Second)},
		{"a reset that has passed", nil, `{"error":{"type":"usage_limit_reached","resets_at":1772445500}}`, 0, time.Time{}},
		{"a reset beyond a week", nil, `{"error":{"type":"usage_limit_reached","resets_at":1773445700}}`, 0, time.Time{}},
		{"retry-after-ms before retry-after", map[string]string{"retry-after-ms": "1500", "retry-after": "9"}, `{}`, 1500 * time.Millisecond, time.Time{}},
		{"retry-after as a date", map[string]string{"retry-after": "Mon, 02 Mar 2026 10:00:30 GMT"}, `{}`, 30 * time.Second, time.Time{}},
		{"retry-after in the past", map[string]string{"retry-after": "Mon, 02 Mar 2026 09:00:30 GMT"}, `{}`, 0, time.Time{}},
		{"negative", map[string]string{"retry-after": "-5"}, `{}`, 0, time.Time{}},
		{"beyond a week", map[string]string{"retry-after": "700000"}, `{}`, 0, time.Time{}},
		{"not a number", map[string]string{"retry-after": "soon"}, `{}`, 0, time.Time{}},
		{"header before text", map[string]string{"retry-after": "5"}, `{"error":{"message":"try again in 20s"}}`, 5 * time.Second, time.Time{}},
		{"limits that are not used up", map[string]string{"x-ratelimit-remaining": "3", "x-ratelimit-reset": "1772445700"}, `{}`, 0, time.Time{}},
		{"the exhausted of two limits", map[string]string{
			"anthropic-ratelimit-requests-remaining": "9", "anthropic-ratelimit-requests-reset": "2026-03-02T10:09:00Z",
			"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": "2026-03-02T10:01:00Z",
		}, `{}`, 0, now.Add(time.Minute)},
		{"OpenAI's durations", map[string]string{"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-reset-requests": "1h"}, `{}`, 6 * time.Minute, time.Time{}},
		{"text with several units", nil, `{"error":{"message":"Please try again in 1 hour, 2 minutes and 3 seconds."}}`, time.Hour + 2*time.Minute + 3*time.Second, time.Time{}},
		{"text with a clock", nil, `{"error":{"message":"Out of call volume quota. Quota will be replenished in 01:34:11."}}`, time.Hour + 34*time.Minute + 11*time.Second, time.Time{}},
		{"a clock that is none", nil, `{"error":{"message":"Quota will be replenished in 01:94:11."}}`, 0, time.Time{}},
		{"a date inside a name", nil, `{"error":{"message":"limit of gpt-2026-03-02T11:00:00Z reached, try again later"}}`, 0, time.Time{}},
		{"text with a zone", nil, `{"error":{"message":"usage limit reached, resets at 2026-03-02 19:00:00+08:00"}}`, 0, now.Add(time.Hour)},
		{"text without a zone", nil, `{"error":{"message":"usage limit reached, resets at 2026-03-02 19:00:00"}}`, 0, time.Time{}},
		{"a date that is no reset", nil, `{"error":{"message":"version 2026-03-02T19:00:00Z is limited"}}`, 0, time.Time{}},
		{"Claude's subscription", nil, `{"error":{"message":"Claude AI usage limit reached|1772449200"}}`, 0, now.Add(time.Hour)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, _ := classify.Classify(classify.Input{Provider: "alpha", Status: 429, Header: tt.header, Body: []byte(tt.body), Now: now})
			if f.RetryAfter != tt.after || !f.ResetAt.Equal(tt.reset) {
				t.Errorf("after %v at %v, want %v at %v", f.RetryAfter, f.ResetAt, tt.after, tt.reset)
			}
		})
	}
}

// Reset headers stand on every answer; they mean something only when a limit was hit.
func TestResetHeadersNeedALimit(t *testing.T) {
	header := map[string]string{"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1772445700"}
	f, _ := classify.Classify(classify.Input{Provider: "alpha", Status: 401, Header: header, Body: []byte(`{"error":{"message":"no"}}`)})
	if !f.ResetAt.IsZero() || f.RetryAfter != 0 {
		t.Errorf("%+v", f)
	}
}

// Credentials that a host echoes do not leave the package.
func TestMessagesAreRedacted(t *testing.T) {
	for _, secret := range []string{
		"sk-ant-api03-Abcdefgh12345678", "sk-proj-0123456789abcdefABCDEF", "xai-0123456789abcdef", "AIzaSyA0123456789abcdefghijk", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
		"gsk_0123456789abcdef", "ghu_0123456789abcdefABCDEF", "0123456789abcdef0123456789abcdef", "ya29.a0AfH6SMBx0123456789", "00000000-0a00-4000-8000-000000000000",
	} {
		for _, shape := range []string{"Incorrect API key provided: %s.", "Authorization: Bearer %s is wrong", "bad url https://h/v1?key=%s&x=1", `token "%s" expired`} {
			msg, _ := json.Marshal(fmt.Sprintf(shape, secret))
			f, _ := classify.Classify(classify.Input{Provider: "alpha", Status: 401, Body: []byte(`{"error":{"message":` + string(msg) + `}}`)})
			if strings.Contains(f.Message, secret) {
				t.Errorf("%q shows the credential", f.Message)
			}
			if !strings.Contains(f.Message, "***") {
				t.Errorf("%q hides too much", f.Message)
			}
		}
	}
}

// Nor do those that stand where a code should.
func TestCodesAreRedacted(t *testing.T) {
	for _, body := range []string{`{"error":{"code":"sk-proj-0123456789abcdefABCDEF","message":"x"}}`, `{"error":"gsk_0123456789abcdef"}`, `sk-ant-api03-Abcdefgh12345678`} {
		f, _ := classify.Classify(classify.Input{Provider: "alpha", Status: 401, Body: []byte(body)})
		if f.Code != "***" || strings.Contains(f.Message, "0123") {
			t.Errorf("code %q, message %q", f.Code, f.Message)
		}
	}
}

// Model names and ids stay readable.
func TestRedactionKeepsNames(t *testing.T) {
	const msg = "model openrouter/google/gemini-2.5-pro-exp-03-25 and meta-llama/llama-3.3-70b-versatile: 404"
	f, _ := classify.Classify(classify.Input{Provider: "alpha", Status: 404, Body: []byte(`{"error":{"message":"` + msg + `"}}`)})
	if f.Message != msg {
		t.Errorf("message %q", f.Message)
	}
}

// A long message is cut by characters, never inside one.
func TestMessageIsBounded(t *testing.T) {
	body := `{"error":{"message":"` + strings.Repeat("额度", 5000) + `"}}`
	f, _ := classify.Classify(classify.Input{Provider: "alpha", Status: 400, Body: []byte(body)})
	if n := utf8.RuneCountInString(f.Message); n > 300 || !utf8.ValidString(f.Message) {
		t.Errorf("%d runes, valid %v", n, utf8.ValidString(f.Message))
	}
}

// Rejections that the known repairs cure are marked; others are not (spec/failover.md §6.1, format).
func TestRepairable(t *testing.T) {
	repairable := []string{
		"mistral-400-toolid", "openai-400-callid-len", "openai-400-no-tool-output", "anthropic-400-toolresult", "deepseek-400-toolmsgs", "minimax-400-toolorder", "moonshot-400-toolid",
		"pplx-400-lastmsg", "an-toolid", "o-roles", "m-role", "b-alternate", "g-turns",
	}
	hopeless := []string{"anthropic-400-image-dims", "o-temp", "o-badmax", "deepseek-422-json", "gemini-400-unknown-name", "codex-400-param", "azure-400-opnotsupported", "v-missing"}
	seen := 0
	for _, p := range payloads(t) {
		f, _ := classify.Classify(p.input())
		switch {
		case slices.Contains(repairable, p.ID):
			seen++
			if !f.Repairable {
				t.Errorf("%s is not repairable", p.ID)
			}
		case slices.Contains(hopeless, p.ID) || f.Reason != llm.ReasonFormat:
			if f.Repairable {
				t.Errorf("%s is repairable", p.ID)
			}
		}
	}
	if seen != len(repairable) {
		t.Errorf("%d of %d seen", seen, len(repairable))
	}
}

// A body that is cut off anywhere still yields a reason, and a status still counts.
func TestCutBodies(t *testing.T) {
	t.Parallel()
	for _, p := range payloads(t) {
		for n := 0; n < len(p.Body); n += 1 + len(p.Body)/16 {
			in := p.input()
			in.Body = in.Body[:n]
			f, failed := classify.Classify(in)
			if p.Status >= 400 && (!failed || f.Reason == "") {
				t.Fatalf("%s cut at %d: no failure", p.ID, n)
			}
		}
	}
}

// Extra wrapping does not change who is to blame.
func TestWrappersAreOpened(t *testing.T) {
	inner := `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
	quoted, _ := json.Marshal(inner)
	twice, _ := json.Marshal("upstream: " + inner)
	for _, body := range []string{
		inner,
		"[" + inner + "]",
		"data: " + inner + "\n\n",
		"event: error\ndata: " + inner + "\n\n",
		`{"error":` + inner + `}`,
		`{"error":{"message":` + string(quoted) + `,"code":502}}`,
		`{"error":{"message":"Provider returned error","metadata":{"raw":` + string(quoted) + `}}}`,
		`{"detail":{"error":` + inner + `}}`,
		`{"message":` + string(twice) + `}`,
		"502 Bad Gateway: " + inner,
		string(quoted),
		"{'error': {'type': 'overloaded_error', 'message': 'Overloaded'}}",
	} {
		f, _ := classify.Classify(classify.Input{Provider: "alpha", Status: 500, Body: []byte(body)})
		if f.Reason != llm.ReasonOverloaded {
			t.Errorf("%s by %s for %s", f.Reason, f.Rule, body)
		}
	}
}

func FuzzClassify(f *testing.F) {
	for _, p := range payloads(f) {
		f.Add(p.Provider, p.API, p.Status, []byte(p.Body), p.Message, p.Position, uint8(0))
	}
	f.Fuzz(func(t *testing.T, provider, api string, status int, body []byte, message, position string, transport uint8) {
		in := classify.Input{
			Provider: provider, API: api, Status: status, Body: body, Message: message, Position: position, ErrorType: message,
			Transport: llm.Transport(transport), Header: map[string]string{"retry-after": message, "x-amzn-errortype": message, "x-ratelimit-reset": message},
			Now: time.Unix(1772445600, 0),
		}
		got, failed := classify.Classify(in)
		if failed != (got.Reason != "") {
			t.Fatalf("failed %v with reason %q", failed, got.Reason)
		}
		if status >= 400 && !failed {
			t.Fatalf("status %d is no failure", status)
		}
		if n := utf8.RuneCountInString(got.Message); n > 300 || !utf8.ValidString(got.Message) {
			t.Fatalf("message of %d runes", n)
		}
		if got.RetryAfter < 0 || got.RetryAfter > 7*24*time.Hour {
			t.Fatalf("retry after %v", got.RetryAfter)
		}
		again, _ := classify.Classify(in)
		if again != got {
			t.Fatalf("%+v, then %+v", got, again)
		}
	})
}

func BenchmarkClassify(b *testing.B) {
	var inputs []classify.Input
	for _, p := range payloads(b) {
		inputs = append(inputs, p.input())
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		classify.Classify(inputs[i%len(inputs)])
	}
}
