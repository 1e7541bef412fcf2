package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"strings"
	"time"
)

// The error codes of JSON-RPC 2.0, and below -32000 our own (docs/rpc.md).
const (
	RPCParse          = -32700 // the body is no JSON
	RPCInvalidRequest = -32600 // it is JSON, and no request
	RPCNoMethod       = -32601
	RPCInvalidParams  = -32602 // Data holds the path of the wrong one
	RPCInternal       = -32603 // a fault on our side; the log says which
	RPCNotFound       = -32001 // no such session
	RPCRefused        = -32002 // a rule forbids it; the message says which and is fit for people
	RPCBusy           = -32003 // too much waits already: try again later
	RPCStopping       = -32004 // the bot starts or stops
)

// Bounds of a request.
const (
	maxBatch = 50  // requests in one body
	maxRPCID = 256 // bytes of an id
)

// RPCError is an error as callers are told it: Message and Data must hold no secret.
type RPCError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// Error is the message.
func (e *RPCError) Error() string { return e.Message }

// RPCMethod does what a call asks for. Params is a JSON object or nil; see RPCParams. An error that is
// no *RPCError is logged and told as RPCInternal. Emit sends something to a caller that listens to
// more than the result, nil as a sign of life; its error tells that the caller is gone. It must be
// called from the method's own goroutine.
type RPCMethod func(ctx context.Context, params json.RawMessage, emit func(event any) error) (any, error)

// RPC answers JSON-RPC 2.0 calls that are sent with POST (docs/rpc.md). It checks nobody: who may call
// is decided by where it is mounted. A call ends with its method: when the caller goes away, the
// method's context ends.
type RPC struct {
	methods map[string]method
	log     *slog.Logger
}

type method struct {
	run RPCMethod
	// slow marks a method that may take minutes: it is called alone, never in a batch.
	slow bool
}

// NewRPC returns an RPC without methods. log may be nil.
func NewRPC(log *slog.Logger) *RPC {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &RPC{methods: map[string]method{}, log: log}
}

// Handle adds a method that answers soon. All methods are added before the first call.
func (x *RPC) Handle(name string, f RPCMethod) { x.methods[name] = method{run: f} }

// HandleSlow adds a method that may take minutes and may emit events. It cannot be part of a batch.
func (x *RPC) HandleSlow(name string, f RPCMethod) { x.methods[name] = method{run: f, slow: true} }

// rpcRequest is one call.
type rpcRequest struct {
	method string
	params json.RawMessage
	id     json.RawMessage // nil = a notification
}

// rpcResponse is what a caller is told of one call.
type rpcResponse struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *RPCError       `json:"error,omitempty"`
}

func refused(id json.RawMessage, code int, text string) *rpcResponse {
	if id == nil {
		id = json.RawMessage("null")
	}
	return &rpcResponse{JSONRPC: "2.0", ID: id, Error: &RPCError{Code: code, Message: text}}
}

// ServeHTTP implements http.Handler.
func (x *RPC) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		// A page of another origin can send anything else without being asked.
		writeJSON(w, http.StatusUnsupportedMediaType, refused(nil, RPCInvalidRequest, "send application/json"))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		writeJSON(w, http.StatusRequestEntityTooLarge, refused(nil, RPCInvalidRequest, "the request is larger than 1 MiB"))
		return
	case err != nil:
		writeJSON(w, http.StatusBadRequest, refused(nil, RPCParse, "the request could not be read"))
		return
	}
	out := newCaller(w, r)
	switch trimmed := bytes.TrimLeft(body, " \t\r\n"); {
	case !json.Valid(body):
		out.answer(refused(nil, RPCParse, "this is not JSON"))
	case trimmed[0] == '[':
		x.batch(r.Context(), body, out)
	default:
		x.single(r.Context(), body, out)
	}
}

// single answers a body that holds one call.
func (x *RPC) single(ctx context.Context, body []byte, out *caller) {
	q, bad := readRequest(body)
	if bad != nil {
		out.answer(bad)
		return
	}
	if m, known := x.methods[q.method]; !known || !m.slow || q.id == nil {
		out.listens = false // there is nothing to listen to, or no answer to end it with
	}
	if res := x.call(ctx, q, out.emit); res != nil {
		out.answer(res)
		return
	}
	out.nothing()
}

// batch answers a body that holds several calls, one after the other.
func (x *RPC) batch(ctx context.Context, body []byte, out *caller) {
	var list []json.RawMessage
	if err := json.Unmarshal(body, &list); err != nil {
		out.answer(refused(nil, RPCParse, "this is not JSON"))
		return
	}
	if len(list) == 0 || len(list) > maxBatch {
		out.answer(refused(nil, RPCInvalidRequest, fmt.Sprintf("a batch holds 1 to %d requests", maxBatch)))
		return
	}
	out.listens = false
	var answers []*rpcResponse
	for _, raw := range list {
		q, res := readRequest(raw)
		if res == nil {
			if x.methods[q.method].slow {
				res = refused(q.id, RPCInvalidRequest, q.method+" takes long: send it alone")
				if q.id == nil {
					continue
				}
			} else {
				res = x.call(ctx, q, out.emit)
			}
		}
		if res != nil {
			answers = append(answers, res)
		}
	}
	if len(answers) == 0 {
		out.nothing()
		return
	}
	out.answer(answers)
}

// call runs one method. It returns nil for a notification.
func (x *RPC) call(ctx context.Context, q rpcRequest, emit func(any) error) *rpcResponse {
	result, err := x.run(ctx, q, emit)
	var text json.RawMessage
	if err == nil {
		if text, err = json.Marshal(result); err != nil {
			err = fmt.Errorf("writing the result: %w", err)
		}
	}
	var told *RPCError
	if err != nil && !errors.As(err, &told) {
		if ctx.Err() == nil {
			x.log.ErrorContext(ctx, "rpc_failed", "method", q.method, "error", err.Error())
		}
		told = &RPCError{Code: RPCInternal, Message: "this did not work because of a fault on the bot's side; its log says which"}
	}
	if q.id == nil {
		return nil
	}
	if told != nil {
		return &rpcResponse{JSONRPC: "2.0", ID: q.id, Error: told}
	}
	return &rpcResponse{JSONRPC: "2.0", ID: q.id, Result: text}
}

// run looks the method up and survives its panics.
func (x *RPC) run(ctx context.Context, q rpcRequest, emit func(any) error) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			x.log.ErrorContext(ctx, "rpc_panicked", "method", q.method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = &RPCError{Code: RPCInternal, Message: "this did not work because of a fault on the bot's side; its log says which"}
		}
	}()
	m, ok := x.methods[q.method]
	if !ok {
		return nil, &RPCError{Code: RPCNoMethod, Message: "there is no such method"}
	}
	return m.run(ctx, q.params, emit)
}

// readRequest reads one call. Names count exactly as they are written, unlike in encoding/json.
func readRequest(raw json.RawMessage) (rpcRequest, *rpcResponse) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return rpcRequest{}, refused(nil, RPCInvalidRequest, "a request is an object")
	}
	var q rpcRequest
	if id, ok := members["id"]; ok {
		if !isID(id) {
			return q, refused(nil, RPCInvalidRequest, "id: must be a short string, a number or null")
		}
		q.id = id
	}
	var version string
	if json.Unmarshal(members["jsonrpc"], &version) != nil || version != "2.0" {
		return q, refused(q.id, RPCInvalidRequest, `jsonrpc: must be "2.0"`)
	}
	if isNull(members["method"]) || json.Unmarshal(members["method"], &q.method) != nil {
		return q, refused(q.id, RPCInvalidRequest, "method: must be a string")
	}
	q.params = members["params"]
	if p := bytes.TrimSpace(q.params); len(p) > 0 && p[0] != '{' && p[0] != '[' {
		return q, refused(q.id, RPCInvalidRequest, "params: must be an object")
	}
	return q, nil
}

func isID(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && len(raw) <= maxRPCID && (raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' || isNull(raw))
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// contentStream is the type of an answer that is one JSON value a line: events, then the response.
const contentStream = "application/x-ndjson"

// caller is the way to whoever called.
type caller struct {
	w       http.ResponseWriter
	limits  *http.ResponseController
	listens bool // wants events
	begun   bool // the first event was written
}

// newCaller takes the server's time limits off a request that was read: how long a call may take is its
// method's business, and what is written has a limit of its own.
func newCaller(w http.ResponseWriter, r *http.Request) *caller {
	c := &caller{w: w, limits: http.NewResponseController(w), listens: accepts(r, contentStream)}
	_ = c.limits.SetReadDeadline(time.Time{}) // not every writer has deadlines
	_ = c.limits.SetWriteDeadline(time.Time{})
	return c
}

func accepts(r *http.Request, kind string) bool {
	for _, list := range r.Header.Values("Accept") {
		for a := range strings.SplitSeq(list, ",") {
			if got, _, err := mime.ParseMediaType(strings.TrimSpace(a)); err == nil && got == kind {
				return true
			}
		}
	}
	return false
}

// rpcEvent is a notification to the caller.
type rpcEvent struct {
	JSONRPC string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

// emit writes an event as a line, nil as an empty one.
func (c *caller) emit(event any) error {
	if !c.listens {
		return nil
	}
	if event == nil {
		return c.line(nil)
	}
	text, err := json.Marshal(rpcEvent{JSONRPC: "2.0", Method: "event", Params: event})
	if err != nil {
		return fmt.Errorf("writing an event: %w", err)
	}
	return c.line(text)
}

func (c *caller) line(text []byte) error {
	if !c.begun {
		c.begun = true
		c.w.Header().Set("Content-Type", contentStream)
		c.w.Header().Set("Cache-Control", "no-store")
		c.w.Header().Set("X-Accel-Buffering", "no")
	}
	_ = c.limits.SetWriteDeadline(time.Now().Add(writeTime))
	if _, err := c.w.Write(append(text, '\n')); err != nil {
		return err
	}
	return c.limits.Flush()
}

// answer writes the response, or those of a batch.
func (c *caller) answer(body any) {
	_ = c.limits.SetWriteDeadline(time.Now().Add(writeTime))
	if !c.listens {
		writeJSON(c.w, http.StatusOK, body)
		return
	}
	text, err := json.Marshal(body)
	if err == nil {
		err = c.line(text)
	}
	_ = err // the caller is gone
}

// nothing ends a request that has no answer.
func (c *caller) nothing() {
	_ = c.limits.SetWriteDeadline(time.Now().Add(writeTime))
	c.w.WriteHeader(http.StatusNoContent)
}
