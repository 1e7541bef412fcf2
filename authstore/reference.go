package authstore

import (
	"encoding/json"
	"fmt"
	"os"

	"understudy/internal/secret"
)

// Reference says where a secret lies that an imported credential only points to. It is kept as it
// was written; only those into the environment can be followed.
type Reference struct {
	Source   string `json:"source"` // "env", or a kind that leads nowhere here
	Provider string `json:"provider,omitempty"`
	ID       string `json:"id,omitempty"` // of the environment variable
	Path     string `json:"path,omitempty"`
}

// IsZero reports whether there is no reference.
func (r Reference) IsZero() bool { return r == Reference{} }

// Followable reports whether the store can get at the secret.
func (r Reference) Followable() bool { return r.Source == "env" && r.ID != "" }

// text is the stored form; "" = none.
func (r Reference) text() (string, error) {
	if r.IsZero() {
		return "", nil
	}
	b, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("reference: %w", err)
	}
	return string(b), nil
}

func parseReference(text string) (r Reference, err error) {
	if text == "" {
		return r, nil
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return Reference{}, fmt.Errorf("reference: %w", err)
	}
	return r, nil
}

// follow returns the secret that r points to; zero = it leads nowhere.
func (s *Store) follow(r Reference) secret.String {
	if !r.Followable() {
		return secret.String{}
	}
	getenv := s.deps.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	return secret.New(getenv(r.ID))
}
