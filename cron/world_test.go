package cron

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/chat"
	"understudy/internal/clock"
	"understudy/internal/sqlite"
	"understudy/llm"
)

// home is where the tests' results go.
var home = chat.Address{Channel: "telegram", Conversation: "1001", Kind: chat.Direct}

// people is everything around schedulers that survives their restarts: what was run, and what was
// said to whom.
type people struct {
	mu    sync.Mutex
	runs  []Task
	at    []time.Time
	said  map[string]Announcement // by key, as an outbox keeps them
	order []Announcement
	told  map[string]string // to the owner, by key
	tales []string
	// work is what a run does; nil = it answers "done".
	work func(ctx context.Context, t Task) (Result, error)
	// carry is what becomes of an announcement; nil = it arrives.
	carry func(a Announcement) (Arrival, error)
	// deaf lets the owner not be reached.
	deaf bool
	// underway and most count runs at the same time.
	underway, most int
}

func newPeople() *people {
	return &people{said: map[string]Announcement{}, told: map[string]string{}}
}

// Run implements Runner.
func (p *people) Run(ctx context.Context, t Task) (Result, error) {
	p.mu.Lock()
	p.runs, p.at = append(p.runs, t), append(p.at, time.Now())
	p.underway++
	p.most = max(p.most, p.underway)
	work := p.work
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.underway--
		p.mu.Unlock()
	}()
	if work == nil {
		return Result{Text: "done"}, nil
	}
	return work(ctx, t)
}

// Announce implements Announcer.
func (p *people) Announce(_ context.Context, a Announcement) (Arrival, []string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	how, err := Arrived, error(nil)
	if p.carry != nil {
		how, err = p.carry(a)
	}
	if err != nil {
		return 0, nil, err
	}
	if _, again := p.said[a.Key]; !again && how != Rejected {
		p.said[a.Key] = a
		p.order = append(p.order, a)
	}
	return how, []string{"m" + a.Key}, nil
}

// Tell implements Owner.
func (p *people) Tell(_ context.Context, key, text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deaf {
		return errors.New("nobody is there")
	}
	if _, again := p.told[key]; !again {
		p.told[key] = text
		p.tales = append(p.tales, text)
	}
	return nil
}

// texts returns what was said, in order.
func (p *people) texts() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, a := range p.order {
		out = append(out, a.Text)
	}
	return out
}

func (p *people) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.runs)
}

// world is one process over a database.
type world struct {
	*people
	t    *testing.T
	path string
	db   *sqlite.DB
	s    *Scheduler
	cfg  Config
	deps func(*Deps)   // changes what the next process gets
	pace time.Duration // of the next process; 0 = the usual
	// lasting keeps the database open over restarts, where they are many: a new process then begins with
	// nothing in memory all the same.
	lasting bool
	store   *Store
	cancel  context.CancelCauseFunc
	ended   chan struct{}
	ids     int
}

// bubble runs a test in its own time, which begins on 1 January 2000 at midnight UTC.
func bubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bot.sqlite")
	synctest.Test(t, func(t *testing.T) {
		w := &world{people: newPeople(), t: t, path: path}
		defer w.close()
		w.boot()
		test(t, w)
	})
}

func (w *world) open() {
	w.t.Helper()
	var err error
	w.db, err = sqlite.Open(w.t.Context(), w.path, sqlite.Options{BusyTimeout: -1, Volatile: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	if w.store, err = NewStore(w.t.Context(), w.db); err != nil {
		w.t.Fatal(err)
	}
}

// make prepares a process; what it returns closes the database.
func (w *world) make() (*Scheduler, func()) {
	w.t.Helper()
	if w.db == nil {
		w.open()
	}
	db := w.db
	deps := Deps{
		Store: w.store, Runner: w.people, Announcer: w.people, Owner: w.people, Log: slog.New(slog.DiscardHandler), Home: Home{Zone: time.UTC, Named: true}, Alone: true,
		NewID: func() string { w.ids++; return fmt.Sprintf("job%03d", w.ids) },
	}
	if w.deps != nil {
		w.deps(&deps)
	}
	s, err := New(w.cfg, deps)
	if err != nil {
		w.t.Fatal(err)
	}
	return s, func() {
		if err := db.Close(); err != nil {
			w.t.Error(err)
		}
	}
}

// boot starts a process.
func (w *world) boot() {
	w.t.Helper()
	w.s, _ = w.make()
	if w.pace != 0 {
		w.s.pace = w.pace
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(w.t.Context()))
	w.cancel, w.ended = cancel, make(chan struct{})
	s, ended := w.s, w.ended
	go func() {
		defer close(ended)
		_ = s.Run(ctx)
	}()
	synctest.Wait()
}

// close ends the process as SIGTERM does.
func (w *world) close() {
	w.t.Helper()
	if w.db == nil {
		return
	}
	w.cancel(llm.ErrShutdown)
	<-w.ended
	if w.lasting {
		return
	}
	if err := w.db.Close(); err != nil {
		w.t.Error(err)
	}
	w.db = nil
}

// kill ends the process as a power cut does: nothing is written any more. It may be called from
// inside a run; what is left of the old process ends by itself.
func (w *world) kill() {
	_ = w.db.Close()
	w.cancel(errors.New("killed"))
	w.db = nil
}

// slowly lets ticks be rare, where a test is about what wakes the scheduler between them.
func (w *world) slowly(pace time.Duration) {
	w.pace = pace
	w.reboot(0)
}

// reboot ends the process and starts another one a while later.
func (w *world) reboot(down time.Duration) {
	w.t.Helper()
	w.close()
	time.Sleep(down)
	w.boot()
}

// pass lets time pass until everybody waits.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	w.wait(d)
	synctest.Wait()
}

// wait lets time pass. What the test has set up before is there for whoever works meanwhile.
func (w *world) wait(d time.Duration) {
	w.mu.Lock()
	//lint:ignore SA2001 it publishes what was written before
	w.mu.Unlock()
	time.Sleep(d)
}

// add makes a job that reports home.
func (w *world) add(text string, change ...func(*Draft)) Card {
	w.t.Helper()
	d := Draft{Schedule: text, Message: "do " + text, Origin: home}
	for _, f := range change {
		f(&d)
	}
	c, err := w.s.Add(w.t.Context(), d)
	if err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
	return c
}

func (w *world) get(id string) Job {
	w.t.Helper()
	job, err := w.s.store.Get(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

func (w *world) gone(id string) bool {
	w.t.Helper()
	_, err := w.s.store.Get(w.t.Context(), id)
	return errors.Is(err, ErrNotFound)
}

// log returns the run log of a job as lines, the oldest first: slot, trigger, status, completion, reason.
func (w *world) log(id string) []string {
	w.t.Helper()
	runs, err := w.s.store.Runs(w.t.Context(), id, 500)
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Reverse(runs)
	var out []string
	for _, r := range runs {
		line := fmt.Sprintf("%s %s %s", r.ScheduledAt.UTC().Format("02T15:04:05"), r.Trigger, r.Status)
		for _, x := range []string{string(r.Completion), string(r.Reason)} {
			if x != "" {
				line += " " + x
			}
		}
		out = append(out, line)
	}
	return out
}

// slots returns the slots that were run, by job.
func (p *people) slots() map[string][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string][]string{}
	for _, t := range p.runs {
		out[t.Job.ID] = append(out[t.Job.ID], t.Scheduled.UTC().Format(time.RFC3339))
	}
	for _, list := range out {
		sort.Strings(list)
	}
	return out
}

// doubled returns what was run or said twice.
func (p *people) doubled() []string {
	var out []string
	for id, slots := range p.slots() {
		if len(slices.Compact(slices.Clone(slots))) != len(slots) {
			out = append(out, id+": "+strings.Join(slots, " "))
		}
	}
	return out
}

// expect compares a list of lines.
func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// fails is work that always fails for a reason.
func fails(r Reason) func(context.Context, Task) (Result, error) {
	return func(context.Context, Task) (Result, error) {
		return Result{}, &Error{Reason: r, Err: errors.New("sk-secret <html>")}
	}
}

// takes is work that needs time.
func takes(d time.Duration) func(context.Context, Task) (Result, error) {
	return func(ctx context.Context, _ Task) (Result, error) {
		return Result{Text: "done"}, (clock.Clock{}).Sleep(ctx, d)
	}
}
