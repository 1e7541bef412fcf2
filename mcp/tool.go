package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of what a server says about its tools.
const (
	longestName        = 64 // what model APIs accept
	longestDescription = 1024
	largestSchema      = 32 << 10
	// mostTools is how many tools of all servers together a turn is given, and so of one. APIs refuse
	// requests with more than 128, and the built-in ones come on top.
	mostTools = 120
)

// Tool is a function of a server, as a model may call it.
type Tool struct {
	Server string // its configured name
	// Name is unique over all servers: <server>__<tool>, in the alphabet of model APIs.
	Name        string
	Description string
	Schema      json.RawMessage // of its arguments: a JSON Schema object
	Approve     bool            // a person must agree to every call
	Timeout     time.Duration

	call func(ctx context.Context, input json.RawMessage) (Result, error)
}

// Result is what a call came to. Text is the server's: untrusted.
type Result struct {
	Text    string
	Files   []File
	IsError bool // the tool itself says that it failed
}

// Call runs the tool, once. input is a JSON object. An error tells, in words that hold no secret, that
// there is no result: the server is away, or did not answer in time; whether it did the work is then
// unknown.
func (t Tool) Call(ctx context.Context, input json.RawMessage) (Result, error) {
	return t.call(ctx, input)
}

var foreign = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// publicName makes the name by which models know a tool. One that had to change gets a few characters
// of a hash, so that no two tools share a name.
func publicName(server, tool string) string {
	name := server + "__" + foreign.ReplaceAllString(tool, "_")
	if name == server+"__"+tool && len(name) <= longestName {
		return name
	}
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	tail := "_" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), longestName-len(tail))] + tail
}

// templateToken is a mark of the chat templates that models are trained with.
var templateToken = regexp.MustCompile(`<\|[A-Za-z0-9_]{1,32}\|>|\[/?INST\]|<</?SYS>>`)

// description bounds what a server says about a tool.
func description(t *sdk.Tool) string {
	text := t.Description
	if text == "" {
		text = t.Title
	}
	text = templateToken.ReplaceAllString(strings.ToValidUTF8(text, ""), " ")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return -1
		}
		return r
	}, text)
	if r := []rune(text); len(r) > longestDescription {
		text = string(r[:longestDescription-1]) + "…"
	}
	return strings.TrimSpace(text)
}

var errSchema = errors.New("its arguments are not described by a JSON Schema object")

// schema makes the description of a tool's arguments fit for model APIs, which want an object.
func schema(input any) (json.RawMessage, error) {
	if input == nil {
		input = map[string]any{}
	}
	object, ok := input.(map[string]any)
	if !ok {
		return nil, errSchema
	}
	switch kind, given := object["type"]; {
	case !given:
		object["type"] = "object"
	case kind != "object":
		return nil, errSchema
	}
	if _, ok := object["properties"].(map[string]any); !ok {
		if object["properties"] != nil {
			return nil, errSchema
		}
		object["properties"] = map[string]any{}
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("its schema: %w", err)
	}
	if len(raw) > largestSchema {
		return nil, fmt.Errorf("its schema has %d bytes, more than %d", len(raw), largestSchema)
	}
	return raw, nil
}

// text writes what a tool answered, bounded to most bytes.
func text(r *sdk.CallToolResult, most int) string {
	var parts []string
	for _, c := range r.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			parts = append(parts, c.Text)
		case *sdk.ImageContent:
			parts = append(parts, fmt.Sprintf("[image: %s, %d bytes]", c.MIMEType, len(c.Data)))
		case *sdk.AudioContent:
			parts = append(parts, fmt.Sprintf("[audio: %s, %d bytes]", c.MIMEType, len(c.Data)))
		case *sdk.ResourceLink:
			parts = append(parts, fmt.Sprintf("[resource: %s %s]", c.Name, c.URI))
		case *sdk.EmbeddedResource:
			parts = append(parts, embedded(c))
		}
	}
	if len(parts) == 0 && r.StructuredContent != nil {
		if raw, err := json.Marshal(r.StructuredContent); err == nil {
			parts = append(parts, string(raw))
		}
	}
	out := strings.ToValidUTF8(strings.Join(parts, "\n"), "\uFFFD")
	if len(out) > most {
		out = strings.ToValidUTF8(out[:most], "") + fmt.Sprintf("\n[cut: %d more bytes]", len(out)-most)
	}
	return out
}

func embedded(c *sdk.EmbeddedResource) string {
	switch {
	case c.Resource == nil:
		return "[empty resource]"
	case c.Resource.Text != "":
		return c.Resource.Text
	}
	return fmt.Sprintf("[resource: %s, %d bytes]", c.Resource.URI, len(c.Resource.Blob))
}
