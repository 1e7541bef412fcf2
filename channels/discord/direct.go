package discord

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/bwmarrin/discordgo"
)

// OpenDirect returns the private channel with a user, which Discord opens if there is none yet. Its
// errors are those of Send. Nothing is said by it.
func (b *Bot) OpenDirect(ctx context.Context, user string) (conversation string, err error) {
	data, err := b.api.call(ctx, request{
		what: "open direct messages", method: http.MethodPost, url: discordgo.EndpointUserChannels("@me"), route: "open direct messages",
		body: map[string]string{"recipient_id": user},
	})
	if err != nil {
		return "", failed(err, true)
	}
	var c struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(data, &c) != nil || c.ID == "" {
		return "", failed(&callError{what: "open direct messages", status: http.StatusOK, garbled: true}, true)
	}
	return c.ID, nil
}
