package gateway

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"mime"
	"net/http"
	"path"
)

//go:embed page
var pageFiles embed.FS

// servePage adds the chat page. Its files hold nothing of the owner's, so everybody may load them;
// what they then ask for is guarded.
func (s *Server) servePage() {
	s.Handle("POST /login", Public, http.HandlerFunc(s.login))
	files, err := fs.ReadDir(pageFiles, "page")
	if err != nil {
		panic(err) // the embedded folder is part of the program
	}
	for _, f := range files {
		body, err := fs.ReadFile(pageFiles, path.Join("page", f.Name()))
		if err != nil {
			panic(err)
		}
		if f.Name() == "index.html" {
			s.Handle("GET /{$}", Public, s.front(asset(f.Name(), body)))
			continue
		}
		s.Handle("GET /"+f.Name(), Public, asset(f.Name(), body))
	}
}

// asset serves one embedded file, revalidated by its hash.
func asset(name string, body []byte) http.Handler {
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	kind := mime.TypeByExtension(path.Ext(name))
	if path.Ext(name) == ".js" { // the system's table may know better, and be wrong
		kind = "text/javascript; charset=utf-8"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(body) // the caller may be gone
	})
}

// front serves the page, and turns the token of the printed address into the cookie.
func (s *Server) front(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if !query.Has("token") {
			page.ServeHTTP(w, r)
			return
		}
		if !s.guard.isToken(query.Get("token")) {
			refuse(w, http.StatusUnauthorized)
			return
		}
		s.guard.setCookie(w, r)
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, "/", http.StatusSeeOther) // the token leaves the address bar
	})
}

// login takes the token from the page's own form.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	var form struct {
		Token string `json:"token"`
	}
	if json.NewDecoder(r.Body).Decode(&form) != nil || !s.guard.isToken(form.Token) {
		refuse(w, http.StatusUnauthorized)
		return
	}
	s.guard.setCookie(w, r)
	w.WriteHeader(http.StatusNoContent)
}
