package config

import (
	"bytes"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// The parser takes the colon of {openai:work: …} or {fallbacks: [ollama/qwen3.5:27b]} for the end
// of a key, though YAML wants a space behind that. Profile ids and model names are full of such
// colons, so they are replaced by a stand-in of the same width before parsing and put back
// afterwards. A colon with neither white space behind it nor a quote or bracket before it is text
// in every context of YAML, so this changes the meaning of no document.

// stand returns a character that data does not contain, from Unicode's private use area.
func stand(data []byte) string {
	for r := rune(0xE000); r < 0xF8FF; r++ {
		if s := string(r); !bytes.Contains(data, []byte(s)) {
			return s
		}
	}
	return ":"
}

// hideColons replaces colons that are text.
func hideColons(data []byte, colon string) []byte {
	out := make([]byte, 0, len(data)+64)
	for i, b := range data {
		if b == ':' && i > 0 && i+1 < len(data) && !bytes.ContainsAny(data[i-1:i], " \t\r\n\"'[]{},:") && !bytes.ContainsAny(data[i+1:i+2], " \t\r\n[]{},") {
			out = append(out, colon...)
			continue
		}
		out = append(out, b)
	}
	return out
}

// showColons undoes hideColons in a parsed tree.
func showColons(n ast.Node, colon string, depth int) {
	if n == nil || depth > 20*maxNesting {
		return
	}
	restore := func(s *string) {
		if strings.Contains(*s, colon) {
			*s = strings.ReplaceAll(*s, colon, ":")
		}
	}
	restoreToken := func(tk *token.Token) {
		if tk != nil {
			restore(&tk.Value)
			restore(&tk.Origin)
		}
	}
	switch n := n.(type) {
	case *ast.StringNode:
		restore(&n.Value)
		restoreToken(n.Token)
	case *ast.LiteralNode:
		if n.Value != nil {
			showColons(n.Value, colon, depth+1)
		}
	case *ast.MappingNode:
		for _, e := range n.Values {
			showColons(e, colon, depth+1)
		}
	case *ast.MappingValueNode:
		showColons(n.Key, colon, depth+1)
		showColons(n.Value, colon, depth+1)
	case *ast.MappingKeyNode:
		showColons(n.Value, colon, depth+1)
	case *ast.SequenceNode:
		for _, v := range n.Values {
			showColons(v, colon, depth+1)
		}
	case *ast.AnchorNode:
		showColons(n.Name, colon, depth+1)
		showColons(n.Value, colon, depth+1)
	case *ast.AliasNode:
		showColons(n.Value, colon, depth+1)
	case *ast.TagNode:
		restoreToken(n.Start)
		showColons(n.Value, colon, depth+1)
	}
}
