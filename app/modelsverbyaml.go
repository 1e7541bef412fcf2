package app

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// errByHand tells that a file is written in a way that an edit could damage.
var errByHand = errors.New("agents.defaults.model is written in a way that only a person should change; edit the file by hand")

// modelText changes the configured model in the text of a configuration. The syntax tree says where
// things are; everything else stays as it was written, to the byte.
type modelText struct {
	data []byte
	cuts []textCut
}

// textCut replaces a stretch of the text, in bytes.
type textCut struct {
	from, to int
	text     string
}

// setModel returns data with agents.defaults.model changed. list is the wanted chain of fallbacks; what
// stays of the present one must keep its order.
func setModel(data []byte, primary string, list []string) (out []byte, err error) {
	defer func() {
		if recover() != nil { // the parser is third-party code
			out, err = nil, errByHand
		}
	}()
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, errByHand // it was read before
	}
	m := &modelText{data: data}
	var root ast.Node
	for _, d := range file.Docs {
		if d.Body != nil && d.Body.Type() != ast.CommentType && d.Body.Type() != ast.DirectiveType {
			root = d.Body
		}
	}
	if err := m.place(root, []string{"agents", "defaults", "model"}, primary, list); err != nil {
		return nil, err
	}
	return m.apply()
}

// apply makes the changes, the last first.
func (m *modelText) apply() ([]byte, error) {
	slices.SortStableFunc(m.cuts, func(a, b textCut) int { return b.from - a.from })
	out := slices.Clone(m.data)
	for i, c := range m.cuts {
		if c.from > c.to || c.to > len(out) || i > 0 && c.to > m.cuts[i-1].from {
			return nil, errByHand
		}
		out = slices.Concat(out[:c.from], []byte(c.text), out[c.to:])
	}
	return out, nil
}

// place goes down the path and changes the value at its end.
func (m *modelText) place(n ast.Node, path []string, primary string, list []string) error {
	entries, flow, err := mapping(n)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Key.String() != path[0] {
			continue
		}
		switch {
		case len(path) == 1:
			return m.change(e, primary, list)
		case e.Value == nil || e.Value.Type() == ast.NullType:
			return m.under(e, path[1:], primary, list)
		}
		return m.place(e.Value, path[1:], primary, list)
	}
	text := written(path, primary, list)
	switch {
	case flow != nil:
		if len(entries) > 0 {
			return m.insertAfter(flow.Start, flowText(path, primary, list)+", ")
		}
		return m.insertAfter(flow.Start, flowText(path, primary, list))
	case len(entries) > 0:
		first := entries[0].Key.GetToken()
		start, err := m.lineStart(first)
		if err != nil {
			return err
		}
		m.cuts = append(m.cuts, textCut{start, start, indented(text, first.Position.Column-1)})
		return nil
	}
	m.atEnd(text)
	return nil
}

// atEnd writes lines at the end of the file.
func (m *modelText) atEnd(text string) {
	end := len(m.data)
	if end > 0 && m.data[end-1] != '\n' {
		text = "\n" + text
	}
	if len(bytes.TrimSpace(m.data)) > 0 {
		text = "\n" + text
	}
	m.cuts = append(m.cuts, textCut{end, end, text})
}

// under fills a key that stands there without a value.
func (m *modelText) under(e *ast.MappingValueNode, path []string, primary string, list []string) error {
	at, err := m.offset(e.Key.GetToken())
	if err != nil {
		return err
	}
	line := m.lineOf(at)
	if !bytes.HasSuffix(bytes.TrimRight(withoutComment(line.text), " \t\r\n"), []byte(":")) {
		return errByHand
	}
	text := indented(written(path, primary, list), e.Key.GetToken().Position.Column-1+2)
	if !bytes.HasSuffix(line.text, []byte("\n")) {
		text = "\n" + text
	}
	m.cuts = append(m.cuts, textCut{line.end, line.end, text})
	return nil
}

// change gives the key model another value.
func (m *modelText) change(e *ast.MappingValueNode, primary string, list []string) error {
	if e.Value == nil || e.Value.Type() == ast.NullType {
		at, err := m.offset(e.Start)
		if err != nil {
			return err
		}
		m.cuts = append(m.cuts, textCut{at + 1, at + 1, " " + modelValue(primary, list)})
		return nil
	}
	if from, to, err := m.scalar(e.Value); err == nil {
		m.cuts = append(m.cuts, textCut{from, to, modelValue(primary, list)})
		return nil
	}
	entries, flow, err := mapping(e.Value)
	if err != nil || len(entries) == 0 {
		return errByHand
	}
	var first, fallbacks *ast.MappingValueNode
	for _, x := range entries {
		switch x.Key.String() {
		case "primary":
			first = x
		case "fallbacks":
			fallbacks = x
		default:
			return errByHand
		}
	}
	if first == nil {
		return errByHand
	}
	from, to, err := m.scalar(first.Value)
	if err != nil {
		return err
	}
	if string(m.data[from:to]) != primary {
		m.cuts = append(m.cuts, textCut{from, to, plain(primary)})
	}
	if fallbacks != nil {
		return m.sequence(fallbacks, list)
	}
	if len(list) == 0 {
		return nil
	}
	if flow != nil {
		m.cuts = append(m.cuts, textCut{to, to, ", fallbacks: " + flowList(list)})
		return nil
	}
	line := m.lineOf(from)
	text := indented("fallbacks: "+flowList(list)+"\n", first.Key.GetToken().Position.Column-1)
	if !bytes.HasSuffix(line.text, []byte("\n")) {
		text = "\n" + text
	}
	m.cuts = append(m.cuts, textCut{line.end, line.end, text})
	return nil
}

// sequence changes the list of fallbacks.
func (m *modelText) sequence(e *ast.MappingValueNode, list []string) error {
	colon, err := m.offset(e.Start)
	if err != nil {
		return err
	}
	seq, ok := e.Value.(*ast.SequenceNode)
	switch {
	case e.Value == nil || e.Value.Type() == ast.NullType:
		m.cuts = append(m.cuts, textCut{colon + 1, colon + 1, " " + flowList(list)})
		return nil
	case !ok:
		return errByHand
	case seq.IsFlowStyle:
		from, err := m.offset(seq.Start)
		if err != nil {
			return err
		}
		to, err := m.offset(seq.End)
		if err != nil || from > to || m.data[from] != '[' || m.data[to] != ']' || bytes.ContainsRune(m.data[from:to], '#') {
			return errByHand
		}
		m.cuts = append(m.cuts, textCut{from, to + 1, flowList(list)})
		return nil
	}
	return m.items(seq, colon, list)
}

// items changes a list that is written with dashes: lines go, and lines come behind the last one.
func (m *modelText) items(seq *ast.SequenceNode, colon int, list []string) error {
	kept := 0
	var last textLine
	var column int
	for _, v := range seq.Values {
		from, to, err := m.scalar(v)
		if err != nil {
			return err
		}
		last = m.lineOf(from)
		column = len(last.text) - len(bytes.TrimLeft(last.text, " "))
		if !bytes.HasPrefix(last.text[column:], []byte("- ")) {
			return errByHand
		}
		if kept < len(list) && unquoted(string(m.data[from:to])) == list[kept] {
			kept++
			continue
		}
		m.cuts = append(m.cuts, textCut{last.start, last.end, ""})
	}
	if kept == 0 {
		m.cuts = append(m.cuts, textCut{colon + 1, colon + 1, " " + flowList(list)})
		return nil
	}
	var more strings.Builder
	if !bytes.HasSuffix(last.text, []byte("\n")) && len(list) > kept {
		more.WriteByte('\n')
	}
	for _, x := range list[kept:] {
		more.WriteString(indented("- "+plain(x)+"\n", column))
	}
	m.cuts = append(m.cuts, textCut{last.end, last.end, more.String()})
	return nil
}

// mapping returns the entries of a mapping; flow is set when it is written with braces.
func mapping(n ast.Node) (entries []*ast.MappingValueNode, flow *ast.MappingNode, err error) {
	switch x := n.(type) {
	case nil:
		return nil, nil, nil
	case *ast.MappingNode:
		if x.IsFlowStyle {
			flow = x
		}
		entries = x.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{x}
	case *ast.NullNode:
		return nil, nil, nil
	default:
		return nil, nil, errByHand
	}
	for _, e := range entries {
		if _, merge := e.Key.(*ast.MergeKeyNode); merge {
			return nil, nil, errByHand
		}
	}
	return entries, flow, nil
}

// scalar returns where a plain or quoted text of one line stands.
func (m *modelText) scalar(n ast.Node) (from, to int, err error) {
	s, ok := n.(*ast.StringNode)
	if !ok {
		return 0, 0, errByHand
	}
	if from, err = m.offset(s.Token); err != nil {
		return 0, 0, err
	}
	rest := m.data[from:]
	if q := rest[0]; q == '"' || q == '\'' {
		end := bytes.IndexByte(rest[1:], q)
		if end < 0 || unquoted(string(rest[:end+2])) != s.Value {
			return 0, 0, errByHand
		}
		return from, from + end + 2, nil
	}
	if !bytes.HasPrefix(rest, []byte(s.Value)) {
		return 0, 0, errByHand
	}
	return from, from + len(s.Value), nil
}

func unquoted(s string) string { return strings.Trim(s, `"'`) }

// offset is where a token begins, in bytes; the parser counts lines and characters.
func (m *modelText) offset(t *token.Token) (int, error) {
	if t == nil || t.Position == nil {
		return 0, errByHand
	}
	at := 0
	for range t.Position.Line - 1 {
		i := bytes.IndexByte(m.data[at:], '\n')
		if i < 0 {
			return 0, errByHand
		}
		at += i + 1
	}
	for range t.Position.Column - 1 {
		if at >= len(m.data) {
			return 0, errByHand
		}
		_, size := utf8.DecodeRune(m.data[at:])
		at += size
	}
	if at >= len(m.data) {
		return 0, errByHand
	}
	return at, nil
}

func (m *modelText) insertAfter(t *token.Token, text string) error {
	at, err := m.offset(t)
	if err != nil {
		return err
	}
	m.cuts = append(m.cuts, textCut{at + 1, at + 1, text})
	return nil
}

// textLine is a line with its end, by bytes.
type textLine struct {
	start, end int
	text       []byte
}

func (m *modelText) lineOf(at int) textLine {
	start := bytes.LastIndexByte(m.data[:at], '\n') + 1
	end := len(m.data)
	if i := bytes.IndexByte(m.data[at:], '\n'); i >= 0 {
		end = at + i + 1
	}
	return textLine{start, end, m.data[start:end]}
}

// lineStart is where the line of a token begins, if nothing but blanks stands before it.
func (m *modelText) lineStart(t *token.Token) (int, error) {
	at, err := m.offset(t)
	if err != nil {
		return 0, err
	}
	line := m.lineOf(at)
	if len(bytes.TrimLeft(m.data[line.start:at], " ")) > 0 {
		return 0, errByHand
	}
	return line.start, nil
}

// withoutComment cuts a comment off a line.
func withoutComment(line []byte) []byte {
	if i := bytes.Index(line, []byte(" #")); i >= 0 {
		return line[:i]
	}
	return line
}

// written is a value below a path, as lines.
func written(path []string, primary string, list []string) string {
	var b strings.Builder
	for i, key := range path {
		b.WriteString(strings.Repeat("  ", i) + key + ":")
		if i < len(path)-1 {
			b.WriteByte('\n')
		}
	}
	return b.String() + " " + modelValue(primary, list) + "\n"
}

// flowText is the same within braces.
func flowText(path []string, primary string, list []string) string {
	text := modelValue(primary, list)
	for i := len(path) - 1; i >= 0; i-- {
		if text = path[i] + ": " + text; i > 0 {
			text = "{" + text + "}"
		}
	}
	return text
}

func modelValue(primary string, list []string) string {
	if len(list) == 0 {
		return plain(primary)
	}
	return fmt.Sprintf("{primary: %s, fallbacks: %s}", plain(primary), flowList(list))
}

func flowList(list []string) string {
	words := make([]string, len(list))
	for i, x := range list {
		words[i] = plain(x)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// plainWord is what needs no quotes anywhere in YAML.
var plainWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._/+-]*$`)

func plain(s string) string {
	if plainWord.MatchString(s) && strings.Contains(s, "/") {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func indented(text string, by int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.Repeat(" ", by) + line)
	}
	return b.String()
}
