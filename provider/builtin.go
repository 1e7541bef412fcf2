package provider

import (
	"slices"

	"understudy/llm"
)

// Definition is what the product knows about a provider without being told.
type Definition struct {
	ID      string
	API     API
	BaseURL string
	// EnvKeys are the environment variables that may hold its key, first wins.
	EnvKeys []string
	Quirks  Quirks
	// catalogue is the id of the provider in the embedded catalogue; "" = not in it.
	catalogue string
}

// Builtin returns the definition of provider id.
func Builtin(id string) (Definition, bool) {
	id = llm.NormalizeProvider(id)
	for _, d := range definitions() {
		if d.ID == id {
			return d, true
		}
	}
	return Definition{}, false
}

// BuiltinIDs returns the ids of all built-in definitions, sorted.
func BuiltinIDs() []string {
	var ids []string
	for _, d := range definitions() {
		ids = append(ids, d.ID)
	}
	slices.Sort(ids)
	return ids
}

// codexURL serves ChatGPT subscriptions; it speaks the Responses API.
const codexURL = "https://chatgpt.com/backend-api/codex"

func definitions() []Definition {
	return slices.Concat(labs(), chineseLabs(), hosts(), locals())
}

// labs are the makers of models.
func labs() []Definition {
	return []Definition{
		{
			ID: "anthropic", API: AnthropicMessages, BaseURL: "https://api.anthropic.com",
			EnvKeys: []string{"ANTHROPIC_API_KEY"}, catalogue: "anthropic",
			Quirks: Quirks{KeyHeader: "X-Api-Key"},
		},
		{
			ID: "openai", API: OpenAIResponses, BaseURL: "https://api.openai.com/v1",
			EnvKeys: []string{"OPENAI_API_KEY"}, catalogue: "openai",
			Quirks: Quirks{CompletionTokens: true, Effort: EffortPlain, CacheKey: true, SubscriptionURL: codexURL},
		},
		{
			ID: "gemini", API: OpenAIChat, BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai",
			EnvKeys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, catalogue: "gemini",
			Quirks: Quirks{Effort: EffortPlain, ThoughtSignatures: true},
		},
		{
			// The same API under the name that imported credentials use (spec/imports.md).
			ID: "google", API: OpenAIChat, BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai",
			EnvKeys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, catalogue: "gemini",
			Quirks: Quirks{Effort: EffortPlain, ThoughtSignatures: true},
		},
		{
			ID: "mistral", API: OpenAIChat, BaseURL: "https://api.mistral.ai/v1",
			EnvKeys: []string{"MISTRAL_API_KEY"},
			Quirks:  Quirks{NoStreamOptions: true, Alternate: true, ToolIDs: StrictIDs()},
		},
		{
			ID: "deepseek", API: OpenAIChat, BaseURL: "https://api.deepseek.com/v1",
			EnvKeys: []string{"DEEPSEEK_API_KEY"}, catalogue: "deepseek",
			Quirks: Quirks{ReasoningEcho: true},
		},
		{
			ID: "xai", API: OpenAIChat, BaseURL: "https://api.x.ai/v1",
			EnvKeys: []string{"XAI_API_KEY"}, catalogue: "xai",
			Quirks: Quirks{CompletionTokens: true, Effort: EffortPlain},
		},
		{
			ID: "cohere", API: OpenAIChat, BaseURL: "https://api.cohere.ai/compatibility/v1",
			EnvKeys: []string{"COHERE_API_KEY", "CO_API_KEY"},
		},
		{
			ID: "perplexity", API: OpenAIChat, BaseURL: "https://api.perplexity.ai",
			EnvKeys: []string{"PERPLEXITY_API_KEY"},
			Quirks:  Quirks{NoStreamOptions: true, Alternate: true, NoTools: true},
		},
	}
}

// chineseLabs are the makers of models in China.
func chineseLabs() []Definition {
	return []Definition{
		{
			ID: "zai", API: OpenAIChat, BaseURL: "https://api.z.ai/api/paas/v4",
			EnvKeys: []string{"ZAI_API_KEY", "Z_AI_API_KEY"}, catalogue: "zai",
		},
		{
			ID: "zhipu", API: OpenAIChat, BaseURL: "https://open.bigmodel.cn/api/paas/v4",
			EnvKeys: []string{"ZHIPU_API_KEY", "ZHIPUAI_API_KEY"}, catalogue: "zhipu",
		},
		{
			ID: "moonshot", API: OpenAIChat, BaseURL: "https://api.moonshot.ai/v1",
			EnvKeys: []string{"MOONSHOT_API_KEY"}, catalogue: "moonshot",
			Quirks: Quirks{ReasoningEcho: true},
		},
		{
			ID: "kimi-coding", API: AnthropicMessages, BaseURL: "https://api.kimi.com/coding",
			EnvKeys: []string{"KIMI_API_KEY", "KIMI_CODING_API_KEY"}, catalogue: "kimi-coding",
			Quirks: Quirks{KeyHeader: "X-Api-Key"},
		},
		{
			ID: "minimax", API: AnthropicMessages, BaseURL: "https://api.minimax.io/anthropic",
			EnvKeys: []string{"MINIMAX_API_KEY"}, catalogue: "minimax",
			Quirks: Quirks{KeyHeader: "X-Api-Key"},
		},
		{
			ID: "dashscope", API: OpenAIChat, BaseURL: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
			EnvKeys: []string{"DASHSCOPE_API_KEY"}, catalogue: "alibaba-singapore",
		},
	}
}

// hosts serve models of others.
func hosts() []Definition {
	return []Definition{
		{
			ID: "openrouter", API: OpenAIChat, BaseURL: "https://openrouter.ai/api/v1",
			EnvKeys: []string{"OPENROUTER_API_KEY"}, catalogue: "openrouter",
			Quirks: Quirks{Effort: EffortObject},
		},
		{
			ID: "groq", API: OpenAIChat, BaseURL: "https://api.groq.com/openai/v1",
			EnvKeys: []string{"GROQ_API_KEY"}, catalogue: "groq",
			Quirks: Quirks{CompletionTokens: true, Effort: EffortPlain},
		},
		{
			ID: "together", API: OpenAIChat, BaseURL: "https://api.together.xyz/v1",
			EnvKeys: []string{"TOGETHER_API_KEY"},
		},
		{
			ID: "fireworks", API: OpenAIChat, BaseURL: "https://api.fireworks.ai/inference/v1",
			EnvKeys: []string{"FIREWORKS_API_KEY"}, catalogue: "fireworks",
		},
		{
			ID: "cerebras", API: OpenAIChat, BaseURL: "https://api.cerebras.ai/v1",
			EnvKeys: []string{"CEREBRAS_API_KEY"}, catalogue: "cerebras",
			Quirks: Quirks{CompletionTokens: true, Effort: EffortPlain},
		},
		{
			ID: "huggingface", API: OpenAIChat, BaseURL: "https://router.huggingface.co/v1",
			EnvKeys: []string{"HF_TOKEN", "HUGGINGFACE_API_KEY"}, catalogue: "huggingface",
		},
		{
			ID: "vercel", API: OpenAIChat, BaseURL: "https://ai-gateway.vercel.sh/v1",
			EnvKeys: []string{"AI_GATEWAY_API_KEY", "VERCEL_API_KEY"}, catalogue: "vercel",
		},
		{
			ID: "nebius", API: OpenAIChat, BaseURL: "https://api.tokenfactory.nebius.com/v1",
			EnvKeys: []string{"NEBIUS_API_KEY"}, catalogue: "nebius",
		},
		{
			ID: "baseten", API: OpenAIChat, BaseURL: "https://inference.baseten.co/v1",
			EnvKeys: []string{"BASETEN_API_KEY"}, catalogue: "baseten",
		},
		{
			ID: "volcengine", API: OpenAIChat, BaseURL: "https://ark.cn-beijing.volces.com/api/v3",
			EnvKeys: []string{"ARK_API_KEY", "VOLCENGINE_API_KEY"},
		},
		{
			ID: "amazon-bedrock", API: Bedrock, // its host depends on the region
			EnvKeys: []string{"AWS_BEARER_TOKEN_BEDROCK"}, catalogue: bedrockCatalogue,
		},
		{
			ID: "nvidia", API: OpenAIChat, BaseURL: "https://integrate.api.nvidia.com/v1",
			EnvKeys: []string{"NVIDIA_API_KEY"},
		},
	}
}

// locals run on the user's own machine and ask for no key.
func locals() []Definition {
	local := func(id, url string, env ...string) Definition {
		return Definition{ID: id, API: OpenAIChat, BaseURL: url, EnvKeys: env, Quirks: Quirks{NoKey: true}}
	}
	return []Definition{
		local("ollama", "http://127.0.0.1:11434/v1", "OLLAMA_API_KEY"),
		local("lmstudio", "http://127.0.0.1:1234/v1", "LMSTUDIO_API_KEY"),
		local("vllm", "http://127.0.0.1:8000/v1", "VLLM_API_KEY"),
		local("llamacpp", "http://127.0.0.1:8080/v1", "LLAMA_API_KEY"),
		{ID: "sim", API: Simulated, Quirks: Quirks{NoKey: true}},
	}
}
