package slack

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// File is a file that a person shares.
type File struct {
	Name, MIME, Subtype string
	Data                []byte
	// NoURL leaves out its address, as for files of other workspaces: files.info tells it.
	NoURL bool
	// Unreadable sends whoever downloads it to the sign-in page.
	Unreadable bool
	// Elsewhere is an address on another host; "" = here.
	Elsewhere string
}

type file struct {
	File
	id, host string
}

func (f *file) wire() map[string]any {
	out := map[string]any{"id": f.id, "name": f.Name, "title": f.Name, "mimetype": f.MIME, "size": len(f.Data), "mode": "hosted", "is_external": f.Elsewhere != ""}
	if f.Subtype != "" {
		out["subtype"] = f.Subtype
	}
	if f.NoURL {
		return map[string]any{"id": f.id, "file_access": "check_file_info", "mode": "file_access"}
	}
	f.address(out)
	return out
}

func (f *file) address(out map[string]any) {
	link := "http://" + f.host + "/files/" + f.id + "/" + f.Name
	if f.Elsewhere != "" {
		link = f.Elsewhere
	}
	out["url_private"], out["url_private_download"] = link, link
}

// store keeps a file; the lock is held.
func (s *Server) store(f File) *file {
	kept := &file{File: f, id: fmt.Sprintf("F%07d", s.next()), host: strings.TrimPrefix(Root, "http://")}
	s.files[kept.id] = kept
	return kept
}

func (s *Server) filesInfo(c Call) (answer, *refusal) {
	f, ok := s.files[c.Params["file"]]
	if !ok {
		return nil, refuse("file_not_found")
	}
	whole := *f
	whole.NoURL, whole.host = false, c.host
	return answer{"file": whole.wire(), "comments": []any{}, "paging": answer{}}, nil
}

// serveFile is a download. Without the right token it ends at the sign-in page, like Slack's.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, rest string) {
	id, _, _ := strings.Cut(rest, "/")
	s.mu.Lock()
	f := s.files[id]
	s.calls = append(s.calls, Call{Method: "download", Params: map[string]string{"file": id}, At: time.Now()})
	s.touch()
	s.mu.Unlock()
	switch {
	case f == nil:
		http.NotFound(w, r)
	case f.Unreadable || r.Header.Get("Authorization") != "Bearer "+s.cfg.BotToken:
		http.Redirect(w, r, "/signin?redir="+r.URL.Path, http.StatusFound)
	default:
		w.Header().Set("Content-Type", f.MIME)
		_, _ = w.Write(f.Data) // the client may be gone
	}
}

func (s *Server) uploadURL(c Call) (answer, *refusal) {
	n := c.integer("length", 0)
	if n <= 0 || !c.has("filename") {
		return nil, refuse("invalid_arguments")
	}
	f := s.store(File{Name: c.Params["filename"], MIME: "application/octet-stream"})
	f.host = c.host
	s.uploads[f.id] = f
	return answer{"upload_url": "http://" + c.host + "/upload/" + f.id, "file_id": f.id}, nil
}

func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request, id string) {
	s.mu.Lock()
	f := s.uploads[id]
	c := Call{Method: "upload", Params: map[string]string{"file": id}, At: time.Now()}
	s.calls = append(s.calls, c)
	wrong := s.due(c)
	s.mu.Unlock()
	if wrong != nil && !s.fail(w, r, wrong) {
		return
	}
	if f == nil {
		http.NotFound(w, r)
		return
	}
	in, _, err := r.FormFile("file")
	if err != nil {
		http.Error(w, "no file", http.StatusBadRequest)
		return
	}
	data, err := io.ReadAll(in)
	if err != nil {
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	f.Data = data
	s.touch()
	s.mu.Unlock()
	_, _ = fmt.Fprintf(w, "OK - %d", len(data))
}

func (s *Server) completeUpload(c Call) (answer, *refusal) {
	var list []struct{ ID, Title string }
	if json.Unmarshal([]byte(c.Params["files"]), &list) != nil || len(list) == 0 {
		return nil, refuse("invalid_arguments")
	}
	var ids []string
	done := []any{}
	for _, one := range list {
		f := s.uploads[one.ID]
		if f == nil || len(f.Data) == 0 {
			return nil, refuse("file_not_found")
		}
		ids = append(ids, one.ID)
		done = append(done, answer{"id": one.ID, "title": one.Title})
	}
	if id := c.Params["channel_id"]; id != "" {
		at := Call{Params: map[string]string{"channel": id, "thread_ts": c.Params["thread_ts"]}}
		ch, no := s.writable(at)
		if no != nil {
			return nil, no
		}
		m := s.say(ch, at, content{text: unescape(c.Params["initial_comment"])})
		m.Files = ids
		s.announce(ch, m)
	}
	for _, id := range ids {
		delete(s.uploads, id)
	}
	return answer{"files": done}, nil
}

// Content returns the name and the data of a file by its id, nothing if there is none.
func (s *Server) Content(id string) (name string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.files[id]; f != nil {
		return f.Name, slices.Clone(f.Data)
	}
	return "", nil
}
