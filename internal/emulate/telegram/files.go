package telegram

import (
	"fmt"
	"net/http"
	"strings"
)

const largestDownload = 20 << 20

// file is something that can be downloaded.
type file struct {
	path string
	data []byte
}

// media is a file as part of a message.
type media struct {
	kind, id, name, mime string
	size                 int
}

func (f media) wire() any {
	base := map[string]any{"file_id": f.id, "file_unique_id": f.id, "file_size": f.size}
	switch f.kind {
	case "photo": // the API lists sizes, the largest last
		small := map[string]any{"file_id": f.id + "-small", "file_unique_id": f.id + "-small", "file_size": 10, "width": 90, "height": 90}
		base["width"], base["height"] = 800, 600
		return []any{small, base}
	case "voice", "video_note", "audio", "video":
		base["duration"] = 3
	}
	if f.name != "" {
		base["file_name"] = f.name
	}
	if f.mime != "" {
		base["mime_type"] = f.mime
	}
	return base
}

// store keeps a file for download; the lock is held.
func (s *Server) store(kind, name, mime string, data []byte) media {
	s.serial++
	id := fmt.Sprintf("file%d", s.serial)
	s.files[id] = file{path: fmt.Sprintf("%s/%s", kind, id), data: data}
	return media{kind: kind, id: id, name: name, mime: mime, size: len(data)}
}

func (s *Server) getFile(c Call) (any, *reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.files[c.Params["file_id"]]
	switch {
	case !ok:
		return nil, badRequest("invalid file_id")
	case len(f.data) > largestDownload:
		return nil, badRequest("file is too big")
	}
	return map[string]any{"file_id": c.Params["file_id"], "file_unique_id": c.Params["file_id"], "file_size": len(f.data), "file_path": f.path}, nil
}

func (s *Server) download(w http.ResponseWriter, path string) {
	s.mu.Lock()
	var data []byte
	for _, f := range s.files {
		if f.path == path {
			data = f.data
		}
	}
	s.mu.Unlock()
	if data == nil {
		write(w, refuse(http.StatusNotFound, "Not Found"))
		return
	}
	_, _ = w.Write(data) // the client may be gone
}

func (s *Server) sendFile(c Call) (any, *reply) {
	kind := strings.ToLower(strings.TrimPrefix(c.Method, "send"))
	s.mu.Lock()
	defer s.mu.Unlock()
	to, m, err := s.compose(c, "caption", longestCaption)
	if err != nil {
		return nil, err
	}
	data, ok := c.Files[kind]
	if !ok {
		return nil, badRequest("there is no %s in the request", kind)
	}
	m.Media, m.FileName, m.Data = kind, c.names[kind], data
	m.files = []media{s.store(kind, c.names[kind], "", data)}
	to.add(m)
	s.touch()
	return s.wire(to, m), nil
}
