package reply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"understudy/chat"
	"understudy/llm"
)

// Bounds of what comes with a message (spec/chat.md §2.11, §8 S10).
const (
	maxInlineBytes    = 256 << 10
	maxVoiceBytes     = 25 << 20
	maxTranscript     = 16 << 10 // bytes of text
	maxAttachments    = 8
	transcribeTimeout = 2 * time.Minute
)

// attachment turns a file into a part of the message, or into words that stand for it.
func (t *turn) attachment(ctx context.Context, in *chat.Inbound, a chat.Attachment) (*llm.Part, string) {
	name := harmless(oneLine(a.Name))
	if name == "" {
		name = "file"
	}
	kind, _, _ := strings.Cut(strings.ToLower(a.MediaType), ";")
	switch {
	case a.Voice || strings.HasPrefix(kind, "audio/"):
		return nil, t.voice(ctx, in, a, name)
	case isImage(kind):
		return t.image(ctx, in, a, name)
	case isText(kind, a.Name):
		return nil, t.textFile(ctx, in, a, name)
	}
	return nil, notShown(name, a)
}

func notShown(name string, a chat.Attachment) string {
	if kind := oneLine(a.MediaType); kind != "" {
		return fmt.Sprintf("[file: %s, %s, not shown]", name, kind)
	}
	return fmt.Sprintf("[file: %s, not shown]", name)
}

// ErrFileTooLarge tells that a file is larger than its kind may be.
var ErrFileTooLarge = errors.New("the file is too large")

// load returns the bytes of a file, at most so many. done is called, always and once, when they are not
// needed any more: other turns may wait for the room.
func (t *turn) load(ctx context.Context, in *chat.Inbound, a chat.Attachment, most int64) (data []byte, done func(), err error) {
	done = func() {}
	switch {
	case a.Size > most, int64(len(a.Data)) > most:
		return nil, done, ErrFileTooLarge
	case a.Data != nil:
		return a.Data, done, nil
	case t.r.deps.Fetch == nil:
		return nil, done, errors.New("nobody fetches files")
	}
	size := most // the platform does not say how large it is
	if a.Size > 0 {
		size = a.Size
	}
	give, err := t.r.shelf.take(ctx, size)
	if err != nil {
		return nil, done, err
	}
	if data, err = t.r.deps.Fetch(ctx, in, a, most); err != nil {
		t.log.WarnContext(ctx, "attachment_not_loaded", "error", err.Error())
	}
	return data, give, err
}

// image makes a picture fit for models. Those that take none get its label.
func (t *turn) image(ctx context.Context, in *chat.Inbound, a chat.Attachment, name string) (*llm.Part, string) {
	data, done, err := t.load(ctx, in, a, maxImageBytes)
	defer done()
	switch {
	case errors.Is(err, ErrFileTooLarge):
		return nil, fmt.Sprintf("[image: %s, %s]", name, errTooLarge)
	case err != nil:
		return nil, fmt.Sprintf("[image: %s, could not be loaded]", name)
	case len(data) == 0:
		return nil, fmt.Sprintf("[image: %s, empty]", name)
	}
	side := t.cfg.MaxImageSide
	if side <= 0 {
		side = defaultImageSide
	}
	p, err := t.r.pictures.fit(ctx, data, side)
	label := name
	if p.width > 0 {
		label = fmt.Sprintf("%s, %dx%d", name, p.width, p.height)
	}
	switch {
	case errors.Is(err, errTooLarge):
		return nil, fmt.Sprintf("[image: %s, %s]", label, errTooLarge)
	case err != nil:
		return nil, fmt.Sprintf("[image: %s, could not be read]", label)
	}
	return &llm.Part{Image: &llm.Image{MediaType: p.mediaType, Data: p.data, Name: label}}, ""
}

func (t *turn) textFile(ctx context.Context, in *chat.Inbound, a chat.Attachment, name string) string {
	data, done, err := t.load(ctx, in, a, maxInlineBytes)
	defer done()
	switch {
	case errors.Is(err, ErrFileTooLarge), err == nil && bytes.IndexByte(data, 0) >= 0:
		return notShown(name, a)
	case err != nil:
		return fmt.Sprintf("[file: %s, could not be loaded]", name)
	}
	return untrusted("File "+name, string(data))
}

// voice writes down a voice note. A machine wrote the words, so they are framed; but they are what the
// sender said, so they are not called material (spec/chat.md §4.6).
func (t *turn) voice(ctx context.Context, in *chat.Inbound, a chat.Attachment, name string) string {
	if t.r.deps.Transcribe == nil {
		return fmt.Sprintf("[voice message: %s, not transcribed]", name)
	}
	data, done, err := t.load(ctx, in, a, maxVoiceBytes)
	defer done()
	switch {
	case errors.Is(err, ErrFileTooLarge):
		return fmt.Sprintf("[voice message: %s, too long to be transcribed]", name)
	case err != nil:
		return fmt.Sprintf("[voice message: %s, could not be loaded]", name)
	}
	a.Data, a.Size = data, int64(len(data))
	call, cancel := t.r.deps.Clock.WithTimeout(ctx, transcribeTimeout, errors.New("transcribing took too long"))
	defer cancel()
	text, err := t.r.deps.Transcribe(call, a)
	if err != nil {
		t.log.WarnContext(ctx, "voice_not_transcribed", "error", err.Error())
		return fmt.Sprintf("[voice message: %s, could not be transcribed]", name)
	}
	if len(text) > maxTranscript {
		text = cutText(text, maxTranscript) + "\n[cut]"
	}
	if strings.TrimSpace(text) == "" {
		return fmt.Sprintf("[voice message: %s, nothing was understood]", name)
	}
	return framed("Voice message. A machine wrote down what the sender said; it may have misheard.", text)
}

// isImage reports whether models take pictures of this type.
func isImage(mediaType string) bool {
	switch mediaType {
	case "image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp":
		return true
	}
	return false
}

// isText reports whether a file can be read as it is.
func isText(mediaType, name string) bool {
	switch mediaType {
	case "application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml", "application/javascript",
		"application/x-javascript", "application/x-sh", "application/sql", "application/csv", "application/x-ndjson":
		return true
	case "", "application/octet-stream": // the platform does not know
		switch strings.ToLower(path.Ext(name)) {
		case ".txt", ".md", ".csv", ".tsv", ".log", ".json", ".yaml", ".yml", ".toml", ".xml", ".ini", ".conf", ".diff", ".patch",
			".go", ".py", ".js", ".ts", ".rs", ".c", ".h", ".cpp", ".java", ".rb", ".sh", ".sql", ".html", ".css":
			return true
		}
		return false
	}
	return strings.HasPrefix(mediaType, "text/") || strings.HasSuffix(mediaType, "+json") || strings.HasSuffix(mediaType, "+xml") && mediaType != "image/svg+xml"
}

// cutText cuts a text to so many bytes, at a character's edge.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for range utf8.UTFMax {
		if most == 0 || utf8.RuneStart(s[most]) {
			break
		}
		most--
	}
	return s[:most]
}
