package anthropic

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"understudy/llm"
	"understudy/provider"
)

// goesOn stands where the API wants the user to speak and the transcript has nobody.
const goesOn = "(The conversation goes on.)"

// turn is what one side says until the other one speaks.
type turn struct {
	assistant bool
	blocks    []sdk.BetaContentBlockParamUnion
}

// params builds the body of a request.
//
// The cache is marked behind the tools, the system prompt and the last message, so that the next
// turn of the same conversation reads what this one wrote.
func (c *Client) params(req llm.Request, fallback bool) sdk.BetaMessageNewParams {
	params := sdk.BetaMessageNewParams{Model: req.Model.Model}
	if c.spec.TakesTools(req.Model.Model) {
		params.Tools = tools(req.Tools)
	}
	if strings.TrimSpace(req.System) != "" {
		system := sdk.BetaTextBlockParam{Text: strings.ToValidUTF8(req.System, "\uFFFD")}
		system.CacheControl = cached()
		params.System = []sdk.BetaTextBlockParam{system}
	}
	if fallback {
		params.Fallbacks = sdk.BetaFallbacksParamOfDefault()
	}
	turns := turns(provider.Replay(req.Messages, c.spec.Target(req)), fallback)
	c.think(&params, req, turns)
	markLast(turns)
	for _, t := range turns {
		if t.assistant {
			params.Messages = append(params.Messages, sdk.BetaMessageParam{OfAssistant: &sdk.BetaAssistantMessageParam{Content: t.blocks}})
		} else {
			params.Messages = append(params.Messages, sdk.NewBetaUserMessage(t.blocks...))
		}
	}
	return params
}

// turns maps a replayable transcript: tool results speak as the user, and before the user does.
// There is at least one turn; the first and the last are the user's.
func turns(ms []llm.Message, fallback bool) []turn {
	var out []turn
	for _, m := range ms {
		t := turn{assistant: m.Role == llm.RoleAssistant, blocks: blocks(m, fallback)}
		n := len(out)
		switch {
		case len(t.blocks) == 0:
		case n > 0 && out[n-1].assistant == t.assistant:
			out[n-1].blocks = append(out[n-1].blocks, t.blocks...)
		default:
			out = append(out, t)
		}
	}
	if len(out) == 0 || out[0].assistant {
		out = append([]turn{filler()}, out...)
	}
	if out[len(out)-1].assistant { // newer models take no prefill
		out = append(out, filler())
	}
	return out
}

func filler() turn {
	return turn{blocks: []sdk.BetaContentBlockParamUnion{sdk.NewBetaTextBlock(goesOn)}}
}

func blocks(m llm.Message, fallback bool) []sdk.BetaContentBlockParamUnion {
	thoughts := fallback || !rescued(m)
	var out []sdk.BetaContentBlockParamUnion
	for _, p := range m.Parts {
		switch {
		case p.Reasoning != nil:
			if b, ok := thought(*p.Reasoning); ok && thoughts {
				out = append(out, b)
			}
		case p.ToolCall != nil:
			out = append(out, sdk.NewBetaToolUseBlock(p.ToolCall.ID, p.ToolCall.Input, p.ToolCall.Name))
		case p.ToolResult != nil:
			out = append(out, result(*p.ToolResult))
		case p.Image != nil:
			out = append(out, image(*p.Image))
		case p.Text != "":
			out = append(out, sdk.NewBetaTextBlock(p.Text))
		}
	}
	return out
}

func result(r llm.ToolResult) sdk.BetaContentBlockParamUnion {
	text := strings.ToValidUTF8(r.Text, "\uFFFD")
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	return sdk.NewBetaToolResultBlock(r.ID, text, r.IsError)
}

// image sends a picture of a kind the API knows; any other becomes its name.
func image(img llm.Image) sdk.BetaContentBlockParamUnion {
	switch img.MediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return sdk.NewBetaImageBlock(sdk.BetaBase64ImageSourceParam{
			Data:      base64.StdEncoding.EncodeToString(img.Data),
			MediaType: sdk.BetaBase64ImageSourceMediaType(img.MediaType),
		})
	}
	return sdk.NewBetaTextBlock(strings.TrimSpace("[image of another kind] " + img.Name))
}

// opaque is what is kept of a thought: the block as the API wants it back.
type opaque struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking,omitempty"`
	Signature string `json:"signature,omitempty"`
	Data      string `json:"data,omitempty"`
}

const (
	blockThinking = "thinking"
	blockRedacted = "redacted_thinking"
	blockFallback = "fallback"
)

// thought returns the block of a reasoning that this package made; false for any other.
func thought(r llm.Reasoning) (sdk.BetaContentBlockParamUnion, bool) {
	var o opaque
	if json.Unmarshal(r.Opaque, &o) != nil {
		return sdk.BetaContentBlockParamUnion{}, false
	}
	switch {
	case o.Type == blockThinking && o.Signature != "":
		return sdk.NewBetaThinkingBlock(o.Signature, o.Thinking), true
	case o.Type == blockRedacted && o.Data != "":
		return sdk.NewBetaRedactedThinkingBlock(o.Data), true
	case o.Type == blockFallback:
		var block sdk.BetaFallbackBlockParam
		if block.UnmarshalJSON(r.Opaque) == nil {
			return sdk.BetaContentBlockParamUnion{OfFallback: &block}, true
		}
	}
	return sdk.BetaContentBlockParamUnion{}, false
}

// rescued reports whether another model took over within m. The thoughts on both sides are valid
// only together with the block between them, and that block only where the fallback is asked for.
func rescued(m llm.Message) bool {
	for _, p := range m.Parts {
		var o opaque
		if p.Reasoning != nil && json.Unmarshal(p.Reasoning.Opaque, &o) == nil && o.Type == blockFallback {
			return true
		}
	}
	return false
}

func tools(ts []llm.Tool) []sdk.BetaToolUnionParam {
	var out []sdk.BetaToolUnionParam
	for i, t := range ts {
		tool := sdk.BetaToolParam{
			Name:        t.Name,
			InputSchema: param.Override[sdk.BetaToolInputSchemaParam](schema(t.Schema)),
		}
		if t.Description != "" {
			tool.Description = sdk.String(t.Description)
		}
		if i == len(ts)-1 {
			tool.CacheControl = cached()
		}
		out = append(out, sdk.BetaToolUnionParam{OfTool: &tool})
	}
	return out
}

// schema returns raw, or that of an object without properties. The API insists on the type.
func schema(raw json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || len(fields) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	if bytes.Equal(bytes.TrimSpace(fields["type"]), []byte(`"object"`)) {
		return raw
	}
	fields["type"] = json.RawMessage(`"object"`)
	fixed, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return fixed
}

func cached() sdk.BetaCacheControlEphemeralParam {
	return sdk.BetaCacheControlEphemeralParam{Type: "ephemeral"}
}

// markLast marks the end of the conversation for the cache.
func markLast(turns []turn) {
	last := turns[len(turns)-1].blocks
	switch b := last[len(last)-1]; {
	case b.OfText != nil:
		b.OfText.CacheControl = cached()
	case b.OfImage != nil:
		b.OfImage.CacheControl = cached()
	case b.OfToolResult != nil:
		b.OfToolResult.CacheControl = cached()
	}
}
