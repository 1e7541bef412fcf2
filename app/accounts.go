package app

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/delivery"
	"understudy/inbound"
)

// account is one channel account: of a platform, or a local one (page, terminal), which never changes.
type account struct {
	key inbound.Account
	// adapter is nil for an account that could not be opened.
	adapter channels.Adapter
	// platform tells that the account lives outside: a reload may change it.
	platform bool
	plan     atomic.Pointer[plan] // what it was opened from; nil = a local account
	place    int                  // its number among the accounts of its channel, for metrics

	stop  context.CancelFunc // nil = it was never started; the roster's lock guards it
	ended chan struct{}      // closed when its Run has returned

	received, reconnects atomic.Int64
	sent, failed         atomic.Int64 // what was delivered, and what was not
	last                 atomic.Int64 // when the last event came, Unix milliseconds; 0 = never
	lastError            atomic.Pointer[string]
}

// roster keeps the channel accounts: which there are and which run.
type roster struct {
	mu    sync.Mutex
	list  []*account
	gone  []channels.Adapter // of removed accounts, to be closed in the end
	start func(*account)     // nil = nothing is started (any more)
}

// all returns the accounts in the order in which they were added.
func (r *roster) all() []*account {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// get returns an account.
func (r *roster) get(k inbound.Account) (*account, bool) {
	for _, x := range r.all() {
		if x.key == k {
			return x, true
		}
	}
	return nil, false
}

// of returns the account an address belongs to.
func (r *roster) of(to chat.Address) (*account, bool) {
	return r.get(inbound.Account{Channel: to.Channel, Name: to.Account})
}

// add puts an account in, with the lowest number that is free on its channel, and starts it if the
// others run.
func (r *roster) add(x *account) {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := map[int]bool{}
	for _, other := range r.list {
		if other.key.Channel == x.key.Channel {
			taken[other.place] = true
		}
	}
	for taken[x.place] {
		x.place++
	}
	r.list = append(r.list, x)
	r.begin(x)
}

// begin starts an account; r.mu is held.
func (r *roster) begin(x *account) {
	if r.start != nil && x.adapter != nil && x.stop == nil {
		r.start(x)
	}
}

// run starts all accounts, and from now on every new one, with f, which must not wait.
func (r *roster) run(f func(*account)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start = f
	for _, x := range r.list {
		r.begin(x)
	}
}

// halt starts nothing any more.
func (r *roster) halt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start = nil
}

// stop tells an account to end; it reports false for one that was never started.
func (r *roster) stop(x *account) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x.stop == nil {
		return false
	}
	x.stop()
	return true
}

// remove takes an account out, which has ended. Its adapter is closed in the end: a call may still be
// under way.
func (r *roster) remove(x *account) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = slices.DeleteFunc(r.list, func(other *account) bool { return other == x })
	if x.adapter != nil {
		r.gone = append(r.gone, x.adapter)
	}
}

// close frees the adapters.
func (r *roster) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	adapters := r.gone
	for _, x := range r.list {
		adapters = append(adapters, x.adapter)
	}
	for _, adapter := range adapters {
		if c, ok := adapter.(interface{ Close() }); ok {
			c.Close()
		}
	}
}

// endLimit is how long an account may take to let go of its connection.
const endLimit = 30 * time.Second

var errStays = errors.New("the connection does not end")

// end stops an account and waits until its connection is gone: two connections of one token would
// take each other's messages.
func (a *App) end(x *account) error {
	if !a.roster.stop(x) {
		return nil
	}
	ctx, cancel := a.opts.Clock.WithTimeout(context.Background(), endLimit, errStays)
	defer cancel()
	return a.opts.Clock.Await(ctx, x.ended)
}

// reconcile makes the accounts of platforms what the plans say. What the platform does not notice
// applies at once; an account that connects differently, or that had stopped by itself, is connected
// anew; the others are left alone.
func (a *App) reconcile(ctx context.Context, plans []plan) {
	wanted := map[inbound.Account]plan{}
	for _, p := range plans {
		wanted[p.key] = p
	}
	var leaving []*account
	for _, x := range a.roster.all() {
		if !x.platform {
			continue
		}
		p, stays := wanted[x.key]
		s, _ := a.states.get(x.key)
		if stays && x.adapter != nil && s.State != channels.Stopped && reflect.DeepEqual(x.plan.Load().connect, p.connect) {
			a.adjust(ctx, x, p)
			delete(wanted, x.key)
			continue
		}
		leaving = append(leaving, x)
	}
	var ending sync.WaitGroup
	stuck := make([]error, len(leaving))
	for i, x := range leaving {
		ending.Go(func() { stuck[i] = a.end(x) })
	}
	ending.Wait()
	for i, x := range leaving {
		a.leave(ctx, x, stuck[i])
		if _, again := wanted[x.key]; again && stuck[i] != nil {
			delete(wanted, x.key)
		}
	}
	for _, p := range plans {
		if _, open := wanted[p.key]; open {
			a.open(ctx, p)
		}
	}
}

// adjust applies what needs no new connection.
func (a *App) adjust(ctx context.Context, x *account, p plan) {
	if !reflect.DeepEqual(x.plan.Load().settings, p.settings) {
		if err := a.delivery.Register(x.adapter, p.settings); err != nil {
			a.log.ErrorContext(ctx, "channel_settings_refused", "channel", x.key.Channel, "account", x.key.Name, "error", err.Error())
			return
		}
	}
	x.plan.Store(&p)
}

// leave takes an account out whose connection has ended, or will not.
func (a *App) leave(ctx context.Context, x *account, stuck error) {
	if stuck != nil {
		a.log.ErrorContext(ctx, "channel_does_not_end", "channel", x.key.Channel, "account", x.key.Name, "error", stuck.Error())
		a.connection(channels.Status{Channel: x.key.Channel, Account: x.key.Name, State: channels.Stopped, Detail: "the old connection does not end; restart the bot"})
		return
	}
	unsent, err := a.delivery.Waiting(ctx, x.key.Channel, x.key.Name) // before it is given up
	if err != nil {
		a.log.WarnContext(ctx, "outbox_not_counted", "channel", x.key.Channel, "account", x.key.Name, "error", err.Error())
	}
	a.roster.remove(x)
	a.states.forget(x.key)
	a.metrics.ChannelGone(x.key.Channel, x.place)
	if x.adapter != nil {
		if err := a.delivery.Register(retired{x.adapter.Traits()}, delivery.Settings{}); err != nil {
			a.log.ErrorContext(ctx, "channel_settings_refused", "channel", x.key.Channel, "account", x.key.Name, "error", err.Error())
		}
	}
	a.log.InfoContext(ctx, "channel_removed", "channel", x.key.Channel, "account", x.key.Name, "unsent", unsent)
}

// open adds an account. One that cannot be opened stands in the list as stopped, and the others go on.
func (a *App) open(ctx context.Context, p plan) {
	x := &account{key: p.key, platform: true}
	x.plan.Store(&p)
	adapter, err := p.open(ctx)
	if err == nil {
		err = a.callable(adapter)
	}
	if err == nil {
		err = a.delivery.Register(adapter, p.settings)
	}
	if err == nil {
		x.adapter = adapter
	}
	a.roster.add(x)
	if err != nil {
		a.stopped(ctx, x, fmt.Errorf("%s: %w", p.at, err))
	}
}

// stopped tells that an account needs the operator.
func (a *App) stopped(ctx context.Context, x *account, why error) {
	text := why.Error()
	x.lastError.Store(&text)
	a.log.ErrorContext(ctx, "channel_stopped", "channel", x.key.Channel, "account", x.key.Name, "error", text)
	a.connection(channels.Status{Channel: x.key.Channel, Account: x.key.Name, State: channels.Stopped, Detail: text})
	a.tellOwner(ctx, x.subject(), fmt.Sprintf("📡 %s has stopped and needs you: %s", x.name(), text), chat.Address{Channel: x.key.Channel, Account: x.key.Name})
}

// name is how people know an account.
func (x *account) name() string {
	if x.key.Name == "" {
		return x.key.Channel
	}
	return x.key.Channel + "/" + x.key.Name
}

// subject is what owners are told of when the account stops.
func (x *account) subject() string { return "stopped " + x.name() }

// retired stands in for an account that is not configured any more: what was still to be said there
// is given up.
type retired struct{ traits channels.Traits }

var errRetired = errors.New("this account is not configured any more")

// Traits implements channels.Adapter.
func (r retired) Traits() channels.Traits { return r.traits }

// Run implements channels.Adapter.
func (r retired) Run(context.Context, channels.Sink) error { return errRetired }

// Send implements channels.Adapter.
func (r retired) Send(context.Context, channels.Piece) (channels.Receipt, error) {
	return channels.Receipt{}, &channels.SendError{Verdict: channels.Gone, Code: "account_removed", Err: errRetired}
}
