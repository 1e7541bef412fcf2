package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"

	"understudy/channels"
)

const (
	firstWait     = time.Second
	longestWait   = 60 * time.Second
	stableAfter   = time.Minute // a connection that lived so long makes the next wait short again
	identifyEvery = 5 * time.Second
	mostIdentify  = 950 // in a day; Discord resets the token after 1000
	day           = 24 * time.Hour
)

// ErrRunning is returned by Run while another Run of the same Bot has not ended.
var ErrRunning = errors.New("discord: this account is already running")

// fatal are the close codes that no reconnecting helps against, in words for the operator.
var fatal = map[int]string{
	4004: "Discord does not accept the bot token: reset it in the developer portal and set botToken",
	4010: "Discord refuses the shard of this bot",
	4011: "this bot is in too many servers for one connection",
	4012: "Discord no longer speaks version 9 of its gateway",
	4013: "Discord does not know the requested intents",
	4014: "Discord refuses the requested intents: switch on Message Content Intent (and Server Members Intent, if intents.guildMembers is set) in the developer portal, or set intents.messageContent: false",
}

// session is what is needed to resume.
type session struct {
	id, url string
	seq     int64 // of the last event that is in the queue
}

// run is one Run of an account. Its fields belong to the goroutine that reads the gateway.
type run struct {
	*Bot
	sink    channels.Sink
	queue   *queue
	session session
	state   channels.State
	detail  string
	opened  time.Time // when the present or last connection was ready; zero = it never was
	// once counts the connections that were ready.
	once int
	work sync.WaitGroup
	busy chan struct{} // places for requests for suggestions

	newest newest
	debt   debt // belongs to the worker
}

// Run implements channels.Adapter.
func (b *Bot) Run(ctx context.Context, sink channels.Sink) error {
	if !b.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer b.running.Store(false)
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	r := &run{Bot: b, sink: sink, queue: newQueue(), busy: make(chan struct{}, mostSuggesting)}
	r.work.Go(func() { r.worker(ctx) })
	defer b.api.closeIdle()
	defer r.work.Wait()
	defer cancel()

	r.report(channels.Connecting, "")
	err := r.supervise(ctx)
	if outer.Err() != nil {
		return nil
	}
	r.report(channels.Stopped, err.Error())
	return err
}

// report tells the sink about the connection when something changed.
func (r *run) report(s channels.State, detail string) {
	if s == r.state && detail == r.detail {
		return
	}
	r.state, r.detail = s, detail
	r.sink.Status(channels.Status{Channel: Channel, Account: r.deps.Account, State: s, Detail: detail, Since: time.Now()})
}

// supervise connects again and again until ctx ends or the account is refused for good.
func (r *run) supervise(ctx context.Context) error {
	failures := 0
	for ctx.Err() == nil {
		r.opened = time.Time{}
		err := r.connect(ctx)
		if ctx.Err() != nil {
			break
		}
		if words := permanent(err); words != nil {
			return words
		}
		if !r.opened.IsZero() && time.Since(r.opened) >= stableAfter {
			failures = 0
		}
		failures++
		wait := backoff(failures)
		var e *callError
		if errors.As(err, &e) && e.retryAfter > 0 {
			wait = max(wait, e.retryAfter)
		}
		r.log.Warn("connection lost", "error", err, "failures", failures, "seconds", wait.Seconds(), "resumes", r.session.id != "")
		r.report(channels.Down, err.Error())
		sleep(ctx, wait)
		r.queue.room(ctx)
	}
	return ctx.Err()
}

// backoff is the wait after so many failures in a row: it doubles, and half of it is chance, so that
// many bots do not come back at one moment.
func backoff(failures int) time.Duration {
	d := longestWait
	if failures < 7 {
		d = min(firstWait<<failures, longestWait)
	}
	return d/2 + time.Duration(rand.Int64N(int64(d/2)))
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// permanent returns the words for the operator if an error will not pass by itself.
func permanent(err error) error {
	var closed *websocket.CloseError
	if errors.As(err, &closed) {
		if words, ok := fatal[closed.Code]; ok {
			return fmt.Errorf("%s (close code %d)", words, closed.Code)
		}
	}
	var e *callError
	if errors.As(err, &e) && !e.garbled && e.status == http.StatusUnauthorized {
		return errors.New(fatal[4004])
	}
	return nil
}

// connect runs one connection from dialling to its end, and returns why it ended.
func (r *run) connect(ctx context.Context) error {
	limit := openLimit
	if r.once > 0 {
		limit = reopenLimit
	}
	address := r.session.url
	if r.session.id == "" {
		var err error
		if address, err = r.permission(ctx); err != nil {
			return err
		}
	}
	opening, cancel := context.WithTimeout(ctx, limit)
	l, err := r.dial(opening, address)
	cancel()
	if err != nil {
		r.session.url = r.fallback(r.session)
		return err
	}
	done := make(chan struct{})
	var attending sync.WaitGroup
	attending.Go(func() { l.attend(ctx, done) })
	err = r.converse(ctx, l, limit)
	close(done)
	attending.Wait()
	var closed *websocket.CloseError
	switch {
	case l.zombie.Load():
		return errors.New("gateway: heartbeats are not acknowledged any more")
	case errors.As(err, &closed) && (closed.Code == 4007 || closed.Code == 4009):
		r.session = session{} // out of step, or too late: a new one is needed
	}
	return err
}

// fallback is where a session is resumed when its own address did not answer.
func (r *run) fallback(s session) string {
	if s.id == "" || s.url == "" {
		return ""
	}
	return r.gateway
}

// permission waits until a new session may be started, and returns the gateway's address. Discord
// counts sessions, and resets the token of a bot that starts too many.
func (r *run) permission(ctx context.Context) (string, error) {
	now := time.Now()
	r.starts = slices.DeleteFunc(r.starts, func(t time.Time) bool { return now.Sub(t) >= day })
	if n := len(r.starts); n > 0 {
		wait := identifyEvery - now.Sub(r.starts[n-1])
		if n >= mostIdentify {
			wait = day - now.Sub(r.starts[0])
			r.report(channels.Down, "too many sessions were started today; waiting until Discord allows the next")
		}
		sleep(ctx, wait)
	}
	data, err := r.api.call(ctx, request{what: "get gateway", method: http.MethodGet, url: discordgo.EndpointGatewayBot, route: "get gateway", limit: openLimit})
	if err != nil {
		return "", err
	}
	var g struct {
		URL   string `json:"url"`
		Limit struct {
			Remaining  *int  `json:"remaining"`
			ResetAfter int64 `json:"reset_after"` // milliseconds
		} `json:"session_start_limit"`
	}
	decode(data, &g)
	if g.Limit.Remaining != nil && *g.Limit.Remaining <= 0 {
		wait := min(max(time.Duration(g.Limit.ResetAfter)*time.Millisecond, time.Minute), day)
		return "", &callError{what: "get gateway", status: http.StatusTooManyRequests, message: "no sessions are left for today", retryAfter: wait}
	}
	if !r.trusted(g.URL) {
		return "", errors.New("gateway: Discord names no usable address")
	}
	r.gateway = strings.TrimRight(g.URL, "/")
	r.starts = append(r.starts, time.Now())
	return r.gateway, nil
}

// trusted reports whether a gateway's address may get the token: at Discord itself only its own hosts.
func (b *Bot) trusted(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "wss" && u.Scheme != "ws" {
		return false
	}
	return b.cfg.APIRoot != defaultRoot || u.Scheme == "wss" && strings.HasSuffix(u.Hostname(), ".discord.gg")
}

// converse speaks the protocol on one connection until it ends.
func (r *run) converse(ctx context.Context, l *line, limit time.Duration) error {
	if err := l.ws.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	f, err := l.read()
	if err != nil {
		return err
	}
	var hello struct {
		Interval int64 `json:"heartbeat_interval"` // milliseconds
	}
	decode(f.Data, &hello)
	interval := time.Duration(hello.Interval) * time.Millisecond
	if *f.Op != opHello || interval < leastInterval || interval > day {
		return fmt.Errorf("gateway: expected hello, got operation %d", *f.Op)
	}
	l.hello <- interval
	if err := r.introduce(l); err != nil {
		return err
	}
	for {
		if f, err = l.read(); err != nil {
			return err
		}
		if err := r.frame(ctx, l, f, limit); err != nil {
			return err
		}
	}
}

// introduce resumes the session, or starts one.
func (r *run) introduce(l *line) error {
	token := r.cfg.Token().Reveal()
	if s := r.session; s.id != "" {
		l.seq.Store(s.seq)
		return l.write(opResume, map[string]any{"token": token, "session_id": s.id, "seq": s.seq})
	}
	intents := discordgo.IntentGuilds | discordgo.IntentGuildMessages | discordgo.IntentDirectMessages | discordgo.IntentGuildMessageReactions | discordgo.IntentDirectMessageReactions
	if *r.cfg.Intents.MessageContent {
		intents |= discordgo.IntentMessageContent
	}
	if r.cfg.Intents.GuildMembers {
		intents |= discordgo.IntentGuildMembers
	}
	return l.write(opIdentify, map[string]any{
		"token": token, "intents": intents, "compress": false, "large_threshold": 50,
		"properties": map[string]string{"os": runtime.GOOS, "browser": "understudy", "device": "understudy"},
	})
}

// errAsked is why a connection ended that Discord wanted to be renewed.
var errAsked = errors.New("gateway: Discord asked to reconnect")

// frame handles one frame. An error ends the connection.
func (r *run) frame(ctx context.Context, l *line, f frame, limit time.Duration) error {
	switch *f.Op {
	case opDispatch:
		return r.dispatch(ctx, l, f, limit)
	case opHeartbeat:
		return l.beat()
	case opAck:
		l.waiting.Store(false)
	case opReconnect:
		return errAsked
	case opInvalid:
		if string(f.Data) != "true" {
			r.session = session{}
		}
		return errors.New("gateway: the session is invalid")
	}
	return nil
}

// dispatch takes an event. Its number counts as received only once it is in the queue: a resumed
// session begins behind it.
func (r *run) dispatch(ctx context.Context, l *line, f frame, limit time.Duration) error {
	ready := !r.opened.IsZero()
	switch {
	case f.Type == "READY":
		if err := r.ready(ctx, f.Data); err != nil {
			return err
		}
	case f.Type == "RESUMED":
	case !r.take(ctx, f.Type, f.Data):
		return errFull
	}
	if f.Seq != nil {
		r.session.seq = *f.Seq
		l.seq.Store(*f.Seq)
	}
	var deadline time.Time // none: heartbeats watch over a connection that is ready
	switch {
	case f.Type == "READY" || f.Type == "RESUMED":
		r.opened = time.Now()
		r.once++
		r.log.Info("connected", "resumed", f.Type == "RESUMED", "bot_id", r.cfg.BotID())
		r.report(channels.Connected, "")
	case ready:
		return nil
	default: // events that are said again come before RESUMED
		deadline = time.Now().Add(limit)
	}
	if err := l.ws.SetReadDeadline(deadline); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	return nil
}

// ready begins a session. What was said before it has to be looked for.
func (r *run) ready(ctx context.Context, data json.RawMessage) error {
	var p struct {
		Session string `json:"session_id"`
		URL     string `json:"resume_gateway_url"`
		User    user   `json:"user"`
		App     struct {
			ID string `json:"id"`
		} `json:"application"`
		Guilds []struct {
			ID string `json:"id"`
		} `json:"guilds"`
	}
	decode(data, &p)
	if p.Session == "" || !isID(p.User.ID) {
		return errors.New("gateway: unreadable READY")
	}
	r.session = session{id: p.Session, url: strings.TrimRight(p.URL, "/")}
	if !r.trusted(p.URL) {
		r.session.url = r.gateway
	}
	r.self.Store(&p.User)
	if isID(p.App.ID) {
		r.application.Store(&p.App.ID)
	}
	var servers []string
	for _, g := range p.Guilds {
		servers = append(servers, g.ID)
	}
	r.queue.put(task{catchUp: true})
	if r.newest.begin(servers) {
		r.queue.put(task{look: true})
		return nil
	}
	r.work.Go(func() { // a server that is out of order tells nothing
		sleep(ctx, serversLimit)
		r.queue.put(task{look: true})
	})
	return nil
}
