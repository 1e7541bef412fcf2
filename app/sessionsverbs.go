package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"understudy/config"
	"understudy/gateway"
	"understudy/internal/sqlite"
	"understudy/session"
)

// errNoDatabase tells that nothing was ever stored.
var errNoDatabase = errors.New("there are no conversations yet")

// beside asks the running bot, or without one does a thing with the stored sessions. Looking makes no
// database.
func beside[Out any](ctx context.Context, o Options, method string, params any, without func(sessionShelf) (Out, error)) (Out, error) {
	var out Out
	c, err := remote(o)
	if err != nil {
		return out, err
	}
	if err = c.CallRPC(ctx, method, params, &out, nil); !errors.Is(err, gateway.ErrNoServer) || without == nil {
		return out, err
	}
	err = withSessions(ctx, o, func(x sessionShelf) (err error) {
		out, err = without(x)
		return err
	})
	return out, err
}

// withSessions opens the stored sessions beside a bot that may be running.
func withSessions(ctx context.Context, o Options, f func(sessionShelf) error) error {
	env, _ := config.ReadEnv(o.env())
	if env.StateDir == "" {
		return errNoState
	}
	if _, err := os.Stat(filepath.Join(env.StateDir, "state", "bot.sqlite")); errors.Is(err, fs.ErrNotExist) {
		return errNoDatabase
	}
	return withState(ctx, o, func(db *sqlite.DB) error {
		store, err := session.New(ctx, db, session.Deps{Clock: o.Clock})
		if err != nil {
			return err
		}
		return f(newShelf(store))
	})
}

// offlineKey reads what names a session without a bot.
func offlineKey(o Options, name string) (string, error) {
	if strings.HasPrefix(name, "agent:") {
		return name, nil
	}
	cfg, _, err := config.Load(loadOptions(o))
	if err != nil {
		return "", err
	}
	return namedKey(cfg, name), nil
}

// SessionsList is `bot sessions list`.
func SessionsList(ctx context.Context, o Options, std Std, agent string, limit int, asJSON bool) int {
	if limit < 1 || limit > mostListed {
		fmt.Fprintf(std.Err, "bot: --limit: must be between 1 and %d\n", mostListed)
		return ExitUsage
	}
	type listed struct {
		Sessions []SessionInfo `json:"sessions"`
	}
	got, err := beside(ctx, o, "sessions.list", sessionsListParams{agent, limit}, func(x sessionShelf) (listed, error) {
		list, err := x.list(ctx, agent, limit)
		return listed{list}, err
	})
	if errors.Is(err, errNoDatabase) {
		got.Sessions, err = []SessionInfo{}, nil
	}
	switch {
	case err != nil:
	case asJSON:
		err = printJSON(std.Out, got.Sessions)
	default:
		err = printSessions(std.Out, got.Sessions)
	}
	if err != nil {
		return fail(std, err)
	}
	return ExitOK
}

func printSessions(w io.Writer, list []SessionInfo) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "Nobody has talked to the bot yet.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tCHANGED\tMODEL\tTITLE")
	for _, s := range list {
		model := s.Model
		if model == "" {
			model = "(configured)"
		}
		if s.Running {
			model += ", answering"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", s.Key, s.UpdatedAt.Local().Format("2006-01-02 15:04"), model, harmless(s.Title))
	}
	return t.Flush()
}

// SessionsShow is `bot sessions show`: a session with the end of its transcript.
func SessionsShow(ctx context.Context, o Options, std Std, name string, messages int, asJSON bool) int {
	if messages < 0 || messages > mostMessages {
		fmt.Fprintf(std.Err, "bot: --messages: must be between 0 and %d\n", mostMessages)
		return ExitUsage
	}
	v, err := beside(ctx, o, "sessions.get", sessionsGetParams{Session: name, Messages: &messages}, func(x sessionShelf) (SessionView, error) {
		return x.view(ctx, o, name, messages)
	})
	switch {
	case err != nil:
	case asJSON:
		err = printJSON(std.Out, v)
	default:
		err = printSession(std.Out, v)
	}
	if err != nil {
		return fail(std, err)
	}
	return ExitOK
}

func (x sessionShelf) view(ctx context.Context, o Options, name string, messages int) (v SessionView, err error) {
	key, err := offlineKey(o, name)
	if err != nil {
		return v, err
	}
	s, err := x.store.Get(ctx, key)
	if err != nil {
		return v, err
	}
	v.Session = x.info(ctx, s)
	v.Messages, err = x.messages(ctx, s.ID, 0, messages)
	return v, err
}

func printSession(w io.Writer, v SessionView) error {
	s := v.Session
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "%s\t%s\n", name, value)
		}
	}
	row("key", s.Key)
	row("title", harmless(s.Title))
	row("place", strings.Trim(s.Address.Channel+" "+s.Address.Conversation+" "+s.Address.Thread, " "))
	row("began", s.StartedAt.Local().Format(time.DateTime))
	if !s.LastInteractionAt.IsZero() {
		row("last message", s.LastInteractionAt.Local().Format(time.DateTime))
	}
	row("model", s.Model)
	row("profile", s.Profile)
	row("answered last", s.LastModel)
	if s.Fallback != nil {
		row("fallback", s.Fallback.Active+" answers for "+s.Fallback.Selected)
	}
	row("think", s.Think)
	row("queue", s.Queue)
	row("tokens", fmt.Sprintf("%d in, %d out, context %d; compactions: %d", s.TokensIn, s.TokensOut, s.Context, s.Compactions))
	if err := t.Flush(); err != nil {
		return err
	}
	for _, m := range v.Messages {
		who := m.Role
		if m.Kind != string(session.KindMessage) {
			who = m.Kind
		}
		if len(m.Tools) > 0 {
			who += " (" + strings.Join(m.Tools, ", ") + ")"
		}
		if _, err := fmt.Fprintf(w, "\n%s  %s\n%s\n", m.At.Local().Format(time.DateTime), who, harmless(m.Text)); err != nil {
			return err
		}
	}
	return nil
}

// harmless takes out of a stranger's text what a terminal would obey.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}

// SessionsReset is `bot sessions reset`.
func SessionsReset(ctx context.Context, o Options, std Std, name string) int {
	type reset struct {
		Said []string `json:"said"`
	}
	got, err := beside[reset](ctx, o, "sessions.reset", sessionParams{name}, nil)
	if err != nil {
		return fail(std, err)
	}
	fmt.Fprintln(std.Out, strings.Join(got.Said, "\n"))
	return ExitOK
}

// SessionsDelete is `bot sessions delete`; without yes it only says what it would do.
func SessionsDelete(ctx context.Context, o Options, std Std, name string, yes bool) int {
	if !yes {
		fmt.Fprintln(std.Err, "bot: this removes the conversation with everything that was said in it, for good; to do so add --yes")
		return ExitUsage
	}
	type deleted struct {
		Key string `json:"deleted"`
	}
	got, err := beside[deleted](ctx, o, "sessions.delete", sessionParams{name}, nil)
	if err != nil {
		return fail(std, err)
	}
	fmt.Fprintf(std.Out, "%s is deleted.\n", got.Key)
	return ExitOK
}

// SessionsCleanup is `bot sessions cleanup`.
func SessionsCleanup(ctx context.Context, o Options, std Std, dryRun, asJSON bool) int {
	type cleaned struct {
		Removed []RemovalInfo `json:"removed"`
		DryRun  bool          `json:"dryRun"`
	}
	var without func(sessionShelf) (cleaned, error)
	if dryRun {
		without = func(x sessionShelf) (cleaned, error) {
			list, err := cleanup(ctx, x.store, true)
			return cleaned{list, true}, err
		}
	}
	got, err := beside(ctx, o, "sessions.cleanup", sessionsCleanupParams{dryRun}, without)
	if errors.Is(err, errNoDatabase) {
		got, err = cleaned{Removed: []RemovalInfo{}, DryRun: true}, nil
	}
	if err != nil {
		return fail(std, err)
	}
	if asJSON {
		if err := printJSON(std.Out, got); err != nil {
			return fail(std, err)
		}
		return ExitOK
	}
	verb := "removed"
	if dryRun {
		verb = "would go"
	}
	slices.SortFunc(got.Removed, func(a, b RemovalInfo) int { return compare(a.Key, b.Key, a.SessionID, b.SessionID) })
	for _, r := range got.Removed {
		fmt.Fprintf(std.Out, "%s (%s): %s\n", r.Key, r.Why, verb)
	}
	fmt.Fprintf(std.Out, "%s: %d. Conversations in which people wrote stay.\n", verb, len(got.Removed))
	return ExitOK
}

// exportWindow is how many entries an export reads at a time.
const exportWindow = 200

// exportLine is a line of an export.
type exportLine struct {
	Type       string          `json:"type"` // session, transcript, entry, decision
	Session    *SessionInfo    `json:"session,omitempty"`
	Transcript string          `json:"transcript,omitempty"`
	Entry      *exportedEntry  `json:"entry,omitempty"`
	Decision   json.RawMessage `json:"decision,omitempty"`
	At         time.Time       `json:"at,omitzero"`
}

// exportedEntry is an entry as it is stored.
type exportedEntry struct {
	Seq     int64     `json:"seq"`
	Kind    string    `json:"kind"`
	Message any       `json:"message"`
	Model   string    `json:"model,omitempty"`
	Usage   any       `json:"usage,omitempty"`
	At      time.Time `json:"at"`
}

// SessionsExport is `bot sessions export`: everything that is stored under a key, as JSON Lines. It
// reads the database itself, so that its size is no matter; a running bot does not mind.
func SessionsExport(ctx context.Context, o Options, std Std, name, file string) int {
	key, err := offlineKey(o, name)
	if err != nil {
		return fail(std, err)
	}
	err = withSessions(ctx, o, func(x sessionShelf) error {
		s, err := x.store.Get(ctx, key)
		if err != nil {
			return err
		}
		if file == "" {
			return x.export(ctx, s, std.Out)
		}
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		return errors.Join(x.export(ctx, s, f), f.Close())
	})
	if err != nil {
		return fail(std, err)
	}
	return ExitOK
}

// export writes a session with all its transcripts, the oldest first, and the record of its turns.
func (x sessionShelf) export(ctx context.Context, s session.Session, w io.Writer) error {
	enc := json.NewEncoder(w)
	info := x.info(ctx, s)
	if err := enc.Encode(exportLine{Type: "session", Session: &info}); err != nil {
		return err
	}
	ids, err := x.store.Transcripts(ctx, s.Key)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := enc.Encode(exportLine{Type: "transcript", Transcript: id}); err != nil {
			return err
		}
		if err := x.exportTranscript(ctx, id, enc); err != nil {
			return err
		}
	}
	decisions, err := x.store.Decisions(ctx, s.Key, 1000)
	if err != nil {
		return err
	}
	slices.Reverse(decisions)
	for _, d := range decisions {
		if err := enc.Encode(exportLine{Type: "decision", Decision: d.Record, At: utc(d.At)}); err != nil {
			return err
		}
	}
	return nil
}

// exportTranscript goes forward through a transcript, whose entries are numbered without gaps.
func (x sessionShelf) exportTranscript(ctx context.Context, id string, enc *json.Encoder) error {
	for from := int64(1); ; from += exportWindow {
		entries, err := x.store.Page(ctx, id, from+exportWindow, exportWindow)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Seq < from {
				continue // the end was reached
			}
			line := exportedEntry{Seq: e.Seq, Kind: string(e.Kind), Message: e.Message, Model: refName(e.Model), At: utc(e.At)}
			if e.Usage != nil {
				line.Usage = e.Usage
			}
			if err := enc.Encode(exportLine{Type: "entry", Transcript: id, Entry: &line}); err != nil {
				return err
			}
		}
		if len(entries) == 0 || entries[len(entries)-1].Seq < from+exportWindow-1 {
			return nil
		}
	}
}
