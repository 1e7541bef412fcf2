package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// maxDepth bounds the nesting of a document; those of the known formats need four levels.
const maxDepth = 64

// member is one key of a JSON object.
type member struct {
	key   string
	value json.RawMessage
}

// object is a JSON object in the order in which it is written. A key that stands in it twice has
// the later value, as the program that wrote it would read it.
type object []member

// errNotObject tells that a value is valid JSON but no object.
var errNotObject = errors.New("is not an object")

// parseObject reads a whole document. Its error names the place where the document is broken, by
// its keys.
func parseObject(data []byte) (object, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if err := check(data); err != nil {
		return nil, err
	}
	return members(data)
}

// members splits an object whose syntax is known to be right.
func members(data []byte) (object, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errNotObject
	}
	var out object
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{}
		m.key, _ = t.(string)
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(out, func(x member) bool { return x.key == m.key }); i >= 0 && len(out) < 1000 {
			out[i].value = m.value
			continue
		}
		out = append(out, m)
	}
	return out, nil
}

// get returns the value of the first of the keys that is there and not null.
func (o object) get(keys ...string) json.RawMessage {
	for _, k := range keys {
		for i := len(o) - 1; i >= 0; i-- {
			if o[i].key == k && string(o[i].value) != "null" {
				return o[i].value
			}
		}
	}
	return nil
}

// text returns the first of the keys that holds a text that is not empty.
func (o object) text(keys ...string) string {
	for _, k := range keys {
		var s string
		if raw := o.get(k); raw != nil && json.Unmarshal(raw, &s) == nil && strings.TrimSpace(s) != "" {
			return strings.TrimSpace(s)
		}
	}
	return ""
}

// number returns the first of the keys that holds a number, or a text that is one.
func (o object) number(keys ...string) (float64, bool) {
	for _, k := range keys {
		raw := strings.Trim(string(o.get(k)), `" `)
		if n, err := strconv.ParseFloat(raw, 64); err == nil && n == n {
			return n, true
		}
	}
	return 0, false
}

// level is one open bracket on the way to the place that is being read.
type level struct {
	key    string
	object bool
	value  bool // the next token is a value
}

// check finds the first fault of a document and names the keys that lead to it.
func check(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var open []level
	for first := true; first || len(open) > 0; first = false {
		t, err := d.Token()
		if err != nil {
			return broken(open, err)
		}
		top := len(open) - 1
		switch t := t.(type) {
		case json.Delim:
			if t == ']' || t == '}' {
				open = open[:top]
				continue
			}
			if top >= 0 {
				open[top].value = false
			}
			if len(open) >= maxDepth {
				return fmt.Errorf("%s is nested too deeply", place(open))
			}
			open = append(open, level{object: t == '{'})
		case string:
			if top >= 0 && open[top].object && !open[top].value {
				open[top].key, open[top].value = t, true
				continue
			}
			if top >= 0 {
				open[top].value = false
			}
		default:
			if top >= 0 {
				open[top].value = false
			}
		}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something stands behind its end")
	}
	return nil
}

func broken(open []level, err error) error {
	what := "is not valid JSON"
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		what = "ends too early"
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		what += fmt.Sprintf(" (byte %d)", syntax.Offset)
	}
	if len(open) == 0 {
		return errors.New("it " + what)
	}
	return fmt.Errorf("%s %s", place(open), what)
}

// place names the keys that lead to what was read last.
func place(open []level) string {
	var keys []string
	for _, l := range open {
		if l.object && l.key != "" {
			keys = append(keys, clip(l.key))
		}
	}
	if len(keys) == 0 {
		return "it"
	}
	return "entry " + strings.Join(keys, " > ")
}

// clip makes a stranger's key fit to be shown: quoted where it must be, and short.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	if q := strconv.Quote(s); q[1:len(q)-1] != s || strings.ContainsAny(s, " ") || s == "" {
		return q
	}
	return s
}
