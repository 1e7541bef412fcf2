package channelstest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"understudy/channels"
)

// survivesCut: after a broken connection nothing is lost, doubled or out of order.
func survivesCut(t *testing.T, s *Subject, r *Recorder) {
	p := ability[Cutter](t, s, "there is no connection")
	next := 0
	say := func() {
		s.Platform.Say(s.Person, s.Direct, fmt.Sprint(next), "")
		next++
	}
	for range 3 {
		say()
		synctest.Wait()
		p.Cut()
		say()
		synctest.Wait()
		say()
	}
	seen := map[string]bool{}
	for want := 0; want < next; {
		in := r.Next(t)
		switch {
		case t.Failed():
			return
		case in.Text == fmt.Sprint(want):
			want++
		case !seen[in.EventKey]:
			t.Errorf("message %q, want %d", in.Text, want)
		}
		seen[in.EventKey] = true
	}
	r.await(t, channels.Connected)
	for {
		pass(time.Minute)
		if r.Pending() == 0 {
			return
		}
		for r.Pending() > 0 {
			if in := r.Next(t); !seen[in.EventKey] {
				t.Errorf("message %q comes again under the key %q", in.Text, in.EventKey)
			}
		}
	}
}

// catchesUp: what was said while the adapter was away is fetched, oldest first, once, and marked.
func catchesUp(t *testing.T, s *Subject, r *Recorder) {
	p := ability[Gapper](t, s, "nothing is missed")
	if s.Seen == nil {
		t.Skip("the adapter was made without marks")
	}
	to := s.Direct
	if s.Group.Conversation != "" {
		to = s.Group
	}
	s.Platform.Say(s.Person, to, s.Platform.Name()+" before", "")
	first := r.Next(t)
	s.send(t, to, "here I am") // the bot's own words are not news
	synctest.Wait()
	p.Away()
	var missed []string
	for i := range 3 {
		pass(time.Minute)
		missed = append(missed, fmt.Sprintf("missed %d", i))
		s.Platform.Say(s.Person, to, missed[i], "")
	}
	pass(channels.LeastGap)
	p.Back()
	keys := map[string]bool{first.EventKey: true}
	for _, want := range missed {
		in := r.Next(t)
		if in.Text != want || !in.CatchUp || in.Address != to || in.Sender.ID != s.Person || keys[in.EventKey] {
			t.Errorf("got %+v, want %q", in, want)
		}
		keys[in.EventKey] = true
	}
	r.await(t, channels.Connected)
	s.Platform.Say(s.Person, to, "after", "")
	if in := r.Next(t); in.Text != "after" || in.CatchUp {
		t.Errorf("got %+v", in)
	}
	pass(10 * time.Minute)
	r.nothing(t)
}

// stopsRevoked: a credential that is refused while the account runs ends it, with words for the
// operator.
func stopsRevoked(t *testing.T, s *Subject, r *Recorder) {
	p := ability[Revoker](t, s, "there is no credential")
	s.revoked = true
	p.Revoke()
	if err := s.ended(t); err == nil || err.Error() == "" {
		t.Error("Run ended without a reason")
	}
	all := r.Statuses()
	if last := all[len(all)-1]; last.State != channels.Stopped || last.Detail == "" {
		t.Errorf("status %+v", last)
	}
}

// stopsAtOnce: the end of the context ends Run without a wait, also in the middle of work.
func stopsAtOnce(t *testing.T, s *Subject, r *Recorder) {
	for i := range 10 {
		s.Platform.Say(s.Person, s.Direct, fmt.Sprint(i), "")
	}
	began := time.Now()
	s.stop()
	if err := s.ended(t); err != nil {
		t.Errorf("Run ended with %v", err)
	}
	if took := time.Since(began); took > 10*time.Second { // virtual time
		t.Errorf("the end took %v", took)
	}
	before := r.Pending()
	pass(time.Minute)
	if r.Pending() != before {
		t.Error("messages arrive after the end")
	}
}

// keepsApart: two accounts share nothing.
func keepsApart(t *testing.T, s *Subject, r *Recorder) {
	if s.Second == nil {
		t.Skip("there is only one account")
	}
	other := s.Second(t)
	r2 := other.run(t)
	defer other.finish(t)
	if !r2.await(t, channels.Connected) {
		return
	}
	if a, b := s.Adapter.Traits(), other.Adapter.Traits(); a.Account == b.Account || a.Channel != b.Channel {
		t.Errorf("accounts %q and %q", a.Account, b.Account)
	}
	s.Platform.Say(s.Person, s.Direct, "to the first", "")
	other.Platform.Say(other.Person, other.Direct, "to the second", "")
	one, two := r.Next(t), r2.Next(t)
	if one.Text != "to the first" || one.Address != s.Direct || two.Text != "to the second" || two.Address != other.Direct {
		t.Errorf("got %+v and %+v", one, two)
	}
	if shareKey(one, two) {
		t.Errorf("both have the keys %q %q", one.EventKey, one.AltKeys)
	}
	s.send(t, s.Direct, "from the first")
	other.send(t, other.Direct, "from the second")
	if a, b := s.last(t, s.Direct).Text, other.last(t, other.Direct).Text; a != "from the first" || b != "from the second" {
		t.Errorf("said %q and %q", a, b)
	}
	if s.count(s.Direct) != 1 || other.count(other.Direct) != 1 {
		t.Error("one account speaks for the other")
	}
	r.nothing(t)
	r2.nothing(t)
}
