package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Limits of a configuration file. They are far above any real one and keep a broken or hostile
// file from costing memory or stack.
const (
	maxFileBytes = 1 << 20
	maxNesting   = 100
	maxNodes     = 200_000 // after aliases are followed
	maxMerges    = 10      // << within <<
)

// Parse reads a configuration from bytes. Name stands in messages in place of a file name; env
// looks up environment variables. The file system is touched only for secrets that refer to files.
// The error is an *Error.
func Parse(name string, data []byte, env func(string) (string, bool)) (*Config, []Warning, error) {
	return parse(name, data, Options{Env: env})
}

// ParseNode reads a configuration that is part of a larger YAML document, such as the config key
// of a `bot simulate` scenario, so that messages name the place in that document. A nil node is an
// empty configuration. Of opts, Env and AnyProvider are used.
func ParseNode(name string, node ast.Node, opts Options) (*Config, []Warning, error) {
	return build(name, node, opts)
}

func parse(name string, data []byte, opts Options) (*Config, []Warning, error) {
	node, err := Tree(name, data)
	if err != nil {
		return nil, nil, err
	}
	return build(name, node, opts)
}

// Tree parses data into the syntax tree of its one document, for ParseNode; nil for an empty one.
// It guards against files that are too large or nest too deeply. The error is an *Error.
func Tree(name string, data []byte) (ast.Node, error) {
	node, problem := tree(name, data)
	if problem != nil {
		return nil, &Error{Problems: []Problem{*problem}}
	}
	return node, nil
}

// build decodes a syntax tree and resolves what it says.
func build(name string, node ast.Node, opts Options) (*Config, []Warning, error) {
	env, warnings := ReadEnv(opts.env())
	d := newDecoder(name, opts)
	d.warnings = warnings
	c := &Config{Env: env}
	d.document(node, c)
	if len(d.problems) == 0 {
		resolve(d, c, opts)
	}
	if len(d.problems) > 0 {
		return nil, nil, &Error{Problems: sorted(d.problems)}
	}
	c.Unavailable, c.secrets, c.plaintext = d.unavailable, d.secrets, d.plaintext
	c.blank = node == nil
	return c, sorted(d.warnings), nil
}

func tree(name string, data []byte) (node ast.Node, problem *Problem) {
	fail := func(line, column int, text, hint string) (ast.Node, *Problem) {
		return nil, &Problem{File: name, Line: line, Column: column, Text: text, Hint: hint}
	}
	if len(data) > maxFileBytes {
		return fail(0, 0, "the file is larger than 1 MiB", "")
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return fail(bytes.Count(data[:i], []byte("\n"))+1, 1, "the file is not text", "")
	}
	if line := tooDeep(data); line > 0 {
		return fail(line, 1, "nested too deeply", "")
	}
	// The parser is third-party code that meets strangers' bytes: whatever it does, the answer is
	// an error.
	defer func() {
		if r := recover(); r != nil {
			node, problem = fail(0, 0, "this is not readable YAML", "")
		}
	}()
	colon := stand(data)
	file, err := parser.ParseBytes(hideColons(data, colon), 0)
	if err != nil {
		return nil, syntaxProblem(name, data, err, colon)
	}
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.CommentType || doc.Body.Type() == ast.DirectiveType:
		case node != nil:
			pos, _ := positionOf(doc.Body)
			return fail(pos.line, pos.column, "a second document begins here", "keep one document in the file")
		default:
			node = doc.Body
		}
	}
	if node != nil {
		showColons(node, colon, 0)
	}
	return node, nil
}

// syntaxProblem turns a parser error into a Problem. The parser's own rendering is not used: it
// quotes the lines around the error, and those may hold a secret.
func syntaxProblem(name string, data []byte, err error, colon string) *Problem {
	p := &Problem{File: name, Text: "this is not valid YAML"}
	var located yaml.Error
	if !errors.As(err, &located) {
		return p
	}
	if tk := located.GetToken(); tk != nil && tk.Position != nil {
		p.Line, p.Column = tk.Position.Line, tk.Position.Column
	}
	msg := located.GetMessage()
	switch {
	case strings.Contains(msg, "already defined"):
		p.Text = "this key stands here a second time"
		if tk := located.GetToken(); tk != nil && len(tk.Value) <= 64 {
			p.Key = strings.ReplaceAll(tk.Value, colon, ":")
		}
	case msg != "":
		p.Text = fmt.Sprintf("%s: %s", p.Text, msg)
	}
	switch lines := bytes.Split(data, []byte("\n")); {
	case p.Line > 0 && p.Line <= len(lines) && bytes.Contains(lines[p.Line-1], []byte("${")):
		p.Hint = "inside { } or [ ] a variable needs quotes: '${NAME}'"
	case strings.Contains(msg, "that cannot start any token") && strings.Contains(msg, "\t"):
		p.Text, p.Hint = "YAML takes no tabs for indentation", "indent with spaces"
	case strings.Contains(msg, "that cannot start any token"):
		p.Hint = "indent with spaces, and quote values that begin with a special character"
	}
	return p
}

// tooDeep returns the line at which brackets or list dashes nest beyond reason, or 0. It counts
// brackets in quoted text too, which real files never have that many of.
func tooDeep(data []byte) int {
	line, brackets := 0, 0
	for raw := range bytes.Lines(data) {
		line++
		dashes := 0
		for rest := bytes.TrimLeft(raw, " \t"); len(rest) > 1 && (rest[0] == '-' || rest[0] == '?' || rest[0] == ':') && (rest[1] == ' ' || rest[1] == '\t'); {
			dashes++
			rest = bytes.TrimLeft(rest[1:], " \t")
		}
		for _, b := range raw {
			switch b {
			case '[', '{':
				brackets++
			case ']', '}':
				brackets = max(0, brackets-1)
			}
		}
		if brackets > 20*maxNesting || dashes > maxNesting {
			return line
		}
	}
	return 0
}
