package authstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"understudy/authstore/internal/authdb"
	"understudy/internal/secret"
	"understudy/internal/sqlite"
	"understudy/llm"
)

// The numbers of a refresh (spec/failover.md §13). A call ends well before its lock turns stale,
// so that what it brought can be saved under the lock.
const (
	callTimeout = 120 * time.Second
	lockStale   = 180 * time.Second
	lockWait    = 30 * time.Second // then the next profile is tried
	lockPoll    = 100 * time.Millisecond
	saveFor     = lockStale - callTimeout
)

var errCallTimeout = errors.New("the token endpoint did not answer in time")

// Refresher renews an OAuth sign-in.
type Refresher interface {
	// Refresh spends the profile's refresh token, once and without a retry. A rejection is a
	// *RefreshError. No error may hold a token.
	Refresh(ctx context.Context, p Profile) (Tokens, error)
}

// Tokens is what a token endpoint gave.
type Tokens struct {
	Access  secret.String
	Refresh secret.String // zero = the old one stays
	Expires time.Time     // of Access; zero = unknown
}

// flight is a refresh under way. Everybody who needs the profile waits for the same one.
type flight struct {
	cancel context.CancelCauseFunc
	asked  bool          // the token endpoint was called; guarded by Store.mu
	done   chan struct{} // closed once profile and err are set
	over   chan struct{} // closed once the lock is given back too
	p      Profile
	err    error
}

// refreshed joins the profile's refresh, or starts it.
func (s *Store) refreshed(ctx context.Context, id llm.ProfileID) (llm.Credential, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return llm.Credential{}, ErrClosed
	}
	f := s.flights[id]
	if f == nil {
		// It outlives the caller: a refresh token that was spent must not be lost with a /stop.
		life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		f = &flight{cancel: cancel, done: make(chan struct{}), over: make(chan struct{})}
		s.flights[id] = f
		s.deps.Clock.Go(func() {
			defer cancel(nil)
			s.fly(life, f, id)
		})
	}
	s.mu.Unlock()
	if err := s.deps.Clock.Await(ctx, f.done); err != nil {
		return llm.Credential{}, interrupted(id, err)
	}
	if f.err != nil {
		return llm.Credential{}, f.err
	}
	s.hide(f.p) // it may be what another process renewed
	return f.p.credential(), nil
}

// fly takes the lock, renews the profile, tells the waiters and ends when the file has the tokens.
func (s *Store) fly(ctx context.Context, f *flight, id llm.ProfileID) {
	defer func() {
		s.mu.Lock()
		delete(s.flights, id)
		s.mu.Unlock()
		close(f.over)
	}()
	holder := rand.Text()
	adopted, locked, err := s.lock(ctx, id, holder)
	if !locked {
		f.p, f.err = s.unlocked(ctx, id, adopted, err)
		close(f.done)
		return
	}
	defer s.unlock(context.WithoutCancel(ctx), id, holder)
	f.p, f.err = s.renew(ctx, f, id)
	unsaved := f.err == nil && s.trySave(ctx, &f.p)
	close(f.done)
	if unsaved {
		s.keepSaving(ctx, id)
	}
}

// unlocked is what a refresh comes to without the lock: somebody else's result, or the old token
// while it still works. Nobody refreshes without the lock, whatever keeps it from us.
func (s *Store) unlocked(ctx context.Context, id llm.ProfileID, adopted Profile, err error) (Profile, error) {
	if err == nil {
		return adopted, nil
	}
	p, _, findErr := s.find(ctx, id)
	if findErr != nil || !p.valid(s.deps.Clock.Now()) {
		return adopted, err
	}
	s.deps.Log.Warn("sign-in could not be refreshed yet", "profile", string(id), "error", err)
	return p, nil
}

// renew reads the profile again, because somebody may have renewed it before the lock was ours,
// and asks the token endpoint if not.
func (s *Store) renew(ctx context.Context, f *flight, id llm.ProfileID) (Profile, error) {
	p, _, err := s.find(ctx, id)
	if err != nil || p.fresh(s.deps.Clock.Now()) {
		return p, err
	}
	renewed, err := s.ask(ctx, f, p)
	var rejected *RefreshError
	if errors.As(err, &rejected) && rejected.Reused() {
		again, _, findErr := s.find(ctx, id)
		switch {
		case findErr != nil:
			return again, findErr
		case again.version != p.version && again.fresh(s.deps.Clock.Now()):
			return again, nil
		case again.version != p.version:
			p = again
			renewed, err = s.ask(ctx, f, p)
		}
	}
	switch {
	case err == nil:
		return renewed, nil
	case errors.Is(err, ErrClosed):
		return p, ErrClosed
	case p.valid(s.deps.Clock.Now()) && !permanent(err):
		s.deps.Log.Warn("sign-in could not be refreshed yet", "profile", string(p.ID), "error", err)
		return p, nil
	}
	return p, signInError(p.ID, err)
}

// ask calls the token endpoint and remembers what it gave.
func (s *Store) ask(ctx context.Context, f *flight, p Profile) (Profile, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return p, ErrClosed
	}
	f.asked = true
	s.mu.Unlock()
	ctx, cancel := s.deps.Clock.WithTimeout(ctx, callTimeout, errCallTimeout)
	defer cancel()
	s.hide(p)
	t, err := s.deps.Refresher.Refresh(ctx, p)
	switch {
	case err != nil && ctx.Err() != nil:
		return p, context.Cause(ctx)
	case err != nil:
		return p, err
	case t.Access.IsZero():
		return p, &RefreshError{Code: "no_access_token"}
	}
	p.Secret, p.Expires = t.Access, t.Expires
	if !t.Refresh.IsZero() {
		p.Refresh = t.Refresh
	}
	s.hide(p)
	s.mu.Lock()
	s.unsaved[p.ID] = p
	s.mu.Unlock()
	return p, nil
}

// trySave brings new tokens into the file, if that is quick, and reports whether it must still be
// done. A login that happened meanwhile wins: then p becomes what it stored.
func (s *Store) trySave(ctx context.Context, p *Profile) (unsaved bool) {
	s.mu.Lock()
	fresh, ok := s.unsaved[p.ID]
	s.mu.Unlock()
	if !ok {
		return false
	}
	ctx, cancel := s.deps.Clock.WithTimeout(ctx, turnBudget, ErrLate)
	defer cancel()
	stored, err := s.swap(ctx, fresh)
	if err != nil {
		return true
	}
	if stored.version != 0 {
		*p = stored
	}
	return false
}

// keepSaving goes on until the file has the tokens. They stay in memory if it never can.
func (s *Store) keepSaving(ctx context.Context, id llm.ProfileID) {
	end := s.deps.Clock.Now().Add(saveFor)
	for {
		s.mu.Lock()
		fresh, ok := s.unsaved[id]
		s.mu.Unlock()
		if !ok {
			return
		}
		_, err := s.swap(ctx, fresh)
		if err == nil {
			return
		}
		if s.deps.Clock.Now().After(end) {
			s.deps.Log.Error("refreshed sign-in is not saved", "profile", string(id), "error", err)
			return
		}
		if s.deps.Clock.Sleep(ctx, retryFirst) != nil {
			return // closing: Close saves it
		}
	}
}

// swap writes fresh unless the profile was changed since it was read, and returns what is stored
// then; a profile that was removed meanwhile is returned empty and stays removed.
func (s *Store) swap(ctx context.Context, fresh Profile) (stored Profile, err error) {
	st, err := s.transact(ctx, func(c *change) error {
		c.reloaded = true
		n, err := c.SwapTokens(ctx, authdb.SwapTokensParams{
			Secret: fresh.Secret.Reveal(), Refresh: fresh.Refresh.Reveal(), ExpiresAt: millis(fresh.Expires),
			NewVersion: c.state.revision + 1, Now: millis(s.deps.Clock.Now()), ID: string(fresh.ID), OldVersion: fresh.version,
		})
		if err != nil {
			return err
		}
		row, err := c.GetProfile(ctx, string(fresh.ID))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if n == 0 {
			s.deps.Log.Info("a newer sign-in was stored during the refresh", "profile", string(fresh.ID))
		}
		stored, err = fromProfile(row)
		return err
	})
	if err != nil {
		return Profile{}, fmt.Errorf("saving the sign-in of %s: %w", fresh.ID, err)
	}
	s.mu.Lock()
	s.publish(st)
	delete(s.unsaved, fresh.ID)
	s.mu.Unlock()
	s.flush(ctx)
	return stored, nil
}

// forget drops tokens that a login or a removal has overtaken.
func (s *Store) forget(id llm.ProfileID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unsaved, id)
}

// root is the store whose file holds the locks of all agents.
func (s *Store) root() *Store {
	if s.deps.Default != nil {
		return s.deps.Default.root()
	}
	return s
}

// lock takes the refresh lock that all processes on the state directory share. While it waits it
// watches the profile: when the holder has renewed it, that is adopted and no lock is needed.
func (s *Store) lock(ctx context.Context, id llm.ProfileID, holder string) (adopted Profile, locked bool, err error) {
	end := s.deps.Clock.Now().Add(lockWait)
	for wait := lockPoll; ; wait = min(wait*2, time.Second) {
		locked, err = s.root().takeLock(ctx, id, holder)
		if locked || (err != nil && !sqlite.Busy(err)) {
			return Profile{}, locked, err
		}
		p, _, err := s.find(ctx, id)
		if err != nil || p.fresh(s.deps.Clock.Now()) {
			return p, false, err
		}
		if !s.deps.Clock.Now().Before(end) {
			return Profile{}, false, fmt.Errorf("%w: %s", ErrRefreshLocked, id)
		}
		if err := s.deps.Clock.Sleep(ctx, wait); err != nil {
			return Profile{}, false, err
		}
	}
}

// takeLock takes the lock if it is free or stale.
func (s *Store) takeLock(ctx context.Context, id llm.ProfileID, holder string) (taken bool, err error) {
	now := s.deps.Clock.Now()
	err = s.db.Write(ctx, func(tx *sqlite.Tx) error {
		q := authdb.New(tx)
		at, err := q.GetRefreshLock(ctx, string(id))
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if age := now.Sub(fromMillis(at)); err == nil && age < lockStale && age > -lockStale {
			return nil
		}
		taken = true
		return q.PutRefreshLock(ctx, authdb.PutRefreshLockParams{Profile: string(id), Holder: holder, TakenAt: millis(now)})
	})
	if err != nil {
		return false, fmt.Errorf("locking the refresh of %s: %w", id, err)
	}
	return taken, nil
}

func (s *Store) unlock(ctx context.Context, id llm.ProfileID, holder string) {
	root := s.root()
	err := root.db.Write(ctx, func(tx *sqlite.Tx) error {
		return authdb.New(tx).DropRefreshLock(ctx, authdb.DropRefreshLockParams{Profile: string(id), Holder: holder})
	})
	if err != nil {
		s.deps.Log.Warn("refresh lock turns stale by itself", "profile", string(id), "error", err)
	}
}
