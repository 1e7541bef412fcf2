package drill

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"understudy/app"
	"understudy/chat"
)

// observe looks at the bot as its operator does, and keeps what there was to see.
func (w *World) observe() {
	ctx := context.Background()
	for _, where := range []chat.Address{{}, {Channel: "telegram", Conversation: fmt.Sprint(people["alice"]), Kind: chat.Direct}} {
		st, err := w.proc.bot.Status(ctx, where)
		if err != nil {
			fmt.Fprintln(&w.shown, err)
		}
		_ = json.NewEncoder(&w.shown).Encode(st)
	}
	if !w.opts.Network {
		return
	}
	o, std := w.options(ctx), app.Std{Out: &w.shown, Err: &w.shown}
	app.RemoteHealth(ctx, o, std)
	app.RemoteStatus(ctx, o, std, false)
	app.RemoteStatus(ctx, o, std, true)
	app.AuthStatus(ctx, o, std, app.StatusOptions{})
	app.AuthStatus(ctx, o, std, app.StatusOptions{JSON: true})
	app.ConfigShow(o, std)
	for _, path := range []string{"/", "/status", "/metrics", "/healthz", "/readyz", "/api/sessions", "/api/commands"} {
		if err := w.fetch(ctx, path); err != nil {
			w.t.Errorf("GET %s: %v", path, err)
		}
	}
}

// fetch reads a page as the owner.
func (w *World) fetch(ctx context.Context, path string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.proc.bot.URL()+path, http.NoBody)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+gatewayToken)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && path != "/readyz" {
		return fmt.Errorf("%s", resp.Status)
	}
	_, err = io.Copy(&w.shown, resp.Body)
	return err
}
