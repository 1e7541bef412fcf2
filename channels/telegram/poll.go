package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"understudy/channels"
)

const (
	mostUpdates   = 100
	watchdogAfter = 120 * time.Second // without a completed poll the connections are rebuilt
	saveLimit     = 2 * time.Second
	// allowedUpdates is sticky on the server and therefore always sent.
	allowedUpdates = `["message","edited_message","callback_query","message_reaction","my_chat_member"]`
)

// Back-offs: of failures that pass by themselves, and of another poller with the same token.
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

// Run implements channels.Adapter.
func (b *Bot) Run(ctx context.Context, sink channels.Sink) error {
	if !b.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer b.running.Store(false)
	ctx, cancel := context.WithCancel(ctx)
	var answering sync.WaitGroup
	answering.Go(func() { b.answerPresses(ctx) })
	defer answering.Wait()
	defer cancel()
	defer b.api.closeIdle()

	p := &poller{Bot: b, sink: sink, since: time.Now()}
	p.report(channels.Connecting, "")
	err := p.connect(ctx)
	if err == nil {
		err = p.loop(ctx)
	}
	if ctx.Err() != nil {
		return nil
	}
	p.report(channels.Stopped, err.Error())
	return err
}

// poller is one run of an account. It belongs to one goroutine.
type poller struct {
	*Bot
	sink   channels.Sink
	self   identity
	offset int64
	state  channels.State
	detail string
	since  time.Time // the last completed poll
}

// report tells the sink about the connection when something changed.
func (p *poller) report(s channels.State, detail string) {
	if s == p.state && detail == p.detail {
		return
	}
	p.state, p.detail = s, detail
	p.sink.Status(channels.Status{Channel: Channel, Account: p.deps.Account, State: s, Detail: detail, Since: time.Now()})
}

// connect learns who the bot is and makes polling possible. It returns only permanent errors and
// the end of ctx.
func (p *poller) connect(ctx context.Context) error {
	err := p.persist(ctx, func() error {
		result, err := p.api.call(ctx, p.api.calls, "getMe", nil)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(result, &p.self); err != nil || p.self.ID == 0 {
			return &callError{method: "getMe", garbled: true, code: http.StatusOK}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = p.persist(ctx, func() error {
		_, err := p.api.call(ctx, p.api.calls, "deleteWebhook", nil)
		return err
	})
	if err != nil {
		return err
	}
	err = p.persist(ctx, func() (err error) {
		p.offset, err = p.deps.Offsets.Load(ctx)
		return err
	})
	if err != nil {
		return err
	}
	p.log.Info("connected", "bot_id", p.self.ID, "username", p.self.Username, "offset", p.offset)
	p.report(channels.Connected, "")
	return nil
}

// persist repeats a step until it succeeds, is refused for good, or ctx ends.
func (p *poller) persist(ctx context.Context, step func() error) error {
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
		p.fail(ctx, err, failures)
	}
}

// loop polls until ctx ends or the token is refused.
func (p *poller) loop(ctx context.Context) error {
	failures := 0
	for ctx.Err() == nil {
		batch, err := p.poll(ctx)
		if err == nil {
			p.since = time.Now()
			p.report(channels.Connected, "")
			err = p.take(ctx, batch)
		}
		if err == nil {
			failures = 0
			continue
		}
		if ctx.Err() != nil {
			break
		}
		if final := permanent(err); final != nil {
			return final
		}
		failures++
		p.fail(ctx, err, failures)
		p.watch()
	}
	return ctx.Err()
}

func (p *poller) poll(ctx context.Context) ([]json.RawMessage, error) {
	timeout := pollTimeout
	if p.state != channels.Connected {
		timeout = 0 // to know at once whether it works again
	}
	result, err := p.api.call(ctx, p.api.poll, "getUpdates", tgbotapi.Params{
		"offset":          id64(p.offset),
		"timeout":         strconv.Itoa(int(timeout.Seconds())),
		"limit":           strconv.Itoa(mostUpdates),
		"allowed_updates": allowedUpdates,
	})
	if err != nil {
		return nil, err
	}
	var batch []json.RawMessage
	if err := json.Unmarshal(result, &batch); err != nil || len(batch) > 0 && !slices.ContainsFunc(batch, identified) {
		return nil, &callError{method: "getUpdates", garbled: true, code: http.StatusOK}
	}
	return batch, nil
}

// take hands a batch to the sink and moves the offset behind what was stored. An update that
// cannot be decoded is logged and passed over: it must never block the ones behind it.
func (p *poller) take(ctx context.Context, batch []json.RawMessage) error {
	start := p.offset
	var failed error
	for _, raw := range batch {
		id := updateID(raw)
		if id == 0 {
			id = p.offset // without a readable id it can only be the next
		}
		var u update
		if err := json.Unmarshal(raw, &u); err != nil {
			p.log.Warn("update skipped", "update_id", id, "error", err)
		} else if failed = p.handle(ctx, u); failed != nil {
			failed = fmt.Errorf("update %d is not stored: %w", id, failed)
			break
		}
		p.offset = id + 1
	}
	if p.offset != start {
		p.save(ctx)
	}
	return failed
}

// updateID reads only the id, from whatever the update may be.
func updateID(raw json.RawMessage) int64 {
	var u struct {
		ID int64 `json:"update_id"`
	}
	if json.Unmarshal(raw, &u) != nil {
		return 0
	}
	return u.ID
}

func identified(raw json.RawMessage) bool { return updateID(raw) != 0 }

// save stores the offset, also while the account shuts down. A failure costs nothing but repeated
// updates after a restart, which the sink recognises.
func (p *poller) save(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveLimit)
	defer cancel()
	if err := p.deps.Offsets.Save(ctx, p.offset); err != nil {
		p.log.Warn("offset not saved", "offset", p.offset, "error", err)
	}
}

// handle gives one update to its reader. An error means that it must come again.
func (p *poller) handle(ctx context.Context, u update) error {
	switch {
	case u.Message != nil:
		return p.receive(ctx, u.ID, u.Message, false)
	case u.EditedMessage != nil:
		return p.receive(ctx, u.ID, u.EditedMessage, true)
	case u.Callback != nil:
		return p.pressed(ctx, u.ID, u.Callback)
	case u.MyMember != nil:
		p.log.Info("membership changed", "chat_id", u.MyMember.Chat.ID, "status", u.MyMember.New.Status)
	}
	return nil
}

// fail reports a failure that passes and waits.
func (p *poller) fail(ctx context.Context, err error, failures int) {
	wait := transientWaits.after(failures)
	detail := err.Error()
	var e *callError
	if errors.As(err, &e) {
		switch {
		case e.code == http.StatusConflict:
			wait = conflictWaits.after(failures)
			detail = "another process polls this bot token"
			p.api.poll.client.CloseIdleConnections() // the next poll needs a fresh connection
		case e.retryAfter > 0:
			wait = e.retryAfter
		}
	}
	p.log.Warn("polling failed", "error", detail, "failures", failures, "wait", wait)
	p.report(channels.Down, detail)
	sleep(ctx, wait)
}

// watch rebuilds the connections when no poll has completed for too long: what the network does to
// old connections is not always told to their ends.
func (p *poller) watch() {
	if time.Since(p.since) < watchdogAfter {
		return
	}
	p.log.Warn("connections rebuilt", "last_poll", p.since)
	p.since = time.Now()
	p.api.closeIdle()
	p.api.poll.client.Transport = p.deps.Transport()
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
