package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"understudy/internal/clock"
)

// Errors of Lanes.
var (
	ErrFull     = errors.New("too many messages wait in this conversation")
	ErrDigested = errors.New("too many messages wait in this conversation: this one is kept in a line")
	ErrDraining = errors.New("the bot is shutting down and takes no more work")
)

// Pool is a share of the global limit, so that work in the background cannot starve chat
// (spec/chat.md §1.4).
type Pool uint8

// The pools.
const (
	Interactive Pool = iota
	Background       // scheduled tasks
	Probe
	pools
)

// LaneConfig limits Lanes. Zero values are the defaults.
type LaneConfig struct {
	MaxInteractive int // parallel turns; default 256
	MaxBackground  int // default 4
	MaxProbe       int // default 1
	Cap            int // waiting tasks per key; default 20
	MaxWaiting     int // waiting tasks of all keys together; default 10000
	// Grace is how long Drain waits for turns that it cancelled; default 5 s.
	Grace time.Duration
}

func (c LaneConfig) withDefaults() LaneConfig {
	for _, x := range []struct {
		field *int
		value int
	}{{&c.MaxInteractive, 256}, {&c.MaxBackground, 4}, {&c.MaxProbe, 1}, {&c.Cap, 20}, {&c.MaxWaiting, 10000}} {
		if *x.field <= 0 {
			*x.field = x.value
		}
	}
	if c.Grace <= 0 {
		c.Grace = 5 * time.Second
	}
	return c
}

// Task is one turn, or something else that must not run beside one.
type Task struct {
	Pool Pool
	// Owner is who asked for it, for Stop.
	Owner string
	// Front puts it before everything that waits and exempts it from the cap: /new, /reset,
	// /compact.
	Front bool
	// Preempt, if set, cancels the key's active run with this cause.
	Preempt error
	// Cap is how many tasks may wait before this one; 0 = LaneConfig.Cap. Drop says what gives way
	// in a full queue; the zero value refuses this one.
	Cap  int
	Drop DropPolicy
	// Batch joins tasks: waiting ones of equal, non-empty Batch that stand next to each other run
	// as one when their turn comes. Steer also lets the run that is active take the task over
	// (Take), if it is of the same Batch. Quiet lets a task that had to wait go on waiting until
	// its batch has been quiet for so long.
	Batch string
	Steer bool
	Quiet time.Duration
	// Item is what the task is about, for RunAll, Take and Withdraw.
	Item any

	// Run does it. It must end soon after ctx does; context.Cause tells why it ended.
	Run func(ctx context.Context)
	// RunAll, if set, is called instead of Run: with the items of the whole batch.
	RunAll func(ctx context.Context, w Work)
	// Dropped is called instead of Run when the task leaves the queue unrun, with the cause:
	// llm.ErrStopped, llm.ErrShutdown or ErrFull. ErrDigested tells that a later run speaks of it
	// (Work.Digested); unless one does, Dropped is called again, with one of the others. It may be nil
	// and must not block.
	Dropped func(cause error)

	queued time.Time
	waits  bool // the key was busy when it came
}

// Work is what a run is to do: the items of a batch in order of arrival. Digested are those of earlier
// tasks that gave way in a full queue (DropSummarize), to be told in a line each. All of them are the
// run's: what becomes of them is up to it.
type Work struct{ Items, Digested []any }

// slowStart is how long a task may wait before the log says so.
const slowStart = 2 * time.Second

// Lanes runs tasks: those of one key one after the other, those of different keys side by side up
// to the limit of their pool, keys that wait for a free place in order of arrival.
//
// There is no goroutine but those of the tasks that run. A key exists only while it has work:
//
//	Submit ──► queue of the key ──► ready (idle, has work) ──► running ──► ended
//	                ▲                                                       │
//	                └──────────── the next task of the key goes to the back ┘
//
// A key whose next task wants quiet rests, in no line, until its timer rings.
type Lanes struct {
	cfg   LaneConfig
	clock clock.Clock
	log   *slog.Logger

	mu       sync.Mutex // never held while a task's function runs
	lanes    map[string]*lane
	ready    [pools][]*lane // idle keys with work, by the pool of their first task
	running  [pools]int
	waiting  int
	draining bool
	empty    chan struct{} // closed once draining and nothing runs
}

type lane struct {
	key    string
	queue  []*Task
	active *Task
	since  time.Time
	cancel context.CancelCauseFunc
	// rest is the timer of a key that waits for quiet, nil = it does not.
	rest     *clock.Timer
	digested []*Task // that gave way in a full queue, for the next run; the key stays for them
}

// NewLanes returns lanes without work. log may be nil.
func NewLanes(cfg LaneConfig, clk clock.Clock, log *slog.Logger) *Lanes {
	if log == nil {
		log = slog.Default()
	}
	return &Lanes{cfg: cfg.withDefaults(), clock: clk, log: log, lanes: map[string]*lane{}, empty: make(chan struct{})}
}

// Submit queues a task for key and returns at once. It fails with ErrFull or ErrDraining; then
// neither Run nor Dropped is called.
func (l *Lanes) Submit(key string, t Task) error {
	l.mu.Lock()
	digested, dropped, err := l.submit(key, &t)
	l.mu.Unlock()
	drop(digested, ErrDigested)
	drop(dropped, ErrFull)
	return err
}

// submit is Submit with mu held; it returns what gave way to make room.
func (l *Lanes) submit(key string, t *Task) (digested, dropped []*Task, err error) {
	if l.draining {
		return nil, nil, ErrDraining
	}
	if l.waiting >= l.cfg.MaxWaiting {
		return nil, nil, ErrFull
	}
	n := l.lanes[key]
	if n == nil {
		n = &lane{key: key}
	}
	place := n.place()
	if !t.Front && len(n.queue) >= cmp.Or(t.Cap, l.cfg.Cap) {
		if digested, dropped = l.makeRoom(n, t.Drop); digested == nil && dropped == nil {
			return nil, nil, ErrFull
		}
	}
	t.queued, t.waits = l.clock.Now(), n.active != nil || len(n.queue) > 0
	at := len(n.queue)
	if t.Front {
		at = 0 // behind earlier Front tasks
		for at < len(n.queue) && n.queue[at].Front {
			at++
		}
	}
	n.queue = slices.Insert(n.queue, at, t)
	l.lanes[key] = n
	l.waiting++
	if t.Preempt != nil && n.active != nil && (t.Batch == "" || n.active.Batch != "") {
		n.cancel(t.Preempt) // a message ends a turn, not a command
	}
	l.move(n, place)
	l.dispatch()
	return digested, dropped, nil
}

// makeRoom takes the oldest waiting task that is not a Front one out, if the policy allows it.
func (l *Lanes) makeRoom(n *lane, p DropPolicy) (digested, dropped []*Task) {
	i := slices.IndexFunc(n.queue, func(x *Task) bool { return !x.Front })
	if i < 0 || p != DropOld && p != DropSummarize {
		return nil, nil
	}
	oldest := n.queue[i : i+1 : i+1]
	n.queue = slices.Concat(n.queue[:i], n.queue[i+1:])
	l.waiting--
	if p == DropOld {
		return nil, oldest
	}
	n.digested = append(n.digested, oldest...)
	if over := len(n.digested) - mostDigests; over > 0 {
		dropped, n.digested = n.digested[:over:over], n.digested[over:]
	}
	return oldest, dropped
}

// mostQuiets times its Quiet is the longest that a task rests: a conversation that is never quiet is
// answered all the same.
const mostQuiets = 10

// mostDigests bounds how many tasks of one key are kept to be told in a line.
const mostDigests = 50

// place returns the line of ready keys that n stands in; pools means none.
func (n *lane) place() Pool {
	if n.active != nil || len(n.queue) == 0 || n.rest != nil {
		return pools
	}
	return n.queue[0].Pool
}

// move puts n, which stood in the given line before it changed, where it belongs now. A key that
// stays in its line keeps its turn.
func (l *Lanes) move(n *lane, before Pool) {
	l.settle(n)
	now := n.place()
	if now == before {
		return
	}
	if before < pools {
		l.ready[before] = slices.DeleteFunc(l.ready[before], func(x *lane) bool { return x == n })
	}
	if now < pools {
		l.ready[now] = append(l.ready[now], n)
	}
}

// dispatch starts what has a place; mu is held.
func (l *Lanes) dispatch() {
	limits := [pools]int{Interactive: l.cfg.MaxInteractive, Background: l.cfg.MaxBackground, Probe: l.cfg.MaxProbe}
	for p := range l.ready {
		for l.running[p] < limits[p] && len(l.ready[p]) > 0 {
			n := l.ready[p][0]
			l.ready[p] = l.ready[p][1:]
			l.start(n)
		}
	}
}

// settle lets n rest, or ends its rest; mu is held.
func (l *Lanes) settle(n *lane) {
	wait := n.restless(l.clock.Now())
	switch {
	case wait <= 0 && n.rest != nil:
		n.rest.Stop()
		n.rest = nil
	case wait > 0 && n.rest == nil:
		n.rest = l.clock.AfterFunc(wait, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if n.rest == nil {
				return
			}
			n.rest = nil
			l.move(n, pools)
			l.dispatch()
		})
	}
}

// restless returns how long the key's next task still wants quiet.
func (n *lane) restless(now time.Time) time.Duration {
	if n.active != nil || len(n.queue) == 0 || !n.queue[0].waits {
		return 0
	}
	first, last := n.queue[0], n.queue[n.batch()-1]
	return min(first.Quiet-now.Sub(last.queued), mostQuiets*first.Quiet-now.Sub(first.queued))
}

// batch returns how many of the waiting tasks run as one.
func (n *lane) batch() int {
	first := n.queue[0]
	if first.Batch == "" || first.RunAll == nil {
		return 1
	}
	i := 1
	for i < len(n.queue) && n.queue[i].Batch == first.Batch {
		i++
	}
	return i
}

// take removes the first tasks of n's queue, and with told what gave way before them, and returns what
// they are about; mu is held.
func (l *Lanes) take(n *lane, count int, told bool) Work {
	w := Work{Items: items(n.queue[:count])}
	n.queue = slices.Delete(n.queue, 0, count)
	l.waiting -= count
	if told {
		w.Digested, n.digested = items(n.digested), nil
	}
	return w
}

// items are what tasks are about.
func items(tasks []*Task) []any {
	var list []any
	for _, t := range tasks {
		list = append(list, t.Item)
	}
	return list
}

// start runs the first task of n, with its batch; mu is held.
func (l *Lanes) start(n *lane) {
	t := n.queue[0]
	w := l.take(n, n.batch(), t.RunAll != nil)
	l.running[t.Pool]++
	ctx, cancel := context.WithCancelCause(context.Background())
	n.active, n.since, n.cancel = t, l.clock.Now(), cancel
	waited := n.since.Sub(t.queued)
	l.clock.Go(func() {
		defer l.ended(n, t, cancel)
		if waited > slowStart {
			l.log.Info("turn waited in its lane", "session", n.key, "queued_ms", waited.Milliseconds())
		}
		if t.RunAll != nil {
			t.RunAll(ctx, w)
			return
		}
		t.Run(ctx)
	})
}

// ended frees the place of a task, also of one that panicked: one broken turn must not end the
// conversations of everybody else.
func (l *Lanes) ended(n *lane, t *Task, cancel context.CancelCauseFunc) {
	if r := recover(); r != nil {
		l.log.Error("turn panicked", "session", n.key, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
	}
	cancel(nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	n.active, n.cancel = nil, nil
	l.running[t.Pool]--
	l.forget(n)
	l.move(n, pools)
	l.dispatch()
	if l.draining && l.active() == 0 {
		close(l.empty)
	}
}

func (l *Lanes) active() int {
	sum := 0
	for _, n := range l.running {
		sum += n
	}
	return sum
}

// remove takes the waiting tasks that match out of n's queue; mu is held.
func (l *Lanes) remove(n *lane, match func(*Task) bool) (removed []*Task) {
	kept := make([]*Task, 0, len(n.queue))
	for _, t := range n.queue {
		if match(t) {
			removed = append(removed, t)
			continue
		}
		kept = append(kept, t)
	}
	n.queue = kept
	l.waiting -= len(removed)
	return removed
}

// drop tells tasks that they will not run; mu is not held.
func drop(tasks []*Task, cause error) {
	for _, t := range tasks {
		if t.Dropped != nil {
			t.Dropped(cause)
		}
	}
}
