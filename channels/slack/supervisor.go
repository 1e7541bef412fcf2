package slack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"understudy/channels"
)

// Back-off of connecting, and how long a connection has to hold to count as a good one.
const (
	firstWait = 2 * time.Second
	mostWait  = 30 * time.Second
	goodAfter = 30 * time.Second
)

// waitAfter returns the wait after so many failures in a row.
func waitAfter(failures int) time.Duration {
	if failures <= 0 {
		return 0
	}
	d := firstWait
	for range failures - 1 {
		if d *= 2; d >= mostWait {
			return mostWait
		}
	}
	return d
}

// supervisor is one run of an account. It belongs to one goroutine.
type supervisor struct {
	*Bot
	sink   channels.Sink
	tasks  *sync.WaitGroup
	state  channels.State
	detail string
	lost   time.Time // since when nothing arrived; zero = since before this run

	looks looks
}

// report tells the sink about the connection when something changed.
func (s *supervisor) report(state channels.State, detail string) {
	if state == s.state && detail == s.detail {
		return
	}
	s.state, s.detail = state, detail
	s.sink.Status(channels.Status{Channel: Channel, Account: s.deps.Account, State: state, Detail: detail, Since: time.Now()})
}

// identify learns who the bot is, and makes its inbox. It returns only permanent errors and the end of
// ctx.
func (s *supervisor) identify(ctx context.Context) (*inbox, error) {
	for failures := 1; ; failures++ {
		s.Bot.self.Store(nil) // a token may have been replaced by one of another app
		self, err := s.identity(ctx)
		if err == nil {
			return &inbox{Bot: s.Bot, sink: s.sink, self: self}, nil
		}
		if err := s.failed(ctx, err, "botToken", failures); err != nil {
			return nil, err
		}
	}
}

// failed waits after a failure that passes, and returns an error when there is no going on.
func (s *supervisor) failed(ctx context.Context, err error, key string, failures int) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if end := permanent(err, key); end != nil {
		return end
	}
	wait := waitAfter(failures)
	var e *callError
	if errors.As(err, &e) && e.retryAfter > wait {
		wait = e.retryAfter
	}
	if failures == 0 { // Slack renews connections now and then
		s.log.Info("connecting again", "reason", err)
		return nil
	}
	s.log.Warn("connection failed", "error", err, "failures", failures, "seconds", wait.Seconds())
	s.report(channels.Down, err.Error())
	return s.rest(ctx, wait)
}

// rest waits; it ends with an error when ctx ends or a token turns out to be worth nothing.
func (s *supervisor) rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case err := <-s.refused:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// identity returns who the bot is, which is asked once.
func (b *Bot) identity(ctx context.Context) (identity, error) {
	if known := b.self.Load(); known != nil {
		return *known, nil
	}
	var got *slack.AuthTestResponse
	err := b.api.call(ctx, "auth.test", func(ctx context.Context, c *slack.Client) (err error) {
		got, err = c.AuthTestContext(ctx)
		return err
	})
	if err != nil {
		return identity{}, err
	}
	self := identity{user: got.UserID, bot: got.BotID, name: plainName(got.User), team: got.TeamID}
	if self.user == "" || self.team == "" {
		return identity{}, &callError{method: "auth.test", status: 200, cause: errors.New("an answer without ids")}
	}
	if b.cfg.Mode == modeSocket && self.bot != "" {
		err := b.api.call(ctx, "bots.info", func(ctx context.Context, c *slack.Client) error {
			info, err := c.GetBotInfoContext(ctx, slack.GetBotInfoParameters{Bot: self.bot})
			if err == nil {
				self.app = info.AppID
			}
			return err
		})
		var e *callError
		switch {
		case errors.As(err, &e) && (e.code == codeScope || e.code == "bot_not_found"):
			b.log.Warn("the app of the bot token cannot be compared with that of the app token", "error", err)
		case err != nil:
			return identity{}, err
		}
	}
	b.self.Store(&self)
	return self, nil
}

// keepConnected keeps a Socket Mode connection until ctx ends or Slack refuses for good.
func (s *supervisor) keepConnected(ctx context.Context) error {
	for failures := 0; ; {
		began := time.Now()
		good, err := s.connect(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if good && time.Since(began) >= goodAfter {
			failures = 0
		} else {
			failures++
		}
		if err == nil {
			err = errors.New("slack ended the connection")
		}
		if err := s.failed(ctx, err, "appToken", failures); err != nil {
			return err
		}
	}
}

// listen serves HTTP requests until ctx ends or the bot token is refused.
func (s *supervisor) listen(ctx context.Context, in *inbox) error {
	s.log.Info("connected", "mode", s.cfg.Mode)
	s.report(channels.Connected, "")
	marks := s.marks(ctx)
	s.inbox.Store(in) // from here on requests are taken
	s.catchUp(ctx, marks)
	select {
	case err := <-s.refused:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// final is an error that has its words for the operator already.
type final struct{ error }

// errOtherApp tells that the two tokens do not belong together: events of one app would be answered
// in the name of another.
func errOtherApp(socket, bot string) error {
	return fmt.Errorf("appToken belongs to the app %s and botToken to the app %s: take both from the same app", socket, bot)
}
