package imports

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"understudy/authstore"
	"understudy/failover/policy"
	"understudy/internal/sqlite"
	"understudy/llm"
)

// ErrSameDirectory tells that --from names our own state directory.
var ErrSameDirectory = errors.New("--from must name another state directory than the bot's own")

// Status says what became of a source.
type Status string

// What can become of a source.
const (
	Imported  Status = "imported"
	Unchanged Status = "unchanged" // it was imported before
	Empty     Status = "empty"     // it holds no credentials
	Waiting   Status = "waiting"   // it would be imported
	Damaged   Status = "damaged"   // it was left alone
	Failed    Status = "failed"    // the import did not succeed; it was left alone
)

// Result is what became of one source. It holds no secret.
type Result struct {
	Source   string          `json:"source"`
	Agent    string          `json:"agent"`
	Status   Status          `json:"status"`
	Added    []llm.ProfileID `json:"added,omitempty"`
	Kept     []llm.ProfileID `json:"kept,omitempty"`     // our store held them already
	Withheld []llm.ProfileID `json:"withheld,omitempty"` // sign-ins of a database, not adopted
	Shared   []llm.ProfileID `json:"shared,omitempty"`   // the same sign-in as the default agent's
	Declared []llm.ProfileID `json:"declared,omitempty"` // without a secret: for the configuration
	Problems []Problem       `json:"problems,omitempty"` // entries that could not be used
	Archived string          `json:"archived,omitempty"` // where the source is now
	InUse    bool            `json:"inUse,omitempty"`    // its program may be running
	Error    string          `json:"error,omitempty"`
}

// Store is the credential store of an agent.
type Store interface {
	Import(ctx context.Context, b authstore.Batch) (authstore.Taken, error)
	Receipt(ctx context.Context, source string) (authstore.Receipt, bool, error)
	Get(ctx context.Context, id llm.ProfileID) (authstore.Profile, error)
}

// Options say what is imported and whereto.
type Options struct {
	StateDir string // our own
	From     string // another state directory; "" = the files in our own
	Main     string // the default agent
	// AdoptOAuth takes sign-ins of another program too, which must not use them afterwards: two
	// owners of one refresh token log each other out.
	AdoptOAuth bool
	Rules      policy.Rules
	Now        func() time.Time
	// Open returns the store of an agent. The caller closes it.
	Open func(ctx context.Context, agent string) (Store, error)
}

// Run imports everything that is there, agent by agent, the default one first. An error tells that
// nothing could be tried; what went wrong with a source stands in its Result.
func Run(ctx context.Context, o Options) ([]Result, error) {
	dir := o.StateDir
	if o.From != "" {
		dir = o.From
		if err := another(o.StateDir, o.From); err != nil {
			return nil, err
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := prepareScratch(o.StateDir, o.Now()); err != nil {
		return nil, err
	}
	var all []Result
	for _, agent := range agentsIn(dir, o.Main) {
		sources := agentSources(dir, agent, o.From == "", agent == o.Main)
		all = append(all, o.agent(ctx, agent, sources)...)
	}
	return all, ctx.Err()
}

// prepareScratch makes the state directory, where copies of foreign databases lie for a moment, and
// removes those of a run that was killed.
func prepareScratch(dir string, now time.Time) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || !strings.HasPrefix(e.Name(), "import-") || now.Sub(info.ModTime()) < time.Hour {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("state directory: %w", err)
		}
	}
	return nil
}

// another checks that from is a directory and not our own, by whatever name.
func another(own, from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", from)
	}
	if ours, err := os.Stat(own); err == nil && os.SameFile(info, ours) {
		return ErrSameDirectory
	}
	return nil
}

// FirstUse takes over credentials/oauth.json, which the default agent reads at its first use. The
// file stays where it is. ok is false when there was nothing new.
func FirstUse(ctx context.Context, store Store, o Options) (r Result, ok bool) {
	path, err := filepath.Abs(filepath.Join(o.StateDir, signInsFile))
	if err != nil {
		return Result{}, false
	}
	o.Open = func(context.Context, string) (Store, error) { return store, nil }
	results := o.agent(ctx, o.Main, []source{{path: path, format: FormatOAuth, keep: true}})
	if len(results) == 0 || results[0].Status == Unchanged || results[0].Status == Empty {
		return Result{}, false
	}
	return results[0], true
}

// plan is a source on its way.
type plan struct {
	source
	raw
	docs   []Document
	result *Result
}

func (p *plan) holdsCredentials() bool {
	return slices.ContainsFunc(p.docs, func(d Document) bool { return len(d.Profiles) > 0 })
}

// agent imports the sources of one agent in one transaction.
func (o Options) agent(ctx context.Context, agent string, sources []source) []Result {
	now := o.Now()
	var plans []*plan
	var results []*Result
	for _, s := range sources {
		r := &Result{Source: s.path, Agent: agent}
		read, err := s.read(ctx, o.StateDir, now)
		switch {
		case absent(err):
			continue
		case errors.Is(err, sqlite.ErrOurs) && o.From != "":
			continue // another bot of ours: its store is no legacy
		case err != nil:
			r.Status, r.Error = Damaged, reason(err)
			results = append(results, r)
			continue
		}
		results = append(results, r)
		r.InUse = read.inUse
		if p := o.parse(s, read, r, now); p != nil {
			plans = append(plans, p)
		}
	}
	if len(plans) > 0 {
		o.bring(ctx, agent, plans, now)
	}
	out := make([]Result, len(results))
	for i, r := range results {
		out[i] = *r
	}
	return out
}

func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist)
}

// parse reads the documents of a source; nil = it is left alone.
func (o Options) parse(s source, read raw, r *Result, now time.Time) *plan {
	p := &plan{source: s, raw: read, result: r}
	empty := true
	for _, c := range read.docs {
		d, err := Parse(c.format, c.data, now, o.Rules)
		if err != nil {
			r.Status, r.Error = Damaged, strings.TrimSpace(c.name+" "+err.Error())
			return nil
		}
		r.Problems = append(r.Problems, d.Problems...)
		r.Declared = append(r.Declared, d.Declared...)
		empty = empty && d.Empty()
		p.docs = append(p.docs, d)
	}
	if empty && len(r.Problems) == 0 && len(r.Declared) == 0 {
		r.Status = Empty
		return nil
	}
	return p
}

// bring imports the plans of an agent, reads them back and archives the files.
func (o Options) bring(ctx context.Context, agent string, plans []*plan, now time.Time) {
	fail := func(err error) {
		for _, p := range plans {
			if p.result.Status == "" {
				p.result.Status, p.result.Error, p.result.Added = Failed, reason(err), nil
			}
		}
	}
	store, err := o.Open(ctx, agent)
	if err != nil {
		fail(err)
		return
	}
	var main Store
	if agent != o.Main {
		if main, err = o.Open(ctx, o.Main); err != nil {
			fail(err)
			return
		}
	}
	var todo []*plan
	for _, p := range plans {
		receipt, ok, err := store.Receipt(ctx, p.path)
		switch {
		case err != nil:
			fail(err)
			return
		case ok && receipt.SHA256 == p.sum && (receipt.Withheld == 0 || !o.AdoptOAuth):
			p.result.Status, p.result.Problems, p.result.Declared = Unchanged, nil, nil
		default:
			todo = append(todo, p)
		}
	}
	if len(todo) > 0 {
		taken, err := store.Import(ctx, o.batch(ctx, todo, main))
		if err != nil {
			fail(err)
			return
		}
		credit(todo, taken)
	}
	for _, p := range plans {
		if p.keep || p.db != nil {
			continue
		}
		if p.result.Archived, err = archive(p.path, p.info, now); err != nil {
			p.result.Error = "it was imported, but it cannot be moved away: " + reason(err)
		}
	}
}

// batch joins documents: of profiles and orders the first one that has them counts, but what
// auth-state.json says about order and lastGood wins (spec/imports.md).
func (o Options) batch(ctx context.Context, plans []*plan, main Store) authstore.Batch {
	b := authstore.Batch{
		Orders: map[string][]llm.ProfileID{}, LastGood: map[string]llm.ProfileID{},
		Health: policy.Health{}, Probes: map[string]time.Time{},
	}
	counted := map[llm.ProfileID]bool{}
	for _, stateFirst := range []bool{true, false} {
		for _, p := range plans {
			for i, d := range p.docs {
				if (p.raw.docs[i].format == FormatState) == stateFirst {
					addState(&b, d, counted)
				}
			}
		}
	}
	for _, p := range plans {
		for _, d := range p.docs {
			for _, x := range d.Profiles {
				o.addProfile(ctx, &b, p, x, main)
			}
		}
		b.Receipts = append(b.Receipts, authstore.Receipt{
			Source: p.path, Size: p.size, SHA256: p.sum, Withheld: len(p.result.Withheld), Rejected: len(p.result.Problems),
		})
	}
	return b
}

func (o Options) addProfile(ctx context.Context, b *authstore.Batch, p *plan, x authstore.Profile, main Store) {
	if x.Kind == llm.KindOAuth && p.adopt && !o.AdoptOAuth {
		p.result.Withheld = append(p.result.Withheld, x.ID)
		return
	}
	if x.Kind == llm.KindOAuth && main != nil {
		// One refresh token must have one owner: agents read through to the default one.
		if have, err := main.Get(ctx, x.ID); err == nil && have.Refresh == x.Refresh && !x.Refresh.IsZero() {
			p.result.Shared = append(p.result.Shared, x.ID)
			return
		}
	}
	if slices.ContainsFunc(b.Profiles, func(y authstore.Profile) bool { return y.ID == x.ID }) {
		p.result.Kept = append(p.result.Kept, x.ID)
		return
	}
	b.Profiles = append(b.Profiles, x)
	p.result.Added = append(p.result.Added, x.ID)
}

func addState(b *authstore.Batch, d Document, counted map[llm.ProfileID]bool) {
	for provider, ids := range d.Orders {
		if _, set := b.Orders[provider]; !set {
			b.Orders[provider] = ids
		}
	}
	for provider, id := range d.LastGood {
		if _, set := b.LastGood[provider]; !set {
			b.LastGood[provider] = id
		}
	}
	for _, u := range d.Usage {
		if counted[u.Profile] {
			continue
		}
		counted[u.Profile] = true
		for model, row := range u.Rows {
			b.Health[policy.Key{Profile: u.Profile, Model: model}] = row
		}
		provider := u.Profile.Provider()
		if u.Probe.After(b.Probes[provider]) {
			b.Probes[provider] = u.Probe
		}
	}
}

// credit files under every source what the store made of its profiles.
func credit(plans []*plan, t authstore.Taken) {
	kept := map[llm.ProfileID]bool{}
	for _, id := range t.Kept {
		kept[id] = true
	}
	for _, p := range plans {
		p.result.Status = Imported
		var added []llm.ProfileID
		for _, id := range p.result.Added {
			if kept[id] {
				p.result.Kept = append(p.result.Kept, id)
			} else {
				added = append(added, id)
			}
		}
		p.result.Added = added
	}
}

// Pending lists the legacy files of a state directory that hold credentials and wait to be
// imported, and those that cannot be read. It changes nothing.
func Pending(ctx context.Context, o Options) []Result {
	dir, err := filepath.Abs(o.StateDir)
	if err != nil {
		return nil
	}
	now := o.Now()
	var out []Result
	for _, agent := range agentsIn(dir, o.Main) {
		for _, s := range agentSources(dir, agent, true, false) {
			read, err := s.read(ctx, o.StateDir, now)
			if absent(err) {
				continue
			}
			r := Result{Source: s.path, Agent: agent}
			if err != nil {
				r.Status, r.Error = Damaged, reason(err)
			} else if p := o.parse(s, read, &r, now); p != nil {
				if !p.holdsCredentials() {
					continue
				}
				r.Status = Waiting
			}
			out = append(out, r)
		}
	}
	return out
}

// reason is an error without the path that the result names already.
func reason(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err.Error()
	}
	var public interface{ Public() string }
	if errors.As(err, &public) {
		return public.Public()
	}
	return err.Error()
}

// Snippet returns the configuration that stands in for entries without a secret, or "".
func Snippet(results []Result) string {
	ids := map[llm.ProfileID]bool{}
	for _, r := range results {
		for _, id := range r.Declared {
			ids[id] = true
		}
	}
	if len(ids) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("auth:\n  profiles:\n")
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		fmt.Fprintf(&b, "    %q: {provider: %s, mode: token}\n", string(id), id.Provider())
	}
	return b.String()
}
