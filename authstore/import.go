package authstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"understudy/authstore/internal/authdb"
	"understudy/failover/policy"
	"understudy/llm"
)

// ErrNotVerified tells that what an import wrote did not read back as it was given.
var ErrNotVerified = errors.New("the imported credentials do not read back as they were written")

// Batch is what an import brings to a store. What the store holds already wins, per profile, per
// provider and per profile's health (spec/imports.md).
type Batch struct {
	Profiles []Profile
	Orders   map[string][]llm.ProfileID
	LastGood map[string]llm.ProfileID
	Health   policy.Health
	Probes   map[string]time.Time // provider → last probe
	Receipts []Receipt            // At, Added and Kept are filled in
}

// Receipt remembers that a source was imported, so that a second run has nothing to do.
type Receipt struct {
	Source   string // absolute path
	Size     int64  // bytes
	SHA256   string // of what was read, in hexadecimal
	Added    int    // profiles of the batch it came with
	Kept     int    // of these, held by the store already
	Withheld int    // sign-ins that were not asked for
	Rejected int    // entries that could not be used
	At       time.Time
}

// Taken is what came of a Batch.
type Taken struct {
	Added []llm.ProfileID
	Kept  []llm.ProfileID // the store held them already
}

// Import writes a batch in one transaction, makes it safe against a power loss and reads it back.
// After an error nothing is lost: either nothing was written, or everything was and may be
// imported again. ErrNotVerified tells that the file does not hold what it was given.
func (s *Store) Import(ctx context.Context, b Batch) (Taken, error) {
	for i := range b.Profiles {
		b.Profiles[i].ID = normal(b.Profiles[i].ID)
		if err := b.Profiles[i].Validate(); err != nil {
			return Taken{}, err
		}
	}
	var t Taken
	var written map[llm.ProfileID]int64
	err := s.write(ctx, func(c *change) (err error) {
		t, written, err = s.takeOver(ctx, c, b)
		return err
	})
	if err != nil {
		return Taken{}, fmt.Errorf("importing credentials: %w", err)
	}
	if err := s.db.Flush(ctx); err != nil {
		return t, fmt.Errorf("importing credentials: %w", err)
	}
	return t, s.verify(ctx, b, written)
}

// takeOver writes what the store does not hold yet and returns the versions of the new profiles.
func (s *Store) takeOver(ctx context.Context, c *change, b Batch) (t Taken, written map[llm.ProfileID]int64, err error) {
	now := s.deps.Clock.Now()
	written = map[llm.ProfileID]int64{}
	fits := map[llm.ProfileID]bool{} // profiles about whose secret the batch's health speaks
	for _, p := range b.Profiles {
		old, err := c.GetProfile(ctx, string(p.ID))
		switch {
		case err == nil:
			t.Kept = append(t.Kept, p.ID)
			fits[p.ID] = old.Secret == p.Secret.Reveal() && old.Refresh == p.Refresh.Reveal()
			continue
		case !errors.Is(err, sql.ErrNoRows):
			return t, nil, err
		}
		if err := c.putProfile(ctx, p, now); err != nil {
			return t, nil, err
		}
		t.Added = append(t.Added, p.ID)
		written[p.ID], fits[p.ID] = c.state.revision+1, true
	}
	if err := c.takeHealth(ctx, b, fits); err != nil {
		return t, nil, err
	}
	if err := c.takeState(ctx, b); err != nil {
		return t, nil, err
	}
	for _, r := range b.Receipts {
		err := c.PutReceipt(ctx, authdb.PutReceiptParams{
			Source: r.Source, Size: r.Size, Sha256: r.SHA256, Added: int64(len(t.Added)), Kept: int64(len(t.Kept)),
			Withheld: int64(r.Withheld), Rejected: int64(r.Rejected), ImportedAt: millis(now),
		})
		if err != nil {
			return t, nil, err
		}
	}
	return t, written, nil
}

// takeHealth writes the rows of profiles about which the store knows nothing.
func (c *change) takeHealth(ctx context.Context, b Batch, fits map[llm.ProfileID]bool) error {
	known := map[llm.ProfileID]bool{}
	for k := range c.state.Health {
		known[k.Profile] = true
	}
	for k, row := range b.Health {
		if known[k.Profile] || !fits[k.Profile] {
			continue
		}
		params, err := toRow(k, row)
		if err != nil {
			return err
		}
		if err := c.PutHealth(ctx, params); err != nil {
			return err
		}
	}
	for provider, at := range b.Probes {
		if _, set := c.state.LastProbe[provider]; set {
			continue
		}
		if err := c.PutProbe(ctx, authdb.PutProbeParams{Provider: provider, At: millis(at)}); err != nil {
			return err
		}
	}
	return nil
}

// takeState writes orders and last-good entries of providers that have none.
func (c *change) takeState(ctx context.Context, b Batch) error {
	for provider, ids := range b.Orders {
		if _, set := c.state.Orders[provider]; set {
			continue
		}
		text, err := json.Marshal(append([]llm.ProfileID{}, ids...))
		if err != nil {
			return err
		}
		if err := c.PutOrder(ctx, authdb.PutOrderParams{Provider: provider, ProfilesJson: string(text)}); err != nil {
			return err
		}
	}
	for provider, id := range b.LastGood {
		if _, set := c.state.lastGood[provider]; set {
			continue
		}
		if err := c.PutLastGood(ctx, authdb.PutLastGoodParams{Provider: provider, Profile: string(id)}); err != nil {
			return err
		}
	}
	return nil
}

// verify reads back what was written. A profile that somebody changed meanwhile, such as a running
// bot that renewed it, is beyond comparison.
func (s *Store) verify(ctx context.Context, b Batch, written map[llm.ProfileID]int64) error {
	for _, want := range b.Profiles {
		version, ok := written[want.ID]
		if !ok {
			continue
		}
		row, err := s.query.GetProfile(ctx, string(want.ID))
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w: %s is not there", ErrNotVerified, want.ID)
		}
		if err != nil {
			return fmt.Errorf("reading %s back: %w", want.ID, err)
		}
		got, err := fromProfile(row)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNotVerified, err)
		}
		if got.version == version && !got.same(want) {
			return fmt.Errorf("%w: %s", ErrNotVerified, want.ID)
		}
	}
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return err
	}
	for provider := range b.Orders {
		if _, ok := snap.Orders[provider]; !ok {
			return fmt.Errorf("%w: the order of %s", ErrNotVerified, provider)
		}
	}
	return nil
}

// same reports whether two profiles say the same, to the millisecond.
func (p Profile) same(o Profile) bool {
	if len(p.Extra) != len(o.Extra) {
		return false
	}
	for _, k := range slices.Collect(maps.Keys(p.Extra)) {
		if string(compact(p.Extra[k])) != string(compact(o.Extra[k])) {
			return false
		}
	}
	return p.ID == o.ID && p.Kind == o.Kind && p.Secret == o.Secret && p.Refresh == o.Refresh &&
		millis(p.Expires) == millis(o.Expires) && p.Reference == o.Reference && p.Email == o.Email &&
		p.AccountID == o.AccountID && p.ProjectID == o.ProjectID && p.EnterpriseURL == o.EnterpriseURL
}

// compact is a JSON value in the spelling in which it is stored.
func compact(raw json.RawMessage) []byte {
	b, err := json.Marshal(raw)
	if err != nil {
		return raw
	}
	return b
}

// Receipt returns the receipt of a source; ok is false when it was never imported here.
func (s *Store) Receipt(ctx context.Context, source string) (r Receipt, ok bool, err error) {
	row, err := s.query.GetReceipt(ctx, source)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Receipt{}, false, nil
	case err != nil:
		return Receipt{}, false, fmt.Errorf("reading the receipt of %s: %w", source, err)
	}
	return Receipt{
		Source: row.Source, Size: row.Size, SHA256: row.Sha256, Added: int(row.Added), Kept: int(row.Kept),
		Withheld: int(row.Withheld), Rejected: int(row.Rejected), At: fromMillis(row.ImportedAt),
	}, true, nil
}
