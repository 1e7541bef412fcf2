package openai

import (
	"encoding/json"
	"slices"

	"understudy/llm"
	"understudy/provider"
)

// levels orders thinking levels; "none" is how the API spells "off".
func levels() []string { return []string{"none", "minimal", "low", "medium", "high", "xhigh"} }

// effort returns the reasoning effort to send for a thinking level: the nearest one that the model
// takes, and "" where nothing may be sent.
func effort(thinking string, info provider.ModelInfo) string {
	if thinking == "off" {
		thinking = "none"
	}
	want := slices.Index(levels(), thinking)
	if want < 0 || !info.Reasoning {
		return ""
	}
	accepted := info.Efforts
	if len(accepted) == 0 {
		accepted = []string{"low", "medium", "high"}
	}
	best, distance := "", len(levels())
	for _, level := range accepted {
		i := slices.Index(levels(), level)
		if i < 0 || (want == 0) != (i == 0) { // off is off, and nothing else is
			continue
		}
		if d := max(i-want, want-i); d < distance {
			best, distance = level, d
		}
	}
	return best
}

// thought is what an assistant message holds of a model's reasoning. Signatures are kept by the
// place of their call, because ids are rewritten.
type thought struct {
	text       string
	Signatures map[int]json.RawMessage `json:"signatures"`
}

func thoughtsOf(m llm.Message) thought {
	var t thought
	for _, p := range m.Parts {
		if p.Reasoning == nil {
			continue
		}
		t.text += p.Reasoning.Text
		if len(p.Reasoning.Opaque) > 0 {
			_ = json.Unmarshal(p.Reasoning.Opaque, &t) // it is ours, or it says nothing
		}
	}
	if t.text == "" {
		t.text = " " // hosts that ask for the thought reject an empty one
	}
	return t
}

// unsigned is what Gemini accepts for the first call of a step that another model made.
const unsigned = `{"google":{"thought_signature":"skip_thought_signature_validator"}}`

// extra returns the extra_content of the n-th call.
func (t thought) extra(n int, first bool) json.RawMessage {
	if raw := t.Signatures[n]; len(raw) > 0 {
		return raw
	}
	if first {
		return json.RawMessage(unsigned)
	}
	return nil
}
