package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"understudy/channels"
	"understudy/chat"
)

// attachments lists the files of a message. Nothing is downloaded: the Ref is Telegram's file id.
func attachments(m *message) []chat.Attachment {
	var out []chat.Attachment
	add := func(f *fileInfo, name, mediaType string, voice bool) {
		if f == nil || f.FileID == "" {
			return
		}
		a := chat.Attachment{Name: f.FileName, MediaType: f.MimeType, Size: max(f.FileSize, 0), Ref: f.FileID, Voice: voice}
		if a.Name == "" {
			a.Name = name
		}
		if a.MediaType == "" {
			a.MediaType = mediaType
		}
		out = append(out, a)
	}
	if n := len(m.Photo); n > 0 {
		largest := m.Photo[0]
		for _, p := range m.Photo {
			if p.Width*p.Height > largest.Width*largest.Height {
				largest = p
			}
		}
		add(&fileInfo{FileID: largest.FileID, FileSize: int64(largest.FileSize)}, "photo.jpg", "image/jpeg", false)
	}
	add(m.Voice, "voice.ogg", "audio/ogg", true)
	add(m.VideoNote, "video.mp4", "video/mp4", true)
	add(m.Audio, "audio.mp3", "audio/mpeg", false)
	add(m.Video, "video.mp4", "video/mp4", false)
	if m.Animation != nil { // it is also given as a document
		add(m.Animation, "animation.mp4", "video/mp4", false)
	} else {
		add(m.Document, "file", "application/octet-stream", false)
	}
	if s := m.Sticker; s != nil && !s.Animated && !s.Video {
		add(&s.fileInfo, "sticker.webp", "image/webp", false)
	}
	return out
}

// Fetch implements channels.Fetcher. The limit is lowered to mediaMaxMb; a larger file is
// channels.ErrTooLarge.
func (b *Bot) Fetch(ctx context.Context, a chat.Attachment, limit int64) ([]byte, error) {
	limit = min(limit, int64(b.cfg.MediaMaxMB)<<20)
	if a.Size > limit {
		return nil, fmt.Errorf("telegram file: %w", channels.ErrTooLarge)
	}
	result, err := b.api.call(ctx, b.api.calls, "getFile", tgbotapi.Params{"file_id": a.Ref})
	if err != nil {
		return nil, err
	}
	var f struct {
		Path string `json:"file_path"`
	}
	if err := json.Unmarshal(result, &f); err != nil || f.Path == "" {
		return nil, errors.New("telegram file: no path in the answer")
	}
	return b.api.get(ctx, f.Path, limit)
}
