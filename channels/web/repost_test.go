package web

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/channels"
	"understudy/chat"
)

// A message that is posted again after a restart of the bot keeps its id, so that the one who deals
// with the stored message ends its waiting.
func TestRepostOverARestart(t *testing.T) {
	before := start(t, Config{}, nil)
	first := before.post("s1", "c1", "hello")
	before.stop()
	after := start(t, Config{}, nil)
	again := after.post("s1", "c1", "hello")
	if first.ID != again.ID {
		t.Errorf("ids %q and %q", first.ID, again.ID)
	}
	if other := after.post("s2", "c1", "hello"); other.ID == first.ID {
		t.Error("two sessions share an id")
	}
	if !after.busy(t, "s1") {
		t.Error("nobody waits")
	}
	after.Finished(address("s1"), first.ID, 1)
	if after.busy(t, "s1") {
		t.Error("the session waits for ever")
	}
}

func (r *rig) busy(t *testing.T, session string) bool {
	t.Helper()
	var s snapshot
	r.call("GET", "/api/sessions/"+session+"/messages", nil, &s)
	return s.Session.Busy
}

// What was dealt with before the page posts it again waits for nothing.
func TestRepostOfWhatIsDone(t *testing.T) {
	r := start(t, Config{}, nil)
	r.Finished(address("s1"), postID("s1", "c1"), 1)
	r.post("s1", "c1", "hello")
	if r.busy(t, "s1") {
		t.Error("the session waits for ever")
	}
}

// What is in the history already is shown once.
func TestRepostOfWhatIsInTheHistory(t *testing.T) {
	now := time.Now()
	own := func(text string, ago time.Duration) Entry { return Entry{Own: true, Text: text, At: now.Add(-ago)} }
	answer := Entry{Text: "hi", At: now}
	for name, c := range map[string]struct {
		past []Entry
		want []string
		busy bool
	}{
		"the last one":     {[]Entry{own("hello", time.Minute)}, []string{"unknown: hello"}, true},
		"answered already": {[]Entry{own("hello", time.Minute), answer}, []string{"unknown: hello", "assistant: hi"}, false},
		"another text":     {[]Entry{own("hullo", time.Minute)}, []string{"unknown: hullo", "unknown: hello"}, true},
		"an older one":     {[]Entry{own("hello", time.Minute), own("more", 0)}, []string{"unknown: hello", "unknown: more", "unknown: hello"}, true},
		"long ago":         {[]Entry{own("hello", time.Hour), answer}, []string{"unknown: hello", "assistant: hi", "unknown: hello"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, Config{}, past{entries: map[string][]Entry{"s1": c.past}})
			m := r.post("s1", "c1", "hello")
			if m.ID != postID("s1", "c1") || m.Post != "c1" || m.Rev == 0 {
				t.Errorf("posted %+v", m)
			}
			if d := cmp.Diff(c.want, r.texts("s1")); d != "" {
				t.Errorf("messages (-want +got):\n%s", d)
			}
			if got := r.busy(t, "s1"); got != c.busy {
				t.Errorf("busy %v", got)
			}
		})
	}
}

// A page sees a message once it is stored, so that the second attempt is no message that is gone.
func TestRefusedPostIsNeverShown(t *testing.T) {
	r := start(t, Config{}, nil)
	f := r.follow("")
	f.expect("reset")
	r.refuse = errors.New("disk full")
	r.call("POST", "/api/sessions/s1/messages", posted{ID: "c1", Text: "hello"}, nil)
	r.refuse = nil
	r.post("s1", "c1", "hello")
	r.say("s1", chat.Assistant, "hi")
	f.expect("own hello", "assistant hi")
}

// An answer that is quicker than the confirmation stands below its question all the same.
func TestAnswerStandsBelowItsQuestion(t *testing.T) {
	b := newBoard(Config{}.WithDefaults(), nil, "e")
	m, _ := b.post("s1", posted{ID: "c1", Text: "hello"}, now())
	if n := len(b.snapshot("s1").Messages); n != 0 {
		t.Errorf("%d messages are shown before they are stored", n)
	}
	b.say("s1", "k", Message{Session: "s1", Class: chat.Command, Text: "pong"})
	b.confirm(m)
	missed, _, _ := b.log.after(0)
	var got []string
	for _, e := range missed {
		got = append(got, short(e))
	}
	if d := cmp.Diff([]string{"own hello", "command pong"}, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

// Of a message that an earlier process answered nobody says that it is done: the waiting ends.
func TestWaitingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(Config{}.WithDefaults(), nil, "e")
		m, _ := b.post("s1", posted{ID: "c1", Text: "hello"}, now())
		b.confirm(m)
		if !b.snapshot("s1").Session.Busy {
			t.Error("nobody waits")
		}
		<-time.After(waitsFor + time.Second)
		if b.snapshot("s1").Session.Busy {
			t.Error("the session waits for ever")
		}
	})
}

// A message that is dealt with before the page sees it leaves no sign of work behind.
func TestQuickReplyLeavesNoSignOfWork(t *testing.T) {
	r := start(t, Config{}, nil)
	r.quick = func(m chat.Inbound) { r.Finished(m.Address, m.ID, 1) }
	f := r.follow("")
	f.expect("reset")
	r.post("s1", "c1", "/model")
	r.say("s1", chat.Command, "the models")
	r.say("s1", chat.Notice, "the end")
	f.expect("done", "own /model", "done", "command the models")
	if r.busy(t, "s1") {
		t.Error("the session waits for ever")
	}
}

// What an earlier process took in and did not answer is shown, and waits, until it is dealt with.
func TestWaitingOverARestart(t *testing.T) {
	id := postID("s1", "c1")
	at := time.Now().Add(-time.Minute)
	h := past{entries: map[string][]Entry{"s1": {{Own: true, Text: "before", At: at}, {Text: "an answer", At: at}, {ID: id, Own: true, Text: "hello", At: at}}}}
	r := start(t, Config{}, h)
	want := []string{"unknown: before", "assistant: an answer", "unknown: hello"}
	if d := cmp.Diff(want, r.texts("s1")); d != "" {
		t.Errorf("messages (-want +got):\n%s", d)
	}
	r.say("s1", chat.Assistant, "an answer") // the outbox sends what is in the transcript already
	if m := r.post("s1", "c1", "hello"); m.ID != id || m.Post != "c1" {
		t.Errorf("posted again: %+v", m)
	}
	if d := cmp.Diff(want, r.texts("s1")); d != "" {
		t.Errorf("messages after the repetition (-want +got):\n%s", d)
	}
	if !r.busy(t, "s1") {
		t.Error("nobody waits")
	}
	r.Finished(address("s1"), id, 1)
	if r.busy(t, "s1") {
		t.Error("the session waits for ever")
	}
}

// Of what an earlier process dealt with nobody says so again: the page that posts it again is told by
// the history.
func TestRepostOfWhatAnEarlierProcessDealtWith(t *testing.T) {
	r := start(t, Config{}, past{})
	var m Message
	if code := r.call("POST", "/api/sessions/s1/messages", posted{ID: "c1", Text: "/status", Again: true}, &m); code != http.StatusAccepted {
		t.Fatalf("status %d", code)
	}
	if r.busy(t, "s1") {
		t.Error("the session waits for ever")
	}
}

func TestFinishedIsBounded(t *testing.T) {
	var f finished
	for i := range 3 * mostFinished {
		f.add(postID("s", string(rune('a'+i%26))+time.Duration(i).String()))
	}
	if len(f.known) != mostFinished || len(f.order) != mostFinished {
		t.Errorf("%d and %d are kept", len(f.known), len(f.order))
	}
}

func TestButtonsStandInGroups(t *testing.T) {
	r := start(t, Config{}, nil)
	list := []chat.Button{
		{Label: "a1", Command: "/a1", Group: "A"}, {Label: "b1", Command: "/b1", Group: "B", Chosen: true}, {Label: "a2", Command: "/a2", Group: "A"},
	}
	if _, err := r.Send(t.Context(), channels.Piece{To: address("s1"), Class: chat.Command, Text: "choose", Buttons: list}); err != nil {
		t.Fatal(err)
	}
	var s snapshot
	r.call("GET", "/api/sessions/s1/messages", nil, &s)
	if d := cmp.Diff([]chat.Button{list[0], list[2], list[1]}, s.Messages[0].Buttons); d != "" {
		t.Errorf("buttons (-want +got):\n%s", d)
	}
	if list[1].Label != "b1" {
		t.Error("the sender's list was changed")
	}
}
