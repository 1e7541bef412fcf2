package arch

// plan is the house: for every room the other rooms of this module it may import. Rooms inside a
// room (children) are listed themselves or, with "/*", share one entry. internal/secret and
// internal/clock are words that every room but the pure ones may use.
//
// The rooms from reply to tts speak to people through an outbox interface of their own, so neither
// channels nor delivery stands in their lists.
var plan = map[string][]string{
	// entrance
	"cmd/bot": {"app", "config"},
	"app":     {"*"},
	"config": {
		"llm", "chat", "failover", "failover/policy", "provider", "gateway", "session", "inbound", "delivery", "notices", "reply",
		"heartbeat", "cron", "budget", "mcp", "tts", "stt", "commands", "authstore", "authstore/signin", "channels", "channels/slack", "channels/discord", "channels/telegram", "channels/web",
	},

	// what the bot does
	"reply":        {"chat", "llm", "failover", "failover/policy", "session", "notices"},
	"commands":     {"chat", "llm", "session", "failover/policy"},
	"notices":      {"chat", "llm"},
	"heartbeat":    {"chat", "llm", "session", "cron", "failover/policy", "internal/sqlite"},
	"budget":       {"llm", "session", "internal/sqlite"},
	"cron":         {"chat", "llm", "session", "cron/schedule", "failover/policy", "internal/sqlite"},
	"cron/webhook": {},
	"gateway":      {"chat", "llm", "session", "failover/policy"},
	"mcp":          {},
	"tts":          {"chat", "internal/sqlite"},
	"tts/*":        {"chat", "tts"},
	"stt":          {"chat", "tts/command", "tts/openai"},

	// what it is done with
	"failover":    {"llm", "failover/policy"},
	"inbound":     {"chat", "channels", "internal/sqlite"},
	"delivery":    {"chat", "channels", "delivery/markup", "internal/sqlite"},
	"session":     {"chat", "llm", "internal/sqlite"},
	"authstore":   {"llm", "failover/policy", "internal/sqlite"},
	"authstore/*": {"llm", "failover/policy", "authstore", "internal/sqlite"},
	"channels":    {"chat"},
	"channels/*":  {"chat", "channels"},
	"provider":    {"llm", "failover/classify"},
	"provider/*":  {"llm", "provider", "failover/classify"},

	// pure
	"failover/policy":   {"llm"},
	"failover/classify": {"llm"},
	"delivery/markup":   {},
	"cron/schedule":     {},

	// words
	"chat":              {},
	"llm":               {},
	"internal/secret":   {},
	"internal/clock":    {},
	"internal/redact":   {},
	"internal/guard":    {},
	"internal/wildcard": {},
	"internal/sqlite":   {},
	"internal/arch":     {},

	// drivers
	"internal/emulate":   {"*"},
	"internal/emulate/*": {"*"},
	"internal/drill":     {"*"},
	"internal/drill/*":   {"*"},
	"bench":              {"*"},
	"bench/*":            {"*"},
}

// words are leaves that every room which is not pure may import; llm uses secret too.
var words = []string{"internal/secret", "internal/clock", "internal/guard", "internal/wildcard"}

// pure rooms compute: what they need comes in as an argument.
var pure = []string{"failover/policy", "failover/classify", "delivery/markup", "cron/schedule"}

// parents define a contract that their children fulfil.
var parents = []string{"channels", "provider", "tts"}

// storing rooms bring migrations and queries of their own; app opens the database for them.
var storing = []string{"internal/sqlite", "authstore", "session", "inbound", "delivery", "cron", "heartbeat", "budget", "app"}

// sdks names the rooms in which a library may be used. A library that is not here may be used
// anywhere.
var sdks = map[string][]string{
	"github.com/slack-go/slack":                       {"channels/slack"},
	"github.com/bwmarrin/discordgo":                   {"channels/discord"},
	"github.com/go-telegram-bot-api/telegram-bot-api": {"channels/telegram"},
	"github.com/anthropics/anthropic-sdk-go":          {"provider/anthropic"},
	"github.com/aws/aws-sdk-go-v2":                    {"provider/anthropic"},
	"github.com/aws/smithy-go":                        {"provider/anthropic"},
	"github.com/openai/openai-go":                     {"provider/openai"},
	"modernc.org/sqlite":                              {"internal/sqlite"},
	"database/sql":                                    storing,
	"github.com/pressly/goose":                        {"internal/sqlite"},
	"github.com/robfig/cron":                          {"cron", "cron/schedule"},
	"github.com/prometheus/client_golang":             {"gateway"},
	"charm.land/catwalk":                              {"provider", "provider/discover"},
	"github.com/goccy/go-yaml":                        {"config", "app"},
	"github.com/alecthomas/kong":                      {"cmd/bot", "app"},
	"github.com/modelcontextprotocol/go-sdk":          {"mcp"},
}

// testOnly are libraries that never become part of the product.
var testOnly = []string{
	"testing", "net/http/httptest", "pgregory.net/rapid", "go.uber.org/goleak", "github.com/google/go-cmp", "github.com/rogpeppe/go-internal",
}
