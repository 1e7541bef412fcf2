package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The labelled payloads agree, every one of them.
func TestClassifyCheck(t *testing.T) {
	for _, file := range []string{"errors.jsonl", "more.jsonl"} {
		in, err := os.ReadFile("../failover/classify/testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		n := bytes.Count(in, []byte("\n"))
		if n < 300 {
			t.Fatalf("%s has only %d lines", file, n)
		}
		want := fmt.Sprintf("%d labelled lines: %d agree strictly, %d with alt_labels\n", n, n, n)
		var out, errw bytes.Buffer
		if code := Classify(ClassifyOptions{Check: true}, bytes.NewReader(in), &out, &errw); code != 0 {
			t.Errorf("%s: exit code %d\n%s", file, code, &errw)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
	}
}

// A disagreement is named, counted against the strict score, and an acceptable one not against the other.
func TestClassifyCheckNamesDisagreements(t *testing.T) {
	const in = `{"id":"right","provider":"alpha","status":429,"label":"rate_limit"}
{"id":"wrong","provider":"alpha","status":429,"label":"billing"}
{"id":"debatable","provider":"alpha","status":429,"label":"overloaded","alt_labels":["rate_limit"]}
{"id":"detail","provider":"alpha","status":504,"label":"timeout","sublabel":"network"}
{"id":"scope","provider":"alpha","status":429,"label":"rate_limit","scope":"profile"}
{"id":"wait","provider":"alpha","status":429,"headers":{"retry-after":"9"},"label":"rate_limit","retry_after_ms":7000}
{"id":"reset","provider":"alpha","status":429,"label":"rate_limit","reset_at":"2026-03-02T10:00:00Z"}
{"id":"unlabelled","provider":"alpha","status":429}
`
	var out, errw bytes.Buffer
	if code := Classify(ClassifyOptions{Check: true}, strings.NewReader(in), &out, &errw); code != 1 {
		t.Errorf("exit code %d", code)
	}
	const want = `wrong: reason is rate_limit, labelled billing [status]
debatable: reason is rate_limit, labelled overloaded (acceptable by alt_labels) [status]
detail: detail is deadline, labelled network [status]
scope: scope is null, labelled profile [status]
wait: retry_after_ms is 9000, labelled 7000 [status]
reset: reset_at is null, labelled 2026-03-02T10:00:00Z [status]
7 labelled lines: 1 agree strictly, 2 with alt_labels
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// One JSON line comes out for each line that goes in, with every field of spec/tools.md.
func TestClassifyPrints(t *testing.T) {
	const in = `{"id":"a","provider":"openai-codex","api":"openai-responses","status":429,"body":"{\"error\":{\"type\":\"usage_limit_reached\",\"resets_at\":1775317531,\"resets_in_seconds\":60}}","new_field":1}

{"id":"b","provider":"x","api":"transport","status":null,"message":"Post: EOF","error_type":"io.EOF"}
{"provider":"x","api":"openai-chat","status":400,"body":{"error":{"message":"bad"}}}
{"id":"d","provider":"x","api":"openai-chat","status":200,"body":"{\"choices\":[{\"message\":{\"content\":\"hi\"}}]}"}`
	var out, errw bytes.Buffer
	if code := Classify(ClassifyOptions{}, strings.NewReader(in), &out, &errw); code != 0 || errw.Len() > 0 {
		t.Errorf("exit code %d: %s", code, &errw)
	}
	const want = `{"id":"a","reason":"rate_limit","detail":null,"scope":"profile","retry_after_ms":60000,"reset_at":"2026-04-04T15:45:31Z","advances":true,"rule":"code/usage_limit_reached"}
{"id":"b","reason":"timeout","detail":"network","scope":null,"retry_after_ms":null,"reset_at":null,"advances":true,"rule":"transport/eof"}
{"id":"line-4","reason":"format","detail":null,"scope":null,"retry_after_ms":null,"reset_at":null,"advances":false,"rule":"status"}
{"id":"d","reason":"none","detail":null,"scope":null,"retry_after_ms":null,"reset_at":null,"advances":false,"rule":""}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// A line that is no JSON is an error that names the line; the rest still runs.
func TestClassifyBadLine(t *testing.T) {
	in := "{\"id\":\"a\",\"status\":402}\nnot json\n{\"id\":\"b\",\"status\":\"x\"}\n" + strings.Repeat("x", maxClassifyLine+1) + "\n{\"id\":\"c\",\"status\":402}\n"
	for _, check := range []bool{false, true} {
		var out, errw bytes.Buffer
		if code := Classify(ClassifyOptions{Check: check}, strings.NewReader(in), &out, &errw); code != 1 {
			t.Errorf("exit code %d", code)
		}
		for _, line := range []string{"line 2: ", "line 3: ", "line 4: "} {
			if !strings.Contains(errw.String(), line) {
				t.Errorf("no %q in %q", line, &errw)
			}
		}
		if !check && strings.Count(out.String(), `"billing"`) != 2 {
			t.Errorf("the rest did not run: %s", &out)
		}
	}
}

// A pasted text is judged as an error's text, a pasted body as a body.
func TestClassifyText(t *testing.T) {
	for _, tt := range []struct{ text, provider, want string }{
		{"HTTP 429 Too Many Requests", "openai", "rate_limit"},
		{"Provider returned error", "openrouter", "timeout"},
		{"Provider returned error", "together", "unclassified"},
		{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "anthropic", "overloaded"},
		{`API Error: 400 {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 2 tokens > 1 maximum"}}`, "anthropic", "context_overflow"},
		{"<html><title>502 Bad Gateway</title></html>", "alpha", "timeout"},
	} {
		var out, errw bytes.Buffer
		if code := Classify(ClassifyOptions{Text: tt.text, Provider: tt.provider}, strings.NewReader(""), &out, &errw); code != 0 {
			t.Errorf("%q: exit code %d: %s", tt.text, code, &errw)
		}
		var v classifyVerdict
		if err := json.Unmarshal(out.Bytes(), &v); err != nil || v.Reason != tt.want {
			t.Errorf("%q of %s: %s, want %s (%v)", tt.text, tt.provider, v.Reason, tt.want, err)
		}
	}
}

type brokenPipe struct{}

var errBroken = errors.New("broken")

func (brokenPipe) Read([]byte) (int, error)  { return 0, errBroken }
func (brokenPipe) Write([]byte) (int, error) { return 0, errBroken }

// Trouble with the streams themselves is an error as well.
func TestClassifyReportsBrokenStreams(t *testing.T) {
	var errw bytes.Buffer
	if code := Classify(ClassifyOptions{}, brokenPipe{}, io.Discard, &errw); code != 1 || !strings.Contains(errw.String(), "broken") {
		t.Errorf("reading: exit code %d, %q", code, &errw)
	}
	errw.Reset()
	if code := Classify(ClassifyOptions{}, strings.NewReader(`{"status":402}`), brokenPipe{}, &errw); code != 1 || !strings.Contains(errw.String(), "broken") {
		t.Errorf("writing: exit code %d, %q", code, &errw)
	}
}
