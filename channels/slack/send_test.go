package slack

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/delivery/markup"

	emulator "understudy/internal/emulate/slack"
)

func wantVerdict(t *testing.T, err error, want channels.Verdict, code string) {
	t.Helper()
	var e *channels.SendError
	if !errors.As(err, &e) {
		t.Errorf("got %v (%T), want a *channels.SendError", err, err)
		return
	}
	if e.Verdict != want || e.Code != code {
		t.Errorf("verdict %d with code %q, want %d with %q: %v", e.Verdict, e.Code, want, code, err)
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		fault      emulator.Fault
		send, edit channels.Verdict
		code       string
	}{
		{emulator.Fault{RetryAfter: 9 * time.Second}, channels.Retry, channels.Retry, "rate_limited"},
		{emulator.Fault{Status: 429, Body: "slow down"}, channels.Retry, channels.Retry, "rate_limited"},
		{emulator.Fault{Error: "channel_not_found"}, channels.Gone, channels.Gone, "channel_gone"},
		{emulator.Fault{Error: "not_in_channel"}, channels.Gone, channels.Gone, "not_in_channel"},
		{emulator.Fault{Error: "is_archived"}, channels.Gone, channels.Gone, "channel_gone"},
		{emulator.Fault{Error: "restricted_action"}, channels.Gone, channels.Gone, "no_rights"},
		{emulator.Fault{Error: "thread_not_found"}, channels.Gone, channels.Gone, "thread_gone"},
		{emulator.Fault{Error: "msg_too_long"}, channels.TooLong, channels.TooLong, "too_long"},
		{emulator.Fault{Error: "msg_blocks_too_long"}, channels.TooLong, channels.TooLong, "too_long"},
		{emulator.Fault{Error: "invalid_blocks"}, channels.Markups, channels.Markups, "markup"},
		{emulator.Fault{Error: "invalid_arguments"}, channels.Markups, channels.Markups, "markup"},
		{emulator.Fault{Error: "cant_update_message"}, channels.Missing, channels.Missing, "message_gone"},
		{emulator.Fault{Error: "edit_window_closed"}, channels.Missing, channels.Missing, "message_gone"},
		{emulator.Fault{Error: "message_not_found"}, channels.Missing, channels.Missing, "message_gone"},
		{emulator.Fault{Error: "missing_scope", Needed: "chat:write"}, channels.Refused, channels.Refused, "missing_scope"},
		{emulator.Fault{Error: "something_new"}, channels.Refused, channels.Refused, "refused"},
		{emulator.Fault{Error: "Not <a> code"}, channels.Refused, channels.Refused, "refused"},
		{emulator.Fault{Error: "internal_error"}, channels.Unsure, channels.Retry, "server"},
		{emulator.Fault{Error: "service_unavailable", Status: 503}, channels.Retry, channels.Retry, "server"},
		{emulator.Fault{Status: 502, Body: "<html>"}, channels.Retry, channels.Retry, "server"},
		{emulator.Fault{Status: 504, Body: "<html>"}, channels.Unsure, channels.Retry, "server"},
		{emulator.Fault{Body: "<html>sign in</html>"}, channels.Unsure, channels.Retry, "server"},
		{emulator.Fault{Status: 403, Body: "<html>proxy</html>"}, channels.Refused, channels.Refused, "refused"},
		{emulator.Fault{Drop: true}, channels.Unsure, channels.Retry, "network"},
		{emulator.Fault{DropAfter: true}, channels.Unsure, channels.Retry, "network"},
		{emulator.Fault{Hang: true}, channels.Unsure, channels.Retry, "network"},
	} {
		t.Run(c.fault.Error+c.fault.Body+c.code, func(t *testing.T) {
			inBubble(t, setup{idle: true}, func(r *rig) {
				id := r.send(room, "before")
				f := c.fault
				f.Method = "chat.postMessage"
				r.srv.Inject(f)
				_, err := r.bot.Send(r.Context(), channels.Piece{To: room, Class: chat.Assistant, Text: "now"})
				wantVerdict(r.T, err, c.send, c.code)
				var e *channels.SendError
				if errors.As(err, &e) && e.After != c.fault.RetryAfter {
					r.Errorf("wait %v, want %v", e.After, c.fault.RetryAfter)
				}
				f.Method = "chat.update"
				r.srv.Inject(f)
				wantVerdict(r.T, r.bot.Edit(r.Context(), room, id, channels.Piece{Text: "x"}), c.edit, c.code)
				f.Method = "chat.delete"
				r.srv.Inject(f)
				wantVerdict(r.T, r.bot.Delete(r.Context(), room, id), c.edit, c.code)
			})
		})
	}
}

func TestUnreachableSlackMeansNothingWasSent(t *testing.T) {
	inBubble(t, setup{idle: true}, func(r *rig) {
		r.srv.Close()
		_, err := r.bot.Send(r.Context(), channels.Piece{To: room, Text: "x"})
		wantVerdict(r.T, err, channels.Retry, "network")
	})
}

// TestWorthlessTokenStopsTheAccount: over HTTP nothing but the next message can tell.
func TestWorthlessTokenStopsTheAccount(t *testing.T) {
	for name, change := range modes {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{bot: change}, func(r *rig) {
				r.srv.Inject(emulator.Fault{Method: "chat.postMessage", Error: "token_revoked"})
				_, err := r.bot.Send(r.Context(), channels.Piece{To: room, Text: "x"})
				wantVerdict(r.T, err, channels.Refused, "unauthorized")
				err = <-r.done
				r.done <- nil
				if err == nil || !strings.Contains(err.Error(), "check botToken") || r.sink.State() != channels.Stopped {
					r.Errorf("ended with %v in state %q", err, r.sink.State())
				}
			})
		})
	}
}

// TestMarkdownIsShownAsMeant sends what delivery renders: nothing is escaped twice, and nothing pings.
func TestMarkdownIsShownAsMeant(t *testing.T) {
	inBubble(t, setup{idle: true}, func(r *rig) {
		say := func(md string) emulator.Message {
			m := markup.Messages(md, markup.SlackMarkdown, markup.Limits{})[0]
			r.sendPiece(channels.Piece{To: room, Class: chat.Assistant, Text: m.Text, Plain: m.Plain})
			if got := r.last(general); got.Text != m.Text || !got.Markdown {
				r.Errorf("rendered as %q, taken as %q", m.Text, got.Text)
			}
			return r.last(general)
		}
		m := say("**Done** see [doc](https://example.com/a?b=1&c=2) if a < b & c > d `x<y`")
		if !strings.Contains(m.Text, "**Done**") || !strings.Contains(m.Text, "`x<y`") || strings.Contains(m.Text, "&amp;amp;") {
			r.Errorf("shown as %q", m.Text)
		}
		m = say("use <!channel> or @everyone, <@U0ADMIN1> and <!subteam^S1>")
		for _, l := range []string{"<!channel", "@everyone", "<@U0", "<!subteam"} {
			if strings.Contains(m.Text, l) {
				r.Errorf("%q is in %q", l, m.Text)
			}
		}
	})
}

// TestPlainTextIsShownAsItIs: what stands in for refused markup is escaped and not formatted.
func TestPlainTextIsShownAsItIs(t *testing.T) {
	inBubble(t, setup{idle: true}, func(r *rig) {
		plain := "a *b* _c_ <!channel> & <@U0ADMIN1>"
		r.sendPiece(channels.Piece{To: room, Class: chat.Assistant, Plain: plain})
		if m := r.last(general); m.Text != plain || m.Markdown {
			r.Errorf("shown as %+v", m)
		}
		p := r.srv.Calls("chat.postMessage")[0].Params
		if p["mrkdwn"] != "false" || strings.ContainsAny(p["text"], "<>") {
			r.Errorf("sent %v", p)
		}
		id := r.send(room, "**x**")
		if err := r.bot.Edit(r.Context(), room, id, channels.Piece{Plain: plain}); err != nil {
			r.Fatal(err)
		}
		if m := r.last(general); m.Text != plain || m.Markdown {
			r.Errorf("edited to %+v", m)
		}
	})
}

func TestNothingToSayIsRefused(t *testing.T) {
	inBubble(t, setup{idle: true}, func(r *rig) {
		for _, text := range []string{"", " \n"} {
			_, err := r.bot.Send(r.Context(), channels.Piece{To: room, Text: text})
			wantVerdict(r.T, err, channels.Refused, "empty")
		}
		if n := len(r.srv.Calls("")); n != 0 {
			r.Errorf("%d calls", n)
		}
	})
}

func TestReferencesOpenThreads(t *testing.T) {
	inBubble(t, setup{idle: true}, func(r *rig) {
		root := r.srv.UserSaidUnheard(general, ann, "question")
		r.sendPiece(channels.Piece{To: room, Class: chat.Assistant, Text: "answer", ReplyTo: root})
		in := room
		in.Thread = root
		r.sendPiece(channels.Piece{To: in, Class: chat.Notice, Text: "by the way", ReplyTo: "1.1"})
		for _, m := range r.srv.Sent(general) {
			if m.Thread != root || m.Unfurl {
				r.Errorf("got %+v", m)
			}
		}
	})
}

func TestLinksAreUnfurledWhenWanted(t *testing.T) {
	inBubble(t, setup{idle: true, bot: func(c *Config, _ *Deps) { c.UnfurlLinks = true }}, func(r *rig) {
		r.send(room, "https://example.com")
		if !r.last(general).Unfurl {
			r.Error("not unfurled")
		}
	})
}

// TestPeopleStandForTheirDirectMessages: a conversation is opened once.
func TestPeopleStandForTheirDirectMessages(t *testing.T) {
	inBubble(t, setup{idle: true}, func(r *rig) {
		to := chat.Address{Channel: Channel, Conversation: ann, Kind: chat.Direct}
		for range 2 {
			r.send(to, "hello")
		}
		if n := len(r.srv.Sent(dm)); n != 2 || len(r.srv.Calls("conversations.open")) != 1 {
			r.Errorf("%d messages, %d calls", n, len(r.srv.Calls("conversations.open")))
		}
		r.srv.Inject(emulator.Fault{Method: "conversations.open", Error: "user_not_found"})
		_, err := r.bot.Send(r.Context(), channels.Piece{To: chat.Address{Channel: Channel, Conversation: "U0NOBODY1"}, Text: "x"})
		wantVerdict(r.T, err, channels.Gone, "user_gone")
	})
}

func TestFilesGoOut(t *testing.T) {
	inBubble(t, setup{idle: true}, func(r *rig) {
		root := r.srv.UserSaidUnheard(general, ann, "question")
		media := []chat.Attachment{{Name: "../a/report.txt", MediaType: "text/plain", Data: []byte("all is well")}, {Data: []byte("x")}}
		p := channels.Piece{To: room, Class: chat.Assistant, Text: "here", Media: media, ReplyTo: root}
		got, err := r.bot.Send(r.Context(), p)
		if err != nil || len(got.IDs) != 3 || !strings.HasPrefix(got.IDs[1], "F") {
			r.Fatalf("receipt %v, %v", got, err)
		}
		for i, want := range []string{"report.txt", "file"} {
			if name, _ := r.srv.Content(got.IDs[i+1]); name != want {
				r.Errorf("file %d is called %q", i, name)
			}
		}
		for _, m := range r.srv.Sent(general) {
			if m.Thread != root {
				r.Errorf("got %+v", m)
			}
		}
	})
}

func TestFailedFilesSayWhatIsKnown(t *testing.T) {
	file := []chat.Attachment{{Name: "a", Data: []byte("x")}}
	for _, c := range []struct {
		fault emulator.Fault
		text  string
		want  channels.Verdict
		code  string
	}{
		{emulator.Fault{Method: "files.getUploadURLExternal", DropAfter: true}, "", channels.Retry, "network"},
		{emulator.Fault{Method: "upload", Status: 500, Body: "x"}, "", channels.Retry, "server"},
		{emulator.Fault{Method: "upload", Status: 413, Body: "x"}, "", channels.Refused, "file_too_large"},
		{emulator.Fault{Method: "files.completeUploadExternal", DropAfter: true}, "", channels.Unsure, "network"},
		{emulator.Fault{Method: "files.completeUploadExternal", Error: "not_in_channel"}, "", channels.Gone, "not_in_channel"},
		{emulator.Fault{Method: "files.getUploadURLExternal", Error: "file_uploads_disabled"}, "", channels.Refused, "no_files"},
		{emulator.Fault{Method: "upload", Status: 500, Body: "x"}, "text first", channels.Unsure, "partly_sent"},
	} {
		t.Run(c.fault.Method+c.code, func(t *testing.T) {
			inBubble(t, setup{idle: true}, func(r *rig) {
				r.srv.Inject(c.fault)
				got, err := r.bot.Send(r.Context(), channels.Piece{To: room, Text: c.text, Media: file})
				wantVerdict(r.T, err, c.want, c.code)
				if (len(got.IDs) > 0) != (c.text != "") {
					r.Errorf("receipt %v", got)
				}
			})
		})
	}
	inBubble(t, setup{idle: true}, func(r *rig) {
		_, err := r.bot.Send(r.Context(), channels.Piece{To: room, Media: []chat.Attachment{{Name: "empty"}}})
		wantVerdict(r.T, err, channels.Refused, "empty_file")
	})
}

func TestShowsThatItWorks(t *testing.T) {
	inBubble(t, setup{idle: true}, func(r *rig) {
		root := r.srv.UserSaidUnheard(general, ann, "question")
		in := room
		in.Thread = root
		if err := r.bot.Typing(r.Context(), in); err != nil || r.srv.Status(general, root) != typingText {
			r.Errorf("status %q, %v", r.srv.Status(general, root), err)
		}
		if err := r.bot.Quiet(r.Context(), in); err != nil || r.srv.Status(general, root) != "" {
			r.Errorf("status %q, %v", r.srv.Status(general, root), err)
		}
		wantVerdict(r.T, r.bot.Typing(r.Context(), room), channels.Refused, "no_typing")
		if err := r.bot.Quiet(r.Context(), room); err != nil || len(r.srv.Calls("assistant.threads.setStatus")) != 2 {
			r.Errorf("outside threads: %v", err)
		}
		for code, want := range map[string]channels.Verdict{"invalid_arguments": channels.Refused, "missing_scope": channels.Refused, "channel_not_found": channels.Gone} {
			r.srv.Inject(emulator.Fault{Method: "assistant.threads.setStatus", Error: code})
			var e *channels.SendError
			if err := r.bot.Typing(r.Context(), in); !errors.As(err, &e) || e.Verdict != want {
				r.Errorf("%s: %v", code, err)
			}
		}
	})
}

// TestRefusedMarkdownIsShownAsMrkdwn: it keeps its form, and only if that is refused too is it plain.
func TestRefusedMarkdownIsShownAsMrkdwn(t *testing.T) {
	render := func(_ *Config, d *Deps) {
		d.Mrkdwn = func(markdown string) string { return strings.ReplaceAll(markdown, "**", "*") }
	}
	piece := channels.Piece{To: room, Class: chat.Assistant, Text: "**a** & b", Plain: "a & b"}
	inBubble(t, setup{idle: true, bot: render}, func(r *rig) {
		refuse := func(method, code string, times int) {
			r.srv.Inject(emulator.Fault{Method: method, Error: code, Times: times})
		}
		for _, code := range []string{"invalid_blocks", "invalid_arguments"} {
			refuse("chat.postMessage", code, 1)
			id := r.sendPiece(piece)
			if m := r.last(general); m.TS != id || m.Text != "*a* & b" || m.Markdown {
				r.Errorf("%s: shown as %+v", code, m)
			}
		}
		calls := r.srv.Calls("chat.postMessage")
		if p := calls[len(calls)-1].Params; p["mrkdwn"] == "false" || p["markdown_text"] != "" {
			r.Errorf("sent %v", p)
		}
		id := r.sendPiece(piece)
		refuse("chat.update", "invalid_arguments", 1)
		if err := r.bot.Edit(r.Context(), room, id, channels.Piece{Text: "**c**"}); err != nil || r.last(general).Text != "*c*" {
			r.Errorf("edited to %q: %v", r.last(general).Text, err)
		}
		before := len(r.srv.Calls("chat.postMessage"))
		refuse("chat.postMessage", "invalid_blocks", 2)
		_, err := r.bot.Send(r.Context(), piece)
		wantVerdict(r.T, err, channels.Markups, "markup")
		refuse("chat.postMessage", "invalid_blocks", 1)
		plain := piece
		plain.Text = ""
		_, err = r.bot.Send(r.Context(), plain)
		wantVerdict(r.T, err, channels.Markups, "markup")
		if n := len(r.srv.Calls("chat.postMessage")) - before; n != 3 {
			r.Errorf("%d calls", n)
		}
	})
}

// TestRefusedMarkdownKeepsItsButtons: the menu below it is the same one.
func TestRefusedMarkdownKeepsItsButtons(t *testing.T) {
	render := func(_ *Config, d *Deps) { d.Mrkdwn = func(markdown string) string { return "*" + markdown + "*" } }
	inBubble(t, setup{bot: render}, func(r *rig) {
		r.srv.Inject(emulator.Fault{Method: "chat.postMessage", Error: "invalid_blocks"})
		id := r.sendPiece(channels.Piece{To: room, Class: chat.Assistant, Text: strings.Repeat("line\n", 1000), Buttons: menuOf(2)})
		for _, b := range r.last(general).Blocks {
			if b.Type == "markdown" {
				r.Errorf("blocks %+v", r.last(general).Blocks)
			}
		}
		if r.srv.Press(general, ann, id, shorten(menuOf(2)[1].Label, longestLabel)) == "" {
			r.Fatalf("blocks %+v", r.last(general).Blocks)
		}
		if in := r.sink.Next(r.T); in.Text != menuOf(2)[1].Command {
			r.Errorf("pressed %+v", in)
		}
	})
}

func TestReactionsNeedAKnownEmoji(t *testing.T) {
	inBubble(t, setup{idle: true}, func(r *rig) {
		ts := r.srv.UserSaidUnheard(general, ann, "x")
		wantVerdict(r.T, r.bot.React(r.Context(), room, ts, "🦤"), channels.Refused, "unknown_emoji")
		wantVerdict(r.T, r.bot.React(r.Context(), room, "1.1", "eyes"), channels.Missing, "message_gone")
		if err := r.bot.Unreact(r.Context(), room, "1.1", "eyes"); err != nil {
			r.Error(err)
		}
	})
}

func TestStreamsGrow(t *testing.T) {
	inBubble(t, setup{idle: true}, func(r *rig) {
		root := r.srv.UserSaidUnheard(general, ann, "question")
		p := channels.Piece{To: room, Class: chat.Assistant, Text: "**Once** <!cha", ReplyTo: root, For: ann}
		id, err := r.bot.StartStream(r.Context(), p)
		if err != nil {
			r.Fatal(err)
		}
		for _, text := range []string{"nnel> upon", "", " a <", "!here> time"} {
			if err := r.bot.AppendStream(r.Context(), room, id, text); err != nil {
				r.Fatal(err)
			}
		}
		wantVerdict(r.T, r.bot.Edit(r.Context(), room, id, channels.Piece{Text: "x"}), channels.Retry, "streaming")
		for range 2 { // the second has nothing to do
			if err := r.bot.StopStream(r.Context(), room, id); err != nil {
				r.Fatal(err)
			}
		}
		m := r.last(general)
		if shown := strings.ReplaceAll(m.Text, zeroWidth, ""); shown != "**Once** <!channel> upon a <!here> time" || strings.Contains(m.Text, "<!") {
			r.Errorf("said %q", m.Text)
		}
		if m.Thread != root || m.Streaming || m.Recipient != ann {
			r.Errorf("got %+v", m)
		}
		wantVerdict(r.T, r.bot.AppendStream(r.Context(), room, id, "late"), channels.Missing, "message_gone")
		if err := r.bot.Edit(r.Context(), room, id, channels.Piece{Text: "the whole answer"}); err != nil || r.last(general).Text != "the whole answer" {
			r.Errorf("edited to %q, %v", r.last(general).Text, err)
		}
	})
}

func TestStreamsOnlyWhereSlackDoes(t *testing.T) {
	inThread := room
	inThread.Thread = "1.1"
	directThread := direct
	directThread.Thread = "1.1"
	for _, c := range []struct {
		p    channels.Piece
		want bool
	}{
		{channels.Piece{To: room, For: ann}, false},
		{channels.Piece{To: room, For: ann, ReplyTo: "1.1"}, true},
		{channels.Piece{To: room, ReplyTo: "1.1"}, false},
		{channels.Piece{To: inThread, For: ann}, true},
		{channels.Piece{To: direct}, false},
		{channels.Piece{To: directThread}, true},
		{channels.Piece{To: directThread, Buttons: menuOf(1)}, false},
	} {
		inBubble(t, setup{idle: true}, func(r *rig) {
			if got := r.bot.Streams(c.p); got != c.want {
				r.Errorf("%+v: %v", c.p, got)
			}
			if c.want {
				return
			}
			_, err := r.bot.StartStream(r.Context(), c.p)
			wantVerdict(r.T, err, channels.Refused, "no_stream")
			if len(r.srv.Calls("")) != 0 {
				r.Error("Slack was asked")
			}
		})
	}
}

func TestStreamsInDirectThreadsNeedNobody(t *testing.T) {
	inBubble(t, setup{idle: true}, func(r *rig) {
		to := direct
		to.Thread = r.srv.UserOpensAssistant(dm, ann)
		id, err := r.bot.StartStream(r.Context(), channels.Piece{To: to})
		if err != nil {
			r.Fatal(err)
		}
		over := strings.Repeat("é", longestMarkdown)
		if err := r.bot.AppendStream(r.Context(), to, id, over); err != nil {
			r.Error(err)
		}
		wantVerdict(r.T, r.bot.AppendStream(r.Context(), to, id, over+"x"), channels.TooLong, "too_long")
		r.srv.Inject(emulator.Fault{Method: "chat.appendStream", DropAfter: true})
		wantVerdict(r.T, r.bot.AppendStream(r.Context(), to, id, "once"), channels.Unsure, "network")
	})
}

// TestRunAndSendShareNothingThatBlocks: a call that hangs holds up neither events nor other calls.
func TestRunAndSendShareNothingThatBlocks(t *testing.T) {
	inBubble(t, setup{}, func(r *rig) {
		r.srv.Inject(emulator.Fault{Method: "chat.postMessage", Hang: true})
		hanging := make(chan error, 1)
		ctx, cancel := context.WithCancel(r.Context())
		go func() {
			_, err := r.bot.Send(ctx, channels.Piece{To: room, Text: "one"})
			hanging <- err
		}()
		synctest.Wait()
		r.send(room, "two")
		r.srv.UserSays(dm, ann, "hello")
		r.sink.Next(r.T)
		cancel()
		wantVerdict(r.T, <-hanging, channels.Unsure, "network")
	})
}
