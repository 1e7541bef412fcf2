package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"understudy/gateway"
	"understudy/internal/secret"
)

// cookieKeyFile is the key of the web page's cookies, below the state directory. Whoever deletes it
// signs every browser out at the next start.
const cookieKeyFile = "web.key"

// cookieKey reads the key, or makes one. Where neither is possible the result is empty: then
// browsers must sign in again after a restart, and nothing else is lost.
func (a *App) cookieKey() secret.String {
	path := filepath.Join(a.state, cookieKeyFile)
	raw, err := os.ReadFile(path)
	if err == nil && len(raw) >= gateway.MinToken {
		return secret.New(string(raw))
	}
	key := gateway.NewToken()
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.WriteFile(path, []byte(key.Reveal()), 0o600)
	}
	if err != nil {
		a.log.Warn("cookie_key_unavailable", "error", err.Error())
		return secret.String{}
	}
	return key
}
