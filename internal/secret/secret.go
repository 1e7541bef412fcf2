// Package secret holds the one type in which a credential may travel.
//
// A String prints, formats, logs and marshals as "***". The only way to the text is Reveal, which
// is therefore easy to search for: it belongs where a request is signed and nowhere else.
package secret

import (
	"log/slog"
	"strings"
)

// Mask is what every printed form of a String shows.
const Mask = "***"

// String is a secret text. The zero value is an empty secret.
type String struct{ s string }

// New wraps a secret. Surrounding white space (a pasted newline) is not part of it.
func New(s string) String { return String{strings.TrimSpace(s)} }

// Reveal returns the secret itself. The result must not be logged, stored outside the auth store,
// or placed in a URL.
func (s String) Reveal() string { return s.s }

// IsZero reports whether there is no secret.
func (s String) IsZero() bool { return s.s == "" }

// String returns the mask, or "" when there is nothing to hide.
func (s String) String() string {
	if s.s == "" {
		return ""
	}
	return Mask
}

// GoString keeps %#v from showing the field.
func (s String) GoString() string { return `secret.String("` + s.String() + `")` }

// MarshalText writes the mask: a marshalled secret cannot be read back, on purpose.
func (s String) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a secret from configuration or a stored document.
func (s *String) UnmarshalText(b []byte) error {
	*s = New(string(b))
	return nil
}

// LogValue keeps slog from seeing the text.
func (s String) LogValue() slog.Value { return slog.StringValue(s.String()) }
