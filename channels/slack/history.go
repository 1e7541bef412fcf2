package slack

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"

	"understudy/channels"
	"understudy/chat"
)

var _ channels.Historian = (*Bot)(nil)

// Bounds of looking back in a thread. Slack gives a thread out from its beginning on, so one of more
// pages than these is looked at in part: better an old part than minutes of waiting.
const (
	historyPage  = 200
	historyPages = 5
)

// Earlier implements channels.Historian.
func (b *Bot) Earlier(ctx context.Context, to chat.Address, before string, most int) ([]chat.Inbound, error) {
	if to.Thread == "" || most < 1 {
		return nil, nil
	}
	self, err := b.identity(ctx)
	if err != nil {
		return nil, err
	}
	in := &inbox{Bot: b, self: self}
	params := url.Values{
		"channel": {to.Conversation}, "ts": {to.Thread}, "latest": {before}, "inclusive": {"0"}, "limit": {strconv.Itoa(historyPage)},
	}
	var found []event
	for range historyPages {
		var page struct {
			Messages json.RawMessage `json:"messages"`
			More     bool            `json:"has_more"`
		}
		if err := b.api.raw(ctx, "conversations.replies", params, &page); err != nil {
			return nil, err
		}
		found = append(found, each[event](page.Messages)...)
		slices.SortFunc(found, func(x, y event) int { return compareTS(x.TS, y.TS) })
		if !page.More || len(found) == 0 || found[len(found)-1].TS == params.Get("oldest") {
			break
		}
		params.Set("oldest", found[len(found)-1].TS)
	}
	found = slices.CompactFunc(found, func(x, y event) bool { return x.TS == y.TS }) // the root comes with every page
	var out []chat.Inbound
	for _, m := range found {
		if line, ok := in.said(to, m); ok && later(before, m.TS) {
			out = append(out, line)
		}
	}
	return out[max(0, len(out)-most):], nil
}

// said is a message as somebody who reads a thread sees it. It reports false for Slack's notes about the
// channel and for what is empty.
func (b *inbox) said(to chat.Address, m event) (chat.Inbound, bool) {
	if m.TS == "" || !readable(m.Subtype) {
		return chat.Inbound{}, false
	}
	in := chat.Inbound{
		ID: m.TS, EventKey: b.messageKey(to.Conversation, m.TS), Address: to, At: b.skew.Here(moment(m.TS)), Sender: b.sender(m),
		Text: b.reader().read(m.Text).text, Attachments: attachments(m.files()),
	}
	if b.own(m) {
		in.Sender.Bot, in.Sender.Self, in.Sender.Name = true, true, b.self.name
	}
	return in, in.Text != "" || len(in.Attachments) > 0
}
