package config

import (
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"understudy/internal/secret"
)

// Names of the environment variables that are settings of their own (spec/failover.md §2).
const (
	StateDirVar     = "OPENCLAW_STATE_DIR"
	SkipTTLVar      = "OPENCLAW_FALLBACK_SKIP_TTL_MS"
	RetryMaxWaitVar = "OPENCLAW_SDK_RETRY_MAX_WAIT_SECONDS"
	// ListenVar and TokenVar stand in for gateway.listen and gateway.token where the file does not
	// set them; container images use them (spec/chat.md §12 D13).
	ListenVar = "OPENCLAW_GATEWAY_LISTEN"
	TokenVar  = "OPENCLAW_GATEWAY_TOKEN"
)

// Env is what the environment sets.
type Env struct {
	// StateDir is where everything is kept; ~/.openclaw unless OPENCLAW_STATE_DIR names another.
	// It is "" only when there is neither that variable nor a home directory.
	StateDir string
	// SkipTTL is how long a fallback that failed to sign in is skipped; 0 = off
	// (spec/failover.md §8.6).
	SkipTTL time.Duration
	// RetryAfterCap is the longest stated wait that is sat out; negative = no cap
	// (spec/failover.md §14).
	RetryAfterCap time.Duration
	// Listen and Token are used where the file sets neither gateway.listen nor gateway.token.
	Listen string
	Token  secret.String
}

// ReadEnv reads the environment. Values that make no sense count as not set and are warned about.
func ReadEnv(env func(string) (string, bool)) (Env, []Warning) {
	e := Env{RetryAfterCap: time.Minute, StateDir: stateDir(env)}
	if v, ok := env(ListenVar); ok {
		e.Listen = strings.TrimSpace(v)
	}
	if v, ok := env(TokenVar); ok {
		e.Token = secret.New(v)
	}
	var warnings []Warning
	warn := func(name, value, used string) {
		warnings = append(warnings, Warning{Key: name, Text: quote(value) + " is not readable", Hint: used})
	}
	if v, ok := env(SkipTTLVar); ok && strings.TrimSpace(v) != "" {
		ms, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		switch {
		case err != nil || math.IsNaN(ms) || math.IsInf(ms, 0) || ms < 0:
			warn(SkipTTLVar, v, "the skip cache is off")
		case ms > 0:
			e.SkipTTL = time.Duration(min(max(ms, 1000), 600_000)) * time.Millisecond
		}
	}
	if v, ok := env(RetryMaxWaitVar); ok && strings.TrimSpace(v) != "" {
		switch word := strings.ToLower(strings.TrimSpace(v)); word {
		case "0", "false", "off", "none", "disabled":
			e.RetryAfterCap = -1
		default:
			sec, err := strconv.ParseFloat(word, 64)
			switch {
			case err != nil || math.IsNaN(sec) || math.IsInf(sec, 0) || sec < 0:
				warn(RetryMaxWaitVar, v, "60 seconds are used")
			case sec == 0:
				e.RetryAfterCap = -1
			default:
				e.RetryAfterCap = time.Duration(min(sec, longestSpan.Seconds()) * float64(time.Second))
			}
		}
	}
	return e, warnings
}

func stateDir(env func(string) (string, bool)) string {
	home, _ := env("HOME")
	dir, _ := env(StateDirVar)
	dir = strings.TrimSpace(dir)
	switch {
	case dir == "" && home == "":
		return ""
	case dir == "":
		dir = filepath.Join(home, ".openclaw")
	case dir == "~", strings.HasPrefix(dir, "~/"):
		dir = filepath.Join(home, dir[1:])
	}
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}
