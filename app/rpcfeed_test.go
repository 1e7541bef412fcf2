package app

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"understudy/chat"
)

// TestAFeedTellsWhatWasSaid says, takes back and reads in any order: whoever follows the events has, at
// the end, exactly what was said since the last time it was taken back, and every notice.
func TestAFeedTellsWhatWasSaid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newTurnFeed()
		var said, heard strings.Builder
		var notices, heardNotices int
		read := func() {
			for _, e := range f.take() {
				switch e.Type {
				case "text":
					heard.WriteString(e.Text)
				case "restart":
					if heard.Len() == 0 {
						t.Fatal("nothing was there to take back")
					}
					heard.Reset()
				case "notice":
					heardNotices++
				}
			}
		}
		for i := range rapid.IntRange(0, 40).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"say", "say", "restart", "notice", "read"}).Draw(t, "what") {
			case "say":
				text := fmt.Sprintf("<%d>", i)
				said.WriteString(text)
				f.Stream(text)
			case "restart":
				said.Reset()
				f.Restart()
			case "notice":
				notices++
				f.Notify(chat.Outbound{Markdown: "n"})
			case "read":
				read()
			}
		}
		if f.Committed() {
			t.Fatal("text that can be taken back is no commitment")
		}
		read()
		if said.String() != heard.String() || notices != heardNotices {
			t.Fatalf("said %q and %d notices, heard %q and %d", said.String(), notices, heard.String(), heardNotices)
		}
	})
}

func TestAFeedIsBounded(t *testing.T) {
	f := newTurnFeed()
	for range 5 * mostEvents {
		f.Notify(chat.Outbound{Markdown: "n"})
	}
	f.Stream("text")
	if err := f.Finish(t.Context(), chat.Outbound{Class: chat.Assistant, Markdown: "text", Media: []chat.Attachment{
		{Name: "a", Data: make([]byte, mostMedia)}, {Name: "b", Data: []byte("x")},
	}}); err != nil {
		t.Fatal(err)
	}
	events := f.take()
	if len(events) != mostEvents+2 || events[mostEvents].Type != "text" || events[mostEvents+1].Type != "answer" {
		t.Errorf("%d events wait", len(events))
	}
	if m := f.media(); len(m[0].Data) != mostMedia || m[1].Data != nil || m[1].Size != 1 {
		t.Errorf("files of %d and %d bytes", len(m[0].Data), len(m[1].Data))
	}
}
