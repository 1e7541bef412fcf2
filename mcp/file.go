package mcp

import (
	"path"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// File is something beside its words that a tool made for people: a picture, a sound, the bytes of a
// resource. Name and MediaType are the server's, made harmless.
type File struct {
	Name, MediaType string
	Data            []byte
}

// files are what people may have of an answer. What is marked as meant for models alone is left out.
func files(r *sdk.CallToolResult) (list []File) {
	for _, c := range r.Content {
		switch c := c.(type) {
		case *sdk.ImageContent:
			list = addFile(list, c.Annotations, "picture", c.MIMEType, c.Data)
		case *sdk.AudioContent:
			list = addFile(list, c.Annotations, "sound", c.MIMEType, c.Data)
		case *sdk.EmbeddedResource:
			if c.Resource != nil && c.Resource.Text == "" {
				list = addFile(list, c.Annotations, path.Base(c.Resource.URI), c.Resource.MIMEType, c.Resource.Blob)
			}
		}
	}
	return list
}

func addFile(list []File, notes *sdk.Annotations, name, mediaType string, data []byte) []File {
	if len(data) == 0 || notes != nil && len(notes.Audience) > 0 && !slices.Contains(notes.Audience, "user") {
		return list
	}
	mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	if !mediaShape.MatchString(mediaType) {
		mediaType = "application/octet-stream"
	}
	name = strings.Trim(foreignName.ReplaceAllString(name, "_"), "._")
	if len(name) > longestName {
		name = name[len(name)-longestName:]
	}
	if name == "" {
		name = "file"
	}
	if path.Ext(name) == "" {
		name += extensions[mediaType]
	}
	return append(list, File{Name: name, MediaType: mediaType, Data: data})
}

var (
	mediaShape  = regexp.MustCompile(`^[a-z]{1,20}/[a-z0-9][a-z0-9.+-]{0,60}$`)
	foreignName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
)

// extensions end the names of what has none.
var extensions = map[string]string{
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp",
	"audio/mpeg": ".mp3", "audio/ogg": ".ogg", "audio/wav": ".wav", "application/pdf": ".pdf",
}
