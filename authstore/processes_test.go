package authstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	driver "modernc.org/sqlite"

	"understudy/failover/policy"
	"understudy/internal/clock"
	"understudy/internal/emulate/oauth"
	"understudy/internal/secret"
	"understudy/llm"
)

// The variables that make the test binary a process with turns of its own: on the store at a path,
// with a sign-in server, killed at a step.
const (
	turnsEnv  = "AUTHSTORE_TEST_TURNS"
	serverEnv = "AUTHSTORE_TEST_SERVER"
	stepEnv   = "AUTHSTORE_TEST_STEP"
)

const turnsEach = 50

// dying is a Refresher whose process is killed around the call.
type dying struct {
	Refresher
	step string
}

func (d dying) Refresh(ctx context.Context, p Profile) (Tokens, error) {
	kill(d.step == "before the call")
	t, err := d.Refresher.Refresh(ctx, p)
	kill(d.step == "after the answer")
	return t, err
}

func kill(now bool) {
	if now {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// killAtCommit kills the process when SQLite is about to commit the nth transaction from now on.
func killAtCommit(ctx context.Context, s *Store, nth string) error {
	n, err := strconv.Atoi(nth)
	if err != nil {
		return err
	}
	conn, err := s.db.Writer().Conn(ctx)
	if err != nil {
		return err
	}
	err = conn.Raw(func(c any) error {
		hooks, ok := c.(driver.HookRegisterer)
		if !ok {
			return fmt.Errorf("%T has no commit hook", c)
		}
		hooks.RegisterCommitHook(func() int32 {
			n--
			kill(n == 0)
			return 0
		})
		return nil
	})
	return errors.Join(err, conn.Close())
}

// turns does what the turns of one process do: credential, answer, settle.
func turns(path, server, step string) error {
	ctx := context.Background()
	c, err := signIns(server, nil)
	if err != nil {
		return err
	}
	s, err := Open(ctx, path, Deps{Refresher: dying{c, step}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	kill(step == "before")
	if n, found := strings.CutPrefix(step, "commit "); found {
		if err := killAtCommit(ctx, s, n); err != nil {
			return err
		}
	}
	var last string
	for range turnsEach {
		cred, err := s.Credential(ctx, me)
		if err != nil {
			return err
		}
		kill(step == "after")
		if last != "" && cred.Secret.Reveal() != last {
			return errors.New("the token changed between two turns")
		}
		last = cred.Secret.Reveal()
		if _, err := s.Settle(ctx, policy.DefaultRules(), succeeded(me, "m1", time.Now())); err != nil && !errors.Is(err, ErrLate) {
			return err
		}
	}
	fmt.Println(last)
	return s.Close()
}

func signIns(server string, rt http.RoundTripper) (*OAuthClient, error) {
	return NewOAuthClient(map[string]TokenEndpoint{"openai": {URL: server + oauth.TokenPath, ClientID: "bot"}}, rt, clock.Clock{})
}

func process(t *testing.T, path, server, step string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), turnsEnv+"="+path, serverEnv+"="+server, stepEnv+"="+step)
	return cmd
}

// signedIn makes a store whose sign-in has expired at a server that knows it.
func signedIn(t *testing.T, s *oauth.Server) (path, refresh string) {
	t.Helper()
	_, refresh = s.SignIn()
	path = newPath(t)
	store, err := Open(t.Context(), path, Deps{})
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, store, Profile{ID: me, Kind: llm.KindOAuth, Secret: secret.New("old"), Refresh: secret.New(refresh), Expires: time.UnixMilli(1)})
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return path, refresh
}

func TestEightProcessesSpendOneRefresh(t *testing.T) {
	s := &oauth.Server{ClientID: "bot"}
	s.Fault(oauth.Fault{Path: oauth.TokenPath, Delay: 300 * time.Millisecond}) // slow, so that all of them want it
	server, stop := s.Listen()
	defer stop()
	path, _ := signedIn(t, s)
	var wg sync.WaitGroup
	tokens := make([]string, 8)
	for i := range tokens {
		cmd := process(t, path, server, "")
		wg.Go(func() {
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("process %d: %v: %s", i, err, out)
			}
			tokens[i] = strings.TrimSpace(string(out))
		})
	}
	wg.Wait()
	if n := s.Count("refresh_token"); n != 1 {
		t.Errorf("%d refreshes", n)
	}
	for i, token := range tokens {
		if token != tokens[0] || !s.Alive(token) {
			t.Errorf("process %d used another token", i)
		}
	}
}

func TestKilledRefreshesLoseNothing(t *testing.T) {
	cases := []struct {
		step     string
		calls    int // of the killed process
		rejected bool
		grace    time.Duration
	}{
		{step: "before"},
		{step: "commit 1"}, // taking the lock
		{step: "before the call"},
		{step: "after the answer", calls: 1, grace: time.Hour},
		// Without a grace at the server the successor died with the process: the one loss that no
		// client can prevent. It is told as a sign-in to repeat, not as a passing failure.
		{step: "after the answer", calls: 1, rejected: true},
		{step: "commit 2", calls: 1, grace: time.Hour}, // saving the tokens
		{step: "commit 2", calls: 1, rejected: true},
		{step: "commit 3", calls: 1}, // giving the lock back
		{step: "after", calls: 1},
	}
	for _, c := range cases {
		t.Run(c.step, func(t *testing.T) {
			s := &oauth.Server{ClientID: "bot", Grace: c.grace}
			server, stop := s.Listen()
			path, _ := signedIn(t, s)
			var exit *exec.ExitError
			if err := process(t, path, server, c.step).Run(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the process ended with %v", err)
			}
			stop()
			if n := s.Count("refresh_token"); n != c.calls {
				t.Fatalf("the killed process made %d calls", n)
			}
			synctest.Test(t, func(t *testing.T) { // its lock is of another time here, so it is stale
				rt, stop := s.Transport()
				defer stop()
				client, err := signIns("http://127.0.0.1", rt)
				if err != nil {
					t.Fatal(err)
				}
				store := mustOpen(t, path, Deps{BusyTimeout: -1, Refresher: client, Log: slog.New(slog.DiscardHandler)})
				cred, err := store.Credential(t.Context(), me)
				switch {
				case c.rejected && reason(err) != llm.ReasonAuthPermanent:
					t.Errorf("got %v", err)
				case !c.rejected && (err != nil || !s.Alive(cred.Secret.Reveal())):
					t.Errorf("got %v", err)
				}
				if _, err := store.Get(t.Context(), me); err != nil {
					t.Error(err)
				}
				synctest.Wait()
			})
		})
	}
}
