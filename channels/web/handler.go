package web

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"understudy/chat"
)

// MaxText is the longest message the page may post, in bytes (spec/chat.md §8 S10).
const MaxText = 64 << 10

const maxBody = MaxText*2 + 1024 // JSON escapes make a text longer

// Handler serves the page's requests, all of them below /api/. It must stand behind a guard that
// lets only the owner through: it checks nobody.
//
//	GET  /api/sessions                  the list, the latest first
//	POST /api/sessions                  {"id"} of a new, empty session
//	GET  /api/sessions/{id}/messages    the session as it stands, and the cursor of its last change
//	POST /api/sessions/{id}/messages    {"id": chosen by the page, "text", "label", "again"}: repeatable
//	GET  /api/events                    changes as server-sent events, behind Last-Event-ID
//	GET  /api/commands                  the slash commands
func (a *Adapter) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/sessions", a.serveList)
	mux.HandleFunc("POST /api/sessions", a.serveNew)
	mux.HandleFunc("GET /api/sessions/{id}/messages", a.serveMessages)
	mux.HandleFunc("POST /api/sessions/{id}/messages", a.servePost)
	mux.HandleFunc("GET /api/events", a.serveEvents)
	mux.HandleFunc("GET /api/commands", a.serveCommands)
	return mux
}

// problem is what the page shows when a request fails; it never holds an internal error.
type problem struct {
	Error string `json:"error"`
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the reader may be gone; there is nobody to tell
}

func (a *Adapter) serveList(w http.ResponseWriter, r *http.Request) {
	list, err := a.board.list(r.Context())
	if err != nil {
		a.log.Error("web sessions cannot be listed", "error", err)
		reply(w, http.StatusInternalServerError, problem{"The sessions cannot be read right now."})
		return
	}
	reply(w, http.StatusOK, map[string]any{"sessions": list})
}

func (a *Adapter) serveNew(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusCreated, map[string]string{"id": strings.ToLower(rand.Text()[:16])})
}

func (a *Adapter) serveMessages(w http.ResponseWriter, r *http.Request) {
	session, ok := a.session(w, r)
	if !ok {
		return
	}
	reply(w, http.StatusOK, a.board.snapshot(session))
}

// session reads the session's id and makes sure that its past is in memory.
func (a *Adapter) session(w http.ResponseWriter, r *http.Request) (id string, ok bool) {
	id = r.PathValue("id")
	if !validSession(id) {
		reply(w, http.StatusNotFound, problem{"There is no such session."})
		return "", false
	}
	if err := a.board.open(r.Context(), id); err != nil {
		a.log.Error("web session cannot be read", "error", err)
		reply(w, http.StatusInternalServerError, problem{"The session cannot be read right now."})
		return "", false
	}
	return id, true
}

// posted is a message on its way in. ID is chosen by the page and makes a repeated post harmless.
type posted struct {
	ID    string `json:"id"`
	Text  string `json:"text"`
	Label string `json:"label,omitempty"` // of the button that was pressed
	// Again tells that the page posted it before and heard nothing.
	Again bool `json:"again,omitempty"`
}

const maxLabel = 256 // bytes

func readPosted(w http.ResponseWriter, r *http.Request) (posted, bool) {
	var p posted
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		reply(w, http.StatusUnsupportedMediaType, problem{"Send JSON."})
		return p, false
	}
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	dec.DisallowUnknownFields()
	err := dec.Decode(&p)
	if err == nil {
		if _, extra := dec.Token(); !errors.Is(extra, io.EOF) {
			err = errors.New("more than one value")
		}
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge), len(p.Text) > MaxText:
		reply(w, http.StatusRequestEntityTooLarge, problem{"The message is too long: at most 64 KB."})
	case err != nil:
		reply(w, http.StatusBadRequest, problem{"The message cannot be read."})
	case p.ID == "" || len(p.ID) > 64 || !utf8.ValidString(p.ID):
		reply(w, http.StatusBadRequest, problem{"The message has no id."})
	case len(p.Label) > maxLabel:
		reply(w, http.StatusBadRequest, problem{"The label is too long."})
	case strings.TrimSpace(p.Text) == "":
		reply(w, http.StatusBadRequest, problem{"The message is empty."})
	default:
		return p, true
	}
	return p, false
}

func (a *Adapter) servePost(w http.ResponseWriter, r *http.Request) {
	p, ok := readPosted(w, r)
	if !ok {
		return
	}
	session, ok := a.session(w, r)
	if !ok {
		return
	}
	a.mu.Lock()
	sink := a.sink
	a.mu.Unlock()
	if sink == nil {
		w.Header().Set("Retry-After", "2")
		reply(w, http.StatusServiceUnavailable, problem{"The bot is starting or stopping; try again in a moment."})
		return
	}
	m, known := a.board.post(session, p, now())
	if err := sink.Accept(r.Context(), inbound(m, p)); err != nil {
		if !known {
			a.board.withdraw(m)
		}
		a.log.Error("web message cannot be stored", "error", err)
		w.Header().Set("Retry-After", "2")
		reply(w, http.StatusServiceUnavailable, problem{"The message could not be stored; try again."})
		return
	}
	if p.Again && a.board.dealtWith(r.Context(), m) {
		a.board.finish(m.Session, m.ID)
	}
	reply(w, http.StatusAccepted, a.board.confirm(m))
}

// inbound normalises a post. The key is the page's, so that a repeated post is one message even
// over a restart of the bot.
func inbound(m Message, p posted) chat.Inbound {
	return chat.Inbound{
		ID: m.ID, EventKey: Channel + ":" + m.Session + ":" + p.ID,
		Address: chat.Address{Channel: Channel, Conversation: m.Session, Kind: chat.Direct},
		Sender:  chat.Sender{ID: Owner, Name: "Owner", Local: true},
		Text:    m.Text, Mentioned: true, At: m.At,
	}
}

func (a *Adapter) serveCommands(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	cmds := a.commands
	a.mu.Unlock()
	type command struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Args        string `json:"args,omitempty"`
	}
	list := make([]command, 0, len(cmds))
	for _, c := range cmds {
		list = append(list, command{c.Name, c.Description, c.Args})
	}
	reply(w, http.StatusOK, map[string]any{"commands": list})
}

// enter counts an open stream; false when there are too many or the channel has stopped.
func (a *Adapter) enter() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.done:
		return false
	default:
	}
	if a.streams >= a.cfg.Streams {
		return false
	}
	a.streams++
	return true
}

func (a *Adapter) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.streams--
}
