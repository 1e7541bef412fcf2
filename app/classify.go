package app

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"understudy/failover/classify"
	"understudy/failover/policy"
	"understudy/llm"
)

// ClassifyOptions are the flags of `bot classify` (spec/tools.md).
type ClassifyOptions struct {
	// Check compares with the labels instead of printing verdicts.
	Check bool
	// Text is one pasted text to judge instead of reading input; Provider is whose it is.
	Text, Provider string
}

// maxClassifyLine bounds one input line; a longer one is an error of that line only.
const maxClassifyLine = 4 << 20

// classifyLine is one failed response as spec/tools.md describes it. Unknown fields are ignored.
type classifyLine struct {
	ID        string            `json:"id"`
	Provider  string            `json:"provider"`
	API       string            `json:"api"`
	Status    *int              `json:"status"`
	Headers   map[string]string `json:"headers"`
	Body      classifyBody      `json:"body"`
	Stream    bool              `json:"stream"`
	Position  string            `json:"stream_position"`
	Message   string            `json:"message"`
	ErrorType string            `json:"error_type"`

	Label        string   `json:"label"`
	Sublabel     string   `json:"sublabel"`
	AltLabels    []string `json:"alt_labels"`
	Scope        string   `json:"scope"`
	RetryAfterMS *int64   `json:"retry_after_ms"`
	ResetAt      string   `json:"reset_at"`
}

// classifyBody is a body as sent, in a JSON string; a body that stands as JSON itself is taken too.
type classifyBody []byte

// UnmarshalJSON implements json.Unmarshaler.
func (b *classifyBody) UnmarshalJSON(raw []byte) error {
	switch {
	case string(raw) == "null":
		*b = nil
		return nil
	case len(raw) > 0 && raw[0] == '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		*b = []byte(s)
		return nil
	}
	*b = slices.Clone(raw)
	return nil
}

// classifyVerdict is one line of output.
type classifyVerdict struct {
	ID           string  `json:"id"`
	Reason       string  `json:"reason"`
	Detail       *string `json:"detail"`
	Scope        *string `json:"scope"`
	RetryAfterMS *int64  `json:"retry_after_ms"`
	ResetAt      *string `json:"reset_at"`
	Advances     bool    `json:"advances"`
	Rule         string  `json:"rule"`
}

// reasonNone is what `bot classify` calls a response that did not fail.
const reasonNone = "none"

// Classify runs `bot classify`: it reads failed responses from in as JSON Lines and prints what the
// bot makes of each, or with Check how many of the labelled ones agree. It returns the exit code:
// 1 when a line could not be read, or with Check when any disagrees strictly.
func Classify(opts ClassifyOptions, in io.Reader, out, errw io.Writer) (exitCode int) {
	w := bufio.NewWriter(out)
	defer func() {
		if err := w.Flush(); err != nil && exitCode == 0 {
			fmt.Fprintln(errw, "classify:", err)
			exitCode = 1
		}
	}()
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if opts.Text != "" {
		line := classifyLine{Provider: opts.Provider}
		if looksLikeBody(opts.Text) {
			line.Body = []byte(opts.Text)
		} else {
			line.Message = opts.Text
		}
		return encodeVerdict(enc, errw, line.verdict())
	}
	var sum classifySummary
	err := eachLine(in, func(n int, raw []byte, tooLong bool) {
		var line classifyLine
		if tooLong {
			fmt.Fprintf(errw, "line %d: longer than %d bytes\n", n, maxClassifyLine)
			exitCode = 1
			return
		}
		if err := json.Unmarshal(raw, &line); err != nil {
			fmt.Fprintf(errw, "line %d: %v\n", n, err)
			exitCode = 1
			return
		}
		if line.ID == "" {
			line.ID = fmt.Sprintf("line-%d", n)
		}
		if opts.Provider != "" && line.Provider == "" {
			line.Provider = opts.Provider
		}
		if opts.Check {
			sum.add(w, line)
			return
		}
		exitCode = max(exitCode, encodeVerdict(enc, errw, line.verdict()))
	})
	if err != nil {
		fmt.Fprintln(errw, "classify:", err)
		exitCode = 1
	}
	if opts.Check {
		sum.print(w)
		if sum.strict != sum.labelled {
			exitCode = 1
		}
	}
	return exitCode
}

func encodeVerdict(enc *json.Encoder, errw io.Writer, v classifyVerdict) int {
	if err := enc.Encode(v); err != nil {
		fmt.Fprintln(errw, "classify:", err)
		return 1
	}
	return 0
}

// looksLikeBody tells a pasted response body from a pasted sentence.
func looksLikeBody(text string) bool {
	b := bytes.TrimSpace([]byte(text))
	for _, p := range [...]string{"{", "[{", "<", "data:", "event:"} {
		if bytes.HasPrefix(b, []byte(p)) {
			return true
		}
	}
	return false
}

// eachLine calls do with every line that is not blank, and with its number.
func eachLine(in io.Reader, do func(n int, raw []byte, tooLong bool)) error {
	r := bufio.NewReaderSize(in, 64<<10)
	var line []byte
	for n, tooLong := 1, false; ; {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxClassifyLine {
			tooLong = true
		} else {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if raw := bytes.TrimSpace(line); len(raw) > 0 || tooLong {
			do(n, raw, tooLong)
		}
		line, tooLong = line[:0], false
		n++
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// judge classifies the line by the product's own code path. The present is unknown, so that the
// same line always gives the same answer.
func (l classifyLine) judge() (llm.Failure, bool) {
	in := classify.Input{
		Provider: l.Provider, API: l.API, Header: l.Headers, Body: l.Body, Stream: l.Stream, Position: l.Position,
		Message: l.Message, ErrorType: l.ErrorType, Transport: classify.TransportOf(l.ErrorType, l.Message),
	}
	if l.Status != nil {
		in.Status = *l.Status
	}
	return classify.Classify(in)
}

func (l classifyLine) verdict() classifyVerdict {
	f, failed := l.judge()
	if !failed {
		return classifyVerdict{ID: l.ID, Reason: reasonNone}
	}
	v := classifyVerdict{ID: l.ID, Reason: string(f.Reason), Advances: policy.Advances(f.Reason), Rule: f.Rule}
	if f.Detail != "" {
		v.Detail = (*string)(&f.Detail)
	}
	if f.Scope != llm.ScopeDefault {
		v.Scope = (*string)(&f.Scope)
	}
	if f.RetryAfter > 0 {
		ms := f.RetryAfter.Milliseconds()
		v.RetryAfterMS = &ms
	}
	if !f.ResetAt.IsZero() {
		at := f.ResetAt.UTC().Format(time.RFC3339)
		v.ResetAt = &at
	}
	return v
}

// classifySummary counts how verdicts compare with labels.
type classifySummary struct {
	labelled, strict, withAlt int
}

// add compares one line and prints it when it disagrees. A line without a label does not count.
func (s *classifySummary) add(w io.Writer, l classifyLine) {
	if l.Label == "" {
		return
	}
	s.labelled++
	v := l.verdict()
	if wrong := l.disagreements(v); len(wrong) > 0 {
		alt := ""
		if slices.Contains(l.AltLabels, v.Reason) {
			s.withAlt++
			alt = " (acceptable by alt_labels)"
		}
		fmt.Fprintf(w, "%s: %s%s [%s]\n", l.ID, strings.Join(wrong, ", "), alt, v.Rule)
		return
	}
	s.strict++
	s.withAlt++
}

func (s *classifySummary) print(w io.Writer) {
	fmt.Fprintf(w, "%d labelled lines: %d agree strictly, %d with alt_labels\n", s.labelled, s.strict, s.withAlt)
}

// disagreements says in what v differs from the label. Details, scopes and times count where the
// label states them.
func (l classifyLine) disagreements(v classifyVerdict) []string {
	var wrong []string
	differ := func(what, want, got string) {
		if want != "" && want != got {
			wrong = append(wrong, fmt.Sprintf("%s is %s, labelled %s", what, orNull(got), want))
		}
	}
	differ("reason", l.Label, v.Reason)
	differ("detail", l.Sublabel, deref(v.Detail))
	differ("scope", l.Scope, deref(v.Scope))
	if l.ResetAt != "" {
		want, err := time.Parse(time.RFC3339, l.ResetAt)
		got, err2 := time.Parse(time.RFC3339, deref(v.ResetAt))
		if err != nil || err2 != nil || want.Sub(got).Abs() > time.Second {
			differ("reset_at", l.ResetAt, deref(v.ResetAt))
		}
	}
	if want := l.RetryAfterMS; want != nil {
		if got := v.RetryAfterMS; got == nil || max(*got-*want, *want-*got) > 1000 {
			text := ""
			if got != nil {
				text = fmt.Sprint(*got)
			}
			differ("retry_after_ms", fmt.Sprint(*want), text)
		}
	}
	return wrong
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return s
}
