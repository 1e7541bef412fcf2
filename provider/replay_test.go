package provider_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"understudy/llm"
	"understudy/provider"
)

var (
	own     = llm.ModelRef{Provider: "alpha", Model: "a1"}
	foreign = llm.ModelRef{Provider: "beta", Model: "b1"}
)

// parts draws the parts of a message, sensible or not.
func parts(t *rapid.T) []llm.Part {
	id := rapid.SampledFrom([]string{"a", "b", "call_1", "functions.x:0", "τ", "", strings.Repeat("x", 90), "abcDEF123"})
	one := rapid.Custom(func(t *rapid.T) llm.Part {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			return llm.Part{Image: &llm.Image{MediaType: "image/png", Data: []byte(rapid.SampledFrom([]string{"", "png"}).Draw(t, "data"))}}
		case 1:
			return llm.Part{ToolCall: &llm.ToolCall{
				ID: id.Draw(t, "id"), Name: rapid.SampledFrom([]string{"look", "look", ""}).Draw(t, "name"),
				Input: json.RawMessage(rapid.SampledFrom([]string{`{}`, `{"a":1}`, `{"a"`, `[]`, ``}).Draw(t, "input")),
			}}
		case 2:
			return llm.Part{ToolResult: &llm.ToolResult{ID: id.Draw(t, "id"), Text: "r"}}
		case 3:
			return llm.Part{Reasoning: &llm.Reasoning{Origin: rapid.SampledFrom([]llm.ModelRef{own, foreign}).Draw(t, "origin"), Text: "t"}}
		default:
			return llm.Part{Text: rapid.SampledFrom([]string{"", " ", "hello", "\xff", "wörld"}).Draw(t, "text")}
		}
	})
	return rapid.SliceOfN(one, 0, 4).Draw(t, "parts")
}

func transcript(t *rapid.T) []llm.Message {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) llm.Message {
		role := rapid.SampledFrom([]llm.Role{llm.RoleUser, llm.RoleAssistant, llm.RoleTool}).Draw(t, "role")
		return llm.Message{Role: role, Parts: parts(t)}
	}), 0, 12).Draw(t, "messages")
}

func target(t *rapid.T) provider.Target {
	return provider.Target{
		Model:     own,
		ToolIDs:   rapid.SampledFrom([]provider.IDRule{{}, {Alnum: true}, provider.StrictIDs()}).Draw(t, "rule"),
		Images:    rapid.Bool().Draw(t, "images"),
		NoTools:   rapid.Bool().Draw(t, "no tools"),
		Alternate: rapid.Bool().Draw(t, "alternate"),
		Repair:    rapid.Bool().Draw(t, "repair"),
	}
}

func TestReplayProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, to := transcript(t), target(t)
		before := fmt.Sprint(in)
		out := provider.Replay(in, to)
		if fault := wrong(out, to); fault != "" {
			t.Fatalf("%s in %s", fault, show(out))
		}
		if fmt.Sprint(in) != before {
			t.Fatal("the transcript itself was changed")
		}
		if diff := cmp.Diff(out, provider.Replay(in, to)); diff != "" {
			t.Fatalf("not repeatable: %s", diff)
		}
	})
}

// wrong names the first way in which msgs are not acceptable to the target.
func wrong(msgs []llm.Message, to provider.Target) string {
	rule := to.ToolIDs
	if to.Repair {
		rule = provider.StrictIDs()
	}
	strict := to.Alternate || to.Repair
	seen := map[string]bool{}
	var open []string
	for i, m := range msgs {
		if len(m.Parts) == 0 {
			return "an empty message"
		}
		if i > 0 && msgs[i-1].Role == m.Role {
			return "two messages of one role in a row"
		}
		if strict && i == 0 && m.Role != llm.RoleUser {
			return "the first message is not the user's"
		}
		if strict && i > 0 && m.Role == llm.RoleUser && msgs[i-1].Role != llm.RoleAssistant {
			return "a user behind a tool"
		}
		if len(open) > 0 && m.Role != llm.RoleTool {
			return "a call without result"
		}
		if fault := wrongParts(m, to, rule, seen, &open); fault != "" {
			return fault
		}
	}
	switch {
	case len(open) > 0:
		return "a call without result at the end"
	case strict && len(msgs) > 0 && msgs[len(msgs)-1].Role == llm.RoleAssistant:
		return "the assistant speaks last"
	}
	return ""
}

func wrongParts(m llm.Message, to provider.Target, rule provider.IDRule, seen map[string]bool, open *[]string) string {
	for _, p := range m.Parts {
		switch {
		case to.NoTools && (p.ToolCall != nil || p.ToolResult != nil):
			return "a tool"
		case p.ToolCall != nil:
			if m.Role != llm.RoleAssistant || !rule.Accepts(p.ToolCall.ID) || seen[p.ToolCall.ID] {
				return "a call with a bad id or in a wrong place"
			}
			var input map[string]any
			if p.ToolCall.Name == "" || json.Unmarshal(p.ToolCall.Input, &input) != nil {
				return "a broken call"
			}
			seen[p.ToolCall.ID] = true
			*open = append(*open, p.ToolCall.ID)
		case p.ToolResult != nil:
			i := slices.Index(*open, p.ToolResult.ID)
			if m.Role != llm.RoleTool || i != 0 {
				return "a result out of place"
			}
			*open = (*open)[1:]
		case p.Reasoning != nil:
			if p.Reasoning.Origin != own || to.Repair || to.NoReasoning {
				return "thought that is not the model's own"
			}
		case p.Image != nil:
			if !to.Images {
				return "a picture"
			}
		case strings.TrimSpace(p.Text) == "":
			return "an empty text"
		}
	}
	if last := m.Parts[len(m.Parts)-1]; last.Reasoning != nil {
		return "thought that leads to nothing"
	}
	return ""
}

func show(msgs []llm.Message) string {
	raw, err := json.Marshal(msgs)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// TestReplayChecksBite shows that wrong sees what it is there for.
func TestReplayChecksBite(t *testing.T) {
	call := llm.Part{ToolCall: &llm.ToolCall{ID: "a", Name: "look", Input: json.RawMessage(`{}`)}}
	result := llm.Part{ToolResult: &llm.ToolResult{ID: "a", Text: "r"}}
	hi := llm.Text(llm.RoleUser, "hi")
	for name, msgs := range map[string][]llm.Message{
		"orphan result": {hi, {Role: llm.RoleTool, Parts: []llm.Part{result}}},
		"orphan call":   {hi, {Role: llm.RoleAssistant, Parts: []llm.Part{call}}},
		"same role":     {hi, hi},
		"empty":         {{Role: llm.RoleUser}},
		"foreign":       {hi, {Role: llm.RoleAssistant, Parts: []llm.Part{{Reasoning: &llm.Reasoning{Origin: foreign}}, {Text: "x"}}}},
	} {
		if wrong(msgs, provider.Target{Model: own}) == "" {
			t.Errorf("%s: not noticed", name)
		}
	}
}

func TestReplayKeepsWhatItMay(t *testing.T) {
	msgs := []llm.Message{
		llm.Text(llm.RoleUser, "hi"),
		{Role: llm.RoleAssistant, Parts: []llm.Part{
			{Reasoning: &llm.Reasoning{Origin: own, Text: "mine"}},
			{Text: "looking"},
			{ToolCall: &llm.ToolCall{ID: "call_1", Name: "look", Input: json.RawMessage(`{"a":1}`)}},
		}},
		{Role: llm.RoleTool, Parts: []llm.Part{{ToolResult: &llm.ToolResult{ID: "call_1", Name: "look", Text: "seen"}}}},
		{Role: llm.RoleUser, Parts: []llm.Part{{Text: "see"}, {Image: &llm.Image{MediaType: "image/png", Data: []byte("p")}}}},
	}
	got := provider.Replay(msgs, provider.Target{Model: own, Images: true})
	if diff := cmp.Diff(msgs, got); diff != "" {
		t.Errorf("a clean transcript changed (-want +got):\n%s", diff)
	}
}

// Some hosts give every call of a message the same id: results belong to them in order.
func TestReplayPairsEqualIDsInOrder(t *testing.T) {
	call := llm.Part{ToolCall: &llm.ToolCall{ID: "call_0", Name: "look", Input: json.RawMessage(`{}`)}}
	result := func(text string) llm.Part {
		return llm.Part{ToolResult: &llm.ToolResult{ID: "call_0", Text: text}}
	}
	out := provider.Replay([]llm.Message{
		llm.Text(llm.RoleUser, "hi"),
		{Role: llm.RoleAssistant, Parts: []llm.Part{call, call}},
		{Role: llm.RoleTool, Parts: []llm.Part{result("one"), result("two"), result("three")}},
	}, provider.Target{Model: own})
	var texts, ids []string
	for _, p := range out[2].Parts {
		texts, ids = append(texts, p.ToolResult.Text), append(ids, p.ToolResult.ID)
	}
	if diff := cmp.Diff([]string{"one", "two"}, texts); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if ids[0] != out[1].Parts[0].ToolCall.ID || ids[1] != out[1].Parts[1].ToolCall.ID || ids[0] == ids[1] {
		t.Errorf("ids %v do not pair with %s", ids, show(out[1:2]))
	}
}
