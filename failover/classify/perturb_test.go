package classify_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"understudy/failover/classify"
)

// A change is something that happens to an error on its way and says nothing about its cause: other
// names and numbers, another layout, another envelope. ok is false where it cannot be made.
type change struct {
	name string
	make func(p payload) (q payload, ok bool)
}

var changes = []change{
	{"another model", func(p payload) (payload, bool) { return p.rewrite(renameModels) }},
	{"other numbers", func(p payload) (payload, bool) { return p.rewrite(renumber) }},
	{"keys in reverse order", reversed},
	{"indented", func(p payload) (payload, bool) {
		return p.layout(func(b *bytes.Buffer) error { return json.Indent(b, []byte(p.Body), "\t", "  ") })
	}},
	{"compact", func(p payload) (payload, bool) {
		return p.layout(func(b *bytes.Buffer) error { return json.Compact(b, []byte(p.Body)) })
	}},
	{"blank lines around", func(p payload) (payload, bool) {
		p.Body = "\r\n  " + p.Body + "\n\n"
		return p, p.isJSON()
	}},
	{"an array", func(p payload) (payload, bool) {
		q := p
		q.Body = "[" + p.Body + "]"
		return q, p.isJSON()
	}},
	{"a server-sent event", func(p payload) (payload, bool) {
		q, ok := withStatusInside(p)
		q.Body = "event: error\ndata: " + oneLine(q.Body) + "\n\n"
		q.Stream, q.Position = true, classify.PositionFirst
		return q, ok
	}},
	{"a success that holds the status", withStatusInside},
	{"a proxy's message", func(p payload) (payload, bool) {
		q := p
		q.Body = `{"error":{"message":` + quoted(p.Body) + `,"type":"proxy_error","code":null}}`
		return q, p.isFailure() && p.isJSON()
	}},
	{"a proxy's detail", func(p payload) (payload, bool) {
		q := p
		q.Body = `{"detail":` + p.Body + `}`
		return q, p.isFailure() && p.isJSON()
	}},
	{"a text behind a prefix", func(p payload) (payload, bool) {
		return p.asText(fmt.Sprintf("API Error: %d %s", p.Status, oneLine(p.Body)))
	}},
	{"a text before a request id", func(p payload) (payload, bool) {
		return p.asText(fmt.Sprintf("Model call failed: HTTP %d: %s (Request ID: E373:246B49:65284)", p.Status, oneLine(p.Body)))
	}},
	{"a text as Python prints it", func(p payload) (payload, bool) {
		if !p.isJSON() {
			return p, false
		}
		return p.asText(fmt.Sprintf("Error code: %d - %s", p.Status, pythonRepr([]byte(p.Body))))
	}},
	{"a proxy's bytes", func(p payload) (payload, bool) {
		q := p
		q.Body = `{"error":{"message":` + quoted("proxy.BadRequestError: UpstreamException - b'"+oneLine(p.Body)+"'. Received group=main") + `,"type":null,"param":null,"code":"` + strconv.Itoa(p.Status) + `"}}`
		return q, p.isFailure() && p.isJSON() && !strings.Contains(p.Body, "'")
	}},
}

// What happens to an error on its way does not change why the request failed.
func TestReasonSurvivesTheWay(t *testing.T) {
	t.Parallel()
	for _, p := range payloads(t) {
		want, wasFailure := classify.Classify(p.input())
		for _, c := range changes {
			q, ok := c.make(p)
			if !ok {
				continue
			}
			got, failed := classify.Classify(q.input())
			if got.Reason != want.Reason || failed != wasFailure {
				t.Errorf("%s as %s: %s by %s, was %s by %s\n\t%.300s", p.ID, c.name, got.Reason, got.Rule, want.Reason, want.Rule, q.Body+q.Message)
			}
		}
	}
}

// The same holds for several of them in a row.
func TestReasonSurvivesALongWay(t *testing.T) {
	t.Parallel()
	all := payloads(t)
	layouts := changes[:6]
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(all).Draw(t, "payload")
		want, _ := classify.Classify(p.input())
		way := []string{p.ID}
		for range rapid.IntRange(1, 4).Draw(t, "layouts") {
			p, way = pass(p, rapid.SampledFrom(layouts).Draw(t, "layout"), way)
		}
		p, way = pass(p, rapid.SampledFrom(changes[6:]).Draw(t, "envelope"), way)
		if got, _ := classify.Classify(p.input()); got.Reason != want.Reason {
			t.Fatalf("%v: %s by %s, was %s by %s", way, got.Reason, got.Rule, want.Reason, want.Rule)
		}
	})
}

func pass(p payload, c change, way []string) (payload, []string) {
	if q, ok := c.make(p); ok {
		return q, append(way, c.name)
	}
	return p, way
}

func (p payload) isJSON() bool { return strings.HasPrefix(p.Body, "{") && json.Valid([]byte(p.Body)) }

// isFailure tells that the response is an error by its status, and that no header adds to it.
func (p payload) isFailure() bool {
	return p.Status >= 400 && p.Headers["x-amzn-errortype"] == "" && p.Headers["cf-mitigated"] == ""
}

// asText is the failure as an SDK or a command line prints it.
func (p payload) asText(text string) (payload, bool) {
	q := p
	q.API, q.Status, q.Headers, q.Body, q.Message = classify.APITransport, 0, nil, "", text
	return q, p.isFailure() && p.isJSON()
}

// withStatusInside moves the status of the response into its body.
func withStatusInside(p payload) (payload, bool) {
	q := p
	q.Status = 200
	q.Body = fmt.Sprintf(`{"type":"error","status":%d,%s`, p.Status, strings.TrimLeft(p.Body, "{ \n\t"))
	return q, p.isFailure() && p.isJSON() && len(p.Body) > 4 && json.Valid([]byte(q.Body))
}

func (p payload) layout(write func(b *bytes.Buffer) error) (payload, bool) {
	var b bytes.Buffer
	if !p.isJSON() || write(&b) != nil {
		return p, false
	}
	p.Body = b.String()
	return p, true
}

func (p payload) rewrite(f func(string) string) (payload, bool) {
	q := p
	q.Body, q.Message = f(p.Body), f(p.Message)
	return q, q.Body != p.Body || q.Message != p.Message
}

var modelName = regexp.MustCompile(`\b(gpt-[0-9][\w.-]*\w|claude-[\w.-]*\w|gemini-[\w.-]*\w|llama-?[0-9][\w.-]*\w|qwen[0-9][\w.-]*\w|glm-[\w.-]*\w|grok-[\w.-]*\w|kimi-k[\w.-]*\w)`)

func renameModels(s string) string { return modelName.ReplaceAllString(s, "zeta-429-402b-overloaded") }

// longNumber finds counts: no code, no status, no part of a name or a date.
var longNumber = regexp.MustCompile(`([ (:>])([1-9][0-9]{4,6})([ ),.<])`)

func renumber(s string) string {
	return longNumber.ReplaceAllStringFunc(s, func(n string) string {
		return n[:1] + strings.Repeat("42", len(n)-2)[:len(n)-2] + n[len(n)-1:]
	})
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func oneLine(body string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(body)) != nil {
		return body
	}
	return b.String()
}

// reversed writes the members of every object in the opposite order.
func reversed(p payload) (payload, bool) {
	if !p.isJSON() {
		return p, false
	}
	var b bytes.Buffer
	reverse(&b, json.RawMessage(p.Body))
	p.Body = b.String()
	return p, json.Valid(b.Bytes())
}

func reverse(b *bytes.Buffer, raw json.RawMessage) {
	raw = bytes.TrimSpace(raw)
	switch raw[0] {
	case '{':
		dec := json.NewDecoder(bytes.NewReader(raw))
		_, _ = dec.Token()
		var parts []string
		for dec.More() {
			key, _ := dec.Token()
			var v json.RawMessage
			_ = dec.Decode(&v)
			var m bytes.Buffer
			reverse(&m, v)
			parts = append(parts, quoted(key.(string))+":"+m.String())
		}
		slices.Reverse(parts)
		b.WriteString("{" + strings.Join(parts, ",") + "}")
	case '[':
		var items []json.RawMessage
		_ = json.Unmarshal(raw, &items)
		b.WriteByte('[')
		for i, item := range items {
			if i > 0 {
				b.WriteByte(',')
			}
			reverse(b, item)
		}
		b.WriteByte(']')
	default:
		b.Write(raw)
	}
}

// pythonRepr writes JSON as Python prints the dictionary.
func pythonRepr(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	switch raw[0] {
	case '{':
		dec := json.NewDecoder(bytes.NewReader(raw))
		_, _ = dec.Token()
		var parts []string
		for dec.More() {
			key, _ := dec.Token()
			var v json.RawMessage
			_ = dec.Decode(&v)
			parts = append(parts, pythonString(key.(string))+": "+pythonRepr(v))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case '[':
		var items []json.RawMessage
		_ = json.Unmarshal(raw, &items)
		var parts []string
		for _, item := range items {
			parts = append(parts, pythonRepr(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case '"':
		var s string
		_ = json.Unmarshal(raw, &s)
		return pythonString(s)
	}
	return strings.NewReplacer("true", "True", "false", "False", "null", "None").Replace(string(raw))
}

func pythonString(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), "\n", `\n`)
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `\'`) + "'"
}
