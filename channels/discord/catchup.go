package discord

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/bwmarrin/discordgo"
)

const (
	pageSize      = 100
	mostPages     = 5
	lookBackWait  = 30 * time.Second // longest wait for a rate limit
	catchUpAge    = time.Hour
	catchUpAmount = 50
)

// missed returns the latest of what was said in a place between two messages; before is "" = up to the
// newest. It reads backwards, until what it reads is too old to be answered: in a busy channel the way from
// the first to what is fresh may be longer than what is looked at.
func (r *run) missed(ctx context.Context, place, behind, before string) ([]message, error) {
	oldest, amount := r.bounds()
	known := func(one message) bool { return compareIDs(one.ID, behind) <= 0 }
	var all []message
	for range mostPages {
		page, more, err := r.page(ctx, place, before)
		if err != nil {
			return latestOf(all, amount), err
		}
		last := !more || len(page) == 0 || known(page[0]) || timestamp(page[0].Timestamp).Before(oldest)
		all = append(slices.DeleteFunc(page, known), all...)
		if last || len(all) >= amount {
			break
		}
		before = all[0].ID
	}
	return latestOf(all, amount), nil
}

// latestOf leaves so many messages from the end of a list.
func latestOf(all []message, amount int) []message { return all[max(len(all)-amount, 0):] }

// bounds are how old, by Discord's clock, and how many, messages may be to be caught up.
func (r *run) bounds() (oldest time.Time, amount int) {
	age, amount := r.cfg.CatchUp.MaxAge, r.cfg.CatchUp.MaxMessages
	if age == 0 {
		age = catchUpAge
	}
	if amount == 0 {
		amount = catchUpAmount
	}
	return r.skew.There(time.Now()).Add(-age), amount
}

// page reads the last messages before an id, "" = the newest ones, oldest first. A failure that passes,
// such as a rate limit, is waited for. It reports whether there may be more.
func (r *run) page(ctx context.Context, place, before string) (list []message, more bool, err error) {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	if before != "" {
		query.Set("before", before)
	}
	req := request{what: "get messages", method: http.MethodGet, url: discordgo.EndpointChannelMessages(place) + "?" + query.Encode(), route: "get messages " + place}
	for attempt := 1; ; attempt++ {
		data, err := r.api.call(ctx, req)
		if err == nil {
			return messages(data)
		}
		var e *callError
		if !errors.As(err, &e) || !passes(err) || attempt == lookAttempts || e.retryAfter > lookBackWait || ctx.Err() != nil {
			return nil, false, err
		}
		sleep(ctx, max(e.retryAfter, time.Second))
	}
}

// passes reports whether a failure may pass by itself.
func passes(err error) bool {
	var e *callError
	return errors.As(err, &e) && (e.status == 0 || e.status >= http.StatusTooManyRequests)
}

// messages decodes a page, one by one: a message that cannot be read must not hide the others,
// nor that the page was full.
func messages(data json.RawMessage) (list []message, full bool, err error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, false, &callError{what: "get messages", status: http.StatusOK, garbled: true}
	}
	out := make([]message, 0, len(raw))
	for _, one := range slices.Backward(raw) {
		var m message
		if decode(one, &m); isID(m.ID) {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b message) int { return compareIDs(a.ID, b.ID) })
	return out, len(raw) >= pageSize, nil
}

// compareIDs orders ids by age.
func compareIDs(a, b string) int {
	x, _ := strconv.ParseUint(a, 10, 64)
	y, _ := strconv.ParseUint(b, 10, 64)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}
