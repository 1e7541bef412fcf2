package openai

import (
	"encoding/json"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"understudy/llm"
	"understudy/provider"
)

// defaultInstructions stand where the ChatGPT backend insists on some.
const defaultInstructions = "You are a helpful assistant."

// responsesRequest builds the body of a Responses request. It is stateless: nothing is stored at
// the provider, and the thoughts of the model travel with the transcript, sealed.
func (c *client) responsesRequest(req llm.Request, r route) responses.ResponseNewParams {
	info := c.spec.Model(req.Model.Model)
	p := responses.ResponseNewParams{Model: req.Model.Model, Store: param.NewOpt(false)}
	p.Input.OfInputItemList = c.inputItems(req)
	if req.System != "" {
		p.Instructions = sdk.String(req.System)
	} else if r.subscription {
		p.Instructions = sdk.String(defaultInstructions)
	}
	if req.MaxTokens > 0 && !r.subscription {
		p.MaxOutputTokens = sdk.Int(int64(max(req.MaxTokens, minOutputTokens)))
	}
	if key := cacheKey(req); key != "" && c.spec.Quirks.CacheKey {
		p.PromptCacheKey = sdk.String(key)
	}
	if info.Reasoning {
		p.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
		if e := effort(req.Thinking, info); e != "" && c.spec.Quirks.Effort != provider.EffortNone {
			p.Reasoning.Effort = shared.ReasoningEffort(e)
		}
		if r.subscription { // elsewhere summaries need a verified organisation
			p.Reasoning.Summary = shared.ReasoningSummaryAuto
		}
	}
	if c.spec.TakesTools(req.Model.Model) {
		for _, t := range req.Tools {
			tool := responses.ToolParamOfFunction(t.Name, schema(t.Schema), false)
			if t.Description != "" {
				tool.OfFunction.Description = sdk.String(t.Description)
			}
			p.Tools = append(p.Tools, tool)
		}
	}
	return p
}

// minOutputTokens is the least that the API takes.
const minOutputTokens = 16

func (c *client) inputItems(req llm.Request) responses.ResponseInputParam {
	var out responses.ResponseInputParam
	for _, m := range provider.Replay(req.Messages, c.spec.Target(req)) {
		switch m.Role {
		case llm.RoleAssistant:
			out = append(out, assistantItems(m)...)
		case llm.RoleTool:
			for _, p := range m.Parts {
				item := responses.ResponseInputItemParamOfFunctionCallOutput(p.ToolResult.Text)
				item.OfFunctionCallOutput.CallID = sdk.String(p.ToolResult.ID)
				out = append(out, item)
			}
		default:
			out = append(out, userItem(m))
		}
	}
	return out
}

func userItem(m llm.Message) responses.ResponseInputItemUnionParam {
	if !llm.HasImage([]llm.Message{m}) {
		return responses.ResponseInputItemParamOfMessage(paragraphs(m), responses.EasyInputMessageRoleUser)
	}
	var list responses.ResponseInputMessageContentListParam
	for _, p := range m.Parts {
		if p.Image == nil {
			list = append(list, responses.ResponseInputContentParamOfInputText(p.Text))
			continue
		}
		img := responses.ResponseInputContentParamOfInputImage(responses.ResponseInputImageDetailAuto)
		img.OfInputImage.ImageURL = sdk.String(dataURL(*p.Image))
		list = append(list, img)
	}
	return responses.ResponseInputItemParamOfMessage(list, responses.EasyInputMessageRoleUser)
}

// assistantItems keeps the order of thought, text and calls, because a thought must stand before
// what it led to.
func assistantItems(m llm.Message) responses.ResponseInputParam {
	var out responses.ResponseInputParam
	for _, p := range m.Parts {
		switch {
		case p.Reasoning != nil:
			if item, ok := sealedThought(p.Reasoning.Opaque); ok {
				out = append(out, item)
			}
		case p.ToolCall != nil:
			out = append(out, responses.ResponseInputItemParamOfFunctionCall(string(p.ToolCall.Input), p.ToolCall.ID, p.ToolCall.Name))
		default:
			out = append(out, raw(outputMessage{
				Type: "message", Role: "assistant", Content: []outputText{{Type: "output_text", Text: p.Text}},
			}))
		}
	}
	return out
}

// outputMessage is an earlier answer. The SDK's type demands an id, which a transcript that other
// models wrote does not have; the API does not.
type outputMessage struct {
	Type    string       `json:"type"`
	Role    string       `json:"role"`
	Content []outputText `json:"content"`
}

type outputText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// sealed is a reasoning item as it may be sent back: without the id, which names nothing where
// nothing is stored.
type sealed struct {
	Type      string        `json:"type"`
	Summary   []summaryPart `json:"summary"`
	Encrypted string        `json:"encrypted_content"`
}

type summaryPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// seal returns what is kept of a reasoning item.
func seal(it outputItem) json.RawMessage {
	s := sealed{Type: "reasoning", Summary: []summaryPart{}, Encrypted: it.Encrypted}
	for _, p := range it.Summary {
		s.Summary = append(s.Summary, summaryPart{Type: "summary_text", Text: p.Text})
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return raw
}

func sealedThought(opaque json.RawMessage) (responses.ResponseInputItemUnionParam, bool) {
	s := sealed{Summary: []summaryPart{}}
	if json.Unmarshal(opaque, &s) != nil || s.Type != "reasoning" || s.Encrypted == "" {
		return responses.ResponseInputItemUnionParam{}, false
	}
	return raw(s), true
}

func raw(v any) responses.ResponseInputItemUnionParam {
	return param.Override[responses.ResponseInputItemUnionParam](v)
}
