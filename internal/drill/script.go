package drill

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	emullm "understudy/internal/emulate/llm"
	"understudy/internal/emulate/telegram"
)

// step is one line of a conversation.
type step struct {
	line int
	text string
	do   func(*player) error
	// want is an expected line; steps in a row that have one are compared together.
	want string
}

// parseScript reads a conversation. first is the number of its first line.
func parseScript(a archive, text string) ([]step, error) {
	var steps []step
	var raw []step
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		more, continues := strings.CutPrefix(line, "|")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case continues && len(raw) > 0:
			raw[len(raw)-1].text += "\n" + strings.TrimPrefix(more, " ")
		default:
			raw = append(raw, step{line: i + 1, text: line})
		}
	}
	for _, s := range raw {
		if err := s.parse(a); err != nil {
			return nil, fmt.Errorf("line %d, %q: %w", s.line, s.text, err)
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// parse finds out what a step does.
func (s *step) parse(a archive) error {
	first, rest, _ := strings.Cut(s.text, "\n")
	subject, arg := first, ""
	if i := strings.Index(first, ": "); i >= 0 {
		subject, arg = first[:i], first[i+2:]
	}
	if s.text != first {
		arg += "\n" + rest
	}
	arg = a.expand(arg)
	words := strings.Fields(subject)
	if len(words) == 0 {
		return errors.New("an empty step")
	}
	var err error
	switch {
	case words[0] == "bot":
		s.want = subject + ": " + arg
	case people[words[0]] != 0:
		s.do, err = says(words, arg)
	case words[0] == "telegram" && len(words) == 2:
		s.do, err = telegramStep(words[1], arg)
	case strings.Contains(words[0], "/") && len(words) > 1:
		s.do, err = modelStep(words, arg, a)
	default:
		s.do, err = worldStep(words, arg, a)
	}
	return err
}

func says(words []string, text string) (func(*player) error, error) {
	who, where := people[words[0]], words[0]
	if len(words) == 3 && words[1] == "in" {
		where = words[2]
	} else if len(words) != 1 {
		return nil, errors.New("a person speaks as `alice: …` or `alice in ops: …`")
	}
	p, err := placeOf(where)
	return func(x *player) error {
		var opts []telegram.Say
		if p.topic != 0 {
			opts = append(opts, telegram.InTopic(p.topic))
		}
		x.w.Telegram.UserSays(p.chat, who, text, opts...)
		return nil
	}, err
}

func worldStep(words []string, arg string, a archive) (func(*player) error, error) {
	switch strings.Join(words, " ") {
	case "nothing":
		return (*player).nothing, nil
	case "asked":
		return func(x *player) error { return x.asked(strings.Fields(strings.TrimPrefix(arg, "nobody"))) }, nil
	case "models recover":
		return func(x *player) error { x.w.Models.Heal(); return nil }, nil
	case "start":
		return func(x *player) error { x.w.Start(); return nil }, nil
	case "stop":
		return func(x *player) error { x.w.Stop(); return nil }, nil
	case "kill":
		return func(x *player) error { x.w.Kill(); return nil }, nil
	case "restart":
		return func(x *player) error { x.w.Stop(); x.w.Start(); return nil }, nil
	case "config":
		text, ok := a[arg]
		if !ok {
			return nil, fmt.Errorf("there is no section %q", arg)
		}
		return func(x *player) error { x.w.Configure(text); return nil }, nil
	}
	if words[0] == "wait" && len(words) == 2 {
		d, err := time.ParseDuration(words[1])
		return func(*player) error { time.Sleep(d); return nil }, err
	}
	return nil, errors.New("unknown step")
}

func telegramStep(verb, arg string) (func(*player) error, error) {
	method, rest, _ := strings.Cut(arg, " ")
	f := telegram.Fault{Method: method}
	switch verb {
	case "holds":
		return func(x *player) error { x.w.held.add(method); return nil }, nil
	case "drops":
		f.DropAfter = true
	case "refuses":
		code, why, _ := strings.Cut(rest, " ")
		var err error
		if f.Status, err = strconv.Atoi(code); err != nil {
			return nil, fmt.Errorf("%q is no status", code)
		}
		f.Description = why
	default:
		return nil, errors.New("telegram holds, drops or refuses")
	}
	return func(x *player) error { x.w.Telegram.Inject(f); return nil }, nil
}

// modelStep reads what a model does: "alpha/a1 fails once: 429".
func modelStep(words []string, arg string, a archive) (func(*player) error, error) {
	_, model, _ := strings.Cut(words[0], "/")
	m := emullm.Match{Model: model, Times: 1}
	switch strings.Join(words[1:], " ") {
	case "answers":
		return replies(emullm.Reply{Match: m, Text: arg}), nil
	case "answers slowly":
		return replies(emullm.Reply{Match: m, Text: arg, ChunkDelay: time.Second}), nil
	case "calls":
		tool, input, _ := strings.Cut(arg, " ")
		return replies(emullm.Reply{Match: m, ToolCalls: []emullm.ToolCall{{Name: tool, Arguments: input}}}), nil
	case "fails":
		m.Times = 0
	case "fails once":
	case "fails the second time":
		m.After = 1
	default:
		return nil, errors.New("a model answers, answers slowly, calls, fails, fails once or fails the second time")
	}
	f, err := fault(arg, a)
	f.Match = m
	return func(x *player) error { x.w.Models.Fault(f); return nil }, err
}

func replies(r emullm.Reply) func(*player) error {
	return func(x *player) error { x.w.Models.Reply(r); return nil }
}

// fault reads what goes wrong.
func fault(text string, a archive) (f emullm.Fault, err error) {
	how, rest, _ := strings.Cut(text, " ")
	after, hasAfter := strings.CutPrefix(rest, "after ")
	switch {
	case how == "overflow":
		f.Status = 400
		f.Body = `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`
		return f, nil
	case how == "empty":
		f.Empty = true
		return f, nil
	case how == "hang" || how == "reset" || how == "cut" && hasAfter:
		f.Hang, f.Reset, f.Cut, f.Say = how == "hang", how == "reset", how == "cut", after
		if f.Hang && after != "" {
			f.PingEvery = 10 * time.Second
		}
		return f, nil
	}
	if f.Status, err = strconv.Atoi(how); err != nil {
		return f, fmt.Errorf("%q is no fault", text)
	}
	if wait, ok := strings.CutPrefix(rest, "retry after "); ok {
		f.RetryAfter, err = time.ParseDuration(wait)
	} else if rest != "" {
		f.Body = a.expand(rest)
	}
	return f, err
}
