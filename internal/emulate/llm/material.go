package llm

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
)

// maxImage is how large a picture may be in a request, encoded.
const maxImage = 5 << 20

// looksLike reports whether a picture begins as files of its kind do.
func looksLike(mediaType string, data []byte) bool {
	switch mediaType {
	case "image/png":
		return bytes.HasPrefix(data, []byte("\x89PNG"))
	case "image/jpeg":
		return bytes.HasPrefix(data, []byte("\xFF\xD8"))
	case "image/gif":
		return bytes.HasPrefix(data, []byte("GIF8"))
	case "image/webp":
		return len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP"
	}
	return false
}

// isImageURL reports whether OpenAI's APIs take s as a picture: an address, or the picture itself.
func isImageURL(s string) bool {
	rest, ok := strings.CutPrefix(s, "data:")
	if !ok {
		return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")
	}
	mediaType, encoded, ok := strings.Cut(rest, ";base64,")
	data, err := base64.StdEncoding.DecodeString(encoded)
	return ok && err == nil && looksLike(mediaType, data)
}

// isToolName reports whether s may name a tool.
func isToolName(s string, longest int) bool { return anthropicID(s) && len(s) <= longest }

// twice returns the first value that stands in the list more than once; "" = none.
func twice(list []string) string {
	for i, s := range list {
		if slices.Contains(list[:i], s) {
			return s
		}
	}
	return ""
}
