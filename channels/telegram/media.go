package telegram

import (
	"bytes"
	"image"
	"image/jpeg"
	"image/png"
	"path"
	"slices"
	"strings"

	"understudy/chat"
)

// The ways to show a file; each is the name of its parameter, and of its method behind "send".
const (
	kindVoice    = "voice"
	kindAudio    = "audio"
	kindPhoto    = "photo"
	kindVideo    = "video"
	kindDocument = "document"
)

// Telegram refuses photos beyond these measures.
const (
	longestSides = 10_000 // width and height together, in pixels
	mostStretch  = 20     // of the longer side to the shorter one
)

// voiceTypes is the sound that Telegram plays as a voice note: Opus in Ogg, MP3 and M4A.
var voiceTypes = []string{"audio/ogg", "audio/opus", "audio/mpeg", "audio/mp3", "audio/mp4", "audio/m4a", "audio/x-m4a"}

// fileKind chooses the way a file is shown. What Telegram would refuse as that becomes a document.
func fileKind(a chat.Attachment) string {
	media, _, _ := strings.Cut(a.MediaType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	switch media {
	case "image/jpeg", "image/png", "image/webp":
		if len(a.Data) <= largestPhoto && fitsPhoto(media, a.Data) {
			return kindPhoto
		}
		return kindDocument
	case "video/mp4":
		return kindVideo
	}
	switch {
	case !strings.HasPrefix(media, "audio/"):
		return kindDocument
	case a.Voice && slices.Contains(voiceTypes, media):
		return kindVoice
	default:
		return kindAudio
	}
}

// fitsPhoto looks at the measures of a picture. One that cannot be read here is left to Telegram.
func fitsPhoto(media string, data []byte) bool {
	var size image.Config
	var err error
	switch media {
	case "image/jpeg":
		size, err = jpeg.DecodeConfig(bytes.NewReader(data))
	case "image/png":
		size, err = png.DecodeConfig(bytes.NewReader(data))
	default:
		return true
	}
	long, short := max(size.Width, size.Height), min(size.Width, size.Height)
	return err != nil || long+short <= longestSides && long <= short*mostStretch
}

// fileName is the last element of the given name, in case somebody made a path of it.
func fileName(a chat.Attachment, kind string) string {
	name := path.Base(strings.ReplaceAll(a.Name, `\`, "/"))
	if name == "." || name == "/" || name == ".." {
		return kind
	}
	return name
}
