package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"understudy/chat"
)

// Readiness is whether the bot does its work (spec/chat.md §7.3).
type Readiness string

// The values of Readiness.
const (
	Ready    Readiness = "ready"
	Starting Readiness = "starting" // not everything runs yet
	Draining Readiness = "draining" // stopping: finishes what it began
	Degraded Readiness = "degraded" // the store or a channel is down for longer than it may be
)

// StatusSource knows how the bot is doing. Both methods answer from memory or a local store; they
// must not call a platform or a model.
type StatusSource interface {
	Ready(ctx context.Context) (Readiness, []Problem)
	// Status describes the bot, with the model of the given conversation; the zero Address means
	// the configured default.
	Status(ctx context.Context, where chat.Address) (Status, error)
}

// Problem is a reason for not being ready, in words for the operator and without a secret.
type Problem struct {
	Subject string `json:"subject"` // "telegram/default", "store", …
	Detail  string `json:"detail"`
}

// Status is what the page and `bot status` show.
type Status struct {
	Version   string          `json:"version"`
	StartedAt time.Time       `json:"startedAt"`
	Readiness Readiness       `json:"readiness"`
	Problems  []Problem       `json:"problems,omitempty"`
	Channels  []ChannelStatus `json:"channels"`
	Model     ModelStatus     `json:"model"`
	Profiles  []ProfileStatus `json:"profiles,omitempty"` // the unhealthy ones
}

// ChannelStatus is the connection of one account.
type ChannelStatus struct {
	Channel string    `json:"channel"`
	Account string    `json:"account,omitempty"`
	State   string    `json:"state"` // the words of channels.State
	Detail  string    `json:"detail,omitempty"`
	Since   time.Time `json:"since"`
}

// ModelStatus is the selection of one conversation (spec/failover.md §11).
type ModelStatus struct {
	Selected string `json:"selected"`
	Source   string `json:"source,omitempty"` // "default", "session", "pinned", …
	// Active is the model that answers instead, and Reason why; both empty while the selected one does. Of
	// no conversation in particular it is the one that would be asked now.
	Active    string   `json:"active,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	Fallbacks []string `json:"fallbacks,omitempty"`
	// Credential tells whether anything could serve the selected model now: "ok", "resting" or "none"; ""
	// where that is not known. Until is when the first credential rests no more.
	Credential string    `json:"credential,omitempty"`
	Until      time.Time `json:"until,omitzero"`
}

// ProfileStatus is an auth profile that is out of use for a while.
type ProfileStatus struct {
	Profile string    `json:"profile"`
	Model   string    `json:"model,omitempty"` // empty: all models
	State   string    `json:"state"`           // "cooldown" or "disabled"
	Reason  string    `json:"reason,omitempty"`
	Until   time.Time `json:"until"`
}

// health answers the probes and the status request.
type health struct {
	source StatusSource
	guard  *guard
	log    *slog.Logger
}

// answer is the body of the probes.
type answer struct {
	OK       bool      `json:"ok"`
	Status   string    `json:"status"`
	Problems []Problem `json:"problems,omitempty"`
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the caller may be gone; there is nobody to tell
}

func (h health) live(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, answer{OK: true, Status: "live"})
}

// ready tells details only to callers on this machine and to the owner.
func (h health) ready(w http.ResponseWriter, r *http.Request) {
	state, problems := h.source.Ready(r.Context())
	a := answer{OK: state == Ready, Status: string(state)}
	if h.guard.trusted(r) {
		a.Problems = problems
	}
	writeJSON(w, code(a.OK), a)
}

// started does not consult the channels.
func (h health) started(w http.ResponseWriter, r *http.Request) {
	state, _ := h.source.Ready(r.Context())
	a := answer{OK: state != Starting, Status: "started"}
	if !a.OK {
		a.Status = string(state)
	}
	writeJSON(w, code(a.OK), a)
}

func code(ok bool) int {
	if ok {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

func (h health) status(w http.ResponseWriter, r *http.Request) {
	var where chat.Address
	if session := r.URL.Query().Get("session"); session != "" {
		where = chat.Address{Channel: "web", Conversation: session, Kind: chat.Direct}
	}
	h.writeStatus(w, r, where)
}

func (h health) writeStatus(w http.ResponseWriter, r *http.Request, where chat.Address) {
	s, err := h.source.Status(r.Context(), where)
	if err != nil {
		h.log.Error("status cannot be read", "error", err)
		writeJSON(w, http.StatusInternalServerError, map[string]string{"error": "the status cannot be read right now"})
		return
	}
	if s.Channels == nil {
		s.Channels = []ChannelStatus{}
	}
	writeJSON(w, http.StatusOK, s)
}
