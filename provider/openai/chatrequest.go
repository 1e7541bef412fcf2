package openai

import (
	"encoding/base64"
	"encoding/json"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"understudy/llm"
	"understudy/provider"
)

// chatRequest builds the body of a Chat Completions request. What one host needs and another would
// reject is decided by the quirks of this provider alone.
func (c *client) chatRequest(req llm.Request) sdk.ChatCompletionNewParams {
	q, info := c.spec.Quirks, c.spec.Model(req.Model.Model)
	p := sdk.ChatCompletionNewParams{Model: req.Model.Model, Messages: c.chatMessages(req)}
	if req.MaxTokens > 0 {
		if q.CompletionTokens {
			p.MaxCompletionTokens = sdk.Int(int64(req.MaxTokens))
		} else {
			p.MaxTokens = sdk.Int(int64(req.MaxTokens))
		}
	}
	if !q.NoStreamOptions {
		p.StreamOptions.IncludeUsage = param.NewOpt(true)
	}
	if key := cacheKey(req); key != "" && q.CacheKey {
		p.PromptCacheKey = sdk.String(key)
	}
	if e := effort(req.Thinking, info); e != "" {
		switch q.Effort {
		case provider.EffortPlain:
			p.ReasoningEffort = shared.ReasoningEffort(e)
		case provider.EffortObject:
			p.SetExtraFields(map[string]any{"reasoning": map[string]any{"effort": e}})
		}
	}
	if c.spec.TakesTools(req.Model.Model) {
		for _, t := range req.Tools {
			f := shared.FunctionDefinitionParam{Name: t.Name, Parameters: schema(t.Schema)}
			if t.Description != "" {
				f.Description = sdk.String(t.Description)
			}
			p.Tools = append(p.Tools, sdk.ChatCompletionFunctionTool(f))
		}
	}
	return p
}

// schema returns the parameters of a tool; hosts want an object type even where there are none.
func schema(raw json.RawMessage) map[string]any {
	var m map[string]any
	if json.Unmarshal(raw, &m) != nil || m == nil {
		m = map[string]any{}
	}
	if _, ok := m["type"]; !ok {
		m["type"] = "object"
	}
	if _, ok := m["properties"]; !ok && m["type"] == "object" {
		m["properties"] = map[string]any{}
	}
	return m
}

func (c *client) chatMessages(req llm.Request) []sdk.ChatCompletionMessageParamUnion {
	var out []sdk.ChatCompletionMessageParamUnion
	if req.System != "" {
		out = append(out, sdk.SystemMessage(req.System))
	}
	for _, m := range provider.Replay(req.Messages, c.spec.Target(req)) {
		switch m.Role {
		case llm.RoleAssistant:
			out = append(out, c.chatAssistant(m))
		case llm.RoleTool:
			for _, p := range m.Parts {
				out = append(out, sdk.ToolMessage(p.ToolResult.Text, p.ToolResult.ID))
			}
		default:
			out = append(out, chatUser(m))
		}
	}
	return out
}

// chatUser writes a plain string where it can: some hosts take nothing else.
func chatUser(m llm.Message) sdk.ChatCompletionMessageParamUnion {
	if !llm.HasImage([]llm.Message{m}) {
		return sdk.UserMessage(paragraphs(m))
	}
	var parts []sdk.ChatCompletionContentPartUnionParam
	for _, p := range m.Parts {
		if p.Image != nil {
			parts = append(parts, sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: dataURL(*p.Image)}))
		} else {
			parts = append(parts, sdk.TextContentPart(p.Text))
		}
	}
	return sdk.UserMessage(parts)
}

func (c *client) chatAssistant(m llm.Message) sdk.ChatCompletionMessageParamUnion {
	a := &sdk.ChatCompletionAssistantMessageParam{}
	if text := paragraphs(m); text != "" {
		a.Content.OfString = sdk.String(text)
	}
	thought := thoughtsOf(m)
	for i, p := range m.Parts {
		if p.ToolCall == nil {
			continue
		}
		call := &sdk.ChatCompletionMessageFunctionToolCallParam{
			ID:       p.ToolCall.ID,
			Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: p.ToolCall.Name, Arguments: string(p.ToolCall.Input)},
		}
		if c.spec.Quirks.ThoughtSignatures {
			if extra := thought.extra(len(a.ToolCalls), firstCall(m, i)); extra != nil {
				call.SetExtraFields(map[string]any{"extra_content": extra})
			}
		}
		a.ToolCalls = append(a.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: call})
	}
	if c.spec.Quirks.ReasoningEcho && len(a.ToolCalls) > 0 {
		a.SetExtraFields(map[string]any{"reasoning_content": thought.text})
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: a}
}

func firstCall(m llm.Message, i int) bool {
	for _, p := range m.Parts[:i] {
		if p.ToolCall != nil {
			return false
		}
	}
	return true
}

// paragraphs joins the text parts of m; parts that came as separate messages stay apart.
func paragraphs(m llm.Message) string {
	var text string
	for _, p := range m.Parts {
		if p.Text == "" {
			continue
		}
		if text != "" {
			text += "\n\n"
		}
		text += p.Text
	}
	return text
}

func dataURL(img llm.Image) string {
	return "data:" + img.MediaType + ";base64," + base64.StdEncoding.EncodeToString(img.Data)
}
