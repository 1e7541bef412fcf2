package sim_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"understudy/internal/clock"
	"understudy/llm"
	"understudy/provider/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ llm.Client = (*sim.Sim)(nil)

// heard is what a turn with a model brought.
type heard struct {
	text   string
	pieces int
	call   *llm.ToolCall
	done   *llm.Done
	err    *llm.Error
}

func ask(ctx context.Context, t *testing.T, s *sim.Sim, req llm.Request) heard {
	t.Helper()
	var h heard
	for e, err := range s.Stream(ctx, llm.Credential{Kind: llm.KindNone}, req) {
		if h.done != nil || h.err != nil {
			t.Fatal("something came behind the end")
		}
		switch {
		case err != nil:
			if !errors.As(err, &h.err) {
				t.Fatalf("the error is no *llm.Error: %v", err)
			}
		case e.Done != nil:
			h.done = e.Done
		case e.ToolCall != nil:
			h.call = e.ToolCall
		default:
			h.text += e.Text
			h.pieces++
		}
	}
	if (h.done == nil) == (h.err == nil) {
		t.Fatalf("the stream ended with done %v and error %v", h.done, h.err)
	}
	return h
}

// pass lets the bubble's time pass.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	if err := (clock.Clock{}).Sleep(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

func user(model llm.ModelRef, texts ...string) llm.Request {
	req := llm.Request{Model: model}
	for i, text := range texts {
		role := llm.RoleUser
		if i%2 == 1 {
			role = llm.RoleAssistant
		}
		req.Messages = append(req.Messages, llm.Text(role, text))
	}
	return req
}

func TestFirstAnswerExplainsItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		req := user(sim.Lead(), "hello *there*")
		req.System = "Be kind."
		h := ask(t.Context(), t, sim.New(sim.Config{}), req)
		for _, want := range []string{"sim/lead", "“hello *there*”", "1 message", "8 characters", "/sim lead rate_limit 60s", "ANTHROPIC_API_KEY"} {
			if !strings.Contains(h.text, want) {
				t.Errorf("the answer lacks %q:\n%s", want, h.text)
			}
		}
		if h.done.Stop != llm.StopEnd || h.done.Usage.Output != h.pieces || h.done.Usage.Input == 0 {
			t.Errorf("done = %+v after %d pieces", *h.done, h.pieces)
		}
	})
}

func TestLaterAnswersShowTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sim.New(sim.Config{})
		h := ask(t.Context(), t, s, user(sim.Understudy(), "my name is Ada", "hi", "who am I?"))
		for _, want := range []string{"sim/understudy", "“who am I?”", "3 messages", "began with “my name is Ada”"} {
			if !strings.Contains(h.text, want) {
				t.Errorf("the answer lacks %q:\n%s", want, h.text)
			}
		}
	})
}

func TestStreamsWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := sim.New(sim.Config{Pause: time.Second})
		h := ask(t.Context(), t, s, user(sim.Lead(), "hi", "x", "two words"))
		if got := time.Since(start); got != time.Duration(h.pieces)*time.Second { // bubble time: exact
			t.Errorf("%d pieces took %v", h.pieces, got)
		}
	})
}

func TestTokenLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		req := user(sim.Lead(), "hi")
		req.MaxTokens = 3
		h := ask(t.Context(), t, sim.New(sim.Config{}), req)
		if h.pieces != 3 || h.done.Stop != llm.StopMaxTokens {
			t.Errorf("%d pieces, stop %q", h.pieces, h.done.Stop)
		}
	})
}

func TestStatusTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sim.New(sim.Config{})
		req := user(sim.Lead(), "hi", "hello", "what is your status?")
		if h := ask(t.Context(), t, s, req); h.call != nil {
			t.Fatalf("called %v, which was not offered", h.call)
		}
		req.Tools = []llm.Tool{{Name: "session_status"}}
		h := ask(t.Context(), t, s, req)
		if h.call == nil || h.call.Name != "session_status" || h.done.Stop != llm.StopToolUse || !json.Valid(h.call.Input) {
			t.Fatalf("call %v, done %+v", h.call, *h.done)
		}
		req.Messages = append(
			req.Messages,
			llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{ToolCall: h.call}}},
			llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{ToolResult: &llm.ToolResult{ID: h.call.ID, Text: "all is well"}}}},
		)
		if h := ask(t.Context(), t, s, req); h.call != nil || !strings.Contains(h.text, "all is well") {
			t.Errorf("after the result: %q, call %v", h.text, h.call)
		}
		other := user(sim.Lead(), "the statusquo")
		other.Tools = req.Tools
		if h := ask(t.Context(), t, s, other); h.call != nil {
			t.Error("the letters inside another word made a call")
		}
	})
}

func TestTroubles(t *testing.T) {
	tests := []struct {
		reason llm.Reason
		status int
		detail llm.Detail
	}{
		{llm.ReasonRateLimit, 429, ""},
		{llm.ReasonOverloaded, 529, ""},
		{llm.ReasonAuth, 401, ""},
		{llm.ReasonBilling, 400, ""},
		{llm.ReasonTimeout, 500, llm.DetailServerError},
		{llm.ReasonModelNotFound, 404, ""},
		{llm.ReasonContextOverflow, 400, ""},
		{llm.ReasonFormat, 400, ""},
		{llm.ReasonRefusal, 200, ""},
	}
	for _, tt := range tests {
		t.Run(string(tt.reason), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := sim.New(sim.Config{})
				if err := s.Fail(sim.ModelLead, tt.reason, time.Minute); err != nil {
					t.Fatal(err)
				}
				h := ask(t.Context(), t, s, user(sim.Lead(), "hi"))
				if h.err == nil || h.err.Reason != tt.reason || h.err.Status != tt.status || h.err.Detail != tt.detail {
					t.Fatalf("got %+v", h.err)
				}
				if h := ask(t.Context(), t, s, user(sim.Understudy(), "hi")); h.done == nil {
					t.Error("the understudy failed with the lead")
				}
				pass(t, time.Minute)
				if h := ask(t.Context(), t, s, user(sim.Lead(), "hi")); h.done == nil {
					t.Errorf("still failing after its time: %v", h.err)
				}
			})
		})
	}
}

func TestRateLimitSaysWhenItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sim.New(sim.Config{Pause: -1})
		if err := s.Fail(sim.ModelLead, llm.ReasonRateLimit, time.Minute); err != nil {
			t.Fatal(err)
		}
		pass(t, 20*time.Second+time.Millisecond)
		if h := ask(t.Context(), t, s, user(sim.Lead(), "hi")); h.err.RetryAfter != 40*time.Second {
			t.Errorf("retry after %v, want 40s", h.err.RetryAfter)
		}
		if err := s.Fail(sim.ModelLead, llm.ReasonRateLimit, 0); err != nil {
			t.Fatal(err)
		}
		if h := ask(t.Context(), t, s, user(sim.Lead(), "hi")); h.err.RetryAfter != 0 {
			t.Errorf("one without end says %v", h.err.RetryAfter)
		}
		s.OK(sim.ModelLead)
		if h := ask(t.Context(), t, s, user(sim.Lead(), "hi")); h.done == nil {
			t.Errorf("after OK: %v", h.err)
		}
	})
}

func TestHangEndsWithTheContext(t *testing.T) {
	tests := []struct {
		cause  error
		reason llm.Reason
	}{
		{llm.ErrFirstByte, llm.ReasonTimeout},
		{llm.ErrIdle, llm.ReasonTimeout},
		{llm.ErrTurnTimeout, llm.ReasonTimeout},
		{llm.ErrStopped, llm.ReasonAborted},
		{llm.ErrShutdown, llm.ReasonAborted},
	}
	for _, tt := range tests {
		t.Run(tt.cause.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := sim.New(sim.Config{})
				if _, err := s.Run("lead hang"); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(2*time.Minute, func() { cancel(tt.cause) })
				h := ask(ctx, t, s, user(sim.Lead(), "hi"))
				if h.err == nil || h.err.Reason != tt.reason || !errors.Is(h.err, tt.cause) {
					t.Errorf("got %+v", h.err)
				}
			})
		})
	}
}

func TestCancelInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		said := 0
		for e, err := range sim.New(sim.Config{}).Stream(ctx, llm.Credential{}, user(sim.Lead(), "hi")) {
			if err != nil {
				if llm.AsError(err).Reason != llm.ReasonAborted {
					t.Errorf("got %v", err)
				}
				return
			}
			if e.Done != nil {
				t.Fatal("finished although it was stopped")
			}
			if said++; said == 2 {
				cancel(llm.ErrStopped)
			}
		}
	})
}

func TestUnknownModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := ask(t.Context(), t, sim.New(sim.Config{}), user(llm.ModelRef{Provider: "sim", Model: "extra"}, "hi"))
		if h.err == nil || h.err.Reason != llm.ReasonModelNotFound {
			t.Errorf("got %+v", h.err)
		}
	})
}

func TestFailRefusesNonsense(t *testing.T) {
	s := sim.New(sim.Config{})
	for name, err := range map[string]error{
		"model":    s.Fail("extra", llm.ReasonAuth, time.Minute),
		"reason":   s.Fail(sim.ModelLead, llm.ReasonAborted, time.Minute),
		"negative": s.Fail(sim.ModelLead, llm.ReasonAuth, -time.Second),
		"endless":  s.Fail(sim.ModelLead, llm.ReasonAuth, 25*time.Hour),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if got := s.StatusText(); got != "sim/lead: ok\nsim/understudy: ok" {
		t.Errorf("a refused order changed something: %q", got)
	}
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sim.New(sim.Config{})
		for _, step := range []struct{ args, want string }{
			{"", "sim/lead: ok\nsim/understudy: ok"},
			{"lead rate_limit 60s", "sim/lead: rate_limit, 1m0s left\nsim/understudy: ok"},
			{"understudy auth", "sim/lead: rate_limit, 1m0s left\nsim/understudy: auth, until `/sim understudy ok`"},
			{"lead ok", "sim/lead: ok\nsim/understudy: auth, until `/sim understudy ok`"},
			{"ok", "sim/lead: ok\nsim/understudy: ok"},
		} {
			got, err := s.Run(step.args)
			if err != nil || got != step.want {
				t.Errorf("/sim %s: %q, %v; want %q", step.args, got, err, step.want)
			}
		}
		help, err := s.Run("help")
		if err != nil || !strings.Contains(help, "- hang: ") || !strings.Contains(help, "- overloaded: ") {
			t.Errorf("help: %q, %v", help, err)
		}
	})
}

func TestAnswersSpeakOfTheMessageAndNotOfWhatStandsAboveIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := "[Chat messages since your last reply - for context]\n[What others said.]\n[bob Mon] status of the keys?\n\n" +
			"[Current message - respond to this]\n[Telegram alice Mon]\nhello there"
		h := ask(t.Context(), t, sim.New(sim.Config{}), llm.Request{Model: sim.Lead(), Messages: []llm.Message{llm.Text(llm.RoleUser, text)}})
		if !strings.Contains(h.text, "You said: “hello there”.") {
			t.Errorf("it says: %q", h.text)
		}
	})
}
