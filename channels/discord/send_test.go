package discord

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/delivery/markup"

	emulator "understudy/internal/emulate/discord"
)

func TestVerdicts(t *testing.T) {
	tests := []struct {
		name    string
		fault   emulator.Fault
		verdict channels.Verdict
		code    string
		after   time.Duration
	}{
		{"unknown channel", emulator.Fault{Status: 404, Code: 10003}, channels.Gone, "channel_gone", 0},
		{"no access", emulator.Fault{Status: 403, Code: 50001}, channels.Gone, "no_access", 0},
		{"no permission", emulator.Fault{Status: 403, Code: 50013}, channels.Gone, "no_permission", 0},
		{"closed direct messages", emulator.Fault{Status: 403, Code: 50007}, channels.Gone, "no_direct", 0},
		{"another refusal", emulator.Fault{Status: 403, Code: 340017}, channels.Gone, "forbidden", 0},
		{"a page says forbidden", emulator.Fault{Status: 403, Body: "<html>blocked"}, channels.Retry, "blocked", 0},
		{"form", emulator.Fault{Status: 400, Code: 50035}, channels.Refused, "form", 0},
		{"unknown code", emulator.Fault{Status: 400, Code: 240000}, channels.Refused, "refused", 0},
		{"token", emulator.Fault{Status: 401}, channels.Refused, "unauthorized", 0},
		{"too large", emulator.Fault{Status: 413, Code: 40005}, channels.Refused, "file_too_large", 0},
		{"too large for the proxy", emulator.Fault{Status: 413, Body: "<html>"}, channels.Refused, "file_too_large", 0},
		{"slow mode", emulator.Fault{Status: 429, Code: 20016, RetryAfter: 30 * time.Second}, channels.Retry, "slow_mode", 30 * time.Second},
		{"rate limit", emulator.Fault{Status: 429, RetryAfter: 1500 * time.Millisecond}, channels.Retry, "rate_limited", 1500 * time.Millisecond},
		{"rate limit of the network", emulator.Fault{Status: 429, Body: "error code: 1015", RetryAfter: 90 * time.Second}, channels.Retry, "rate_limited", 90 * time.Second},
		{"rate limit without a word", emulator.Fault{Status: 429, Body: "<html>"}, channels.Retry, "rate_limited", unknownWait},
		{"server", emulator.Fault{Status: 500}, channels.Retry, "server", 0},
		{"bad gateway", emulator.Fault{Status: 502, Body: "<html>"}, channels.Retry, "server", 0},
		{"gateway time-out", emulator.Fault{Status: 504, Body: "<html>"}, channels.Unsure, "server", 0},
		{"a page in place of an answer", emulator.Fault{Status: 200, Body: "<html>"}, channels.Unsure, "server", 0},
		{"an answer about nothing", emulator.Fault{Status: 200, Body: "{}"}, channels.Unsure, "no_receipt", 0},
		{"cut before", emulator.Fault{Drop: true}, channels.Unsure, "network", 0},
		{"cut after", emulator.Fault{DropAfter: true}, channels.Unsure, "network", 0},
		{"never answered", emulator.Fault{Hang: true}, channels.Unsure, "network", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
				tt.fault.Method, tt.fault.Path = http.MethodPost, "/messages"
				a.srv.Inject(tt.fault)
				_, err := a.Send(t.Context(), say(inRoom, "text"))
				v, code := verdictOf(err)
				if v != tt.verdict || code != tt.code {
					t.Errorf("verdict %d %q: %v", v, code, err)
				}
				if e := verdict(err, false); e.After != tt.after {
					t.Errorf("wait %v", e.After)
				}
				if err != nil && strings.Contains(err.Error(), a.srv.Token()) {
					t.Error("the token stands in the error")
				}
				if n := len(a.srv.Calls("POST", "/messages")); n != 1 {
					t.Errorf("tried %d times", n)
				}
			})
		})
	}
}

// What was perhaps sent is sent again with its key, and stands there once.
func TestSentOnce(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		p := say(inRoom, "once")
		p.Key = strings.Repeat("a-key-that-is-too-long", 3)
		a.srv.Inject(emulator.Fault{Method: "POST", Path: "/messages", DropAfter: true})
		if v, _ := verdictOf(second(a.Send(t.Context(), p))); v != channels.Unsure {
			t.Errorf("verdict %d", v)
		}
		got, err := a.Send(t.Context(), p)
		sent := a.srv.Sent(general)
		if err != nil || len(sent) != 1 || got.IDs[0] != sent[0].ID {
			t.Errorf("sent %d times, receipt %v, %v", len(sent), got, err)
		}
		if n := sent[0].Nonce; len(n) != longestNonce {
			t.Errorf("nonce %q", n)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// A used-up limit is respected before Discord has to say so, and ends.
func TestUsedUpLimits(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		for range 5 {
			if _, err := a.Send(t.Context(), say(inRoom, "x")); err != nil {
				t.Fatal(err)
			}
		}
		_, err := a.Send(t.Context(), say(inRoom, "x"))
		v, _ := verdictOf(err)
		if v != channels.Retry || verdict(err, false).After != 5*time.Second {
			t.Errorf("verdict %d: %v", v, err)
		}
		if n := len(a.srv.Calls("POST", "/messages")); n != 5 {
			t.Errorf("%d calls", n)
		}
		if _, err := a.Send(t.Context(), say(inThread, "elsewhere")); err != nil {
			t.Errorf("another conversation: %v", err)
		}
		pass(5 * time.Second)
		if _, err := a.Send(t.Context(), say(inRoom, "x")); err != nil {
			t.Error(err)
		}
	})
}

// The limit of the whole bot stops all calls.
func TestGlobalLimit(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.srv.Inject(emulator.Fault{Method: "POST", Path: "/200/messages", Status: 429, RetryAfter: 2 * time.Second, Global: true})
		for _, to := range []chat.Address{inRoom, direct} {
			if v, code := verdictOf(second(a.Send(t.Context(), say(to, "x")))); v != channels.Retry || code != "rate_limited" {
				t.Errorf("verdict %d %q", v, code)
			}
		}
		if n := len(a.srv.Calls("POST", "/messages")); n != 1 {
			t.Errorf("%d calls", n)
		}
		pass(2 * time.Second)
		if _, err := a.Send(t.Context(), say(direct, "x")); err != nil {
			t.Error(err)
		}
	})
}

func TestLimitsAreBounded(t *testing.T) {
	l, now := newLimits(), time.Now()
	for i := range 3 * mostRoutes {
		l.block(fmt.Sprint(i), false, now.Add(time.Hour))
	}
	if len(l.routes) > mostRoutes {
		t.Errorf("%d routes", len(l.routes))
	}
	h := http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset-After": {"NaN"}}
	l = newLimits()
	l.learn("a", h, now)
	h["X-Ratelimit-Reset-After"] = []string{"1e300"}
	l.learn("b", h, now)
	if l.wait("a", now) != 0 || l.wait("b", now) != day {
		t.Errorf("waits %v and %v", l.wait("a", now), l.wait("b", now))
	}
}

// Whatever a model writes, nobody is notified.
func TestNobodyIsPinged(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		asked := a.srv.UserSays(general, ann, "hi")
		a.got.Next(t)
		p := say(inRoom, "use @everyone or @here, <@"+bob+">, <@&"+staff+">")
		p.ReplyTo = asked
		got, err := a.Send(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Edit(t.Context(), inRoom, got.IDs[0], say(inRoom, "@everyone again")); err != nil {
			t.Fatal(err)
		}
		m := a.srv.Sent(general)[0]
		if len(m.Pinged) != 0 || m.Content != "@everyone again" || m.ReplyTo != asked {
			t.Errorf("sent %+v", m)
		}
		var body struct {
			Allowed map[string]any `json:"allowed_mentions"`
		}
		if err := json.Unmarshal(a.srv.Calls("PATCH", "/messages/")[0].Body, &body); err != nil || body.Allowed["parse"] == nil {
			t.Errorf("the edit allows %v", body.Allowed)
		}
	})
}

// Long answers, split as delivery splits them, arrive whole and in order, each within the limit.
func TestLongAnswers(t *testing.T) {
	fence := "```" + strings.Repeat("x", 300) + "\n" + strings.Repeat("some code\n", 600) + "```"
	emoji := strings.Repeat("a", 1998) + strings.Repeat("😀", 10) + strings.Repeat("b", 3000)
	for name, text := range map[string]string{"a fence with a long opening": fence, "no line ends": strings.Repeat("word ", 1100), "emoji at the limit": emoji} {
		running(t, emulator.Config{MessageRate: -1}, nil, func(t *testing.T, a *account) {
			traits := a.Traits()
			asked := a.srv.UserSays(general, ann, "long, please")
			a.got.Next(t)
			for i, m := range markup.Messages(text, markup.DiscordMarkdown, markup.Limits{Units: traits.TextLimit, Lines: traits.LineLimit}) {
				p := channels.Piece{To: inRoom, Class: chat.Assistant, Text: m.Text, Plain: m.Plain, Key: fmt.Sprint(i)}
				if i == 0 {
					p.ReplyTo = asked
				}
				if _, err := a.Send(t.Context(), p); err != nil {
					t.Fatalf("%s: piece %d: %v", name, i, err)
				}
			}
			var all string
			for i, m := range a.srv.Sent(general) {
				if (m.ReplyTo != "") != (i == 0) {
					t.Errorf("%s: piece %d refers to %q", name, i, m.ReplyTo)
				}
				if strings.Count(m.Content, "```")%2 != 0 || strings.ContainsRune(m.Content, '\uFFFD') {
					t.Errorf("%s: piece %d is broken: %q", name, i, m.Content)
				}
				all += m.Content
			}
			for _, part := range []string{"some code", "word", "b", "😀"} {
				if strings.Count(all, part) != strings.Count(text, part) {
					t.Errorf("%s: %q stands there %d times", name, part, strings.Count(all, part))
				}
			}
		})
	}
}

func TestFlags(t *testing.T) {
	for _, suppress := range []bool{true, false} {
		running(t, emulator.Config{}, func(c *Config, _ *Deps) { c.SuppressEmbeds = &suppress }, func(t *testing.T, a *account) {
			p := say(inRoom, "https://example.com")
			p.Class = chat.Progress
			if _, err := a.Send(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			m := a.srv.Sent(general)[0]
			if (m.Flags&emulator.SuppressEmbeds != 0) != suppress || m.Flags&emulator.Silent == 0 {
				t.Errorf("flags %b", m.Flags)
			}
		})
	}
}

func TestMedia(t *testing.T) {
	running(t, emulator.Config{UploadLimit: 4 << 20}, nil, func(t *testing.T, a *account) {
		p := say(inRoom, "see")
		p.Key = "k"
		for i := range 12 {
			p.Media = append(p.Media, chat.Attachment{Name: fmt.Sprintf(`C:\dir/%d"x.png`, i), MediaType: "image/png", Data: []byte{byte(i)}})
		}
		p.Media[0].Name, p.Media[1].Name, p.Media[2].MediaType = "..", "a\r\nX-Evil: 1", "image/png\r\nX-Evil: 1"
		got, err := a.Send(t.Context(), p)
		if err != nil || len(got.IDs) != 2 {
			t.Fatalf("receipt %v, %v", got, err)
		}
		sent := a.srv.Sent(general)
		if len(sent[0].Files) != 10 || sent[0].Content != "see" || len(sent[1].Files) != 2 || sent[1].Content != "" {
			t.Errorf("sent %d and %d files", len(sent[0].Files), len(sent[1].Files))
		}
		if f := sent[0].Files; f[0].Name != "file1" || f[1].Name != "a  X-Evil: 1" || f[2].Type != "application/octet-stream" || f[3].Type != "image/png" {
			t.Errorf("files %+v", f[:4])
		}
		p.Media = []chat.Attachment{{Name: "big.bin", Data: bytes.Repeat([]byte("x"), 5<<20)}}
		p.Key = "k2"
		if v, code := verdictOf(second(a.Send(t.Context(), p))); v != channels.Refused || code != "file_too_large" {
			t.Errorf("verdict %d %q", v, code)
		}
		calls := len(a.srv.Calls("POST", "/messages"))
		p.Media[0].Data = bytes.Repeat([]byte("x"), 11<<20)
		if v, code := verdictOf(second(a.Send(t.Context(), p))); v != channels.Refused || code != "file_too_large" {
			t.Errorf("verdict %d %q", v, code)
		}
		if n := len(a.srv.Calls("POST", "/messages")); n != calls {
			t.Error("uploaded what is over the own limit")
		}
	})
}

func TestFetchRefuses(t *testing.T) {
	running(t, emulator.Config{}, func(c *Config, _ *Deps) { c.MediaMaxMB = 1 }, func(t *testing.T, a *account) {
		a.srv.UserSays(dm, ann, "big", emulator.WithFile("a.bin", "", bytes.Repeat([]byte("x"), 1<<20+1)))
		big := a.got.Next(t).Attachments[0]
		unsized := big
		unsized.Size = 0
		a.srv.UserSays(dm, ann, "small", emulator.WithFile("b.bin", "", []byte("x")))
		elsewhere := a.got.Next(t).Attachments[0]
		elsewhere.Ref = strings.Replace(elsewhere.Ref, "discord.test", "elsewhere.test", 1) // the network would lead there
		for name, x := range map[string]chat.Attachment{
			"a file on another host": elsewhere,
			"too large":              big, "too large, and does not say so": unsized,
			"another host":  {Ref: "https://example.com/a"},
			"a local host":  {Ref: "http://127.0.0.1/a"},
			"no TLS":        {Ref: "http://cdn.discordapp.com/a"},
			"a user":        {Ref: "https://x@cdn.discordapp.com/a"},
			"another port":  {Ref: "https://cdn.discordapp.com:8443/a"},
			"no address":    {Ref: "::"},
			"gone":          {Ref: emulator.Root + "/attachments/1/2/x?hm=1"},
			"the API, even": {Ref: emulator.Root + "/api/v9/users/@me"},
		} {
			if data, err := a.Fetch(t.Context(), x, 10<<20); err == nil || data != nil {
				t.Errorf("%s: fetched %d bytes", name, len(data))
			}
		}
		for _, good := range []string{"https://cdn.discordapp.com/attachments/1/2/x.png?ex=1", "https://media.discordapp.net/attachments/1/2/x.png"} {
			if u := mustParse(t, good); !a.hosts(u) {
				t.Errorf("%s is refused", good)
			}
		}
	})
}

// Typing that fails is the caller's affair; it is one call and never more.
func TestTyping(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		a.srv.Inject(emulator.Fault{Path: "/typing", Status: 500})
		if v, _ := verdictOf(a.Typing(t.Context(), inThread)); v != channels.Retry {
			t.Errorf("verdict %d", v)
		}
		if err := a.Typing(t.Context(), inThread); err != nil {
			t.Error(err)
		}
		if err := a.Typing(t.Context(), inForum); err != nil {
			t.Error(err)
		}
		pass(10 * time.Minute)
		if n := len(a.srv.Typing(branch)); n != 1 || len(a.srv.Calls("", "/typing")) != 2 {
			t.Errorf("typed %d times", n)
		}
		if ttl := a.TypingTTL(); ttl != 10*time.Second {
			t.Errorf("shown for %v, Discord shows it for 10 s", ttl)
		}
	})
}

func TestReactions(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		id := a.srv.UserSays(branch, ann, "hi")
		in := a.got.Next(t)
		for _, emoji := range []string{"👀", "<:party:77>", "party:78", "1️⃣"} {
			for range 2 {
				if err := a.React(t.Context(), in.Address, id, emoji); err != nil {
					t.Errorf("%s: %v", emoji, err)
				}
			}
		}
		if got := a.srv.Messages(branch)[0].Reactions; !slices.Equal(got, []string{"👀", "party:77", "party:78", "1️⃣"}) {
			t.Errorf("reactions %q", got)
		}
		for range 2 {
			if err := a.Unreact(t.Context(), in.Address, id, "👀"); err != nil {
				t.Error(err)
			}
		}
		if v, _ := verdictOf(a.React(t.Context(), in.Address, "999999", "👀")); v != channels.Missing {
			t.Errorf("on a message that is gone: verdict %d", v)
		}
		if err := a.Unreact(t.Context(), in.Address, "999999", "👀"); err != nil {
			t.Errorf("from a message that is gone: %v", err)
		}
		for _, emoji := range []string{"", "eyes", "a/../b", ":", "x:y", "👀?", "@me"} {
			if v, _ := verdictOf(a.React(t.Context(), in.Address, id, emoji)); v != channels.Refused {
				t.Errorf("%q: verdict %d", emoji, v)
			}
		}
	})
}

// A post's first message has the id of its thread and stands in it.
func TestReactionInAForum(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		post := a.srv.Post(forum, ann, "Question", "how?")
		in := a.got.Next(t)
		if err := a.React(t.Context(), in.Address, post, "👀"); err != nil {
			t.Fatal(err)
		}
		p := say(in.Address, "so")
		p.ReplyTo = post
		if _, err := a.Send(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		m := a.srv.Messages(post)
		if len(m[0].Reactions) != 1 || m[1].ReplyTo != post {
			t.Errorf("got %+v", m)
		}
	})
}

// Where the bot may not read the history it may not refer to it either; the answer arrives.
func TestReferenceNotAllowed(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		id := a.srv.UserSays(general, ann, "hi")
		a.srv.Inject(emulator.Fault{Method: "POST", Path: "/messages", Status: 400, Code: codeNoHistory})
		p := say(inRoom, "answer")
		p.ReplyTo = id
		if _, err := a.Send(t.Context(), p); err != nil || a.srv.Sent(general)[0].ReplyTo != "" {
			t.Errorf("%v", err)
		}
	})
}
