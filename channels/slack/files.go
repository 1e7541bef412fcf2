package slack

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"strings"

	"github.com/slack-go/slack"

	"understudy/channels"
	"understudy/chat"
)

// ErrNoAccess is returned by Fetch for a file that the bot may not read.
var ErrNoAccess = errors.New("the bot may not read this file: it needs files:read and to be in the channel")

// attachments lists the files of a message. Nothing is downloaded: a Ref is the file's address, or its
// id where the address has to be asked for.
func attachments(files []file) []chat.Attachment {
	var out []chat.Attachment
	for _, f := range files {
		if f.ID == "" || f.Mode == "tombstone" || f.Mode == "hidden_by_limit" || len(out) == mostFiles {
			continue
		}
		a := chat.Attachment{Name: f.Name, MediaType: f.mediaType(), Size: max(f.Size, 0), Ref: f.ID, Voice: f.voice()}
		if a.Name == "" {
			a.Name = f.Title
		}
		switch {
		case f.Access == "check_file_info":
		case f.Download != "":
			a.Ref = f.Download
		case f.Private != "":
			a.Ref = f.Private
		}
		out = append(out, a)
	}
	return out
}

// voice reports whether a file is something that somebody spoke. Slack's clips are marked as that; they come
// as audio, as video without a picture, or without any type.
func (f file) voice() bool {
	kind := strings.ToLower(f.MIME)
	switch {
	case f.Subtype == audioClip, f.Mode == audioClip, strings.HasPrefix(kind, "audio/"):
		return true
	case f.Subtype != "":
		return false // a clip with a picture
	}
	return strings.HasPrefix(f.Name, "audio_message") && (kind == "" || strings.HasPrefix(kind, "video/"))
}

// audioClip is what Slack calls something that was spoken into it.
const audioClip = "slack_audio"

// mediaType is the type of a file. That of a clip is its sound's, whatever Slack calls it.
func (f file) mediaType() string {
	switch kind := strings.ToLower(f.MIME); {
	case f.voice() && kind == "":
		return "audio/mp4"
	case f.voice() && strings.HasPrefix(kind, "video/"):
		return "audio/" + strings.TrimPrefix(kind, "video/")
	}
	return f.MIME
}

// Fetch implements channels.Fetcher. The limit is lowered to mediaMaxMb; a larger file is
// channels.ErrTooLarge. The token goes to Slack's own hosts only, and a sign-in page is no file.
func (b *Bot) Fetch(ctx context.Context, a chat.Attachment, limit int64) ([]byte, error) {
	limit = min(limit, int64(b.cfg.MediaMaxMB)<<20)
	if a.Size > limit {
		return nil, fmt.Errorf("slack file: %w", channels.ErrTooLarge)
	}
	address, mediaType := a.Ref, a.MediaType
	if !strings.Contains(address, "://") {
		var info *slack.File
		err := b.api.call(ctx, "files.info", func(ctx context.Context, c *slack.Client) (err error) {
			info, _, _, err = c.GetFileInfoContext(ctx, a.Ref, 0, 0)
			return err
		})
		if err != nil {
			return nil, err
		}
		if int64(info.Size) > limit {
			return nil, fmt.Errorf("slack file: %w", channels.ErrTooLarge)
		}
		mediaType = info.Mimetype
		if address = info.URLPrivateDownload; address == "" {
			address = info.URLPrivate
		}
	}
	return b.api.download(ctx, address, mediaType, limit)
}

// download gets a file of at most limit bytes.
func (a *api) download(ctx context.Context, address, mediaType string, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, uploadLimit)
	defer cancel()
	d := &doer{client: a.files, stream: true}
	into := &bounded{left: limit}
	if err := a.library(d).GetFileContext(ctx, address, into); err != nil {
		switch {
		case errors.Is(err, channels.ErrTooLarge):
			return nil, fmt.Errorf("slack file: %w", channels.ErrTooLarge)
		case strings.Contains(err.Error(), "redirected to the sign-in page"):
			return nil, fmt.Errorf("slack file: %w", ErrNoAccess)
		case strings.Contains(err.Error(), "refusing to send the token"):
			return nil, errors.New("slack file: it is not kept by Slack")
		}
		return nil, a.failure("file", d, err)
	}
	if isPage(d.header.Get("Content-Type")) && !isPage(mediaType) {
		return nil, fmt.Errorf("slack file: %w", ErrNoAccess)
	}
	return into.data, nil
}

func isPage(mediaType string) bool {
	kind, _, err := mime.ParseMediaType(mediaType)
	return err == nil && kind == "text/html"
}

// bounded takes so many bytes and no more.
type bounded struct {
	data []byte
	left int64
}

// Write implements io.Writer.
func (w *bounded) Write(p []byte) (int, error) {
	if int64(len(p)) > w.left {
		return 0, channels.ErrTooLarge
	}
	w.left -= int64(len(p))
	w.data = append(w.data, p...)
	return len(p), nil
}
