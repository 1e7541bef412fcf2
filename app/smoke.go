package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"understudy/channels"
	"understudy/chat"
	"understudy/config"
)

// SmokeOptions say what `bot channels smoke` tries.
type SmokeOptions struct {
	Channel, Account string // "" = all channels; the default account
	// To is a conversation in which messages may be sent; "" = nothing is sent.
	To, Thread string
}

// smokeLimit bounds one call to a platform.
const smokeLimit = 30 * time.Second

var errNotTried = errors.New("this channel cannot do it")

// Smoke is `bot channels smoke`: a maintainer's check with real tokens before a release. It tries what
// a program can try and prints the list of what only a person can see (spec/chat.md §11). It works
// beside a running bot, because it does not receive.
func Smoke(ctx context.Context, o Options, std Std, so SmokeOptions) int {
	cfg, _, err := config.Load(loadOptions(o))
	if err != nil {
		return fail(std, err)
	}
	tried, bad := 0, 0
	for _, b := range bareAccounts(o, cfg) {
		if so.Channel != "" && so.Channel != b.channel || accountID(so.Account) != b.id {
			b.close()
			continue
		}
		tried++
		s := smoke{out: std.Out, account: b}
		fmt.Fprintf(std.Out, "%s %s\n", b.channel, b.id)
		s.all(ctx, so)
		b.close()
		bad += s.failed
	}
	switch {
	case tried == 0 && so.Channel == "" && so.Account == "":
		return fail(std, errors.New("no chat platform is configured; docs/telegram.md, docs/slack.md and docs/discord.md show how"))
	case tried == 0:
		return fail(std, fmt.Errorf("no such account is configured: %s of %s", accountID(so.Account), cmp.Or(so.Channel, "any channel")))
	case bad > 0:
		return ExitFailed
	}
	return ExitOK
}

// smoke tries one account.
type smoke struct {
	out     io.Writer
	account bareAccount
	to      chat.Address
	sent    string // id of the message that is tried on
	failed  int
}

// all tries everything and prints the list.
func (s *smoke) all(ctx context.Context, so SmokeOptions) {
	s.step("opens", func() error { return s.account.err })
	if s.account.err == nil {
		s.probe(ctx)
		if so.To != "" {
			s.talk(ctx, so)
		}
	}
	fmt.Fprintf(s.out, "\n%s\n", checklist(s.account.channel))
}

// step tries one thing and prints what came of it.
func (s *smoke) step(what string, f func() error) {
	err := f()
	switch {
	case err == nil:
		fmt.Fprintf(s.out, "  ok      %s\n", what)
	case errors.Is(err, errNotTried):
		fmt.Fprintf(s.out, "  -       %s: %s\n", what, err)
	default:
		s.failed++
		fmt.Fprintf(s.out, "  FAILED  %s: %s\n", what, err)
	}
}

// call is a step that asks the platform.
func (s *smoke) call(ctx context.Context, what string, f func(ctx context.Context) error) {
	s.step(what, func() error {
		ctx, cancel := context.WithTimeout(ctx, smokeLimit)
		defer cancel()
		return f(ctx)
	})
}

func (s *smoke) probe(ctx context.Context) {
	p, ok := s.account.adapter.(channels.Prober)
	if !ok {
		return
	}
	s.call(ctx, "probe", func(ctx context.Context) error {
		found, err := p.Probe(ctx)
		for _, f := range found {
			fmt.Fprintf(s.out, "          %s\n", f.What)
			if f.Fix != "" {
				fmt.Fprintf(s.out, "          → %s\n", f.Fix)
				err = errors.Join(err, errors.New(f.Fix))
			}
		}
		return err
	})
}

// piece is something to send.
func (s *smoke) piece(text string) channels.Piece {
	return channels.Piece{To: s.to, Class: chat.Command, Text: text, Plain: text, Key: uuid.NewString()[:24]}
}

// talk sends a message, changes it in every way and takes it away again.
func (s *smoke) talk(ctx context.Context, so SmokeOptions) {
	var err error
	if s.to, err = parseTarget(s.account.channel, s.account.id, so.To, so.Thread); err != nil {
		s.step("target", func() error { return err })
		return
	}
	x := s.account.adapter
	s.call(ctx, "send", func(ctx context.Context) error {
		r, err := x.Send(ctx, s.piece("Smoke test: this message is edited and deleted at once."))
		if err == nil && len(r.IDs) == 0 {
			err = errors.New("the platform gave no id")
		}
		if err == nil {
			s.sent = r.IDs[0]
		}
		return err
	})
	if s.sent == "" {
		return
	}
	if e, ok := x.(channels.Editor); ok {
		s.call(ctx, "edit", func(ctx context.Context) error { return e.Edit(ctx, s.to, s.sent, s.piece("Smoke test: edited.")) })
	}
	s.react(ctx)
	s.typing(ctx)
	s.upload(ctx)
	s.stream(ctx)
	if e, ok := x.(channels.Editor); ok {
		s.call(ctx, "delete", func(ctx context.Context) error { return e.Delete(ctx, s.to, s.sent) })
	}
}

func (s *smoke) react(ctx context.Context) {
	s.call(ctx, "reaction", func(ctx context.Context) error {
		r, ok := s.account.adapter.(channels.Reactor)
		if !ok {
			return errNotTried
		}
		return errors.Join(r.React(ctx, s.to, s.sent, "👀"), r.Unreact(ctx, s.to, s.sent, "👀"))
	})
}

func (s *smoke) typing(ctx context.Context) {
	s.call(ctx, "typing", func(ctx context.Context) error {
		t, ok := s.account.adapter.(channels.Typer)
		if !ok {
			return errNotTried
		}
		to := s.to
		if to.Thread == "" && s.account.adapter.Traits().OpensThreads {
			to.Thread = s.sent // such a platform shows it in threads only
		}
		err := t.Typing(ctx, to)
		if q, ok := t.(channels.Quieter); ok {
			err = errors.Join(err, q.Quiet(ctx, to))
		}
		return err
	})
}

func (s *smoke) upload(ctx context.Context) {
	s.call(ctx, "file (stays: delete it by hand)", func(ctx context.Context) error {
		p := s.piece("")
		p.Media = []chat.Attachment{{Name: "smoke.txt", MediaType: "text/plain", Size: 12, Data: []byte("smoke test.\n")}}
		_, err := s.account.adapter.Send(ctx, p)
		return err
	})
}

func (s *smoke) stream(ctx context.Context) {
	s.call(ctx, "native stream (stays)", func(ctx context.Context) error {
		st, ok := s.account.adapter.(channels.Streamer)
		p := s.piece("Smoke test: a message ")
		p.Class = chat.Assistant
		if !ok || !st.Streams(p) {
			return errNotTried
		}
		id, err := st.StartStream(ctx, p)
		if err != nil {
			return err
		}
		return errors.Join(st.AppendStream(ctx, s.to, id, "that grows."), st.StopStream(ctx, s.to, id))
	})
}
