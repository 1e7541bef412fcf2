package console

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"understudy/channels"
	"understudy/chat"
)

// TTY is a terminal in raw mode.
type TTY struct {
	In   io.Reader
	Out  io.Writer
	Size func() (width, height int) // in characters
	// Color allows colours and dimmed text.
	Color bool
}

// IsTerminal reports whether both files are terminals, so that Chat can be used; otherwise Pipe.
func IsTerminal(in, out *os.File) bool {
	return term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd()))
}

// OpenTTY puts the terminal in raw mode. restore must be called before the process ends.
func OpenTTY(in, out *os.File) (tty TTY, restore func() error, err error) {
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return TTY{}, nil, fmt.Errorf("terminal: %w", err)
	}
	size := func() (int, int) {
		width, height, err := term.GetSize(int(out.Fd()))
		if err != nil || width <= 0 || height <= 0 {
			return 80, 24
		}
		return width, height
	}
	return TTY{In: in, Out: out, Size: size}, func() error { return term.Restore(int(in.Fd()), state) }, nil
}

// session is a running Chat.
type session struct {
	link   Link
	tty    TTY
	keys   *keys
	editor *term.Terminal
	screen *screen
	verbs  []channels.CommandInfo

	edited  chan edit // what the line editor returned
	editing bool      // the line editor is running
	pasted  []string  // lines of a paste that is not finished

	held  map[string]Event // answers that arrive while nothing was asked, until they stop growing
	order []string
	quiet *time.Timer
}

type edit struct {
	line string
	err  error
}

const (
	prompt     = "› "
	greeting   = "Type a message, or / and Tab for commands. Ctrl-C stops an answer, /exit leaves."
	quietAfter = 1200 * time.Millisecond
	// The bot may be done with a message a moment before its answer has reached its last form.
	grace = 500 * time.Millisecond
)

// errLeave ends a Chat at the person's wish.
var errLeave = errors.New("left")

// Chat is `bot chat` on a terminal: a prompt with history and completion; answers grow as they are
// written, notices are dim, errors red. Ctrl-C stops the running answer, a second one leaves, as do
// /exit and Ctrl-D. It returns nil when the person leaves, else why the conversation ended.
//
// One goroutine of it lives until tty.In delivers once more or is closed.
func Chat(ctx context.Context, link Link, tty TTY) error {
	s := &session{
		link: link, tty: tty, keys: readKeys(tty.In), edited: make(chan edit, 1), held: map[string]Event{},
		quiet: time.NewTimer(time.Hour),
	}
	s.quiet.Stop()
	s.editor = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{s.keys, tty.Out}, prompt)
	s.editor.AutoCompleteCallback = s.complete
	s.screen = &screen{w: s.editor, size: tty.Size, color: tty.Color}
	if verbs, err := link.Commands(ctx); err == nil { // without them there is just no completion
		s.verbs = verbs
	}
	s.editor.SetBracketedPasteMode(true)
	s.screen.put(s.screen.paint(dim, greeting) + "\n\n")
	err := s.run(ctx)
	close(s.keys.stop)
	if s.editing {
		<-s.edited
	}
	s.editor.SetBracketedPasteMode(false)
	if errors.Is(err, errLeave) {
		return nil
	}
	return err
}

func (s *session) run(ctx context.Context) error {
	for {
		s.edit()
		select {
		case e := <-s.edited:
			s.editing = false
			if err := s.entered(ctx, e); err != nil {
				return err
			}
		case e, open := <-s.link.Events():
			if !open {
				return s.gone()
			}
			s.unasked(e)
		case <-s.quiet.C:
			s.release()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// edit starts the line editor unless it runs. It ends with a line, or when the keys do.
func (s *session) edit() {
	if s.editing {
		return
	}
	s.editing = true
	if width, height := s.tty.Size(); width > 0 && height > 0 {
		_ = s.editor.SetSize(width, height) // fails only when writing fails
	}
	go func() {
		line, err := s.editor.ReadLine()
		s.edited <- edit{line, err}
	}()
}

// entered acts on what the line editor returned.
func (s *session) entered(ctx context.Context, e edit) error {
	switch {
	case errors.Is(e.err, term.ErrPasteIndicator):
		s.pasted = append(s.pasted, e.line)
		return nil
	case e.err != nil: // Ctrl-C or Ctrl-D at the prompt, or the terminal is gone
		s.screen.put("\n")
		return errLeave
	}
	text := strings.TrimSpace(strings.Join(append(s.pasted, e.line), "\n"))
	s.pasted = nil
	switch text {
	case "":
		return nil
	case "/exit", "/quit":
		return errLeave
	}
	s.release()
	return s.turn(ctx, text)
}

// turn passes a message on and shows what happens until the bot is done with it.
func (s *session) turn(ctx context.Context, text string) error {
	id := rand.Text()
	if err := s.link.Say(ctx, id, text); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.screen.insert(Event{Class: chat.Error, Text: err.Error()})
		return nil
	}
	s.screen.work()
	defer s.screen.finish()
	t := turn{session: s, id: id, chunks: s.keys.chunks}
	for !t.over {
		if err := t.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// turn is one message and what comes of it.
type turn struct {
	*session
	id         string
	chunks     chan []byte // nil once the keyboard is gone
	interrupts int
	patience   <-chan time.Time // for the last form of an answer, once the bot is done
	over       bool
}

func (t *turn) step(ctx context.Context) error {
	select {
	case e, open := <-t.link.Events():
		if !open {
			return t.gone()
		}
		t.event(e)
	case <-t.patience:
		t.over = true
	case chunk, open := <-t.chunks:
		if !open {
			t.chunks = nil // the answer still comes; the editor finds out behind it
			return nil
		}
		return t.typed(ctx, chunk)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func (t *turn) event(e Event) {
	if e.Type == Done && e.ID == t.id {
		if t.screen.current == "" || t.screen.final {
			t.over = true
			return
		}
		t.patience = time.After(grace)
		return
	}
	t.screen.show(e)
	t.over = t.patience != nil && t.screen.final
}

// typed stops the answer at the first Ctrl-C and leaves at the second.
func (t *turn) typed(ctx context.Context, chunk []byte) error {
	n := t.keys.during(chunk)
	first := t.interrupts == 0 && n > 0
	t.interrupts += n
	if t.interrupts > 1 {
		return errLeave
	}
	if first && t.link.Say(ctx, rand.Text(), "/stop") != nil {
		return errLeave
	}
	return nil
}

// unasked shows what arrives at the prompt. An answer there belongs to another terminal or comes
// late; it is shown once it has stopped growing.
func (s *session) unasked(e Event) {
	switch {
	case e.Type == Sent && e.Class != chat.Assistant:
		s.screen.insert(e)
	case e.Type == Sent:
		s.order = append(s.order, e.ID)
		s.hold(e)
	case e.Type == Changed && s.held[e.ID].ID != "":
		s.hold(e)
	case e.Type == Changed:
		s.screen.change(e)
	case e.Type == Deleted:
		delete(s.held, e.ID)
	}
}

func (s *session) hold(e Event) {
	s.held[e.ID] = e
	s.quiet.Reset(quietAfter)
}

// release shows the answers that were held back.
func (s *session) release() {
	for _, id := range s.order {
		if e, there := s.held[id]; there {
			s.screen.insert(e)
		}
	}
	clear(s.held)
	s.order = nil
}

func (s *session) gone() error {
	s.screen.finish()
	if err := s.link.Err(); err != nil {
		return err
	}
	return ErrGone
}

// complete is the editor's hook: Tab completes a slash command, and lists them when several fit.
func (s *session) complete(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' || !strings.HasPrefix(line, "/") || strings.Contains(line[:pos], " ") {
		return "", 0, false
	}
	fits, common := matching(s.verbs, line[1:pos])
	switch {
	case len(fits) == 0:
		return line, pos, true
	case len(fits) == 1:
		common += " "
	case common == line[1:pos]:
		var b strings.Builder
		for _, c := range fits {
			fmt.Fprintf(&b, "  /%-14s %s\n", c.Name, c.Description)
		}
		s.screen.put(s.screen.paint(dim, b.String()))
	}
	return "/" + common + strings.TrimPrefix(line[pos:], " "), len(common) + 1, true
}

// matching returns the commands that start with what was typed, and the longest start they share.
func matching(verbs []channels.CommandInfo, typed string) (fits []channels.CommandInfo, common string) {
	exit := channels.CommandInfo{Name: "exit", Description: "leave the chat"}
	for _, c := range append(verbs[:len(verbs):len(verbs)], exit) {
		if !strings.HasPrefix(c.Name, typed) {
			continue
		}
		if len(fits) == 0 {
			common = c.Name
		}
		for !strings.HasPrefix(c.Name, common) {
			common = common[:len(common)-1]
		}
		fits = append(fits, c)
	}
	return fits, common
}
