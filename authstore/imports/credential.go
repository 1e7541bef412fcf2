package imports

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"understudy/authstore"
	"understudy/internal/secret"
	"understudy/llm"
)

// Limits of a credential, in bytes.
const (
	maxSecret = 64 << 10
	maxName   = 256
)

// The reasons why an entry cannot be used.
var (
	errNoProvider  = errors.New("it names no provider")
	errNoSecret    = errors.New("it holds no secret")
	errUnknownType = errors.New("its type is none of api_key, oauth and token")
	errBadID       = errors.New("its name cannot be the id of a profile")
	errBadSecret   = errors.New("its secret holds characters that no secret may, or is too long")
	errMetadata    = errors.New("it holds no secret but a credential chain")
)

var (
	providerID = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	variable   = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)
)

// entry is what the formats have in common: one credential.
type entry struct {
	object
	kind llm.CredentialKind
}

// readEntry reads one credential. provider is used where the entry names none. The profile has no
// id yet but that provider's with an empty name.
func readEntry(raw json.RawMessage, provider string) (authstore.Profile, string, error) {
	o, err := members(raw)
	if err != nil {
		return authstore.Profile{}, "", errNotObject
	}
	e := entry{object: o}
	if own := o.text("provider"); own != "" {
		provider = own
	}
	provider = llm.NormalizeProvider(provider)
	switch {
	case provider == "":
		return authstore.Profile{}, "", errNoProvider
	case !providerID.MatchString(provider):
		return authstore.Profile{}, "", errBadID
	}
	if e.kind, err = e.credentialKind(); err != nil {
		return authstore.Profile{}, provider, err
	}
	p, err := e.profile()
	return p, provider, err
}

// credentialKind reads the type of the entry, or infers it from what it holds.
func (e entry) credentialKind() (llm.CredentialKind, error) {
	written := strings.ReplaceAll(strings.ToLower(e.text("type", "mode")), "-", "_")
	switch written {
	case "api_key", "apikey", "key":
		return llm.KindAPIKey, nil
	case "oauth":
		return llm.KindOAuth, nil
	case "token", "bearer":
		return llm.KindToken, nil
	case "aws_sdk":
		return llm.KindToken, errMetadata
	case "":
	default:
		return "", errUnknownType
	}
	switch {
	case e.get("key", "apiKey", "api_key", "keyRef") != nil:
		return llm.KindAPIKey, nil
	case e.get("token", "tokenRef") != nil:
		return llm.KindToken, nil
	case e.get("access", "refresh") != nil:
		return llm.KindOAuth, nil
	}
	return "", errNoSecret
}

// known are the fields that have a place of their own in a profile.
var known = []string{
	"type", "mode", "provider", "key", "apiKey", "api_key", "keyRef", "token", "tokenRef", "access", "refresh",
	"expires", "expiresAt", "expires_at", "email", "accountId", "projectId", "enterpriseUrl",
}

func (e entry) profile() (p authstore.Profile, err error) {
	p = authstore.Profile{
		Kind: e.kind, Expires: e.expires(), Email: e.short("email"),
		AccountID: e.short("accountId"), ProjectID: e.short("projectId"), EnterpriseURL: e.short("enterpriseUrl"),
	}
	switch e.kind {
	case llm.KindAPIKey:
		p.Expires = time.Time{}
		p.Secret, p.Reference, err = e.secret([]string{"key", "apiKey", "api_key"}, "keyRef")
	case llm.KindToken:
		p.Secret, p.Reference, err = e.secret([]string{"token"}, "tokenRef")
	case llm.KindOAuth:
		if p.Secret, _, err = e.secret([]string{"access"}, ""); errors.Is(err, errNoSecret) {
			err = nil
		}
		var again error
		if p.Refresh, _, again = e.secret([]string{"refresh"}, ""); again != nil && !errors.Is(again, errNoSecret) {
			err = again
		}
		if err == nil && p.Secret.IsZero() && p.Refresh.IsZero() {
			err = errNoSecret
		}
		if p.Expires.IsZero() && !p.Refresh.IsZero() {
			p.Expires = time.UnixMilli(1) // unknown: better renewed once too often than never
		}
	}
	if err != nil {
		return authstore.Profile{}, err
	}
	for _, m := range e.object {
		if slices.Contains(known, m.key) || string(m.value) == "null" || len(m.key) > maxName {
			continue
		}
		if p.Extra == nil {
			p.Extra = authstore.Extra{}
		}
		p.Extra[m.key] = m.value
	}
	return p, nil
}

// short returns a field that is shown or sent; one that is odd counts as missing.
func (e entry) short(key string) string {
	s := e.text(key)
	if len(s) > maxName || strings.ContainsFunc(s, notPrintable) {
		return ""
	}
	return s
}

func notPrintable(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }

// secret returns the secret under the first key that has one, or the reference that stands in its
// place.
func (e entry) secret(keys []string, reference string) (secret.String, authstore.Reference, error) {
	for _, k := range append(keys, reference) {
		raw := e.get(k)
		if k == "" || raw == nil {
			continue
		}
		var s string
		if json.Unmarshal(raw, &s) != nil {
			if r, ok := readReference(raw); ok {
				return secret.String{}, r, nil
			}
			continue
		}
		if m := variable.FindStringSubmatch(strings.TrimSpace(s)); m != nil {
			return secret.String{}, authstore.Reference{Source: "env", ID: m[1]}, nil
		}
		v := secret.New(s)
		switch {
		case v.IsZero():
			continue
		case len(s) > maxSecret || strings.ContainsFunc(v.Reveal(), notPrintable):
			return secret.String{}, authstore.Reference{}, errBadSecret
		}
		return v, authstore.Reference{}, nil
	}
	return secret.String{}, authstore.Reference{}, errNoSecret
}

func readReference(raw json.RawMessage) (authstore.Reference, bool) {
	o, err := members(raw)
	if err != nil {
		return authstore.Reference{}, false
	}
	r := authstore.Reference{Source: o.text("source"), Provider: o.text("provider"), ID: o.text("id"), Path: o.text("path")}
	for _, s := range []string{r.Source, r.Provider, r.ID, r.Path} {
		if len(s) > 4096 || strings.ContainsFunc(s, notPrintable) {
			return authstore.Reference{}, false
		}
	}
	return r, r.Source != "" && (r.ID != "" || r.Path != "")
}

// latest is the last moment that a document may name: the year 9999.
const latest = 253_402_300_799_999

// moment reads epoch milliseconds; a value below 10^11 is seconds. Nonsense is the zero time.
func moment(n float64) time.Time {
	switch {
	case !(n > 0) || n > latest:
		return time.Time{}
	case n < 1e11:
		n *= 1000
	}
	return time.UnixMilli(int64(n))
}

func (o object) moment(keys ...string) time.Time {
	n, ok := o.number(keys...)
	if !ok {
		return time.Time{}
	}
	return moment(n)
}

func (e entry) expires() time.Time { return e.moment("expires", "expiresAt", "expires_at") }

// profileID makes the id under which an entry is stored: its own where that belongs to its
// provider, else one of that provider.
func profileID(written, provider string) (llm.ProfileID, error) {
	id := llm.ProfileID(provider + ":" + written)
	if head, name, ok := strings.Cut(written, ":"); ok && llm.NormalizeProvider(head) == provider {
		id = llm.ProfileID(provider + ":" + name)
	}
	if !validID(id) {
		return "", errBadID
	}
	return id, nil
}

func validID(id llm.ProfileID) bool {
	name := id.Name()
	return providerID.MatchString(id.Provider()) && name != "" && len(name) <= maxName &&
		!strings.ContainsFunc(name, notPrintable) && strings.TrimSpace(name) == name
}

// Credential reads one credential that a person pasted, in the form in which the sources hold them.
// The profile's id is the provider's with an empty name.
func Credential(data []byte, provider string) (authstore.Profile, error) {
	if _, err := parseObject(data); err != nil {
		return authstore.Profile{}, err
	}
	p, _, err := readEntry(withoutProvider(data), provider)
	return p, err
}
