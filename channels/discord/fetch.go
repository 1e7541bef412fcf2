package discord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"understudy/channels"
	"understudy/chat"
)

var (
	errNoEmoji = errors.New("not an emoji")
	errHost    = errors.New("discord file: not on Discord's file hosts")
)

// Fetch implements channels.Fetcher. The limit is lowered to mediaMaxMb; a larger file is channels.ErrTooLarge.
// Files come from Discord's own hosts (or the configured server) and from nowhere else: an address in
// a message is a stranger's word.
func (b *Bot) Fetch(ctx context.Context, a chat.Attachment, limit int64) ([]byte, error) {
	limit = min(limit, int64(b.cfg.MediaMaxMB)<<20)
	if a.Size > limit {
		return nil, fmt.Errorf("discord file: %w", channels.ErrTooLarge)
	}
	u, err := url.Parse(a.Ref)
	if err != nil || !b.hosts(u) {
		return nil, errHost
	}
	ctx, cancel := context.WithTimeout(ctx, uploadLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, errHost
	}
	client := &http.Client{Transport: b.api.transport, CheckRedirect: stay}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("discord file: %w", b.api.harmless(err))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("discord file: status %d", resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("discord file: %w", b.api.harmless(err))
	case int64(len(data)) > limit:
		return nil, fmt.Errorf("discord file: %w", channels.ErrTooLarge)
	}
	return data, nil
}

// hosts reports whether files may come from an address.
func (b *Bot) hosts(u *url.URL) bool {
	if u.User != nil {
		return false
	}
	if u.Scheme == "https" && slices.Contains([]string{"cdn.discordapp.com", "media.discordapp.net"}, u.Host) {
		return true
	}
	return u.Scheme == b.api.root.Scheme && u.Host == b.api.root.Host
}
