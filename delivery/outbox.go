package delivery

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/delivery/internal/outboxdb"
	"understudy/internal/sqlite"
)

//go:embed migrations/*.sql
var migrations embed.FS

// The states of a row (spec/chat.md §10).
const (
	statePending = "pending"
	stateClaimed = "claimed"
	stateSent    = "sent"
	stateFailed  = "failed"
	stateUnknown = "unknown"
)

// part is one message of a thing: a rendered text or a file.
type part struct {
	Text    string            `json:"text,omitempty"`
	Plain   string            `json:"plain,omitempty"`
	Source  string            `json:"source,omitempty"` // the Markdown of Text
	Media   []chat.Attachment `json:"media,omitempty"`
	Buttons []chat.Button     `json:"buttons,omitempty"`
	// Speech marks the answer as sound: nothing is lost when it does not arrive. With a text it is that
	// text's voice note (channels.Traits.VoiceCaption).
	Speech bool `json:"speech,omitempty"`
}

// body is what a row keeps of a thing: how it will look is settled when it is stored, so that it
// goes on after a restart exactly where it stopped.
type body struct {
	Out   chat.Outbound `json:"out"`
	Parts []part        `json:"parts"`
	about
}

// about is what a row knows of the turn it belongs to and of itself.
type about struct {
	Chosen  string `json:"chosen,omitempty"`  // the message that the model chose to refer to
	Batched bool   `json:"batched,omitempty"` // the turn answers several merged messages
	Spoken  bool   `json:"spoken,omitempty"`  // whether it is to be heard too is settled
}

// parcel is a row on its way.
type parcel struct {
	id       int64
	idem     string
	state    string
	editID   string
	created  time.Time
	out      chat.Outbound
	parts    []part
	about    about
	receipts []channels.Receipt // one for each part that is done
}

// outbox stores the durable things. Its statements are short and are not interrupted by the end of
// a context: what has happened on a platform is written down also during a shutdown.
type outbox struct {
	db *sqlite.DB
	q  *outboxdb.Queries
}

func openOutbox(ctx context.Context, db *sqlite.DB) (*outbox, error) {
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	if err := sqlite.Migrate(ctx, db, "outbox", dir); err != nil {
		return nil, err
	}
	return &outbox{db, outboxdb.New(db.Writes(), db.Reads())}, nil
}

// add stores a thing and returns its id, 0 when it is there already.
func (s *outbox) add(ctx context.Context, idem string, o chat.Outbound, parts []part, x about, now time.Time) (int64, error) {
	text, err := encodeBody(o, parts, x)
	if err != nil {
		return 0, err
	}
	return s.q.Insert(context.WithoutCancel(ctx), outboxdb.Row{
		IdemKey: idem, TurnID: o.TurnID, Seq: o.Seq, Kind: o.Class.String(),
		Channel: o.To.Channel, Account: o.To.Account, DestKey: destKey(o.To),
		Body: text, CreatedAt: now.UnixMilli(),
	})
}

func encodeBody(o chat.Outbound, parts []part, x about) (string, error) {
	o.Media = nil // the parts have it
	b, err := json.Marshal(body{o, parts, x})
	if err != nil {
		return "", fmt.Errorf("encoding a message: %w", err)
	}
	return string(b), nil
}

// get loads a row. When the row is there but cannot be read, the parcel holds its id.
func (s *outbox) get(ctx context.Context, id int64) (*parcel, error) {
	r, err := s.q.Get(context.WithoutCancel(ctx), id)
	if err != nil {
		return nil, err
	}
	return open(r)
}

func open(r outboxdb.Row) (*parcel, error) {
	p := &parcel{id: r.ID, idem: r.IdemKey, state: r.State, editID: r.EditID, created: time.UnixMilli(r.CreatedAt)}
	if r.Body != "" {
		var b body
		if err := json.Unmarshal([]byte(r.Body), &b); err != nil {
			return p, fmt.Errorf("outbox row %d: %w", r.ID, err)
		}
		p.out, p.parts, p.about = b.Out, b.Parts, b.about
	}
	if err := json.Unmarshal([]byte(r.Receipts), &p.receipts); err != nil {
		return p, fmt.Errorf("outbox row %d: receipts: %w", r.ID, err)
	}
	return p, nil
}

func (s *outbox) claim(ctx context.Context, p *parcel, editID string, now time.Time) error {
	return s.q.Claim(context.WithoutCancel(ctx), p.id, editID, now.UnixMilli())
}

func (s *outbox) release(ctx context.Context, p *parcel) error {
	return s.q.Release(context.WithoutCancel(ctx), p.id)
}

// progress stores the receipts so far. Together with the receipt of a replaced preview goes the
// note that the preview stands.
func (s *outbox) progress(ctx context.Context, p *parcel, replaced bool) error {
	ctx = context.WithoutCancel(ctx)
	text, err := encodeReceipts(p)
	if err != nil {
		return err
	}
	if !replaced {
		return s.q.Progress(ctx, p.id, text)
	}
	return s.db.Write(ctx, func(tx *sqlite.Tx) error {
		q := outboxdb.New(tx, tx)
		if err := q.DropPreview(ctx, p.out.TurnID); err != nil {
			return err
		}
		return q.Progress(ctx, p.id, text)
	})
}

func encodeReceipts(p *parcel) (string, error) {
	if len(p.receipts) == 0 {
		return "[]", nil
	}
	b, err := json.Marshal(p.receipts)
	if err != nil {
		return "", fmt.Errorf("encoding receipts: %w", err)
	}
	return string(b), nil
}

// recut stores new parts.
func (s *outbox) recut(ctx context.Context, p *parcel) error {
	text, err := encodeBody(p.out, p.parts, p.about)
	if err != nil {
		return err
	}
	return s.q.SetBody(context.WithoutCancel(ctx), p.id, text)
}

// end gives a row its last state; reason is for operators.
func (s *outbox) end(ctx context.Context, p *parcel, state, reason string, now time.Time) error {
	text, err := encodeReceipts(p)
	if err != nil {
		return err
	}
	return s.q.End(context.WithoutCancel(ctx), p.id, state, text, reason, now.UnixMilli())
}

func (s *outbox) prune(ctx context.Context, before time.Time) error {
	return s.q.Prune(ctx, before.UnixMilli())
}

// putPreview remembers a message that shows a turn's answer while it is written; stream tells that
// it still grows on the platform's side.
func (s *outbox) putPreview(ctx context.Context, turn string, to chat.Address, id string, stream bool, now time.Time) error {
	dest, err := json.Marshal(to)
	if err != nil {
		return err
	}
	return s.q.PutPreview(context.WithoutCancel(ctx), outboxdb.Preview{TurnID: turn, Dest: string(dest), MessageID: id, Stream: stream}, now.UnixMilli())
}

func (s *outbox) dropPreview(ctx context.Context, turn string) error {
	return s.q.DropPreview(context.WithoutCancel(ctx), turn)
}

// previewOf returns the message of a turn's preview, "" = none stands, and whether it grows.
func (s *outbox) previewOf(ctx context.Context, turn string) (id string, stream bool, err error) {
	return s.q.PreviewOf(context.WithoutCancel(ctx), turn)
}

// answered reports whether the turn of a row had its first message before.
func (s *outbox) answered(ctx context.Context, p *parcel) (bool, error) {
	rows, err := s.q.OfTurn(context.WithoutCancel(ctx), p.out.TurnID)
	if err != nil {
		return false, err
	}
	for _, r := range rows {
		var c chat.Class
		if c.UnmarshalText([]byte(r.Kind)) == nil && r.ID != p.id && c.TakesSlot() && (r.State == stateSent || r.State == stateUnknown) {
			return true, nil
		}
	}
	return false, nil
}

// key returns the idempotency key of a part: 24 ASCII characters, stable over retries and restarts.
func (p *parcel) key(index int) string { return pieceKey(p.idem + "/" + strconv.Itoa(index)) }

func pieceKey(s string) string {
	sum := sha256.Sum256([]byte(s))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:15]))
}

// destKey is the destination as the table stores it: without the zero bytes of its name.
func destKey(to chat.Address) string {
	return strings.ReplaceAll(to.Destination(), "\x00", "\x1f")
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
