package inbound

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"understudy/chat"
	"understudy/inbound/internal/inbounddb"
	"understudy/internal/sqlite"
)

// Rules of pairing (spec/chat.md §2.2).
const (
	codeAlphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789" // 32 characters, none that looks like another
	codeLength   = 8
	codeValid    = time.Hour
	maxPending   = 3 // requests of one channel account at a time
	maxMisses    = 5 // wrong codes of one channel …
	missSpan     = time.Minute
	lockout      = time.Minute // … after which none is looked at for so long
)

// The errors of Approve.
var (
	// ErrUnknownCode tells that no pending request has the code, or that it expired.
	ErrUnknownCode = errors.New("no pending request has this code; codes are valid for one hour")
	// ErrLocked tells that too many wrong codes came; wait a minute.
	ErrLocked = errors.New("too many wrong codes; try again in a minute")
)

// TextApproved is what an approved sender may be told.
const TextApproved = "✅ You are approved. Send me a message to start."

// Pairing keeps who asked for access and who got it. It is safe for concurrent use, also by several
// processes.
type Pairing struct {
	db *sqlite.DB
	q  *inbounddb.Queries
}

// OpenPairing opens the pairings of state/bot.sqlite, for commands that run beside the server.
func OpenPairing(ctx context.Context, db *sqlite.DB) (*Pairing, error) {
	q, err := openQueries(ctx, db)
	if err != nil {
		return nil, err
	}
	return &Pairing{db, q}, nil
}

// Request is a sender who waits for approval. The code itself is not kept.
type Request struct {
	Account   Account
	Sender    chat.Sender
	ExpiresAt time.Time
}

// Approval is a sender who was approved.
type Approval struct {
	Account Account
	Sender  chat.Sender
	At      time.Time
}

// Approved is what came of an approval.
type Approved struct {
	Approval
	To    chat.Address // where the sender can be told; see TextApproved
	Owner bool         // the sender became the owner, being the first
}

// Pending lists who waits; channel "" means every channel.
func (p *Pairing) Pending(ctx context.Context, channel string) ([]Request, error) {
	rows, err := p.q.Requests(ctx, channel, time.Now().UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("pairing requests: %w", err)
	}
	var out []Request
	for _, r := range rows {
		out = append(out, Request{
			Account: Account{r.Channel, r.Account}, Sender: chat.Sender{ID: r.Sender, Name: r.Name}, ExpiresAt: time.UnixMilli(r.ExpiresAt),
		})
	}
	return out, nil
}

// List lists who was approved; channel "" means every channel.
func (p *Pairing) List(ctx context.Context, channel string) ([]Approval, error) {
	rows, err := p.q.AllAllowed(ctx, channel)
	if err != nil {
		return nil, fmt.Errorf("pairings: %w", err)
	}
	var out []Approval
	for _, r := range rows {
		out = append(out, Approval{Account{r.Channel, r.Account}, chat.Sender{ID: r.Sender, Name: r.Name}, time.UnixMilli(r.At)})
	}
	return out, nil
}

// Approve lets the sender who shows the code write direct messages to the account. When there is no
// owner, neither stored nor configured (hasOwner), the sender becomes it. by says who approved, for
// the record. It returns ErrUnknownCode or ErrLocked.
func (p *Pairing) Approve(ctx context.Context, a Account, code, by string, hasOwner bool) (Approved, error) {
	var out Approved
	var verdict error // a wrong code is counted, so the transaction stands
	now := time.Now()
	err := write(ctx, p.db, func(q *inbounddb.Queries) error {
		r, err := match(ctx, q, a, code, now)
		if errors.Is(err, ErrUnknownCode) || errors.Is(err, ErrLocked) {
			verdict = err
			if errors.Is(err, ErrUnknownCode) {
				return q.PutMiss(ctx, a.Channel, now.UnixMilli())
			}
			return nil
		}
		if err != nil {
			return err
		}
		out, err = approve(ctx, q, r, by, hasOwner, now)
		return err
	})
	if err == nil {
		err = verdict
	}
	if err != nil {
		return Approved{}, fmt.Errorf("approving: %w", err)
	}
	return out, nil
}

// match finds the pending request with a code. Every pending one is compared, in constant time.
func match(ctx context.Context, q *inbounddb.Queries, a Account, code string, now time.Time) (inbounddb.Request, error) {
	last, n, err := q.Misses(ctx, a.Channel, missSpan.Milliseconds(), now.UnixMilli())
	if err != nil {
		return inbounddb.Request{}, err
	}
	if n >= maxMisses && now.Sub(time.UnixMilli(last)) < lockout {
		return inbounddb.Request{}, ErrLocked
	}
	rows, err := q.Requests(ctx, a.Channel, now.UnixMilli())
	if err != nil {
		return inbounddb.Request{}, err
	}
	sum := hashCode(code)
	found := -1
	for i, r := range rows {
		if r.Account == a.Name && subtle.ConstantTimeCompare(r.CodeHash, sum) == 1 {
			found = i
		}
	}
	if found < 0 {
		return inbounddb.Request{}, ErrUnknownCode
	}
	return rows[found], nil
}

func approve(ctx context.Context, q *inbounddb.Queries, r inbounddb.Request, by string, hasOwner bool, now time.Time) (Approved, error) {
	out := Approved{Approval: Approval{Account{r.Channel, r.Account}, chat.Sender{ID: r.Sender, Name: r.Name}, now}}
	if err := json.Unmarshal([]byte(r.Address), &out.To); err != nil {
		return out, fmt.Errorf("address of the request: %w", err)
	}
	if err := q.Allow(ctx, r, by, now.UnixMilli()); err != nil {
		return out, err
	}
	if err := q.DropRequest(ctx, r.Channel, r.Account, r.Sender); err != nil {
		return out, err
	}
	if hasOwner {
		return out, nil
	}
	stored, err := q.AnyOwner(ctx)
	if err != nil || stored {
		return out, err
	}
	out.Owner = true
	return out, q.PutOwner(ctx, r.Channel, r.Sender, now.UnixMilli())
}

// Revoke takes an approval away, and with it being the owner by pairing; it reports whether there
// was one.
func (p *Pairing) Revoke(ctx context.Context, a Account, sender string) (bool, error) {
	var was bool
	err := write(ctx, p.db, func(q *inbounddb.Queries) (err error) {
		if was, err = q.Disallow(ctx, a.Channel, a.Name, sender); err != nil || !was {
			return err
		}
		return q.DropOwner(ctx, a.Channel, sender)
	})
	if err != nil {
		return false, fmt.Errorf("revoking: %w", err)
	}
	return was, nil
}

// request stores a stranger's request with the keys of its event and returns the new code, or ""
// when there is nothing to say: the event is known, the sender has a code already, or too many wait.
func (p *Pairing) request(ctx context.Context, m chat.Inbound, keys []string, now time.Time) (string, error) {
	address, err := json.Marshal(m.Address)
	if err != nil {
		return "", fmt.Errorf("encoding an address: %w", err)
	}
	code := newCode()
	err = write(ctx, p.db, func(q *inbounddb.Queries) error {
		isNew, err := q.PutKeys(ctx, keys, now.UnixMilli())
		if err != nil {
			return err
		}
		may, err := mayRequest(ctx, q, m, now)
		if err != nil || !may || !isNew {
			code = ""
			return err
		}
		return q.PutRequest(ctx, inbounddb.Request{
			Channel: m.Address.Channel, Account: m.Address.Account, Sender: m.Sender.ID, Name: cleanName(m.Sender.Name),
			Address: string(address), CodeHash: hashCode(code), ExpiresAt: now.Add(codeValid).UnixMilli(),
		})
	})
	if err != nil {
		return "", err
	}
	return code, nil
}

func mayRequest(ctx context.Context, q *inbounddb.Queries, m chat.Inbound, now time.Time) (bool, error) {
	rows, err := q.Requests(ctx, m.Address.Channel, now.UnixMilli())
	if err != nil {
		return false, err
	}
	n := 0
	for _, r := range rows {
		if r.Account != m.Address.Account {
			continue
		}
		if r.Sender == m.Sender.ID {
			return false, nil
		}
		n++
	}
	return n < maxPending, nil
}

// withdraw removes a request whose code could not be sent.
func (p *Pairing) withdraw(ctx context.Context, m chat.Inbound) error {
	return p.q.DropRequest(ctx, m.Address.Channel, m.Address.Account, m.Sender.ID)
}

// newCode returns a random code.
func newCode() string {
	b := make([]byte, codeLength)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
	for i := range b {
		b[i] = codeAlphabet[int(b[i])%len(codeAlphabet)]
	}
	return string(b)
}

// hashCode returns what is kept of a code, in whatever case and with whatever gaps it was typed.
func hashCode(code string) []byte {
	code = strings.Map(func(r rune) rune {
		if r == '-' || unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToUpper(r)
	}, code)
	sum := sha256.Sum256([]byte(code))
	return sum[:]
}

// cleanName bounds a stranger's display name: it is shown on an operator's terminal.
func cleanName(name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name)
	if r := []rune(name); len(r) > 64 {
		name = string(r[:64])
	}
	return name
}

// pairingText tells a stranger the code.
func pairingText(m chat.Inbound, code string) string {
	channel := m.Address.Channel
	title := channel
	if channel != "" {
		title = strings.ToUpper(channel[:1]) + channel[1:]
	}
	command := "bot pairing approve " + channel + " " + code
	if m.Address.Account != "" {
		command += " --account " + m.Address.Account
	}
	return fmt.Sprintf("👋 I don't know you yet.\nYour %s id: %s\nPairing code: %s\nAsk the bot owner to run:\n\n```\n%s\n```",
		title, m.Sender.ID, code, command)
}
