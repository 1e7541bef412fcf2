package app

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"os"
	"time"

	"golang.org/x/term"

	"understudy/config"
	"understudy/internal/redact"
	"understudy/internal/secret"
	"understudy/provider"
	"understudy/provider/discover"
)

// logger builds the log that the configuration asks for. Secrets are hidden whatever it says.
func (a *App) logger(cfg *config.Config) *slog.Logger {
	hide := redact.New()
	hide.Add(cfg.Secrets()...)
	for _, k := range discover.Keys() {
		for _, key := range append(provider.SplitKeys(a.opts.getenv(provider.ListVar(k.Env))), a.opts.getenv(k.Env)) {
			hide.Add(secret.New(key))
		}
	}
	a.hide = hide
	if a.opts.Log != nil {
		return slog.New(hide.Handler(a.opts.Log.Handler()))
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Logging.Level)); err != nil {
		level = slog.LevelInfo
	}
	set := &slog.HandlerOptions{Level: level, ReplaceAttr: logged(level > slog.LevelDebug)}
	if cfg.Logging.Format == "text" || (cfg.Logging.Format != "json" && term.IsTerminal(int(os.Stdout.Fd()))) {
		return slog.New(hide.Handler(slog.NewTextHandler(os.Stdout, set)))
	}
	return slog.New(hide.Handler(slog.NewJSONHandler(os.Stdout, set)))
}

// logged says how attributes are written, the same for all rooms: what is not known is left out, the default
// account has the name that people know, and spans of time are seconds. hashed tells that session keys are
// not to be read.
func logged(hashed bool) func([]string, slog.Attr) slog.Attr {
	return func(groups []string, a slog.Attr) slog.Attr {
		switch kind := a.Value.Kind(); {
		case kind == slog.KindDuration:
			return slog.Float64(a.Key, a.Value.Duration().Round(time.Millisecond).Seconds())
		case kind != slog.KindString:
		case a.Key == "account":
			return slog.String(a.Key, accountID(a.Value.String()))
		case (a.Key == "session" || a.Key == "turn") && a.Value.String() == "":
			return slog.Attr{}
		case hashed:
			return hashSession(groups, a)
		}
		return a
	}
}

// hashSession replaces session keys, which hold people's ids, by a short hash: records of one
// conversation can still be put together (spec/chat.md §7.5).
func hashSession(_ []string, a slog.Attr) slog.Attr {
	if a.Key != "session" || a.Value.Kind() != slog.KindString {
		return a
	}
	sum := sha256.Sum256([]byte(a.Value.String()))
	return slog.String(a.Key, hex.EncodeToString(sum[:6]))
}
