package provider

// Quirks are the ways in which a host differs from the API it is compatible with. The zero value
// is a plain compatible host.
type Quirks struct {
	// NoKey: the host asks for no credential.
	NoKey bool
	// CompletionTokens: the limit of the answer is called max_completion_tokens, not max_tokens.
	CompletionTokens bool
	// NoStreamOptions: the host rejects stream_options, or reports usage without being asked.
	NoStreamOptions bool
	// Effort says how a thinking level is sent.
	Effort Effort
	// CacheKey: prompt_cache_key routes to the right cache.
	CacheKey bool
	// ReasoningEcho: calls must come back with the reasoning_content that led to them.
	ReasoningEcho bool
	// ThoughtSignatures: calls carry extra_content that must come back unchanged (Gemini).
	ThoughtSignatures bool
	// Alternate: user and assistant must take turns, and no user speaks right after a tool.
	Alternate bool
	// NoTools: the host takes no tools, not even in a transcript.
	NoTools bool
	// ToolIDs is the alphabet of tool-call ids.
	ToolIDs IDRule
	// SubscriptionURL is the base URL for OAuth credentials, where it is another one.
	SubscriptionURL string
	// KeyHeader carries an API key instead of "Authorization: Bearer", where the host wants that.
	KeyHeader string
}

// Effort is a way to send a thinking level.
type Effort uint8

// The ways.
const (
	EffortNone   Effort = iota // not at all
	EffortPlain                // reasoning_effort, for models known to think
	EffortObject               // reasoning: {effort: …}, for models known to think
)

// IDRule is what a host accepts as the id of a tool call. The zero value accepts up to 40 letters,
// digits, '_' and '-', which every host does that has no rule of its own.
type IDRule struct {
	Length int  // exact length; 0 = up to 40
	Alnum  bool // letters and digits only
}

// StrictIDs is the narrowest rule known; ids that obey it are accepted everywhere.
func StrictIDs() IDRule { return IDRule{Length: 9, Alnum: true} }

// Accepts reports whether id may be sent as it is.
func (r IDRule) Accepts(id string) bool {
	if id == "" || len(id) > maxIDLength || (r.Length > 0 && len(id) != r.Length) {
		return false
	}
	for i := range len(id) {
		c := id[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case (c == '_' || c == '-') && !r.Alnum:
		default:
			return false
		}
	}
	return true
}

const maxIDLength = 40
