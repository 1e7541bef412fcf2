package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"understudy/channels"
	"understudy/chat"
)

// Back-offs: of failures that pass by themselves, and of another receiver with the same token.
var (
	transientWaits = backoff{first: 400 * time.Millisecond, factor: 2, most: 30 * time.Second}
	conflictWaits  = backoff{first: 5 * time.Second, factor: 1.5, most: 60 * time.Second}
)

// backoff is a growing wait.
type backoff struct {
	first, most time.Duration
	factor      float64
}

// after returns the wait after so many failures in a row, starting with 1.
func (b backoff) after(failures int) time.Duration {
	d := float64(b.first)
	for range failures - 1 {
		if d *= b.factor; d >= float64(b.most) {
			return b.most
		}
	}
	return time.Duration(d)
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// allowedUpdates is sticky on the server and therefore always sent.
const allowedUpdates = `["message","edited_message","callback_query","message_reaction","my_chat_member"]`

// Run implements channels.Adapter: by polling, or with Config.WebhookURL by waiting for the calls
// that ServeHTTP gets.
func (b *Bot) Run(ctx context.Context, sink channels.Sink) error {
	if !b.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer b.running.Store(false)
	ctx, cancel := context.WithCancel(ctx)
	var showing sync.WaitGroup
	showing.Go(func() { b.showPresses(ctx) })
	defer showing.Wait()
	defer cancel()
	defer b.api.closeIdle()

	in := &intake{Bot: b, sink: sink}
	in.report(channels.Connecting, "")
	err := in.run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	in.report(channels.Stopped, err.Error())
	return err
}

// intake is one run of an account: what polling and webhook have in common. Updates are handled one
// at a time.
type intake struct {
	*Bot
	sink   channels.Sink
	self   identity
	pastes pastes

	mu     sync.Mutex // of the last report
	state  channels.State
	detail string
}

// run receives until ctx ends or the account is refused for good.
func (in *intake) run(ctx context.Context) error {
	release, err := in.deps.Tokens.acquire(ctx, in.cfg.BotID(), func() {
		in.report(channels.Connecting, "another account of this process still uses this bot")
	})
	if err != nil {
		return err
	}
	defer release()
	if err := in.identify(ctx); err != nil {
		return err
	}
	if in.cfg.Webhook() != "" {
		return in.listen(ctx)
	}
	p := &poller{intake: in, since: time.Now()}
	return p.run(ctx)
}

// report tells the sink about the connection when something changed.
func (in *intake) report(s channels.State, detail string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if s == in.state && detail == in.detail {
		return
	}
	in.state, in.detail = s, detail
	in.sink.Status(channels.Status{Channel: Channel, Account: in.deps.Account, State: s, Detail: detail, Since: time.Now()})
}

func (in *intake) connected() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.state == channels.Connected
}

// identify learns who the bot is. It returns only permanent errors and the end of ctx.
func (in *intake) identify(ctx context.Context) error {
	return in.persist(ctx, func() error {
		result, err := in.api.call(ctx, in.api.calls, "getMe", nil)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(result, &in.self); err != nil || in.self.ID == 0 {
			return &callError{method: "getMe", garbled: true, code: http.StatusOK}
		}
		return nil
	})
}

// persist repeats a step until it succeeds, is refused for good, or ctx ends.
func (in *intake) persist(ctx context.Context, step func() error) error {
	for failures := 1; ; failures++ {
		err := step()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if final := permanent(err); final != nil {
			return final
		}
		in.fail(ctx, err, failures)
	}
}

// fail reports a failure that passes and waits.
func (in *intake) fail(ctx context.Context, err error, failures int) {
	wait, detail := transientWaits.after(failures), err.Error()
	var e *callError
	if errors.As(err, &e) {
		switch {
		case e.code == http.StatusConflict:
			wait = conflictWaits.after(failures)
			detail = "another process polls this bot token"
			if webhookSet(e) {
				detail = "another process has set a webhook for this bot"
			}
			in.api.poll.client.CloseIdleConnections() // the next poll needs a fresh connection
		case e.retryAfter > 0:
			wait = e.retryAfter
		}
	}
	in.log.Warn("receiving failed", "error", detail, "failures", failures, "seconds", wait.Seconds())
	in.report(channels.Down, detail)
	sleep(ctx, wait)
}

// permanent returns the words for the operator if an error will not pass by itself.
func permanent(err error) error {
	var e *callError
	if !errors.As(err, &e) || e.garbled {
		return nil
	}
	switch e.code {
	case http.StatusUnauthorized, http.StatusNotFound:
		return fmt.Errorf("telegram does not accept the bot token (%d %s): check botToken", e.code, e.description)
	case http.StatusForbidden:
		return fmt.Errorf("telegram refuses this bot (%d %s)", e.code, e.description)
	}
	return nil
}

// take handles one update, as far as it can be read. A bad one, of which not enough can be read, is noted
// and passed over: it must never block the ones behind it. An error means that the update must come again.
func (in *intake) take(ctx context.Context, id int64, raw json.RawMessage) error {
	var u update
	odd, err := decode(raw, &u)
	switch {
	case err != nil:
		return in.bad(ctx, id, err.Error())
	case odd && !u.whole():
		return in.bad(ctx, id, "a field that is needed has an unexpected type")
	case odd:
		in.log.Info("update read in part", "update_id", id)
	}
	if err := in.handle(ctx, u); err != nil {
		return fmt.Errorf("update %d is not stored: %w", id, err)
	}
	return nil
}

// bad notes an update that cannot be read. Its key is none that a readable update could have: without an
// id, the one that it is known by is only likely.
func (in *intake) bad(ctx context.Context, id int64, reason string) error {
	if in.deps.Bad != nil {
		if err := in.deps.Bad(ctx, in.eventKey(id)+":bad", reason); err != nil {
			return fmt.Errorf("bad update %d is not noted: %w", id, err)
		}
	}
	in.log.Warn("bad update skipped", "update_id", id, "error", reason)
	return nil
}

// handle gives one update to its reader. Reactions of people are received only so that nobody has to
// register again when they are wanted.
func (in *intake) handle(ctx context.Context, u update) error {
	switch {
	case u.Message != nil:
		return in.receive(ctx, u.ID, u.Message, false)
	case u.EditedMessage != nil:
		return in.receive(ctx, u.ID, u.EditedMessage, true)
	case u.Callback != nil:
		return in.pressed(ctx, u.ID, u.Callback)
	case u.MyMember != nil:
		in.membership(u.MyMember)
	}
	return nil
}

// membership notes where the bot may be: what is sent to a place that has thrown it out fails.
func (in *intake) membership(m *memberChange) {
	attrs := []any{"chat_id", m.Chat.ID, "chat_type", m.Chat.Type, "status", m.New.Status}
	if m.New.Status == "kicked" || m.New.Status == "left" {
		in.log.Warn("the bot was blocked or removed", attrs...)
		return
	}
	in.log.Info("membership changed", attrs...)
}

// accept passes a message on. A refusal is final, although nobody waits for it here.
func (in *intake) accept(ctx context.Context, m chat.Inbound) error {
	err := in.sink.Accept(ctx, m)
	var refused *channels.Refusal
	if errors.As(err, &refused) {
		return nil
	}
	return err
}

// eventKey is the key of an update (spec/chat.md §1.6).
func (in *intake) eventKey(updateID int64) string {
	return "tg:" + id64(in.self.ID) + ":" + id64(updateID)
}
