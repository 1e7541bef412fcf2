package imports

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"understudy/authstore"
	"understudy/failover/policy"
	"understudy/llm"
)

// Format is the shape of a source.
type Format uint8

// The shapes of spec/imports.md.
const (
	FormatOAuth    Format = iota // credentials/oauth.json: provider → sign-in
	FormatProfiles               // auth-profiles.json, versioned or flat
	FormatState                  // auth-state.json: order, lastGood, usageStats
	FormatAuth                   // auth.json: provider → credential
)

// Problem is an entry that could not be used.
type Problem struct {
	Entry  string `json:"entry"` // its id, fit to be shown
	Reason string `json:"reason"`
}

// Document is what a source says.
type Document struct {
	Profiles []authstore.Profile
	Orders   map[string][]llm.ProfileID
	LastGood map[string]llm.ProfileID
	Usage    []Usage
	Problems []Problem
	// Declared are entries without a secret that belong into the configuration.
	Declared []llm.ProfileID

	names map[string]llm.ProfileID // id as written → id as stored
}

// Empty reports whether there is nothing to import.
func (d Document) Empty() bool {
	return len(d.Profiles)+len(d.Orders)+len(d.LastGood)+len(d.Usage) == 0
}

// Parse reads a document of strangers' bytes. An error tells that it is damaged as a whole, and
// where; entries that cannot be used are Problems.
func Parse(f Format, data []byte, now time.Time, rules policy.Rules) (Document, error) {
	o, err := parseObject(data)
	if err != nil {
		return Document{}, err
	}
	d := Document{Orders: map[string][]llm.ProfileID{}, LastGood: map[string]llm.ProfileID{}, names: map[string]llm.ProfileID{}}
	switch f {
	case FormatOAuth:
		d.readSignIns(o)
	case FormatAuth:
		d.readFlat(o)
	case FormatState:
		d.readState(o, now, rules)
	case FormatProfiles:
		raw := o.get("profiles")
		if raw == nil {
			d.readFlat(o)
			break
		}
		profiles, err := members(raw)
		if err != nil {
			return Document{}, errors.New("profiles is not an object")
		}
		d.readProfiles(profiles)
		d.readState(o, now, rules)
	}
	return d, nil
}

// readProfiles reads the versioned form: id → credential.
func (d *Document) readProfiles(o object) {
	for _, m := range o {
		p, provider, err := readEntry(m.value, "")
		id, idErr := profileID(m.key, provider)
		if err == nil || errors.Is(err, errMetadata) {
			err = errors.Join(err, idErr)
		}
		d.take(m.key, id, p, err)
	}
}

// flatMeta are keys of the flat form that are no providers.
var flatMeta = map[string]bool{"version": true, "order": true, "lastGood": true, "usageStats": true, "$schema": true}

// readFlat reads provider → credential.
func (d *Document) readFlat(o object) {
	for _, m := range o {
		if flatMeta[m.key] {
			continue
		}
		written := m.key
		provider, _, named := strings.Cut(written, ":")
		if !named {
			written += ":default"
		}
		p, _, err := readEntry(withoutProvider(m.value), provider)
		id, idErr := profileID(written, llm.NormalizeProvider(provider))
		if err == nil || errors.Is(err, errMetadata) {
			err = errors.Join(err, idErr)
		}
		d.take(m.key, id, p, err)
	}
}

// withoutProvider drops a provider of the entry's own: in the flat forms the key says it.
func withoutProvider(raw json.RawMessage) json.RawMessage {
	o, err := members(raw)
	if err != nil {
		return raw
	}
	var b strings.Builder
	b.WriteByte('{')
	n := 0
	for _, m := range o {
		if m.key == "provider" {
			continue
		}
		key, err := json.Marshal(m.key)
		if err != nil {
			return raw
		}
		if n++; n > 1 {
			b.WriteByte(',')
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return json.RawMessage(b.String())
}

// readSignIns reads credentials/oauth.json.
func (d *Document) readSignIns(o object) {
	for _, m := range o {
		raw := withoutProvider(m.value)
		p, provider, err := readEntry(raw, m.key)
		if err == nil && p.Kind != llm.KindOAuth {
			err = errNoSecret
		}
		name := "default"
		if p.Email != "" {
			name = p.Email
		}
		id, idErr := profileID(provider+":"+name, provider)
		if err == nil {
			err = idErr
		}
		d.take(m.key, id, p, err)
	}
}

// take adds a profile, or says why it cannot.
func (d *Document) take(written string, id llm.ProfileID, p authstore.Profile, err error) {
	switch {
	case errors.Is(err, errMetadata) && id != "":
		d.Declared = append(d.Declared, id)
		return
	case err != nil:
		d.Problems = append(d.Problems, Problem{Entry: clip(written), Reason: err.Error()})
		return
	}
	p.ID = d.free(written, id, p)
	d.names[written] = p.ID
	d.Profiles = append(d.Profiles, p)
}

// free returns id unless another entry has it: `openai:a` and `openai-codex:a` are two credentials.
func (d *Document) free(written string, id llm.ProfileID, p authstore.Profile) llm.ProfileID {
	taken := func(id llm.ProfileID) bool {
		for _, x := range d.Profiles {
			if x.ID == id {
				return true
			}
		}
		return false
	}
	if !taken(id) {
		return id
	}
	if other := llm.ProfileID(id.Provider() + ":" + p.Email); p.Email != "" && !taken(other) {
		return other
	}
	suffix := "2"
	if head, _, _ := strings.Cut(written, ":"); llm.NormalizeProvider(head) != strings.ToLower(head) {
		suffix = "codex"
	}
	other := id + "-" + llm.ProfileID(suffix)
	for n := 3; taken(other); n++ {
		other = llm.ProfileID(fmt.Sprintf("%s-%d", id, n))
	}
	return other
}

// stored returns the id under which a written one is stored.
func (d *Document) stored(written string) (llm.ProfileID, bool) {
	if id, ok := d.names[written]; ok {
		return id, true
	}
	head, name, ok := strings.Cut(written, ":")
	if !ok {
		return "", false
	}
	id := llm.ProfileID(llm.NormalizeProvider(head) + ":" + name)
	return id, validID(id)
}

// readState reads order, lastGood and usageStats. What is odd is left out: none of it is worth
// more than a good order.
func (d *Document) readState(o object, now time.Time, rules policy.Rules) {
	orders, _ := members(o.get("order"))
	for _, m := range orders {
		provider := llm.NormalizeProvider(m.key)
		var list []json.RawMessage
		if !providerID.MatchString(provider) || json.Unmarshal(m.value, &list) != nil {
			d.Problems = append(d.Problems, Problem{Entry: "order of " + clip(m.key), Reason: "it is not a list of profiles"})
			continue
		}
		ids := append([]llm.ProfileID{}, d.Orders[provider]...)
		for _, raw := range list {
			var text string
			_ = json.Unmarshal(raw, &text)
			id, ok := d.stored(text)
			if !ok || id.Provider() != provider {
				d.Problems = append(d.Problems, Problem{Entry: "order of " + clip(m.key), Reason: "it names something that is no profile of the provider"})
				continue
			}
			ids = append(ids, id)
		}
		d.Orders[provider] = ids
	}
	good, _ := members(o.get("lastGood"))
	for _, m := range good {
		var text string
		_ = json.Unmarshal(m.value, &text)
		provider := llm.NormalizeProvider(m.key)
		if id, ok := d.stored(text); ok && id.Provider() == provider {
			d.LastGood[provider] = id
		}
	}
	stats, _ := members(o.get("usageStats"))
	for _, m := range stats {
		id, ok := d.stored(m.key)
		u, err := members(m.value)
		if !ok || err != nil {
			d.Problems = append(d.Problems, Problem{Entry: "usageStats of " + clip(m.key), Reason: "it is not the statistics of a profile"})
			continue
		}
		if usage := readUsage(id, u, now, rules); !usage.empty() {
			d.Usage = append(d.Usage, usage)
		}
	}
}
