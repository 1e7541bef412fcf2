package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"understudy/inbound"
)

// answer is a route of the control socket: JSON in, JSON or an error out.
func answer[In any](f func(ctx context.Context, in In) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil && !errors.Is(err, io.EOF) {
			respond(w, http.StatusBadRequest, map[string]string{"error": "the request cannot be read: " + err.Error()})
			return
		}
		out, err := f(r.Context(), in)
		if err != nil {
			respond(w, http.StatusUnprocessableEntity, map[string]string{"error": err.Error()})
			return
		}
		respond(w, http.StatusOK, out)
	})
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the caller may be gone; there is nobody to tell
}

// keyOf names an account as addresses do.
func keyOf(channel, id string) inbound.Account {
	return inbound.Account{Channel: channel, Name: accountName(id)}
}

// compare orders by pairs of values, the first difference first.
func compare(pairs ...string) int {
	for i := 0; i+1 < len(pairs); i += 2 {
		if c := cmp.Compare(pairs[i], pairs[i+1]); c != 0 {
			return c
		}
	}
	return 0
}
