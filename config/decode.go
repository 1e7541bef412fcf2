package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"understudy/internal/secret"
)

// position is where a value stands in the file.
type position struct{ line, column int }

// decoder fills sections from a syntax tree. It never stops at the first problem.
type decoder struct {
	file        string
	env         func(string) (string, bool)
	readSecret  func(path string) ([]byte, error)
	anchors     map[string]ast.Node
	nodes       int
	overflow    bool
	at          map[string]position
	problems    []Problem
	warnings    []Warning
	unavailable []Unavailable
	secrets     []secret.String
	distrust    string   // why the file must name neither secrets nor where they go
	plaintext   []string // keys whose secret is written in the file itself
}

// nodeDecoder is a section that may be written in more than one shape.
type nodeDecoder interface {
	decodeNode(d *decoder, n ast.Node, path string)
}

// keyHinter is a section that knows what to say about keys it does not have.
type keyHinter interface {
	keyHint(key string) (text, hint string)
}

func newDecoder(file string, opts Options) *decoder {
	return &decoder{
		file: file, env: opts.env(), readSecret: opts.secretReader(), distrust: opts.distrust,
		anchors: map[string]ast.Node{}, at: map[string]position{},
	}
}

// document decodes the whole configuration.
func (d *decoder) document(n ast.Node, c *Config) {
	*c = defaults(c.Env)
	if n == nil {
		return
	}
	d.collectAnchors(n, 0)
	d.value(n, reflect.ValueOf(&c.File).Elem(), "")
	if d.overflow {
		d.problem(n, "", "the file refers to itself too often", "write repeated parts out")
	}
	d.checkTargets()
}

// targets are the keys that say where secrets are sent, wherever they stand.
var targets = []string{"baseUrl", "apiRoot", "proxy", "webhookUrl", "authorizeUrl", "tokenUrl", "deviceUrl"}

// checkTargets refuses a file that must not name secrets when it says where they go: a key of the
// environment or the auth store sent to a stranger's host is as bad as one that is read.
func (d *decoder) checkTargets() {
	if d.distrust == "" {
		return
	}
	for path := range d.at {
		parts := splitPath(path)
		if len(parts) > 0 && slices.Contains(targets, parts[len(parts)-1]) {
			d.fail(path, "an address that secrets are sent to is named here, but "+d.distrust, "name the file with --config if you trust it")
		}
	}
}

func (d *decoder) problem(n ast.Node, path, text, hint string) {
	p := Problem{File: d.file, Key: path, Text: text, Hint: hint}
	if pos, ok := positionOf(n); ok {
		p.Line, p.Column = pos.line, pos.column
	}
	d.problems = append(d.problems, p)
}

// about returns a Problem that stands where the value of path stands, or the nearest section
// around it.
func (d *decoder) about(path, text, hint string) Problem {
	p := Problem{File: d.file, Key: path, Text: text, Hint: hint}
	for at := path; ; {
		if pos, ok := d.at[at]; ok {
			p.Line, p.Column = pos.line, pos.column
			return p
		}
		i := strings.LastIndexAny(at, ".[")
		if i < 0 {
			return p
		}
		at = at[:i]
	}
}

func (d *decoder) fail(path, text, hint string) {
	d.problems = append(d.problems, d.about(path, text, hint))
}

func (d *decoder) warn(path, text, hint string) {
	d.warnings = append(d.warnings, d.about(path, text, hint))
}

func positionOf(n ast.Node) (position, bool) {
	var tk *token.Token
	switch n := n.(type) {
	case nil:
		return position{}, false
	case *ast.MappingNode: // the node's own token is the first colon
		if len(n.Values) > 0 && !n.IsFlowStyle {
			return positionOf(n.Values[0].Key)
		}
		tk = n.Start
	case *ast.MappingValueNode:
		return positionOf(n.Key)
	default:
		tk = n.GetToken()
	}
	if tk == nil || tk.Position == nil {
		return position{}, false
	}
	return position{tk.Position.Line, tk.Position.Column}, true
}

// collectAnchors remembers every &name of the tree.
func (d *decoder) collectAnchors(n ast.Node, depth int) {
	if depth > 20*maxNesting {
		return
	}
	switch n := n.(type) {
	case *ast.AnchorNode:
		d.anchors[n.Name.GetToken().Value] = n.Value
		d.collectAnchors(n.Value, depth+1)
	case *ast.TagNode:
		d.collectAnchors(n.Value, depth+1)
	case *ast.MappingNode:
		for _, v := range n.Values {
			d.collectAnchors(v.Value, depth+1)
		}
	case *ast.MappingValueNode:
		d.collectAnchors(n.Value, depth+1)
	case *ast.SequenceNode:
		for _, v := range n.Values {
			d.collectAnchors(v, depth+1)
		}
	}
}

// follow strips anchors and tags and follows aliases. It returns nil for a missing value.
func (d *decoder) follow(n ast.Node, path string) ast.Node {
	for range maxNesting {
		switch x := n.(type) {
		case *ast.AnchorNode:
			n = x.Value
		case *ast.TagNode:
			n = x.Value
		case *ast.AliasNode:
			name := x.Value.GetToken().Value
			target, ok := d.anchors[name]
			if !ok {
				d.problem(x, path, fmt.Sprintf("*%s refers to nothing", name), "define it with &"+name)
				return nil
			}
			n = target
		default:
			return n
		}
	}
	d.problem(n, path, "this reference leads to itself", "")
	return nil
}

// value decodes n into v, which is settable. Path names v in messages.
func (d *decoder) value(n ast.Node, v reflect.Value, path string) {
	if d.nodes++; d.nodes > maxNodes || strings.Count(path, ".") > maxNesting {
		d.overflow = true
		return
	}
	d.place(n, path)
	n = d.follow(n, path)
	if n == nil || n.Type() == ast.NullType || n.Type() == ast.CommentType {
		return
	}
	if v.Kind() == reflect.Pointer {
		fresh := reflect.New(v.Type().Elem()) // never the old one: a copy of it may be in use
		if !v.IsNil() {
			fresh.Elem().Set(v.Elem())
		}
		v.Set(fresh)
		v = fresh.Elem()
	}
	if own, ok := v.Addr().Interface().(nodeDecoder); ok {
		own.decodeNode(d, n, path)
		return
	}
	if s, ok := v.Addr().Interface().(*secret.String); ok {
		*s = d.secret(n, path)
		return
	}
	if d.text(n, v, path) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.section(n, v, path)
	case reflect.Map:
		d.table(n, v, path)
	case reflect.Slice:
		d.list(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

// place remembers where the value of path stands. A section or list stands where its key does.
func (d *decoder) place(n ast.Node, path string) {
	if _, known := d.at[path]; known {
		switch n.(type) {
		case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode:
			return
		}
	}
	if pos, ok := positionOf(n); ok && path != "" {
		d.at[path] = pos
	}
}

// entries returns the key-value pairs of a mapping, those merged in with << after its own.
func (d *decoder) entries(n ast.Node, path string) []*ast.MappingValueNode {
	return d.merged(n, path, 0)
}

func (d *decoder) merged(n ast.Node, path string, depth int) []*ast.MappingValueNode {
	if d.nodes++; d.nodes > maxNodes || depth > maxMerges {
		d.overflow = true
	}
	if d.overflow {
		return nil
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		var own, merged []*ast.MappingValueNode
		for _, e := range n.Values {
			if !e.Key.IsMergeKey() {
				own = append(own, e)
				continue
			}
			for _, source := range d.mergeSources(e.Value, path) {
				merged = append(merged, d.merged(source, path, depth+1)...)
			}
		}
		for _, m := range merged {
			if !slices.ContainsFunc(own, func(e *ast.MappingValueNode) bool { return keyText(e.Key) == keyText(m.Key) }) {
				own = append(own, m)
			}
		}
		return own
	case *ast.MappingValueNode:
		return d.merged(&ast.MappingNode{Values: []*ast.MappingValueNode{n}}, path, depth)
	}
	d.problem(n, path, "here a section of keys is expected, not "+kindOf(n), "")
	return nil
}

func (d *decoder) mergeSources(n ast.Node, path string) []ast.Node {
	n = d.follow(n, path)
	if list, ok := n.(*ast.SequenceNode); ok {
		var out []ast.Node
		for _, v := range list.Values {
			if v = d.follow(v, path); v != nil {
				out = append(out, v)
			}
		}
		return out
	}
	if n == nil {
		return nil
	}
	return []ast.Node{n}
}

func keyText(k ast.MapKeyNode) string {
	if s, ok := k.(*ast.StringNode); ok {
		return s.Value
	}
	if tk := k.GetToken(); tk != nil {
		return tk.Value
	}
	return ""
}

// section decodes a mapping with known keys.
func (d *decoder) section(n ast.Node, v reflect.Value, path string) {
	fields := fieldsOf(v.Type())
	seen := map[string]bool{}
	for _, e := range d.entries(n, path) {
		key := keyText(e.Key)
		at := join(path, key)
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == key })
		if i < 0 {
			d.unknownKey(e.Key, v, fields, at, key)
			continue
		}
		seen[key] = true
		d.place(e.Key, at)
		before := len(d.problems)
		d.value(e.Value, v.FieldByIndex(fields[i].index), at)
		if words := fields[i].words; words != nil && len(d.problems) == before {
			d.oneOf(e.Value, v.FieldByIndex(fields[i].index), at, words)
		}
	}
	for _, f := range fields {
		if f.required && !seen[f.key] {
			d.problem(n, path, fmt.Sprintf("the key %q is missing", f.key), "")
		}
	}
}

func (d *decoder) unknownKey(k ast.Node, v reflect.Value, fields []field, at, key string) {
	if h, ok := v.Addr().Interface().(keyHinter); ok {
		if text, hint := h.keyHint(key); text != "" {
			d.problem(k, at, text, hint)
			return
		}
	}
	d.problem(k, at, "unknown key", didYouMean(key, keysOf(fields)))
}

func (d *decoder) oneOf(n ast.Node, v reflect.Value, path string, words []string) {
	if v.Kind() == reflect.String && v.String() != "" && !slices.Contains(words, v.String()) {
		d.problem(n, path, fmt.Sprintf("%s is not one of %s", quote(v.String()), strings.Join(words, ", ")), hintFor(v.String(), words))
	}
}

func hintFor(s string, words []string) string {
	if w := nearest(s, words); w != "" {
		return fmt.Sprintf("did you mean %q?", w)
	}
	return ""
}

// table decodes a mapping with free keys. Keys are used as written.
func (d *decoder) table(n ast.Node, v reflect.Value, path string) {
	entries := d.entries(n, path)
	if entries == nil && n.Type() != ast.MappingType {
		return
	}
	m := reflect.MakeMapWithSize(v.Type(), len(entries))
	for _, e := range entries {
		key := keyText(e.Key)
		at := join(path, key)
		d.place(e.Key, at)
		k := reflect.New(v.Type().Key()).Elem()
		if k.Kind() != reflect.String {
			d.problem(e.Key, at, "this section cannot be configured", "")
			return
		}
		k.SetString(key)
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(e.Value, item, at)
		m.SetMapIndex(k, item)
	}
	v.Set(m)
}

// list decodes a sequence; an empty one is not nil, because [] often means something else than
// nothing (spec/failover.md §2).
func (d *decoder) list(n ast.Node, v reflect.Value, path string) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.problem(n, path, "here a list is expected, not "+kindOf(n), "write [a, b], or one \"- a\" per line")
		return
	}
	out := reflect.MakeSlice(v.Type(), 0, len(seq.Values))
	for i, e := range seq.Values {
		item := reflect.New(v.Type().Elem()).Elem()
		at := path + "[" + strconv.Itoa(i) + "]"
		if follow := d.follow(e, at); follow == nil || follow.Type() == ast.NullType {
			d.problem(e, at, "this list entry is empty", "")
			continue
		}
		d.value(e, item, at)
		out = reflect.Append(out, item)
	}
	v.Set(out)
}

// join appends a key to a path. Keys that hold a dot or bracket themselves are quoted.
func join(path, key string) string {
	switch {
	case strings.ContainsAny(key, ".[] \""):
		return path + "[" + strconv.Quote(clip(key)) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

func kindOf(n ast.Node) string {
	switch n.Type() {
	case ast.MappingType, ast.MappingValueType:
		return "a section of keys"
	case ast.SequenceType:
		return "a list"
	case ast.StringType, ast.LiteralType:
		return "a text"
	case ast.IntegerType, ast.FloatType, ast.InfinityType, ast.NanType:
		return "a number"
	case ast.BoolType:
		return "true or false"
	}
	return "this"
}
