package anthropic

import (
	"strconv"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"

	"understudy/llm"
)

// generation is the version of a Claude model, 46 for 4.6; 0 for any other model.
type generation int

// family returns the lower-case name that Anthropic gave a model. Bedrock writes a region and the
// maker before it, and an account's ARN before that: us.anthropic.claude-opus-4-6-v1.
func family(model string) string {
	model = strings.ToLower(model)
	if at := strings.LastIndex(model, "anthropic.claude-"); at >= 0 {
		return model[at+len("anthropic."):]
	}
	return model
}

// generationOf reads the version out of a model id: claude-opus-4-6, claude-sonnet-4-5-20250929,
// claude-3-7-sonnet-latest, claude-fable-5, anthropic.claude-opus-4-5-20251101-v1:0.
func generationOf(model string) generation {
	rest, ok := strings.CutPrefix(family(model), "claude-")
	if !ok {
		return 0
	}
	var numbers []int
	for _, word := range strings.Split(rest, "-") {
		n, err := strconv.Atoi(word)
		if err != nil || n > 99 || len(word) > 2 { // not a number, or a date
			if len(numbers) > 0 {
				break
			}
			continue
		}
		numbers = append(numbers, n)
	}
	switch {
	case len(numbers) == 0:
		return 0
	case len(numbers) == 1:
		return generation(10 * numbers[0])
	default:
		return generation(10*numbers[0] + min(numbers[1], 9))
	}
}

// alwaysThinks are the families that cannot be told not to, and by default think in silence.
func alwaysThinks(model string) bool {
	model = family(model)
	return strings.HasPrefix(model, "claude-fable-") || strings.HasPrefix(model, "claude-mythos-")
}

// The answer's length where nobody says otherwise, and what a budget must leave for it.
const (
	defaultMaxTokens = 16_384
	unknownMaxTokens = 8_192 // of a model that no catalogue knows
	minBudget        = 1_024
)

// maxTokens returns the limit of the answer, thought not included.
func (c *Client) maxTokens(req llm.Request) int {
	info := c.spec.Model(req.Model.Model)
	limit := req.MaxTokens
	switch {
	case limit > 0:
	case info.MaxOutput > 0:
		limit = defaultMaxTokens
	default:
		limit = unknownMaxTokens
	}
	if info.MaxOutput > 0 {
		limit = min(limit, info.MaxOutput)
	}
	return limit
}

// think sets how much the model thinks and how long its answer may be.
//
// Since 4.6 a model decides by itself how much to think, steered by an effort; before, it was given
// a budget of tokens. Newer models hide their thoughts unless asked, which looks like a hanging
// model, so a summary is asked for: its arrival is what keeps the idle timer quiet.
func (c *Client) think(params *sdk.BetaMessageNewParams, req llm.Request, turns []turn) {
	params.MaxTokens = int64(c.maxTokens(req))
	model, level := req.Model.Model, req.Thinking
	gen := generationOf(model)
	switch {
	case gen >= 46:
		asked := level != "" && level != "off"
		if asked || alwaysThinks(model) {
			adaptive := &sdk.BetaThinkingConfigAdaptiveParam{}
			if gen >= 47 {
				adaptive.Display = sdk.BetaThinkingConfigAdaptiveDisplaySummarized
			}
			params.Thinking.OfAdaptive = adaptive
		}
		if asked || level == "off" && gen >= 50 {
			params.OutputConfig.Effort = effort(level, gen)
		}
	case gen >= 37, gen == 0 && c.spec.Model(req.Model.Model).Reasoning:
		if budget := c.budget(params, req); budget >= minBudget && !calledWithoutThought(turns) {
			params.Thinking = sdk.BetaThinkingConfigParamOfEnabled(budget)
		}
	}
}

// effort maps a thinking level to what the generation knows.
func effort(level string, gen generation) sdk.BetaOutputConfigEffort {
	switch level {
	case "medium":
		return sdk.BetaOutputConfigEffortMedium
	case "high":
		return sdk.BetaOutputConfigEffortHigh
	case "xhigh":
		if gen >= 47 {
			return sdk.BetaOutputConfigEffortXhigh
		}
		return sdk.BetaOutputConfigEffortHigh
	default: // off, minimal, low
		return sdk.BetaOutputConfigEffortLow
	}
}

// budget returns the tokens for thought, and makes room for them where the caller set no limit. It
// is less than minBudget when there is no room or no wish.
func (c *Client) budget(params *sdk.BetaMessageNewParams, req llm.Request) int64 {
	budget := map[string]int64{"minimal": minBudget, "low": 4_096, "medium": 10_240, "high": 20_480, "xhigh": 32_768}[req.Thinking]
	if budget == 0 {
		return 0
	}
	limit := params.MaxTokens
	if req.MaxTokens == 0 {
		limit += budget
		if most := c.spec.Model(req.Model.Model).MaxOutput; most > 0 {
			limit = min(limit, int64(most))
		}
		params.MaxTokens = limit
	}
	return min(budget, limit-minBudget)
}

// calledWithoutThought reports whether the conversation ends in tool results whose calls have no
// thought before them: another model made them, or the thought was dropped. The API rejects a
// thinking request that goes on from there.
func calledWithoutThought(turns []turn) bool {
	if len(turns) < 2 || turns[len(turns)-1].blocks[0].OfToolResult == nil {
		return false
	}
	first := turns[len(turns)-2].blocks[0]
	return first.OfThinking == nil && first.OfRedactedThinking == nil
}
