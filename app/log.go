package app

import (
	"log/slog"
	"os"

	"golang.org/x/term"

	"understudy/config"
	"understudy/internal/redact"
	"understudy/internal/secret"
	"understudy/provider/discover"
)

// logger builds the log that the configuration asks for. Secrets are hidden whatever it says.
func (a *App) logger(cfg *config.Config) *slog.Logger {
	hide := redact.New()
	hide.Add(cfg.Secrets()...)
	for _, k := range discover.Keys() {
		hide.Add(secret.New(a.opts.getenv(k.Env)))
	}
	a.hide = hide
	if a.opts.Log != nil {
		return slog.New(hide.Handler(a.opts.Log.Handler()))
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Logging.Level)); err != nil {
		level = slog.LevelInfo
	}
	set := &slog.HandlerOptions{Level: level}
	if cfg.Logging.Format == "text" || (cfg.Logging.Format != "json" && term.IsTerminal(int(os.Stderr.Fd()))) {
		return slog.New(hide.Handler(slog.NewTextHandler(os.Stderr, set)))
	}
	return slog.New(hide.Handler(slog.NewJSONHandler(os.Stderr, set)))
}
