package reply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/chat"
	"understudy/failover"
	"understudy/llm"
	"understudy/session"
)

// TestConversations plays testdata/*.txtar. Each file tells in its first lines what it shows, then what
// people, models and tools do (script) and what comes of it (happens). "⏎" stands for a line break.
//
// In the script `set` changes the configuration or the session, `model` says what a model does with its
// next requests, `tool` makes a tool and what it returns, `wait` lets time pass; `quote`, `overheard`,
// `digest`, `file` and `voice` belong to the message that follows. `say`, `heartbeat`, `cron` and `btw`
// run a turn; `asked` shows what the newest request was, `remembered` the transcript, `spent` the bill,
// `context` the sizes.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no conversations", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			title, script, ok := strings.Cut(string(text), "\n-- script --\n")
			script, want, ok2 := strings.Cut(script, "\n-- happens --\n")
			if !ok || !ok2 {
				t.Fatal("script or happens is missing")
			}
			got := newStage(t).play(strings.Split(script, "\n"))
			if *update {
				if err := os.WriteFile(file, []byte(title+"\n-- script --\n"+script+"\n-- happens --\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); d != "" {
				t.Errorf("-want +got:\n%s\nall that happened:\n%s", d, got)
			}
		})
	}
}

// stage is a rig that reads scripts.
type stage struct {
	*rig
	next  map[string][]behaviour // what models do with their next requests
	tools []Tool
	q     Request
	happ  strings.Builder
}

func newStage(t *testing.T) *stage {
	s := &stage{rig: newRig(t), next: map[string][]behaviour{}}
	for _, m := range []string{"a1", "b1", "g1"} {
		s.models[m] = func(ctx context.Context, n int, req llm.Request) seq {
			list := s.next[req.Model.Model]
			if len(list) == 0 {
				return says("ok from "+req.Model.Model)(ctx, n, req)
			}
			s.next[req.Model.Model] = list[1:]
			return list[0](ctx, n, req)
		}
	}
	s.runner.deps.ToolsFor = func(string, chat.Address) []Tool { return s.tools }
	s.fresh()
	return s
}

// fresh begins a new message.
func (s *stage) fresh() {
	s.q = message("")
	s.q.To.Kind, s.q.In.Address.Kind = s.kind(), s.kind()
}

func (s *stage) kind() chat.Kind {
	if s.agent.Name == "a group" {
		return chat.Group
	}
	return chat.Direct
}

func (s *stage) tell(format string, args ...any) {
	fmt.Fprintf(&s.happ, "%s\n", strings.ReplaceAll(mark.ReplaceAllString(fmt.Sprintf(format, args...), "MARK"), "\n", "⏎"))
}

func (s *stage) play(lines []string) string {
	for _, l := range lines {
		verb, rest, _ := strings.Cut(strings.TrimSpace(l), " ")
		if verb == "" || strings.HasPrefix(verb, "#") {
			continue
		}
		s.tell("> %s", strings.TrimSpace(l))
		s.do(verb, strings.ReplaceAll(rest, "⏎", "\n"))
	}
	return s.happ.String()
}

func (s *stage) do(verb, rest string) {
	s.Helper()
	word, more, _ := strings.Cut(rest, " ")
	switch verb {
	case "set":
		s.set(word, more)
	case "model":
		s.direct(word, more)
	case "tool":
		s.tools = append(s.tools, s.prop(word, more))
	case "wait":
		d, err := time.ParseDuration(rest)
		if err != nil {
			s.Fatal(err)
		}
		s.v.Clock().AfterFunc(d, func() {})
		s.v.Run(s.v.Now().Add(d))
	case "quote":
		s.q.In.Quote, s.q.In.QuoteFrom = more, chat.Sender{ID: strings.ToLower(word), Name: word}
	case "overheard":
		s.q.History = append(s.q.History, HistoryLine{Sender: word, SenderID: strings.ToLower(word), Text: more, At: s.v.Now()})
	case "digest":
		s.q.Digests = append(s.q.Digests, rest)
	case "file", "voice":
		s.q.In.Attachments = append(s.q.In.Attachments, chat.Attachment{Name: word, MediaType: "text/plain", Data: []byte(more), Voice: verb == "voice"})
	case "say", "heartbeat", "cron", "btw":
		s.turn(verb, rest)
	default:
		s.show(verb)
	}
}

// turn runs one.
func (s *stage) turn(verb, text string) {
	q := s.q
	q.Text, q.In.Text, q.In.At = text, text, s.v.Now()
	switch verb {
	case "heartbeat":
		q.In, q.Kind = nil, Heartbeat
	case "cron":
		q.In, q.Kind, q.Tail = nil, Cron, 2
	case "btw":
		var o Outcome
		var err error
		s.v.Clock().Go(func() { o, err = s.runner.Aside(context.Background(), q) })
		s.v.Run(s.v.Now().Add(time.Hour))
		s.tell("%s: %s %v", o.Status, o.Text, err)
		s.fresh()
		return
	}
	o := s.run(q)
	for _, l := range s.out.said {
		s.tell("%s", l)
	}
	if s.out.speech != nil {
		s.tell("(aloud) %s", s.out.speech.Text)
	}
	if o.Offer != nil {
		s.tell("(offers) %s: %s", o.Offer.When, o.Offer.Text)
	}
	s.fresh()
}

func (s *stage) set(word, value string) {
	s.Helper()
	s.ensure()
	switch word {
	case "usage":
		s.update(func(x *session.Session) { x.UsageMode = value })
	case "verbose":
		s.update(func(x *session.Session) { x.Verbose = value })
	case "group":
		s.agent.Name = "a group"
		s.fresh()
	case "prefix":
		s.agent.ResponsePrefix = value
	case "name":
		s.agent.Name = value
	case "errors":
		s.agent.ErrorPolicy = ErrorPolicy(value)
	case "visible":
		s.agent.ContextVisibility = Visibility(value)
		s.runner.deps.Allowed = func(who chat.Inbound) bool { return who.Sender.ID == "bob" || who.Sender.ID == "7" }
	case "reminders":
		s.agent.Commitments = true
		s.runner.deps.ToolsFor = func(string, chat.Address) []Tool { return s.tools }
		s.runner.deps.OfferTime = func(_, when string) (string, error) {
			if when == "yesterday" {
				return "", errors.New("yesterday is over")
			}
			return "just " + when, nil
		}
	case "price":
		s.runner.deps.Cost = func(ref llm.ModelRef, u llm.Usage) (float64, bool) {
			return 0.001 * float64(u.Input+u.Output), ref.Model == value
		}
	case "window":
		n, err := strconv.Atoi(value)
		if err != nil {
			s.Fatal(err)
		}
		s.info[ref("alpha/a1")] = failover.ModelInfo{Known: true, ContextWindow: n}
	case "voice":
		s.runner.deps.Speak = speakTagged
		s.runner.deps.Voice = func(q SpeechRequest) Voice {
			return Voice{Tagged: value == "tagged", Certain: value == "inbound" && q.Voice}
		}
		s.runner.deps.Transcribe = func(_ context.Context, a chat.Attachment) (string, error) { return "heard: " + string(a.Data), nil }
	default:
		s.Fatalf("nobody knows how to set %s", word)
	}
}

// speakTagged speaks what is tagged, in a simple way.
func speakTagged(q SpeechRequest) SpeechPlan {
	attached := strings.Contains(q.Text, "[[audio_as_voice]]")
	q.Text = strings.ReplaceAll(q.Text, "[[audio_as_voice]]", "")

	aloud := regexp.MustCompile(`\[\[tts\]\]|\[\[tts:text\]\](.*?)\[\[/tts:text\]\]`)
	m := aloud.FindStringSubmatch(q.Text)
	if m == nil {
		return SpeechPlan{Visible: q.Text, AsVoice: attached}
	}
	visible := aloud.ReplaceAllString(q.Text, "")
	if m[1] == "" {
		m[1] = strings.TrimSpace(visible)
	}
	return SpeechPlan{Visible: visible, Speech: &chat.Speech{Text: m[1]}, AsVoice: attached}
}

// direct tells a model what to do.
func (s *stage) direct(model, what string) {
	verb, rest, _ := strings.Cut(what, " ")
	var b behaviour
	switch verb {
	case "says":
		b = says(rest)
	case "calls":
		name, input, ok := strings.Cut(rest, " ")
		if !ok {
			input = "{}"
		}
		b = func(ctx context.Context, n int, req llm.Request) seq {
			return events(
				llm.Event{ToolCall: &llm.ToolCall{ID: fmt.Sprintf("c%d", n), Name: name, Input: []byte(input)}},
				llm.Event{Done: &llm.Done{Stop: llm.StopToolUse, Usage: llm.Usage{Input: 20, Output: 3, CacheRead: 5}}},
			)(ctx, n, req)
		}
	case "fails":
		b = fails(llm.Reason(rest))
	default:
		s.Fatalf("a model cannot %s", verb)
	}
	s.next[model] = append(s.next[model], b)
}

// prop makes a tool.
func (s *stage) prop(name, what string) Tool {
	verb, rest, _ := strings.Cut(what, " ")
	return Tool{Tool: llm.Tool{Name: name}, Approve: verb == "asks", Run: func(ctx context.Context, c Call) (string, error) {
		switch verb {
		case "hangs":
			return "", s.v.Clock().Sleep(ctx, 100*time.Hour)
		case "fails":
			return "", fmt.Errorf("%s", rest)
		case "attaches":
			return "attached", c.Attach(chat.Attachment{Name: rest, MediaType: map[string]string{".mp3": "audio/mpeg"}[filepath.Ext(rest)], Data: []byte("x")})
		}
		return rest, nil
	}}
}

// show writes down how something stands.
func (s *stage) show(what string) {
	s.Helper()
	switch what {
	case "asked":
		s.tell("system: %s", s.last().System)
		for _, m := range s.last().Messages {
			s.tell("%s: %s", m.Role, plain(m))
		}
	case "remembered":
		for _, l := range s.transcript() {
			s.tell("%s", l)
		}
	case "spent":
		list, err := s.sessions.Totals(s.Context(), "", "2000-01-01")
		if err != nil {
			s.Fatal(err)
		}
		for _, x := range list {
			s.tell("%s %s %s: %d turns, %d in, %d out, %d cached, %d µ$, %d unpriced", x.Day, x.Model, x.Purpose, x.Turns, x.Usage.Input, x.Usage.Output, x.Usage.CacheRead, x.CostMicros, x.Unpriced)
		}
	case "context":
		c, err := s.runner.Context(s.Context(), message(""))
		s.tell("%+v %v", c, err)
	default:
		s.Fatalf("nobody knows %q", what)
	}
}

// plain writes a message with everything that stands in it.
func plain(m llm.Message) string {
	var parts []string
	for _, p := range m.Parts {
		switch {
		case p.ToolCall != nil:
			parts = append(parts, "call "+p.ToolCall.Name+" "+string(p.ToolCall.Input))
		case p.ToolResult != nil && p.ToolResult.IsError:
			parts = append(parts, "error "+p.ToolResult.Text)
		case p.ToolResult != nil:
			parts = append(parts, "result "+p.ToolResult.Text)
		case p.Image != nil:
			parts = append(parts, "image "+p.Image.Name)
		default:
			parts = append(parts, p.Text)
		}
	}
	return strings.Join(parts, " | ")
}
