package inbound

import "testing"

// What could not be read is noted once, with nothing of what it says, and is never answered.
func TestBadEventsAreNoted(t *testing.T) {
	bubble(t, func(w *world) {
		for range 2 {
			if err := w.p.Bad(w.t.Context(), Account{Channel: "telegram", Name: "open"}, "tg:1:7:bad", "unexpected end"); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.count("SELECT count(*) FROM inbound WHERE event_key = 'tg:1:7:bad' AND state = 'failed' AND payload_json = '' AND error = 'bad: unexpected end'"); n != 1 {
			t.Errorf("%d rows", n)
		}
		w.boot()
		if got := w.texts(); len(got) != 0 {
			t.Errorf("handled %q", got)
		}
	})
}
