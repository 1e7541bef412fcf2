package llm

import (
	"time"

	"understudy/internal/secret"
)

// CredentialKind is how a credential authenticates (spec/failover.md §5.1).
type CredentialKind string

// The kinds of credentials. KindNone is for providers that ask for none, such as a local Ollama.
const (
	KindAPIKey CredentialKind = "api_key"
	KindOAuth  CredentialKind = "oauth"
	KindToken  CredentialKind = "token"
	KindNone   CredentialKind = "none"
)

// Credential is what one attempt authenticates with. It is handed to a Client for one request and
// must not be kept by it.
type Credential struct {
	Profile ProfileID
	Kind    CredentialKind
	Secret  secret.String // the key, the access token or the bearer token
	// Expires is when Secret stops working; zero = unknown or never.
	Expires time.Time

	// What some sign-in backends want beside the token.
	AccountID     string
	ProjectID     string
	EnterpriseURL string
}
