package reply

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy/chat"
	"understudy/llm"
)

func TestEnvelopesTellPeopleAndPlacesApart(t *testing.T) {
	for want, in := range map[string]chat.Inbound{
		"[Slack #ops Ada Mon 2026-03-02 10:00 UTC]":     {Title: "ops", Sender: chat.Sender{ID: "U1", Name: "Ada"}, Address: chat.Address{Channel: "slack", Kind: chat.Room}},
		"[Telegram Family U1 Mon 2026-03-02 10:00 UTC]": {Title: "Family", Sender: chat.Sender{ID: "U1"}, Address: chat.Address{Channel: "telegram", Kind: chat.Group}},
		"[Discord #a (b) Ada Mon 2026-03-02 10:00 UTC]": {Title: "#a [b]", Sender: chat.Sender{Name: "Ada"}, Address: chat.Address{Channel: "discord", Kind: chat.Room}},
		"[Web Mon 2026-03-02 10:00 UTC]":                {Title: "never", Sender: chat.Sender{ID: "owner"}, Address: chat.Address{Channel: "web", Kind: chat.Direct}},
		"[Console Ada Mon 2026-03-02 10:00 UTC]":        {Sender: chat.Sender{Name: "Ada"}, Address: chat.Address{Channel: "console", Kind: chat.Direct}},
	} {
		in.At = start
		if got := envelope(&in, time.UTC); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Whatever stands above and in a message, the page shows what the person wrote.
func TestSpokenIsWhatWasWritten(t *testing.T) {
	r := newRig(t)
	word := rapid.SampledFrom([]string{"hi", labelCurrent, labelHistory, "\n\n" + labelCurrent + "\n", "<<<end AAAAAAAAAAAA>>>", "[Replying to me. x]\n", "x\ny", "\n\n", "[a b]"})
	rapid.Check(t, func(rt *rapid.T) {
		text := func(name string) string {
			return strings.Join(rapid.SliceOfN(word, 0, 4).Draw(rt, name), "")
		}
		asked := "q" + text("asked")
		q := message(asked)
		q.In.Quote = strings.TrimSpace(text("quote"))
		for range rapid.IntRange(0, 2).Draw(rt, "lines") {
			q.History = append(q.History, HistoryLine{Sender: text("name"), Text: text("line"), At: start})
		}
		if rapid.Bool().Draw(rt, "digest") {
			q.Digests = []string{text("digest")}
		}
		tu := r.runner.begin(q)
		if err := tu.said(t.Context()); err != nil {
			rt.Fatal(err)
		}
		if got := Spoken(tu.fresh[0].Message); got != asked {
			rt.Fatalf("%q became %q in\n%s", asked, got, tu.fresh[0].Message.PlainText())
		}
	})
}

func TestLongHistoryKeepsItsEnd(t *testing.T) {
	r := newRig(t)
	q := message("hi")
	for i := range 60 {
		q.History = append(q.History, HistoryLine{Sender: "Bob", Text: fmt.Sprintf("line %d %s", i, strings.Repeat("é", 3_000)), At: start})
	}
	r.run(q)
	got := r.heard()
	if len(got) > maxHistory+2_000 || !strings.Contains(got, "earlier messages are left out]") || !strings.Contains(got, "line 59") || strings.Contains(got, "line 3 ") || !strings.Contains(got, " [cut]") {
		t.Errorf("%d bytes: %.200s", len(got), got)
	}
}

// A directive never flashes up in a preview, however the text is cut into pieces, and everything else
// is shown at last.
func TestDirectivesNeverFlashUp(t *testing.T) {
	piece := rapid.SampledFrom([]string{"[[tts]]", "[[tts:voice=x speed=2]]", "[[tts:text]]", "[[/tts:text]]", "[[audio_as_voice]]", "[[reply_to_current]]", "[", "[[", "]]", "a [link](x)", "word ", "\n", "[[ TTS ]]"})
	rapid.Check(t, func(rt *rapid.T) {
		whole := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(rt, "pieces"), "")
		out := &outbox{}
		tu := &turn{r: New(Deps{Speak: speakTagged}), out: out}
		for rest := whole; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "cut")
			tu.stream(rest[:n])
			rest = rest[n:]
			if shown := strings.ToLower(out.preview); strings.Contains(shown, "[[tts") || strings.Contains(shown, "[[/tts") || strings.Contains(shown, "[[audio") {
				rt.Fatalf("%q showed %q", whole, out.preview)
			}
		}
		if want := readable(whole); out.preview != want {
			rt.Fatalf("%q ends as %q, want %q", whole, out.preview, want)
		}
	})
}

func TestTextWithoutDirectivesIsShownAsItIs(t *testing.T) {
	for text, want := range map[string]string{
		"a [[b]] c": "a [[b]] c", "x[[reply_to:5]]y": "x[[reply_to:5]]y", "a [": "a ", "a [[t": "a ", "a [[b": "a [[b",
		"see [[tts:text]]this[[/tts:text]] here": "see  here", "say [[tts:text]]thi": "say ", "[[tts]] hi": "hi",
	} {
		if got := readable(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestTokenOfNothingToReport(t *testing.T) {
	long := strings.Repeat("x", maxOKRest+1)
	for text, want := range map[string]struct {
		rest       string
		beat, talk bool // dropped in a heartbeat, in a conversation
	}{
		"HEARTBEAT_OK":               {"", true, true},
		" **HEARTBEAT_OK**. ":        {"", true, true},
		"`HEARTBEAT_OK`":             {"", true, true},
		"HEARTBEAT_OK — all quiet":   {"all quiet", true, false},
		"HEARTBEAT_OK: fine":         {"fine", true, false},
		"All quiet.\n\nHEARTBEAT_OK": {"All quiet.", true, false},
		"HEARTBEAT_OK " + long:       {long, false, false},
		"I say HEARTBEAT_OK never":   {"I say HEARTBEAT_OK never", false, false},
		"HEARTBEAT_OKAY":             {"HEARTBEAT_OKAY", false, false},
		"**Bold** HEARTBEAT_OK":      {"**Bold**", true, false},
		"":                           {"", false, false},
	} {
		beat, talk := &turn{req: Request{Kind: Heartbeat}}, &turn{}
		rest, dropped := beat.withoutOK(text)
		_, droppedHere := talk.withoutOK(text)
		if rest != want.rest || dropped != want.beat || droppedHere != want.talk {
			t.Errorf("%.30q: rest %.30q, dropped %v and %v", text, rest, dropped, droppedHere)
		}
	}
}

func TestTrimmedResultsStayReadable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := strings.Repeat(rapid.SampledFrom([]string{"a", "é", "世", "🙂"}).Draw(rt, "c"), rapid.IntRange(largeResult, 2*largeResult).Draw(rt, "n"))
		got := trimmed(s)
		if strings.ToValidUTF8(got, "?") != got || len(got) >= len(s) || len(got) > 2*resultEdge+64 {
			rt.Fatalf("%d bytes became %d", len(s), len(got))
		}
		m := llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{ToolResult: &llm.ToolResult{ID: "1", Text: s}}}}
		if lighter(m, trimmed, true); m.Parts[0].ToolResult.Text != s {
			rt.Fatal("the transcript itself was changed")
		}
	})
}
