package classify

import (
	"bytes"

	"understudy/llm"
)

// strength says when a code decides.
type strength uint8

const (
	decisive strength = iota // before any text
	plain                    // before soft text, after explicit money, windows, overflow
	weak                     // after all text
)

// codeRule is what a documented error code means.
type codeRule struct {
	verdict
	strength strength
}

// codeTable maps folded codes to rules.
type codeTable map[string]codeRule

// codeSet is a list of codes, in the spelling of their documentation, with one meaning.
type codeSet struct {
	reason   llm.Reason
	detail   llm.Detail
	scope    llm.Scope
	strength strength
	codes    []string
}

// tabulate prepares a table; who goes into the rule ids. A code that stands twice is a mistake in this
// package, found when it is loaded.
func tabulate(who string, sets ...codeSet) codeTable {
	t := make(codeTable)
	for _, s := range sets {
		for _, c := range s.codes {
			var buf [48]byte
			rule := "code/" + c
			if who != "" {
				rule = who + "/" + c
			}
			key := string(fold(&buf, []byte(c)))
			if _, twice := t[key]; twice {
				panic("classify: code " + c + " stands twice in one table")
			}
			t[key] = codeRule{verdict{reason: s.reason, detail: s.detail, scope: s.scope, rule: rule}, s.strength}
		}
	}
	return t
}

// Codes that mean the same wherever they appear: OpenAI's and Anthropic's vocabularies, which
// everybody borrows, google.rpc's, and the class names that SDKs and proxies print.
var commonCodes = tabulate("",
	codeSet{reason: llm.ReasonContextOverflow, codes: []string{
		"context_length_exceeded", "request_too_large", "exceed_context_size_error", "model_max_prompt_tokens_exceeded",
		"context_window_exceeded", "prompt_too_long", "max_prompt_tokens_exceeded",
		"ContextWindowExceededError", "input_too_long", "context_length_exceeded_error", "token_limit_exceeded_error",
		"tokens_limit_reached", "input_length_exceeded",
	}},
	codeSet{reason: llm.ReasonBilling, codes: []string{
		"insufficient_quota", "insufficient_balance", "insufficient_balance_error", "insufficient_user_quota", "insufficient_credits",
		"insufficient_credit", "not_enough_balance", "billing_error", "billing_not_active", "billing_hard_limit_reached",
		"credit_limit_exceeded", "exceeded_current_quota_error",
		"usage_not_included", "budget_exceeded", "BudgetExceededError", "BILLING_DISABLED", "payment_required", "CreditsError",
		"out_of_credits", "pre_consume_token_quota_failed", "account_overdue", "no_credits", "reject_no_credit",
	}},
	codeSet{reason: llm.ReasonRateLimit, scope: llm.ScopeProfile, codes: []string{
		"usage_limit_reached", "usage_limit_exceeded", "QUOTA_EXHAUSTED", "FreeUsageLimitError", "SubscriptionUsageLimitError",
		"GoUsageLimitError", "MonthlyLimitError", "UserLimitError", "quote_exceeded", "spend_limit_reached", "blocked_api_access",
		"daily_limit_exceeded", "weekly_limit_exceeded", "monthly_limit_exceeded", "entitlement_daily_limit_exceeded",
	}},
	codeSet{reason: llm.ReasonAuthPermanent, codes: []string{
		"account_deactivated", "organization_deactivated", "organization_restricted", "organization_disabled", "deactivated_workspace",
		"account_disabled", "account_suspended", "api_key_disabled", "api_key_revoked", "token_revoked", "refresh_token_reused",
		"invalid_grant", "project_archived", "account_terminated",
		"CONSUMER_SUSPENDED", "user_banned", "key_revoked", "key_disabled", "workspace_deactivated", "ACCOUNT_STATE_INVALID",
		"account_blocked", "user_deactivated", "refresh_token_invalidated", "refresh_token_expired",
	}},
	codeSet{reason: llm.ReasonModelNotFound, codes: []string{
		"model_not_found", "model_not_supported", "model_not_available", "model_decommissioned", "model_terminated", "invalid_model",
		"unknown_model", "unsupported_model", "ModelError", "DeploymentNotFound", "model_deprecated", "model_retired",
		"invalid_model_error", "model_not_exist", "model_unavailable", "no_available_channel", "model_is_deactivated",
		"model_terms_required", "model_permission_blocked_project", "model_permission_blocked_org",
	}},
	codeSet{reason: llm.ReasonSessionExpired, codes: []string{
		"session_not_found", "session_expired", "previous_response_not_found", "conversation_not_found", "response_not_found",
		"container_expired", "thread_not_found",
	}},
	codeSet{reason: llm.ReasonRefusal, codes: []string{
		"content_filter", "content_policy_violation", "content_filter_error", "ContentPolicyViolationError", "ResponsibleAIPolicyViolation",
		"data_inspection_failed", "content_moderation", "safety_check_failed", "sensitive_words_detected", "prompt_blocked",
		"moderation_blocked", "cyber_policy", "cyber_policy_violation", "image_generation_user_error_safety",
		"bio_policy", "safety_violations",
	}},
	codeSet{reason: llm.ReasonAuth, strength: plain, codes: []string{
		"API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_SERVICE_BLOCKED", "API_KEY_HTTP_REFERRER_BLOCKED", "API_KEY_IP_ADDRESS_BLOCKED",
		"ACCESS_TOKEN_EXPIRED", "ACCESS_TOKEN_SCOPE_INSUFFICIENT", "ACCESS_TOKEN_TYPE_UNSUPPORTED", "SERVICE_DISABLED", "CONSUMER_INVALID",
		"VALIDATION_REQUIRED", "CREDENTIALS_MISSING", "IAM_PERMISSION_DENIED",
		"unsupported_country_region_territory", "missing_scope", "invalid_api_key", "invalid_organization", "ip_not_authorized",
	}},
	codeSet{reason: llm.ReasonOverloaded, codes: []string{
		"MODEL_CAPACITY_EXHAUSTED", "queue_exceeded", "server_is_overloaded", "engine_overloaded_error", "engine_overloaded",
		"ServerOverloaded", "ModelNotReadyException", "ModelLoadingError", "overloaded", "capacity_exceeded", "DEPLOYMENT_SCALING_UP",
		"insufficient_system_resource", "no_capacity",
	}},
	codeSet{reason: llm.ReasonOverloaded, strength: plain, codes: []string{
		"overloaded_error", "slow_down", "ServiceUnavailableException", "unavailable_error", "too_busy", "server_busy", "busy",
	}},
	codeSet{reason: llm.ReasonRateLimit, strength: plain, codes: []string{
		"rate_limit_exceeded", "rate_limit_error", "rate_limit_reached", "rate_limit_reached_error", "rate_limit", "rate_limited",
		"model_rate_limit", "RESOURCE_EXHAUSTED", "userRateLimitExceeded", "token_quota_exceeded", "request_quota_exceeded",
		"too_many_tokens_error", "limitation", "Throttling", "ThrottlingException",
		"TooManyRequestsException", "ServiceQuotaExceededException", "RequestLimitExceeded", "concurrency_limit_reached",
		"concurrency_limit_exceeded", "token_concurrency_limit_reached", "requests_limit_exceeded", "tokens_limit_exceeded",
		"limit_requests", "limit_burst_rate", "dynamic_request_limited", "dynamic_token_limited", "service_tier_capacity_exceeded",
		"user_global_rate_limited", "integration_rate_limited", "TOKEN_LIMIT_EXCEEDED",
	}},
	codeSet{reason: llm.ReasonRateLimit, scope: llm.ScopeModel, strength: plain, codes: []string{
		"user_model_rate_limited", "upstream_provider_rate_limit", "model_rate_limited", "GenerateRequestsPerMinutePerProjectPerModel",
	}},
	codeSet{reason: llm.ReasonTimeout, detail: llm.DetailDeadline, strength: plain, codes: []string{
		"timeout_error", "DEADLINE_EXCEEDED", "ModelTimeoutException", "request_timeout", "APITimeoutError", "Timeout",
		"function_invocation_timeout", "channel:response_time_exceeded", "gateway_timeout", "upstream_timeout",
	}},
	codeSet{reason: llm.ReasonOverloaded, strength: weak, codes: []string{"UNAVAILABLE"}},
	codeSet{reason: llm.ReasonTimeout, detail: llm.DetailServerError, strength: weak, codes: []string{
		"server_error", "internal_server_error", "internal_error", "InternalServerException", "InternalFailure", "INTERNAL", "UNKNOWN",
		"ABORTED", "DATA_LOSS", "CANCELLED", "ModelErrorException", "ModelStreamErrorException", "service_unavailable",
		"service_unavailable_error", "upstream_error", "bad_gateway",
		"InternalServiceError", "provider_error", "provider_unavailable", "bad_response_status_code", "do_request_failed",
		"vector_store_timeout", "processing_error",
	}},
	codeSet{reason: llm.ReasonAuth, strength: weak, codes: []string{
		"authentication_error", "permission_error", "invalid_authentication_error", "incorrect_api_key_error", "UNAUTHENTICATED",
		"PERMISSION_DENIED", "UNAUTHORIZED", "PermissionDeniedError", "AccessDeniedException", "AccessDenied", "ExpiredTokenException",
		"UnrecognizedClientException", "InvalidSignatureException",
		"IncompleteSignature", "InvalidClientTokenId", "MissingAuthenticationToken", "NotAuthorized", "OptInRequired", "auth_error",
		"forbidden", "token_expired", "token_invalid", "invalid_token", "token_not_found_in_db", "expired_key", "key_model_access_denied",
		"access_terminated_error",
		"request_forbidden", "missing_api_key", "no_api_key", "channel:invalid_key", "invalid_client", "unauthorized_client",
		"insufficient_permissions",
	}},
	codeSet{reason: llm.ReasonFormat, strength: weak, codes: []string{
		"invalid_request_error", "INVALID_ARGUMENT", "OUT_OF_RANGE", "ValidationException", "BadRequestError", "BadRequest",
		"InvalidParameter", "InvalidParameterValue", "invalid_parameter_error", "MissingParameter", "UnprocessableEntityError",
		"string_above_max_length", "invalid_value", "unsupported_value", "unsupported_parameter", "invalid_type",
		"invalid_function_parameters", "json_validate_failed", "tool_use_failed",
		"invalid_function_call", "invalid_request_message_order", "invalid_message", "invalid_request_prompt", "unknown_parameter",
		"missing_required_parameter", "invalid_image", "unsupported_api_for_model", "OperationNotSupported", "invalid_request_body",
		"SerializationException", "invalid_prompt",
	}},
)

// periods are parts of folded codes that speak of a window, and of what is counted in it.
var (
	periods = [...]string{"hourly", "daily", "weekly", "monthly"}
	counted = [...]string{"limit", "quota", "request", "usage", "token", "cap", "count"}
)

// periodCode judges a code that no table has but that names a window, "MONTHLY_REQUEST_COUNT".
func periodCode(code []byte) (codeRule, bool) {
	var buf [48]byte
	folded := fold(&buf, code)
	has := func(parts []string) bool {
		for _, p := range parts {
			if bytes.Contains(folded, []byte(p)) {
				return true
			}
		}
		return false
	}
	if len(code) > len(buf) || !has(periods[:]) || !has(counted[:]) {
		return codeRule{}, false
	}
	return codeRule{verdict{reason: llm.ReasonRateLimit, scope: llm.ScopeProfile, rule: "code/period"}, decisive}, true
}

// lookUp finds the rule of a code: as a whole, then the part before a colon, a hash's tail, a dot.
func (t codeTable) lookUp(code []byte) (codeRule, bool) {
	var buf [48]byte
	for i, c := range code {
		if c == '#' { // com.amazon.coral.service#ThrottlingException
			code = code[i+1:]
			break
		}
	}
	if rule, ok := t[string(fold(&buf, code))]; ok {
		return rule, true
	}
	for i := len(code) - 1; i > 0; i-- {
		if c := code[i]; c == ':' || c == '.' {
			if rule, ok := t[string(fold(&buf, code[:i]))]; ok {
				return rule, true
			}
		}
	}
	return codeRule{}, false
}
