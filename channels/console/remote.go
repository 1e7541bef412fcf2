package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"understudy/channels"
)

// Route is where Handler is mounted on the control socket.
const Route = "/v1/chat"

// Handler serves terminals of other processes on the control socket. It checks nobody: the socket
// does.
//
//	GET  /v1/chat?conversation=&account=    events, one JSON object per line, an empty line now and then
//	POST /v1/chat?conversation=&account=    {"id", "text"}: 202 once it is stored
//	GET  /v1/chat/commands?account=         [{"name", "description", "args"}]
func Handler(accounts ...*Adapter) http.Handler {
	h := remoteHandler{}
	for _, a := range accounts {
		h[a.account] = a
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Route, h.events)
	mux.HandleFunc("POST "+Route, h.say)
	mux.HandleFunc("GET "+Route+"/commands", h.commands)
	return mux
}

// remoteHandler holds the adapters by account.
type remoteHandler map[string]*Adapter

func (h remoteHandler) adapter(w http.ResponseWriter, r *http.Request) *Adapter {
	a := h[r.URL.Query().Get("account")]
	if a == nil {
		refuse(w, http.StatusNotFound, "there is no such account")
	}
	return a
}

// refusal is the body of an answer that says no.
type refusal struct {
	Error string `json:"error"`
}

func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(refusal{text}) // the terminal may be gone
}

// heartbeat is how often an idle stream shows that it is alive, so that a dead terminal is noticed.
const heartbeat = 30 * time.Second

func (h remoteHandler) events(w http.ResponseWriter, r *http.Request) {
	a := h.adapter(w, r)
	if a == nil {
		return
	}
	l, err := a.attach(r.URL.Query().Get("conversation"))
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	defer l.Close()
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "application/x-ndjson")
	alive := time.NewTicker(heartbeat)
	defer alive.Stop()
	line := []byte("\n") // at once, so that the terminal knows it is attached
	for {
		_ = control.SetWriteDeadline(time.Now().Add(heartbeat)) // not every writer has deadlines
		if _, err := w.Write(line); err != nil || control.Flush() != nil {
			return
		}
		select {
		case e, open := <-l.events:
			if !open {
				return
			}
			if line, err = json.Marshal(e); err != nil {
				return
			}
			line = append(line, '\n')
		case <-alive.C:
			line = []byte("\n")
		case <-r.Context().Done():
			return
		}
	}
}

// said is a message on its way in.
type said struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

func (h remoteHandler) say(w http.ResponseWriter, r *http.Request) {
	a := h.adapter(w, r)
	if a == nil {
		return
	}
	conversation := r.URL.Query().Get("conversation")
	var m said
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m.ID == "" || !validName(conversation) {
		refuse(w, http.StatusBadRequest, "the message cannot be read")
		return
	}
	switch err := a.accept(r.Context(), conversation, m.ID, m.Text); {
	case err == nil:
		w.WriteHeader(http.StatusAccepted)
	case errors.Is(err, ErrTooLong):
		refuse(w, http.StatusRequestEntityTooLarge, err.Error())
	case errors.Is(err, ErrNotRunning):
		refuse(w, http.StatusServiceUnavailable, err.Error())
	default:
		refuse(w, http.StatusServiceUnavailable, "the message could not be stored")
	}
}

// command is a channels.CommandInfo on the wire.
type command struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Args        string `json:"args,omitempty"`
}

func (h remoteHandler) commands(w http.ResponseWriter, r *http.Request) {
	a := h.adapter(w, r)
	if a == nil {
		return
	}
	a.mu.Lock()
	list := make([]command, 0, len(a.commands))
	for _, c := range a.commands {
		list = append(list, command{c.Name, c.Description, c.Args})
	}
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list) // the terminal may be gone
}

// remote is a Link to another process.
type remote struct {
	http   *http.Client
	base   string
	query  string
	events chan Event
	cancel context.CancelFunc
	ended  chan struct{} // closed when the reader has ended

	mu     sync.Mutex
	err    error
	closed bool
}

// Dial attaches to a conversation of a running bot. The client must reach its control socket, and
// base is the address of that server, for example "http://control". The link lives until Close.
func Dial(ctx context.Context, client *http.Client, base, account, conversation string) (Link, error) {
	r := &remote{
		http: client, base: base, events: make(chan Event), ended: make(chan struct{}),
		query: "?" + url.Values{"account": {account}, "conversation": {conversation}}.Encode(),
	}
	stream, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel) // ctx bounds the dialling only
	req, err := http.NewRequestWithContext(stream, http.MethodGet, base+Route+r.query, nil)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("attach: %w", err)
	}
	res, err := client.Do(req)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("attach: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		defer cancel()
		return nil, fmt.Errorf("attach: %w", refused(res))
	}
	if !stop() {
		cancel()
		_ = res.Body.Close() // given up
		return nil, fmt.Errorf("attach: %w", context.Cause(ctx))
	}
	r.cancel = cancel
	go r.read(stream, res.Body)
	return r, nil
}

// refused turns an answer that says no into an error, and closes it.
func refused(res *http.Response) error {
	defer res.Body.Close()
	var body refusal
	if json.NewDecoder(io.LimitReader(res.Body, 1<<16)).Decode(&body) != nil || body.Error == "" {
		body.Error = fmt.Sprintf("the bot answered with status %d", res.StatusCode)
	}
	for _, known := range []error{ErrTooLong, ErrNotRunning, ErrGone} {
		if known.Error() == body.Error {
			return known
		}
	}
	return errors.New(body.Error)
}

const maxLine = 4 << 20 // bytes of one event

// read passes events on until the stream ends or the link is closed.
func (r *remote) read(ctx context.Context, body io.ReadCloser) {
	defer close(r.ended)
	defer close(r.events)
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var e Event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			break
		}
		select {
		case r.events <- e:
		case <-ctx.Done():
			return
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.err = ErrGone
	}
}

// Say implements Link.
func (r *remote) Say(ctx context.Context, id, text string) error {
	if len(text) > MaxText {
		return ErrTooLong
	}
	body, err := json.Marshal(said{id, text})
	if err != nil {
		return fmt.Errorf("say: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.base+Route+r.query, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("say: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := r.http.Do(req)
	if err != nil {
		return fmt.Errorf("say: %w", err)
	}
	if res.StatusCode != http.StatusAccepted {
		return fmt.Errorf("say: %w", refused(res))
	}
	return res.Body.Close()
}

// Events implements Link.
func (r *remote) Events() <-chan Event { return r.events }

// Err implements Link.
func (r *remote) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Commands implements Link.
func (r *remote) Commands(ctx context.Context) ([]channels.CommandInfo, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+Route+"/commands"+r.query, nil)
	if err != nil {
		return nil, fmt.Errorf("commands: %w", err)
	}
	res, err := r.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("commands: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("commands: %w", refused(res))
	}
	defer res.Body.Close()
	var list []command
	if err := json.NewDecoder(io.LimitReader(res.Body, maxLine)).Decode(&list); err != nil {
		return nil, fmt.Errorf("commands: %w", err)
	}
	infos := make([]channels.CommandInfo, 0, len(list))
	for _, c := range list {
		infos = append(infos, channels.CommandInfo{Name: c.Name, Description: c.Description, Args: c.Args})
	}
	return infos, nil
}

// Close implements Link. It returns when the reader has ended.
func (r *remote) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	<-r.ended
	return nil
}
