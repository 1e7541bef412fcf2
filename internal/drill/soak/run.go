package soak

import (
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// Plan says how long a run is and how rough.
type Plan struct {
	Seed          uint64
	Conversations int
	// Messages each person writes; 0 = for Duration.
	Messages int
	Duration time.Duration
	Think    time.Duration // pause of a person between an answer and the next message, on average
	Gust     time.Duration // pause between two things that go wrong at one platform, on average
	Patience time.Duration // how long an answer may take
	Calm     time.Duration // with Duration: so often everything is well for a while
	Out      io.Writer     // progress
}

// The tick of a run, and how long the bot may rest in a calm before it is measured: longer than idle
// connections live.
const (
	tick = 250 * time.Millisecond
	rest = 100 * time.Second
)

// run is a run under way.
type run struct {
	Plan
	rand   *rand.Rand
	sides  []platform
	models *models
	stats  func() Stats
	all    []*conversation
	gusts  map[string]time.Time
	known  bool // everybody and the bot have talked
	report Report
}

// world are the platforms and models of a run, not yet reachable but in memory.
type world struct {
	sides  []platform
	models *models
}

func newWorld() *world {
	return &world{sides: []platform{newSlack(), newDiscord(), newTelegram()}, models: newModels()}
}

func (w *world) close() {
	for _, s := range w.sides {
		s.close()
	}
	w.models.close()
}

// settings is the whole configuration.
func (w *world) settings() string {
	text := w.models.settings() + "channels:\n"
	for _, s := range w.sides {
		text += s.settings()
	}
	return text
}

// newRun makes the people known. stats measures the bot.
func newRun(p Plan, w *world, stats func() Stats) *run {
	x := &run{
		Plan: p, rand: rand.New(rand.NewPCG(p.Seed, 1)), sides: w.sides, models: w.models, stats: stats, gusts: map[string]time.Time{},
		report: Report{Seed: p.Seed, Became: map[string]map[string]int{}, Gusts: map[string]int{}, Halves: map[string]int{}},
	}
	for i := range p.Conversations {
		side := w.sides[i%len(w.sides)]
		c := &conversation{number: i + 1, side: side, place: side.open(i+1, kinds[i/len(w.sides)%len(kinds)]), left: -1}
		if p.Messages > 0 {
			c.left = p.Messages
		}
		x.all = append(x.all, c)
	}
	return x
}

// play lets people talk until the plan is done, waits for the last answers, and checks everything.
func (x *run) play() *Report {
	began := time.Now()
	for _, c := range x.all {
		c.next = began.Add(upTo(x.rand, 2*x.Think))
	}
	if x.Messages > 0 {
		x.storm(func(time.Time) bool { return x.writing() })
		x.settle()
	}
	for n := 0; x.Messages == 0 && time.Since(began) < x.Duration; n++ {
		until := time.Now().Add(x.Calm)
		if n == 0 {
			until = time.Now().Add(x.Calm / 4) // what opens once is open before the first measurement
		}
		x.storm(func(now time.Time) bool { return now.Before(until) })
		x.settle()
		x.measure()
	}
	x.verdict()
	return &x.report
}

// writing reports whether somebody still has something to write.
func (x *run) writing() bool {
	for _, c := range x.all {
		if c.left > 0 {
			return true
		}
	}
	return false
}

// storm lets people talk and things go wrong.
func (x *run) storm(more func(now time.Time) bool) {
	for now := time.Now(); more(now); now = time.Now() {
		for _, c := range x.all {
			c.speak(x.rand, now, x.Think)
			c.listen(now, x.Patience, &x.report.times)
		}
		if x.known = x.known || x.acquainted(); x.known {
			for _, s := range x.sides {
				x.blow(now, s.name(), s.gust)
			}
			x.blow(now, "model", x.models.gust)
		}
		time.Sleep(tick)
	}
}

// acquainted reports whether everybody has been answered once. Nothing goes wrong before: the first
// words of somebody who writes while there is no connection are found by nobody, for the bot looks back
// only where it has talked before (spec/chat.md §2.8).
func (x *run) acquainted() bool {
	for _, c := range x.all {
		if len(c.all) == 0 || c.all[0].state == waiting {
			return false
		}
	}
	return true
}

func (x *run) blow(now time.Time, name string, gust func(*rand.Rand) string) {
	at, ok := x.gusts[name]
	if ok && now.Before(at) {
		return
	}
	if ok && x.Gust > 0 {
		x.report.Gusts[name+" "+gust(x.rand)]++
	}
	x.gusts[name] = now.Add(upTo(x.rand, 2*x.Gust+1))
}

// settle ends everything that goes wrong and waits until nobody waits any more.
func (x *run) settle() {
	for _, s := range x.sides {
		s.calm()
	}
	x.models.calm()
	for {
		open := 0
		for _, c := range x.all {
			c.burst = false
			c.listen(time.Now(), x.Patience, &x.report.times)
			open += len(c.open())
		}
		if open == 0 {
			return
		}
		time.Sleep(tick)
	}
}

// measure looks at the bot after a rest.
func (x *run) measure() {
	time.Sleep(rest)
	s := x.stats()
	x.report.Calms = append(x.report.Calms, s)
	n := 0
	for _, c := range x.all {
		n += len(c.all)
	}
	if x.Out != nil {
		fmt.Fprintf(x.Out, "%s  %d messages, %s\n", time.Now().Format("15:04:05"), n, s)
	}
	for _, c := range x.all {
		c.next = time.Now().Add(upTo(x.rand, 2*x.Think))
	}
}

// verdict checks every conversation.
func (x *run) verdict() {
	r := &x.report
	for _, c := range x.all {
		problems, halves := c.check(x.models.order)
		r.Halves[c.side.name()] += halves
		r.Messages += len(c.all)
		if r.Became[c.side.name()] == nil {
			r.Became[c.side.name()] = map[string]int{}
		}
		for _, s := range c.all {
			r.Became[c.side.name()][s.state.String()]++
		}
		for _, p := range problems {
			r.Problems = append(r.Problems, p+"\n"+c.String())
		}
	}
	for _, s := range x.sides {
		if n := r.Gusts[s.name()+" "+lostReceipt]; r.Halves[s.name()] > n {
			r.Problems = append(r.Problems, fmt.Sprintf("%s: %d half answers stay, and only %d receipts were lost", s.name(), r.Halves[s.name()], n))
		}
		for _, h := range s.astray() {
			if h.byBot {
				r.Problems = append(r.Problems, fmt.Sprintf("%s: said where nobody asked: %s", s.name(), h.text))
			}
		}
	}
	x.flat()
}

// flat checks that a calm leaves as many goroutines as the first one did.
func (x *run) flat() {
	calms := x.report.Calms
	for i := 1; i < len(calms); i++ {
		if most := calms[0].Goroutines*6/5 + 20; calms[i].Goroutines > most {
			x.report.Problems = append(x.report.Problems, fmt.Sprintf("calm %d: %d goroutines; the first had %d", i+1, calms[i].Goroutines, calms[0].Goroutines))
		}
	}
}
