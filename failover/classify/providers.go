package classify

import (
	"strings"

	"understudy/llm"
)

// family is a set of providers that share an error vocabulary.
type family uint32

const (
	famAnthropic family = 1 << iota
	famBedrock
	famGoogle
	famDashScope
	famZhipu
	famMiniMax
	famVolcengine
	famWorkersAI
	famMistral
	famOpenRouter
	famCopilot
	famLlamaCpp
	famCohere
	famXAI
	famOpenAI
)

// familyNames are parts of provider ids that tell the family. Ids of users' own may be longer
// ("openrouter-work", "company-bedrock").
var familyNames = []struct {
	name string
	fam  family
}{
	{"openrouter", famOpenRouter},
	{"anthropic", famAnthropic},
	{"claude", famAnthropic},
	{"bedrock", famBedrock},
	{"google", famGoogle},
	{"gemini", famGoogle},
	{"vertex", famGoogle},
	{"dashscope", famDashScope},
	{"qwen", famDashScope},
	{"alibaba", famDashScope},
	{"aliyun", famDashScope},
	{"bailian", famDashScope},
	{"modelstudio", famDashScope},
	{"zai", famZhipu},
	{"z.ai", famZhipu},
	{"zhipu", famZhipu},
	{"bigmodel", famZhipu},
	{"glm", famZhipu},
	{"minimax", famMiniMax},
	{"volc", famVolcengine},
	{"byteplus", famVolcengine},
	{"doubao", famVolcengine},
	{"workers-ai", famWorkersAI},
	{"workersai", famWorkersAI},
	{"cloudflare", famWorkersAI},
	{"mistral", famMistral},
	{"copilot", famCopilot},
	{"llamacpp", famLlamaCpp},
	{"llama-cpp", famLlamaCpp},
	{"llama.cpp", famLlamaCpp},
	{"cohere", famCohere},
	{"xai", famXAI},
	{"grok", famXAI},
	{"openai", famOpenAI},
	{"codex", famOpenAI},
}

// familyOf returns the vocabulary of a provider id spoken over an API.
func familyOf(provider, api string) (f family) {
	provider = strings.ToLower(provider)
	for _, n := range familyNames {
		if strings.Contains(provider, n.name) {
			f |= n.fam
		}
	}
	switch api {
	case APIGemini:
		f |= famGoogle
	case APIBedrock:
		f |= famBedrock
	}
	return f
}

// providerText holds wordings that mean what they say at one provider only (spec/failover.md §6,
// principle 4).
var providerText = compile([]group{
	{verdict: verdict{reason: llm.ReasonBilling, rule: "openrouter/key-limit"}, only: famOpenRouter, phrases: []string{
		"key limit exceeded", "key budget limit exceeded",
	}},
	{verdict: verdict{reason: llm.ReasonBilling, rule: "openai/plan"}, only: famOpenAI, phrases: []string{"with your chatgpt plan upgrade"}},
	{verdict: verdict{reason: llm.ReasonBilling, scope: llm.ScopeModel, rule: "anthropic/long-context"}, phrases: []string{
		"required for long context", "requires * long context", "long context beta is not yet available",
	}, only: famAnthropic},
	{verdict: verdict{reason: llm.ReasonAuth, scope: llm.ScopeModel, rule: "bedrock/model-access"}, only: famBedrock, phrases: []string{
		"access to the model", "access to this model", "access to model",
	}},
	{verdict: verdict{reason: llm.ReasonRateLimit, scope: llm.ScopeModel, rule: "bedrock/throttling"}, only: famBedrock, phrases: []string{
		"throttlingexception", "too many tokens", "too many requests",
	}},
	{verdict: verdict{reason: llm.ReasonFormat, rule: "llamacpp/template"}, only: famLlamaCpp, phrases: []string{
		"at row # column #", "at row * column",
	}},
	{verdict: verdict{reason: llm.ReasonTimeout, detail: llm.DetailServerError, rule: "zhipu/api-error"}, only: famZhipu, phrases: []string{
		"请稍后重试 * 无法成功访问", "无法成功访问您的账户",
	}},
	{verdict: verdict{reason: llm.ReasonRateLimit, scope: llm.ScopeModel, rule: "cohere/trial"}, only: famCohere, phrases: []string{
		"using a trial key",
	}},
})

// providerCodes are codes that mean something at one provider only.
var providerCodes = []struct {
	fam   family
	table codeTable
}{
	{famBedrock, tabulate("bedrock",
		codeSet{reason: llm.ReasonRateLimit, scope: llm.ScopeModel, codes: []string{"ThrottlingException", "TooManyRequestsException", "ServiceQuotaExceededException"}},
		codeSet{reason: llm.ReasonModelNotFound, codes: []string{"ResourceNotFoundException"}},
	)},
	{famDashScope, tabulate("dashscope",
		codeSet{reason: llm.ReasonBilling, codes: []string{
			"Arrearage", "CommodityNotPurchased", "PrepaidBillOverdue", "PostpaidBillOverdue", "AccessDenied.Unpurchased",
		}},
		codeSet{reason: llm.ReasonBilling, scope: llm.ScopeModel, codes: []string{"AllocationQuota.FreeTierOnly"}},
		codeSet{reason: llm.ReasonRateLimit, scope: llm.ScopeModel, codes: []string{
			"Throttling", "insufficient_quota", "limit_requests", "limit_burst_rate", "rate_limit_exceeded",
		}},
		codeSet{reason: llm.ReasonAuth, scope: llm.ScopeModel, codes: []string{"Model.AccessDenied"}},
		codeSet{reason: llm.ReasonOverloaded, strength: plain, codes: []string{"ModelServingError", "ModelUnavailable", "ServiceUnavailable"}},
		codeSet{reason: llm.ReasonTimeout, detail: llm.DetailDeadline, strength: plain, codes: []string{"InternalError.Timeout", "RequestTimeOut", "ResponseTimeout"}},
		codeSet{reason: llm.ReasonTimeout, detail: llm.DetailServerError, strength: weak, codes: []string{
			"InternalError", "SystemError", "ModelServiceFailed", "InvokePluginFailed", "AppProcessFailed", "RewriteFailed",
			"InternalError.Algo",
		}},
	)},
	{famZhipu, tabulate("zhipu",
		codeSet{reason: llm.ReasonAuth, codes: []string{"1000", "1001", "1002", "1003", "1004", "1100", "1220"}},
		codeSet{reason: llm.ReasonAuthPermanent, codes: []string{"1110", "1111", "1112", "1121"}},
		codeSet{reason: llm.ReasonBilling, codes: []string{"1113", "1309"}},
		codeSet{reason: llm.ReasonModelNotFound, codes: []string{"1211", "1311"}},
		codeSet{reason: llm.ReasonFormat, strength: weak, codes: []string{"1210", "1212", "1213", "1214", "1215"}},
		codeSet{reason: llm.ReasonContextOverflow, codes: []string{"1261"}},
		codeSet{reason: llm.ReasonRefusal, codes: []string{"1300", "1301"}},
		codeSet{reason: llm.ReasonRateLimit, codes: []string{"1302", "1303"}},
		codeSet{reason: llm.ReasonRateLimit, scope: llm.ScopeProfile, codes: []string{"1304", "1308", "1310", "1313"}},
		codeSet{reason: llm.ReasonOverloaded, scope: llm.ScopeModel, codes: []string{"1312"}},
		codeSet{reason: llm.ReasonOverloaded, strength: weak, codes: []string{"1305"}},
		codeSet{reason: llm.ReasonTimeout, detail: llm.DetailNetwork, codes: []string{"1234"}},
		codeSet{reason: llm.ReasonTimeout, detail: llm.DetailServerError, strength: weak, codes: []string{"500", "1120", "1200", "1230"}},
	)},
	{famMiniMax, tabulate("minimax",
		codeSet{reason: llm.ReasonTimeout, detail: llm.DetailServerError, codes: []string{"1000", "1013", "1024", "1033"}},
		codeSet{reason: llm.ReasonTimeout, detail: llm.DetailDeadline, codes: []string{"1001"}},
		codeSet{reason: llm.ReasonRateLimit, codes: []string{"1002", "1039", "1041", "2045"}},
		codeSet{reason: llm.ReasonRateLimit, scope: llm.ScopeProfile, codes: []string{"2056", "2062"}},
		codeSet{reason: llm.ReasonAuth, codes: []string{"1004", "2049"}},
		codeSet{reason: llm.ReasonBilling, codes: []string{"1008"}},
		codeSet{reason: llm.ReasonRefusal, codes: []string{"1026", "1027"}},
		codeSet{reason: llm.ReasonModelNotFound, codes: []string{"2061"}},
		codeSet{reason: llm.ReasonFormat, strength: weak, codes: []string{"1042", "2013"}},
	)},
	{famVolcengine, tabulate("volcengine",
		codeSet{reason: llm.ReasonBilling, codes: []string{"AccountOverdueError", "OperationDenied.ServiceOverdue", "InvalidSubscription"}},
		codeSet{reason: llm.ReasonRateLimit, scope: llm.ScopeProfile, codes: []string{
			"AccountQuotaExceeded", "AccountRateLimitExceeded", "APIAccountRpmRateLimitExceeded",
		}},
		codeSet{reason: llm.ReasonRateLimit, scope: llm.ScopeModel, codes: []string{
			"RateLimitExceeded", "ModelAccountRpmRateLimitExceeded", "ModelAccountTpmRateLimitExceeded", "ModelAccountIpmRateLimitExceeded",
			"QuotaExceeded", "SetLimitExceeded", "InflightBatchsizeExceeded", "RequestBurstTooFast",
		}},
		codeSet{reason: llm.ReasonModelNotFound, codes: []string{
			"ModelNotOpen", "UnsupportedModel", "InvalidEndpointOrModel", "InvalidEndpoint", "OperationDenied.ServiceNotOpen",
			"InvalidParameter.UnsupportedModel",
		}},
		codeSet{reason: llm.ReasonAuthPermanent, codes: []string{"InvalidAccountStatus"}},
		codeSet{reason: llm.ReasonRefusal, codes: []string{
			"SensitiveContentDetected", "InputTextSensitiveContentDetected", "InputImageSensitiveContentDetected",
			"InputVideoSensitiveContentDetected",
			"OutputTextSensitiveContentDetected", "OutputImageSensitiveContentDetected", "OutputVideoSensitiveContentDetected",
			"InputTextRiskDetection", "InputImageRiskDetection", "OutputTextRiskDetection", "ContentSecurityDetectionError",
		}},
	)},
	{famWorkersAI, tabulate("workers-ai",
		codeSet{reason: llm.ReasonModelNotFound, codes: []string{"5007", "3042"}},
		codeSet{reason: llm.ReasonAuth, scope: llm.ScopeModel, codes: []string{"5016", "5018", "3041"}},
		codeSet{reason: llm.ReasonAuth, codes: []string{"10000", "9109", "10001"}},
		codeSet{reason: llm.ReasonAuthPermanent, codes: []string{"3023"}},
		codeSet{reason: llm.ReasonRateLimit, scope: llm.ScopeProfile, codes: []string{"3036", "4006"}},
		codeSet{reason: llm.ReasonOverloaded, codes: []string{"3040"}},
		codeSet{reason: llm.ReasonTimeout, detail: llm.DetailDeadline, codes: []string{"3007", "3046"}},
		codeSet{reason: llm.ReasonTimeout, detail: llm.DetailServerError, codes: []string{"3008", "3043"}},
		codeSet{reason: llm.ReasonContextOverflow, codes: []string{"3006", "5021"}},
		codeSet{reason: llm.ReasonFormat, codes: []string{"3003", "3039", "5004", "5005", "5006", "5019"}},
	)},
	{famMistral, tabulate("mistral",
		codeSet{reason: llm.ReasonContextOverflow, codes: []string{"3051"}},
		codeSet{reason: llm.ReasonModelNotFound, codes: []string{"1500"}},
		codeSet{reason: llm.ReasonRateLimit, codes: []string{"1300"}},
		codeSet{reason: llm.ReasonRateLimit, scope: llm.ScopeModel, codes: []string{"3505"}},
	)},
	{famCopilot, tabulate("copilot",
		codeSet{reason: llm.ReasonBilling, strength: plain, codes: []string{"quota_exceeded"}},
		codeSet{reason: llm.ReasonRateLimit, scope: llm.ScopeProfile, codes: []string{
			"user_global_rate_limited", "user_weekly_rate_limited", "agent_mode_limit_exceeded",
		}},
	)},
}

// providerCode looks code up in the tables of the families.
func providerCode(fam family, code []byte) (codeRule, bool) {
	for _, p := range providerCodes {
		if p.fam&fam != 0 {
			if rule, ok := p.table.lookUp(code); ok {
				return rule, true
			}
		}
	}
	return codeRule{}, false
}

// trailingCode returns the number in parentheses at the end of a MiniMax message: "… (1008)".
func trailingCode(msg []byte) []byte {
	n := len(msg)
	if n < 6 || msg[n-1] != ')' || msg[n-6] != '(' {
		return nil
	}
	for _, c := range msg[n-5 : n-1] {
		if !isDigit(c) {
			return nil
		}
	}
	return msg[n-5 : n-1]
}
