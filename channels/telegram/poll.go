package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"understudy/channels"
)

const (
	mostUpdates   = 100
	watchdogAfter = 120 * time.Second // without a completed poll the connections are rebuilt
	saveLimit     = 2 * time.Second
)

// poller receives by long polling. It belongs to one goroutine.
type poller struct {
	*intake
	offset int64
	since  time.Time // the last completed poll, or the last time the connections were made anew
	last   time.Time // the last completed poll; zero = none
}

// run polls until ctx ends or the account is refused for good.
func (p *poller) run(ctx context.Context) error {
	if err := p.prepare(ctx); err != nil {
		return err
	}
	p.log.Info("connected", "bot_id", p.self.ID, "username", p.self.Username, "offset", p.offset)
	p.report(channels.Connected, "")
	return p.loop(ctx)
}

// prepare makes polling possible: while a webhook is set, Telegram refuses it.
func (p *poller) prepare(ctx context.Context) error {
	err := p.persist(ctx, func() error { return p.deleteWebhook(ctx) })
	if err != nil {
		return err
	}
	return p.persist(ctx, func() (err error) {
		p.offset, err = p.deps.Offsets.Load(ctx)
		return err
	})
}

func (p *poller) deleteWebhook(ctx context.Context) error {
	_, err := p.api.call(ctx, p.api.calls, "deleteWebhook", nil)
	return err
}

// webhookSet reports whether a poll was refused because of a webhook.
func webhookSet(err error) bool {
	var e *callError
	return errors.As(err, &e) && e.code == http.StatusConflict && strings.Contains(strings.ToLower(e.description), "webhook")
}

// loop polls until ctx ends or the token is refused. The account counts as connected once a whole
// batch is stored: one that cannot store what it polls must not look well between two attempts.
func (p *poller) loop(ctx context.Context) error {
	failures := 0
	for ctx.Err() == nil {
		batch, err := p.poll(ctx)
		if err == nil {
			p.since = time.Now()
			p.last = p.since
			err = p.takeAll(ctx, batch)
		}
		if err == nil {
			failures = 0
			p.report(channels.Connected, "")
			continue
		}
		if ctx.Err() != nil {
			break
		}
		if final := permanent(err); final != nil {
			return final
		}
		failures++
		p.fail(ctx, p.silence(err), failures)
		p.watch()
		if webhookSet(err) && ctx.Err() == nil {
			if err := p.deleteWebhook(ctx); err != nil && permanent(err) != nil {
				return permanent(err)
			}
		}
	}
	return ctx.Err()
}

func (p *poller) poll(ctx context.Context) ([]json.RawMessage, error) {
	timeout := pollTimeout
	if !p.connected() {
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

// silence adds to a poll without an answer since when that is so.
func (p *poller) silence(err error) error {
	var e *callError
	if !errors.As(err, &e) || e.code != 0 || p.last.IsZero() {
		return err
	}
	return fmt.Errorf("%w (last completed poll at %s)", err, p.last.UTC().Format("15:04:05 UTC"))
}

// takeAll hands a batch to the sink and moves the offset behind what was stored. The sink has a transaction
// for each update, and the offset is stored after them all: an offset that is lost with the process costs
// updates that come again, which the sink knows by their keys for a week, and Telegram keeps them for a
// day. The other way round, an update could be lost.
func (p *poller) takeAll(ctx context.Context, batch []json.RawMessage) error {
	start := p.offset
	var failed error
	for _, raw := range batch {
		id := updateID(raw)
		if id == 0 {
			id = p.offset // without a readable id it can only be the next
		}
		if failed = p.take(ctx, id, raw); failed != nil {
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
