package classify

import "understudy/llm"

// beyondHTTP is for words that mean the connection only where no server answered with an error.
func beyondHTTP(status int) bool { return status < 400 }

// notRejected is for words that say nothing new beside a status that already blames the caller.
func notRejected(status int) bool {
	return status < 400 || status == 400 || status == 424 || status >= 500
}

// isPayment is for words that ask for money where the status already does.
func isPayment(status int) bool { return status == 402 }

func isMissing(status int) bool { return status == 404 || status == 410 }

var (
	vRateLimit  = verdict{reason: llm.ReasonRateLimit, rule: "text/rate-limit"}
	vWindow     = verdict{reason: llm.ReasonRateLimit, scope: llm.ScopeProfile, rule: "text/usage-window"}
	vBilling    = verdict{reason: llm.ReasonBilling, rule: "text/billing"}
	vAuth       = verdict{reason: llm.ReasonAuth, rule: "text/auth"}
	vPermanent  = verdict{reason: llm.ReasonAuthPermanent, rule: "text/auth-permanent"}
	vOverflow   = verdict{reason: llm.ReasonContextOverflow, rule: "text/context-overflow"}
	vFormat     = verdict{reason: llm.ReasonFormat, rule: "text/format"}
	vModel      = verdict{reason: llm.ReasonModelNotFound, rule: "text/model"}
	vSession    = verdict{reason: llm.ReasonSessionExpired, rule: "text/session"}
	vRefusal    = verdict{reason: llm.ReasonRefusal, rule: "text/refusal"}
	vOverloaded = verdict{reason: llm.ReasonOverloaded, rule: "text/overloaded"}
	vServer     = verdict{reason: llm.ReasonTimeout, detail: llm.DetailServerError, rule: "text/server-error"}
	vNetwork    = verdict{reason: llm.ReasonTimeout, detail: llm.DetailNetwork, rule: "text/network"}
	vUnreached  = verdict{reason: llm.ReasonTimeout, detail: llm.DetailNetwork, notSent: true, rule: "text/unreached"}
	vDeadline   = verdict{reason: llm.ReasonTimeout, detail: llm.DetailDeadline, rule: "text/deadline"}
)

// ruleNamesModel is the rule of a 404 whose message has the word, and nothing more, to say.
const ruleNamesModel = "text/model-404"

// periodic are the wordings of a cap that is counted by the hour, day, week or month.
var periodic = []string{
	"weekly limit", "weekly quota", "monthly limit", "monthly quota", "daily limit", "daily quota", "hourly limit",
	"hourly _ limit", "daily _ limit", "weekly _ limit", "monthly _ limit", "daily _ quota", "weekly _ quota", "monthly _ quota",
	"hour limit", "daily usage", "weekly usage", "monthly usage", "monthly budget", "daily budget", "weekly budget", "monthly allowance",
	"resets tomorrow", "reset tomorrow", "limit for this billing cycle",
}

// hardText decides before plain codes do: explicit money, windows, overflow and shut accounts count
// whatever the status says (spec/failover.md §6).
var hardText = compile([]group{
	{verdict: vFormat, phrases: []string{ // an answer budget that is too large is no overflow
		"max_tokens is too large", "max_tokens or * is too large", "is too large * completion tokens", "invalid max_tokens",
		"maximum tokens you requested exceeds the model limit", "maximum allowed number of output tokens",
		"max_tokens must be", "max_completion_tokens must be", "valid range of max_tokens", "maximum value for max_tokens",
		"supports at most # completion tokens", "not supported in the * endpoint", "max_tokens exceeds", "maxoutputtokens",
		"range of max_tokens", "maximum number of output tokens", "max_tokens # #",
	}},
	{verdict: vPermanent, phrases: []string{
		"refresh failed * revoked", "refresh failed * reused", "refresh failed * already been used", "refresh token was already used",
		"refresh_token_reused",
	}},
	{verdict: vAuth, phrases: []string{ // before invalid_grant, which it often carries
		"token refresh failed", "failed to refresh token", "failed to refresh * token", "refresh * token failed",
	}},
	{verdict: vWindow, phrases: []string{"free models per day", "free models per min"}},
	{verdict: vRateLimit, phrases: []string{
		"tokens per min", "tokens per minute", "requests per min", "requests per minute", "queries per minute", "requests per second",
		"per minute rate limit", "input tokens per minute", "output tokens per minute", "tokens per day", "requests per day",
		"max rpm", "max tpm", "max rpd", "max tpd", "max concurrency", "crossed budget", "exceeded budget for deployment",
		"calls per minute", "api calls / minute", "not your usage limit", "requests per hour", "tokens per hour",
	}},
	{verdict: vRateLimit, only: famGoogle | famDashScope, phrases: []string{
		"exceeded your current quota", "allocated quota exceeded", "insufficient_quota", "insufficient quota",
	}},
	{verdict: verdict{reason: llm.ReasonBilling, scope: llm.ScopeModel, rule: "text/billing-model"}, phrases: []string{
		"model requires a * subscription", "model requires a subscription", "model requires a * plan", "model requires a paid",
		"model is only available on paid", "model is only available to paid", "free tier of the model",
	}},
	{verdict: vBilling, phrases: []string{
		"check your plan and billing details", "exceeded your current quota",
		"failure to pay", "past invoices", "overdue", "unpaid", "insufficient balance", "insufficient credit", "insufficient credits",
		"quota is not enough", "insufficient quota", "insufficient_quota", "insufficient _ balance", "insufficient _ or _ balance", "used up your points", "used up your credits", "used up all your credits",
		"insufficient funds", "insufficient account balance", "balance is insufficient", "balance is not enough", "balance not enough",
		"not enough balance", "not enough credits", "not enough credit", "enough credits to", "out of credits", "out of credit",
		"run out of credits", "ran out of credits", "no credits left", "no credits remaining", "no credits available", "no more credits",
		"have no credits", "any credits", "used all available credits", "credits exhausted",
		"credits have been exhausted", "credits are exhausted", "credits are depleted", "credit limit exceeded", "credit balance",
		"credits depleted", "prepayment credits", "low balance", "negative balance", "zero balance", "balance exhausted",
		"balance is too low", "account balance is", "add more credits", "requires more credits", "purchase more credits",
		"payment method is required", "add or update your payment", "add a valid payment method", "update your payment",
		"no payment method", "payment instrument", "billing or payment information", "billing hard limit", "billing is disabled",
		"billing to be enabled", "billing has not been enabled", "billing not active", "billing is not active", "enable billing",
		"please recharge", "top up your", "please top up", "top up", "add credits to", "please add credits", "exceeded your credit limit",
		"subscription has been canceled", "subscription has been cancelled", "subscription * has ended", "enter a payment method",
		"subscription has expired", "subscription expired", "subscription has lapsed",
		"plan has expired", "no active subscription", "inactive subscription", "need a * subscription", "valid codingplan subscription",
		"not included in your plan", "please upgrade your account", "plan upgrade required", "plan upgrade needed", "upgrade to a paid account", "upgrade your plan to continue",
		"budget has been exceeded", "exceededbudget", "free trial * expired", "trial has ended", "trial has expired", "out of extra usage",
		"draw from your extra usage", "extra usage balance", "not purchased",
		"账户欠费", "已欠费", "欠费", "余额不足", "额度不足", "额度已用尽", "额度已用完", "余额已用完", "请充值", "充值后", "套餐已到期", "套餐已过期", "套餐到期", "未购买", "请续费", "续订", "预扣费",
		"残高不足", "잔액이 부족합니다", "crédits insuffisants", "saldo insuficiente", "guthaben reicht nicht",
	}},
	{verdict: vWindow, phrases: periodic},
	{verdict: vBilling, when: isPayment, phrases: []string{"upgrade your plan", "upgrade your account", "upgrade your subscription"}},
	{verdict: vWindow, phrases: []string{
		"usage limit", "usage limits", "usage quota", "session limit", "spending limit", "spending limits", "spend limit", "spend cap", "spending cap",
		"limit reached resets", "hit your limit", "reached your limit", "daily free allocation", "monthly included credits",
		"individual quota", "subscription quota", "call volume quota", "premium request allowance", "quota limit exceeded", "free usage exceeded",
		"quota will reset", "quota will be replenished", "quota will be refreshed", "limit will reset", "usage cap", "message limit",
		"使用上限", "每周限额", "每月限额", "今日调用次数限额", "每日限额", "用量上限", "周限额", "月限额", "日限额", "当日", "今日额度", "本周额度", "本月额度", "用量已达", "限额将在", "额度将在",
		"limite hebdomadaire", "límite semanal", "wochenlimit", "monatslimit", "週間制限",
	}},
	{verdict: vBilling, phrases: []string{"payment required"}}, // a 402's own words: what stands beside them says more
	{verdict: vPermanent, phrases: []string{
		"api key deleted", "api key deactivated", "api key disabled", "api key * is disabled", "api key * has been disabled",
		"api key * has been revoked", "invalid_grant", "refresh_token_reused", "refresh token * already been used", "refresh token * revoked", "token has been revoked",
		"token was revoked",
		"token is revoked", "key has been revoked", "key was revoked", "key is revoked", "key revoked", "key has been disabled", "key is disabled",
		"key was disabled", "key has been deactivated", "key is deactivated", "key is blocked", "key is _ blocked", "key is _ disabled",
		"key has been blocked", "key * currently blocked",
		"key has been deleted", "key was deleted", "key is deleted", "key * reported as leaked", "key was leaked", "account has been deactivated",
		"account is deactivated", "account deactivated", "account has been disabled", "account is disabled", "account has been suspended",
		"account is suspended", "account suspended", "account has been terminated", "account has been banned", "account is banned",
		"account is locked",
		"account has been locked", "account has been closed", "account is not active", "account has been deleted", "account was deleted",
		"organization has been disabled", "organization is disabled",
		"organization has been restricted", "organization has been deactivated", "organization has been suspended", "workspace has been deactivated",
		"workspace is disabled", "project has been archived", "project * has been suspended", "project * is archived",
		"consumer * has been suspended", "user has been banned",
		"not allowed for this organization", "access terminated", "has been permanently disabled", "deactivated_workspace",
		"user is disabled", "user has been blocked",
		"账户已被锁定", "账号已被锁定", "账户已被冻结", "账号已被封禁", "账户已停用", "用户已被封禁", "用户已被禁用", "令牌已被禁用",
		"该令牌状态不可用", "已被吊销", "密钥已被禁用", "密钥已删除", "已注销", "账号已停用", "账户不存在", "账号已被禁用", "账户已被禁用",
	}},
	{verdict: vSession, when: func(status int) bool { return status != 401 && status != 403 }, phrases: []string{
		"session not found", "session * not found", "session has expired", "no conversation found", "conversation * not found",
		"conversation not found",
		"previous response * not found", "previous_response_id * not found", "response with id * not found", "item with id * not found",
		"container is expired",
		"container expired", "container has expired", "container * not found", "thread not found", "no thread found",
		"thread with id * not found", "no response found",
		"会话不存在", "会话已过期", "会话已失效", "对话不存在",
	}},
	{verdict: vSession, phrases: []string{"cached content * not found", "cachedcontent not found"}},
	{verdict: vOverflow, phrases: []string{
		"prompt is too long", "prompt too long", "input is too long", "input too long", "input is too large to process", "request too large",
		"request_too_large", "request entity too large", "payload too large", "exceed context limit", "exceeds context limit",
		"context length exceeded",
		"context_length_exceeded", "context window exceeded", "exceeds the context window", "exceed the context window", "exceeds the context length",
		"exceed the context length", "exceeded * context window limit", "exceeds * context window", "exceeds context window",
		"context window exceeds",
		"context window is full", "exceed context window", "exceed * context window", "exceeds context", "model only supports up to",
		"input length * exceeds", "exceed max message tokens", "exceeds max message tokens", "exceeds the maximum length",
		"exceed the maximum length", "context window limit", "context size has been exceeded", "exceeds the available context size",
		"exceed_context_size_error",
		"exceeds * context size", "greater than the context length", "longer than the maximum model length", "maximum context length",
		"max context length",
		"maximum model length", "model's context length", "maximum prompt length", "max_prompt_tokens", "prompt token count",
		"input token count * exceeds",
		"input tokens exceed", "input tokens exceeds", "exceeds the maximum number of tokens", "exceeds the maximum number of input tokens",
		"exceed the maximum number of tokens",
		"tokens in the prompt cannot exceed", "range of input length", "must have less than # tokens", "inputs tokens * must be",
		"input length exceeds",
		"input length * exceed", "input token length too long", "exceeded model token limit", "model token limit", "token limit exceeded",
		"tokens to keep from the initial prompt", "context length of only", "payload size exceeds the limit",
		"more than max tokens allowed", "larger than the context", "prompt has # tokens", "size limit exceeded by # tokens", "context window is _ tokens * requested",
		"reduce the length of the messages", "reduce the length of your prompt", "reduce your prompt", "shorten your prompt",
		"shorter prompt", "too many tokens in",
		"contextwindowexceedederror", "prompt contains # tokens", "conversation is too long", "exceeds the model's maximum",
		"exceeds the limit of # tokens", "exceed the model's maximum",
		"requested tokens * exceed context", "context overflow", "maximum allowed input length", "input length should be", "exceeds maximum input",
		"prompt 超长", "输入超长", "超过最大长度", "上下文长度", "上下文超", "上下文过长", "超出上下文", "超过上下文", "上下文窗口",
		"超出最大上下文", "超出模型上下文", "输入长度超过", "输入过长", "输入内容过长", "超过模型最大", "tokens 超过", "token 超出",
		"token 数超过", "最大输入长度", "コンテキスト長", "컨텍스트 길이", "trop long pour le modèle", "contexto máximo",
	}},
})

// softText decides after plain codes did.
var softText = compile([]group{
	{verdict: vRateLimit, phrases: []string{ // worded like load, but a share that is used up
		"service tier capacity exceeded", "high demand * limited to # requests", "rate limit", "rate limits", "rate limited",
		"rate limiting", "ratelimit", "rate_limit", "ratelimiterror",
		"rate_limit_exceeded", "request limit exceeded", "requests limit exceeded", "quota exceeded", "exceeded quota", "exceeded * quota",
		"quota has been exceeded",
		"exhausted * quota", "quota * exhausted", "throttled", "throttling", "throttlingexception", "toomanyrequestsexception", "throttle",
		"concurrency limit", "concurrency quota", "too many concurrent", "concurrent requests", "limit exhausted", "concurrency exceeded",
		"resource exhausted", "resource has been exhausted", "resource_exhausted", "resourceexhausted", "request rate increased too quickly",
		"sending requests too quickly", "slow down", "frequency limit", "quota limit",
		"频率", "频繁", "并发数过高", "并发", "限流", "流量限制", "速率限制", "请求过多", "请求数超", "次数限制", "请求过快", "超出配额",
		"配额已用", "rpm 限制", "tpm 限制", "达到上限", "レート制限", "요청 한도", "limite de débit", "límite de velocidad",
		"limite de requisições", "zu viele anfragen", "too many requests * per",
	}},
	{verdict: vRefusal, phrases: []string{
		"content filter", "content_filter", "content filtering policy", "content management policy", "content policy",
		"content_policy_violation", "contentpolicyviolationerror", "usage policies", "usage policy",
		"usage guidelines", "safety system", "safety reasons", "safety filter", "safety filters", "safety policy", "blocked by safety",
		"moderation", "responsible ai policy", "prohibited content", "inappropriate content", "sensitive content",
		"sensitive information", "considered high risk", "content exists risk", "content was flagged", "prohibited due to a violation", "violates our", "guardrail", "can't help with that",
		"cannot help with that", "can't assist with that", "data_inspection_failed", "new_sensitive", "prohibited_content",
		"sensitive words", "敏感", "违规", "不安全", "内容安全", "不适当", "违反", "屏蔽词",
	}},
	{verdict: vFormat, phrases: []string{ // a template that cannot render the transcript
		"jinja", "prompt template", "chat template", "value is not callable", "template error", "roles must alternate", "must alternate",
	}},
	{verdict: vOverloaded, phrases: []string{
		"overloaded", "overload", "overloaded_error", "degraded function", "server overloaded", "at capacity", "over capacity", "at max capacity", "at maximum capacity",
		"scaling up", "scaling from zero", "cold start", "capacity exceeded", "capacity temporarily exceeded", "out of capacity",
		"no capacity available", "capacity limits", "insufficient capacity", "not enough capacity", "lack of capacity",
		"capacity constraints", "high demand",
		"high traffic", "high load", "heavy load", "heavy traffic", "peak load", "server busy", "server is busy", "service is busy",
		"system is busy", "model is busy", "engine is busy", "too busy", "currently busy", "no available * workers",
		"pending requests exceeded", "queue is full", "queue full",
		"loading model", "model is loading", "model * is currently loading", "model * is loading", "still loading", "model is not ready",
		"model * not ready", "modelnotreadyexception", "warming up", "serviceunavailableexception", "ran out of capacity",
		"no data centers", "temporarily unable to handle",
		"负载已饱和", "负载过高", "负载较高", "访问量过大", "繁忙", "过载", "拥堵", "资源不足", "算力不足", "高峰", "混み合って", "過負荷",
		"과부하", "surchargé", "sobrecargado", "überlastet", "sovraccarico",
	}},
	{verdict: vModel, phrases: []string{
		"model not found", "model _ not found", "model * was not found", "model _ is not found", "model * does not exist",
		"model * doesn't exist", "model is not supported", "model _ is not supported", "model _ not supported", "model does not exist",
		"unknown model", "no such model",
		"invalid model", "invalid_model", "model is invalid", "model identifier is invalid", "model name is invalid",
		"model is not available", "model _ is not available", "model _ not available", "model not available", "model _ is unavailable",
		"model is unavailable", "model unavailable", "model * is no longer",
		"model * has been decommissioned", "model * is deprecated", "model * been deprecated", "model * retired", "model * end of its life",
		"model * as legacy", "model * been shut down", "model * been removed", "model * discontinued",
		"access to model", "access to the model", "has not activated the model", "model * is not activated", "non serverless model",
		"not a valid model", "not found the model", "models * is not found", "is not found for api version",
		"no endpoints found", "no allowed providers", "no endpoints available", "not supported by any provider",
		"model or endpoint * does not exist", "deployment * does not exist", "deployment not found", "deployment * not found",
		"deploymentnotfound", "on demand throughput isn't supported", "on demand throughput is not supported",
		"no available channel", "does not support the coding plan", "not support model", "model * not loaded", "no models loaded",
		"model is not loaded", "llm provider not provided", "model * not exist", "unsupported model", "model_not_found",
		"model is not enabled", "model _ is not enabled", "model is not allowed", "model _ is not allowed", "not allowed to access model",
		"not available with the * plan", "not available on your * plan", "authorized to use this model", "allowed to use this model",
		"allowed to use * model", "permission to use * model", "model can not be found", "model cannot be found",
		"model could not be found",
		"model has been deactivated", "model is deactivated", "model not exist", "try pulling it", "selected model * may not exist", "模型不存在", "模型 * 不存在", "没有该模型", "不支持该模型",
		"不支持模型", "模型未开通", "未开通 * 模型", "模型已下线", "模型 * 已下线", "无可用渠道", "暂未开放", "无权访问 * 模型",
		"没有 * 模型 * 权限", "モデルが見つかりません", "モデル * 存在しません", "모델을 찾을 수", "modèle * introuvable",
		"modelo * no existe", "modell * nicht gefunden",
	}},
	{verdict: vRateLimit, phrases: []string{"too many requests", "too many request", "too many queries", "requests too frequent", "demasiadas solicitudes", "trop de requêtes"}},
	{verdict: vAuth, phrases: []string{
		"invalid api key", "incorrect api key", "api key not valid", "api key not found", "api key is invalid", "api key expired",
		"api key * invalid", "invalid api token", "invalid x-api-key", "invalid authentication", "authentication fails",
		"authentication failed", "authenticationerror", "invalid bearer token",
		"invalid token", "token is invalid", "token has expired", "token is expired", "token expired", "expired token",
		"expiredtokenexception", "invalid credentials", "credentials * expired", "credentials have expired", "missing api key",
		"no api key", "didn't provide an api key", "missing authentication", "no auth credentials",
		"only authorized for use with", "missing scopes", "missing scope", "insufficient permissions", "insufficient authentication scopes",
		"accessdeniedexception", "unrecognizedclientexception", "security token * is invalid", "security token * is expired",
		"not authorized to perform", "permission denied on", "permissiondeniederror", "unauthenticated", "location is not supported",
		"country * not supported", "could not resolve authentication method", "unable to locate credentials", "refresh cached credentials",
		"no credentials found", "could not find default credentials",
		"login fail", "please log in again", "please re-authenticate", "please sign in",
		"无效的令牌", "令牌无效", "令牌已过期", "令牌过期", "密钥无效", "无效的密钥", "身份验证失败", "鉴权失败", "认证失败", "未提供令牌",
		"api key 无效", "无效的 api key", "密钥错误", "无权访问", "认证を", "無効な api", "유효하지 않은 api", "clé api invalide",
		"clave de api no válida", "ungültiger api-schlüssel",
	}},
	{verdict: verdict{reason: llm.ReasonTimeout, detail: llm.DetailServerError, scope: llm.ScopeModel, rule: "text/memory"}, phrases: []string{
		"requires more system memory", "out of memory", "not enough memory", "insufficient memory",
	}, when: notRejected},
	{verdict: vServer, phrases: []string{"can't reach database server", "database server is", "connection to database"}},
	{verdict: vUnreached, when: beyondHTTP, phrases: []string{
		"connection refused", "no such host", "server misbehaving", "temporary failure in name resolution", "network is unreachable",
		"no route to host", "host is down", "econnrefused", "enotfound", "eai_again", "enetunreach", "ehostunreach", "getaddrinfo",
		"tls handshake timeout", "x509", "proxyconnect", "http response to https client", "socks", "cannot assign requested address", "certificate verify failed",
		"certificate_verify_failed",
		"too many open files",
	}},
	{verdict: vNetwork, when: beyondHTTP, phrases: []string{
		"connection reset", "connection error", "connection closed", "connection aborted", "connection lost", "client connection lost",
		"connection broken", "connection terminated", "broken pipe", "closed network connection",
		"unexpected eof", "unexpected end of json input", "unexpected end of file", "premature close", "socket hang up", "fetch failed",
		"econnreset", "etimedout", "epipe", "und_err_socket", "goaway", "refused_stream", "stream error", "http2",
		"tls", "ssl", "server disconnected", "i/o timeout", "malformed http", "bad gateway", "incomplete chunked read", "peer closed connection",
		"invalid character * looking for beginning of value", "network error", "other side closed", "remoteprotocolerror",
		"apiconnectionerror", "stream ended before", "stream closed", "server closed * connection", "transport connection broken",
		"closed response body", "malformed chunked encoding", "gzip invalid header", "without sending any chunks",
		"连接被重置", "连接超时", "网络错误", "网络异常",
	}},
	{verdict: vDeadline, when: notRejected, phrases: []string{
		"timed out", "request timeout", "request time out", "timeout awaiting response headers", "context deadline exceeded",
		"deadline exceeded", "deadline expired", "operation was timeout", "gateway timeout", "upstream request timeout", "client.timeout",
		"read timeout", "readtimeout", "stream idle timeout", "function_invocation_timeout", "请求超时", "响应超时", "处理超时",
	}},
	{verdict: vServer, when: notRejected, phrases: []string{
		"internal server error", "internal error", "internal_server_error", "server error", "model has crashed", "model crashed",
		"model unloaded", "model is unloaded", "unknown error #", "unknown error, #", "upstream error", "backend error", "modelstreamerrorexception",
		"modelerrorexception", "internalserverexception", "internalservererror", "encountered an unexpected error during processing",
		"service unavailable", "service is currently unavailable", "service temporarily unavailable",
		"error occurred while processing your request",
		"the server had an error", "unexpected error on our side", "something went wrong on our", "系统错误", "内部错误", "服务器错误",
		"服务异常", "系统异常", "服务暂时不可用", "サーバーエラー", "内部サーバー", "erreur interne", "error interno",
		"interner serverfehler",
	}},
	{verdict: vFormat, when: beyondHTTP, phrases: []string{
		"invalid request format", "should match pattern", "tool call id was * must be", "badrequesterror", "unprocessableentityerror", "invalid_request_error", "validationexception", "each tool_use block must have",
		"toolu_ * without", "tool_use ids were found", "must be followed by tool messages", "no tool output found",
	}},
	{verdict: verdict{reason: llm.ReasonModelNotFound, rule: ruleNamesModel}, when: isMissing, phrases: []string{
		"model", "models", "deployment", "模型",
	}},
})

// Cues tell how far a failure reaches, once its reason is known.
const (
	cueModel = iota
	cueProfile
)

var scopeCues = compile([]group{
	cueModel: {phrases: []string{
		"for model", "for the model", "for this model", "for selected model", "for deployment", "of this model", "of the model",
		"this model", "the model", "model is", "base model", "per model", "loading model", "model * is currently loading",
		"model * is loading", "model @ is", "access to model", "model requires",
		"limit reached for * in organization", "too large for * in organization", "for @ in organization", "requests to @ for",
		"demand for @", "capacity available for", "model @", "models @", "that model", "your requested model",
		"该模型", "当前模型", "此模型", "模型当前", "模型 *",
	}},
	cueProfile: {phrases: []string{
		"organization max", "your account * request reached", "your account's rate limit", "organization's rate limit",
		"account rate limit", "workspace rate limit", "global rate limit", "your team", "该账户", "您的账户", "账户已达到", "账号",
	}},
})
