package authstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/secret"
	"understudy/llm"
)

// endpoint is a token endpoint that accepts each refresh token once.
type endpoint struct {
	mu    sync.Mutex
	valid string // the refresh token that is accepted next
	calls int
	takes time.Duration
	then  error                 // instead of an answer
	do    func(context.Context) // while the call is under way
}

func (e *endpoint) Refresh(ctx context.Context, p Profile) (Tokens, error) {
	e.mu.Lock()
	e.calls++
	n, fail, do, takes := e.calls, e.then, e.do, e.takes
	reused := p.Refresh.Reveal() != e.valid
	if !reused && fail == nil {
		e.valid = fmt.Sprintf("R%d", n+1)
	}
	next := e.valid
	e.mu.Unlock()
	if do != nil {
		do(ctx)
	}
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return Tokens{}, ctx.Err()
		}
	}
	switch {
	case fail != nil:
		return Tokens{}, fail
	case reused:
		return Tokens{}, &RefreshError{Status: 401, Code: "refresh_token_reused"}
	}
	return Tokens{
		Access: secret.New(fmt.Sprintf("A%d", n+1)), Refresh: secret.New(next), Expires: time.Now().Add(time.Hour),
	}, nil
}

func (e *endpoint) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls
}

const me llm.ProfileID = "openai:me@example.com"

func signIn(left time.Duration) Profile {
	return Profile{
		ID: me, Kind: llm.KindOAuth, Secret: secret.New("A1"), Refresh: secret.New("R1"), Expires: time.Now().Add(left).Truncate(time.Millisecond),
	}
}

// bubble opens a store over a token endpoint inside a synctest bubble.
func bubble(t *testing.T, left time.Duration, f func(t *testing.T, s *Store, e *endpoint)) {
	t.Helper()
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{valid: "R1"}
		s := mustOpen(t, path, Deps{BusyTimeout: -1, Refresher: e, Log: slog.New(slog.DiscardHandler)})
		mustPut(t, s, signIn(left))
		f(t, s, e)
		synctest.Wait()
	})
}

func stored(t *testing.T, s *Store) (access, refresh string) {
	t.Helper()
	p, err := s.Get(t.Context(), me)
	if err != nil {
		t.Fatal(err)
	}
	return p.Secret.Reveal(), p.Refresh.Reveal()
}

func reason(err error) llm.Reason {
	var e *llm.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

func TestRefreshBeforeTheTokenEnds(t *testing.T) {
	cases := []struct {
		left  time.Duration
		calls int
	}{
		{time.Hour, 0},
		{5*time.Minute + time.Millisecond, 0},
		{5 * time.Minute, 1},
		{2 * time.Second, 1},
		{-time.Second, 1},
	}
	for _, c := range cases {
		bubble(t, c.left, func(t *testing.T, s *Store, e *endpoint) {
			got, err := s.Credential(t.Context(), me)
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("A%d", c.calls+1); e.count() != c.calls || got.Secret.Reveal() != want {
				t.Errorf("%v left: %d calls and token %s, want %d", c.left, e.count(), got.Secret.Reveal(), c.calls)
			}
		})
	}
}

func TestOneRefreshForEverybody(t *testing.T) {
	bubble(t, -time.Second, func(t *testing.T, s *Store, e *endpoint) {
		e.takes = 3 * time.Second
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				<-time.After(time.Duration(i) * 6 * time.Millisecond) // fake time: within 50 ms
				c, err := s.Credential(t.Context(), me)
				if err != nil || c.Secret.Reveal() != "A2" {
					t.Errorf("session %d: %q, %v", i, c.Secret.Reveal(), err)
				}
			})
		}
		wg.Wait()
		if e.count() != 1 {
			t.Errorf("%d refreshes", e.count())
		}
		if a, r := stored(t, s); a != "A2" || r != "R2" {
			t.Errorf("stored %s, %s", a, r)
		}
	})
}

func TestTwoProcessesRefreshOnce(t *testing.T) {
	bubble(t, -time.Second, func(t *testing.T, s *Store, e *endpoint) {
		other := mustOpen(t, s.db.Path(), Deps{BusyTimeout: -1, Refresher: e})
		e.takes = 3 * time.Second
		var wg sync.WaitGroup
		for i, store := range []*Store{s, other} {
			wg.Go(func() {
				<-time.After(time.Duration(i) * time.Millisecond)
				c, err := store.Credential(t.Context(), me)
				if err != nil || c.Secret.Reveal() != "A2" {
					t.Errorf("process %d: %q, %v", i, c.Secret.Reveal(), err)
				}
			})
		}
		wg.Wait()
		if e.count() != 1 {
			t.Errorf("%d refreshes", e.count())
		}
	})
}

func TestAHungHolderIsWaitedForAndThenOvertaken(t *testing.T) {
	bubble(t, -time.Second, func(t *testing.T, s *Store, e *endpoint) {
		start := time.Now()
		if ok, err := s.takeLock(t.Context(), me, "a process that died"); err != nil || !ok {
			t.Fatal(ok, err)
		}
		if _, err := s.Credential(t.Context(), me); !errors.Is(err, ErrRefreshLocked) || reason(err) != "" {
			t.Errorf("got %v, want ErrRefreshLocked and no blame", err)
		}
		if waited := time.Since(start); waited < lockWait || waited > lockWait+2*time.Second {
			t.Errorf("waited %v", waited)
		}
		<-time.After(lockStale - time.Since(start))
		if _, err := s.Credential(t.Context(), me); err != nil {
			t.Errorf("the stale lock still holds: %v", err)
		}
	})
}

func TestANewerPairIsAdopted(t *testing.T) {
	newer := func(left time.Duration) Profile {
		p := signIn(left)
		p.Secret, p.Refresh = secret.New("OTHER"), secret.New("R9")
		return p
	}
	t.Run("while the call was rejected as reused", func(t *testing.T) {
		bubble(t, -time.Second, func(t *testing.T, s *Store, e *endpoint) {
			e.valid = "R9" // R1 was spent by somebody else
			e.do = func(context.Context) { mustPut(t, s, newer(time.Hour)) }
			c, err := s.Credential(t.Context(), me)
			if err != nil || c.Secret.Reveal() != "OTHER" || e.count() != 1 {
				t.Errorf("%q after %d calls, %v", c.Secret.Reveal(), e.count(), err)
			}
		})
	})
	t.Run("and tried once when it is old too", func(t *testing.T) {
		bubble(t, -time.Second, func(t *testing.T, s *Store, e *endpoint) {
			e.valid = "R9"
			e.do = func(context.Context) {
				if e.count() == 1 {
					mustPut(t, s, newer(time.Minute))
				}
			}
			c, err := s.Credential(t.Context(), me)
			if err != nil || c.Secret.Reveal() != "A3" || e.count() != 2 {
				t.Errorf("%q after %d calls, %v", c.Secret.Reveal(), e.count(), err)
			}
		})
	})
	t.Run("a login during a refresh that works wins", func(t *testing.T) {
		bubble(t, -time.Second, func(t *testing.T, s *Store, e *endpoint) {
			e.do = func(context.Context) { mustPut(t, s, newer(time.Hour)) }
			c, err := s.Credential(t.Context(), me)
			if err != nil || c.Secret.Reveal() != "OTHER" {
				t.Errorf("%q, %v", c.Secret.Reveal(), err)
			}
			if a, r := stored(t, s); a != "OTHER" || r != "R9" {
				t.Errorf("stored %s, %s", a, r)
			}
		})
	})
	t.Run("a profile removed meanwhile stays removed", func(t *testing.T) {
		bubble(t, -time.Second, func(t *testing.T, s *Store, e *endpoint) {
			e.do = func(ctx context.Context) {
				if err := s.Remove(ctx, me); err != nil {
					t.Error(err)
				}
			}
			if _, err := s.Credential(t.Context(), me); err != nil {
				t.Error(err)
			}
			if _, err := s.Get(t.Context(), me); !errors.Is(err, ErrNoProfile) {
				t.Errorf("it is back: %v", err)
			}
		})
	})
}

func TestRefreshFailures(t *testing.T) {
	cases := []struct {
		name string
		left time.Duration
		err  error
		want llm.Reason // "" = the old token is used
	}{
		{"dead grant", -time.Second, &RefreshError{Status: 400, Code: "invalid_grant"}, llm.ReasonAuthPermanent},
		{"dead grant with time left", time.Minute, &RefreshError{Status: 400, Code: "invalid_grant"}, llm.ReasonAuthPermanent},
		{"revoked", -time.Second, &RefreshError{Status: 401, Code: "token_revoked"}, llm.ReasonAuthPermanent},
		{"reused", -time.Second, &RefreshError{Status: 401, Code: "refresh_token_reused"}, llm.ReasonAuthPermanent},
		{"passing", -time.Second, &RefreshError{Status: 503}, llm.ReasonAuth},
		{"network", -time.Second, errors.New("connection refused"), llm.ReasonAuth},
		{"passing with time left", time.Minute, &RefreshError{Status: 503}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, c.left, func(t *testing.T, s *Store, e *endpoint) {
				e.then = c.err
				got, err := s.Credential(t.Context(), me)
				if reason(err) != c.want {
					t.Errorf("got %v, want reason %q", err, c.want)
				}
				if c.want == "" && (err != nil || got.Secret.Reveal() != "A1") {
					t.Errorf("got %q, %v", got.Secret.Reveal(), err)
				}
				if a, r := stored(t, s); a != "A1" || r != "R1" {
					t.Errorf("stored %s, %s", a, r)
				}
			})
		})
	}
}

func TestASilentEndpointIsGivenUp(t *testing.T) {
	bubble(t, -time.Second, func(t *testing.T, s *Store, e *endpoint) {
		e.takes = time.Hour
		start := time.Now()
		_, err := s.Credential(t.Context(), me)
		if reason(err) != llm.ReasonAuth || time.Since(start) != callTimeout {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestAStoppedCallerDoesNotLoseTheToken(t *testing.T) {
	bubble(t, -time.Second, func(t *testing.T, s *Store, e *endpoint) {
		e.takes = 10 * time.Second
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(llm.ErrStopped) })
		start := time.Now()
		_, err := s.Credential(ctx, me)
		if reason(err) != llm.ReasonAborted || !errors.Is(err, llm.ErrStopped) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		ctx2, cancel2 := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel2(llm.ErrTurnTimeout) })
		if _, err := s.Credential(ctx2, me); reason(err) != llm.ReasonTimeout {
			t.Errorf("the turn's limit: %v", err)
		}
		<-time.After(20 * time.Second)
		if a, r := stored(t, s); a != "A2" || r != "R2" || e.count() != 1 {
			t.Errorf("stored %s, %s after %d calls", a, r, e.count())
		}
	})
}

func TestALockedFileDoesNotHoldASignIn(t *testing.T) {
	bubble(t, -time.Second, func(t *testing.T, s *Store, e *endpoint) {
		var release func()
		e.do = func(context.Context) { release = hold(t, s.db.Path()) }
		c, err := s.Credential(t.Context(), me)
		if err != nil || c.Secret.Reveal() != "A2" {
			t.Fatalf("%q, %v", c.Secret.Reveal(), err)
		}
		if c, err = s.Credential(t.Context(), me); err != nil || c.Secret.Reveal() != "A2" || e.count() != 1 {
			t.Errorf("again: %q after %d calls, %v", c.Secret.Reveal(), e.count(), err)
		}
		time.AfterFunc(8*time.Second, release)
		<-time.After(10 * time.Second)
		other := mustOpen(t, s.db.Path(), Deps{BusyTimeout: -1})
		if a, r := stored(t, other); a != "A2" || r != "R2" {
			t.Errorf("the file holds %s, %s", a, r)
		}
	})
}

func TestCloseWaitsForASpentToken(t *testing.T) {
	bubble(t, -time.Second, func(t *testing.T, s *Store, e *endpoint) {
		e.takes = 3 * time.Second
		go s.Credential(t.Context(), me)
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		again := mustOpen(t, s.db.Path(), Deps{BusyTimeout: -1})
		if a, r := stored(t, again); a != "A2" || r != "R2" {
			t.Errorf("stored %s, %s", a, r)
		}
	})
}

func TestCredentialOfEveryKind(t *testing.T) {
	s := mustOpen(t, newPath(t), Deps{})
	old := Profile{ID: "anthropic:old", Kind: llm.KindToken, Secret: secret.New("t"), Expires: time.Now().Add(-time.Hour)}
	short := signIn(time.Minute)
	short.Refresh = secret.String{}
	dead := signIn(-time.Minute)
	dead.ID = "openai:dead"
	mustPut(t, s, key("openai:a"), old, short, dead)
	if c, err := s.Credential(t.Context(), "OpenAI:a"); err != nil || c.Kind != llm.KindAPIKey || c.Secret.Reveal() != "sk-openai:a" {
		t.Errorf("api key: %v, %v", c, err)
	}
	if c, err := s.Credential(t.Context(), me); err != nil || c.Secret.Reveal() != "A1" {
		t.Errorf("no refresh token, but a minute left: %v, %v", c, err)
	}
	for _, id := range []llm.ProfileID{"anthropic:old", "openai:dead"} {
		if _, err := s.Credential(t.Context(), id); reason(err) != llm.ReasonAuth {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := s.Credential(t.Context(), "openai:none"); !errors.Is(err, ErrNoProfile) {
		t.Errorf("unknown: %v", err)
	}
}

func TestSharedSignInIsRefreshedWhereItLives(t *testing.T) {
	bubble(t, -time.Second, func(t *testing.T, base *Store, e *endpoint) {
		dir := t.TempDir()
		ops := mustOpen(t, Path(dir, "ops"), Deps{BusyTimeout: -1, Default: base})
		c, err := ops.Credential(t.Context(), me)
		if err != nil || c.Secret.Reveal() != "A2" {
			t.Errorf("%q, %v", c.Secret.Reveal(), err)
		}
		if a, r := stored(t, base); a != "A2" || r != "R2" {
			t.Errorf("the default agent has %s, %s", a, r)
		}
		if err := ops.Close(); err != nil {
			t.Error(err)
		}
	})
}
