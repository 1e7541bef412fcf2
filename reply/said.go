package reply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"understudy/chat"
	"understudy/llm"
)

// The labels of what precedes a message in a group (spec/chat.md §1.7).
const (
	labelHistory = "[Chat messages since your last reply - for context]"
	labelCurrent = "[Current message - respond to this]"
	labelDigests = "[Messages that came while you were busy and were left out, in short]"
)

// Bounds of the context above a message, in bytes.
const (
	maxHistoryLine = 4 << 10
	maxHistory     = 48 << 10
	maxDigest      = 300 // characters
)

var errEmptyMessage = errors.New("the message is empty")

// said adds what the turn is to answer: the message that began it and those that came with it. Each
// is a message of its own, so that no text can pass for another person's.
func (t *turn) said(ctx context.Context) error {
	all := append([]Said{{In: t.req.In, Text: t.req.Text}}, t.req.More...)
	empty := true
	for _, s := range all {
		m, err := t.userMessage(ctx, s.In, s.Text)
		switch {
		case errors.Is(err, errEmptyMessage):
			continue
		case err != nil:
			return err
		}
		if empty {
			m = withContext(m, t.history(), t.req.Digests)
		}
		empty = false
		t.hold(s.In)
		t.add(m, llm.ModelRef{}, nil)
	}
	if empty {
		return errEmptyMessage
	}
	return nil
}

// withContext puts what was said before above a message. It is part of the message, so that it is
// shown once and the beginning of later requests stays the same.
func withContext(m llm.Message, history, digests []string) llm.Message {
	var before []string
	if len(history) > 0 {
		before = append(before, labelHistory+"\n"+untrusted("What others said", strings.Join(history, "\n")))
	}
	if len(digests) > 0 {
		lines := make([]string, len(digests))
		for i, d := range digests {
			lines[i] = unlabelled(harmless(short(d, maxDigest)))
		}
		before = append(before, labelDigests+"\n"+strings.Join(lines, "\n"))
	}
	if len(before) == 0 {
		return m
	}
	before = append(before, labelCurrent+"\n"+m.Parts[0].Text)
	m.Parts = append([]llm.Part{{Text: strings.Join(before, "\n\n")}}, m.Parts[1:]...)
	return m
}

// history writes down what others said, oldest first. Where there is too much the oldest goes.
func (t *turn) history() []string {
	var lines []string
	size, left := 0, 0
	for i := len(t.req.History) - 1; i >= 0; i-- {
		h := t.req.History[i]
		if !t.sees(h.SenderID, h.Roles) {
			continue
		}
		text := unlabelled(harmless(h.Text))
		if short := cutText(text, maxHistoryLine); len(short) < len(text) {
			text = short + " [cut]"
		}
		line := fmt.Sprintf("[%s %s] %s", oneLine(h.Sender), t.local(h.At).Format(envelopeTime), text)
		if size += len(line); size > maxHistory {
			left = i + 1
			break
		}
		lines = append(lines, line)
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("[%d earlier messages are left out]", left))
	}
	for i, j := 0, len(lines)-1; i < j; i, j = i+1, j-1 {
		lines[i], lines[j] = lines[j], lines[i]
	}
	return lines
}

// unlabelled keeps a text from bringing the label of the message that is to be answered.
func unlabelled(s string) string {
	return strings.ReplaceAll(s, labelCurrent, "[ "+labelCurrent[1:])
}

// sees reports whether the words of somebody who does not talk to the bot are shown to the model.
func (t *turn) sees(sender string, roles []string) bool {
	switch t.cfg.ContextVisibility {
	case VisibleAllowed, VisibleAllowedOrQuote:
		who := chat.Inbound{Address: t.req.To, Sender: chat.Sender{ID: sender}, Roles: roles}
		if t.req.In != nil {
			who.Space = t.req.In.Space
		}
		return sender != "" && t.r.deps.Allowed(who)
	}
	return true
}

// seesQuote is sees for what a message quotes. One's own words and the bot's may always be quoted, and
// between two there is nobody else. Which roles somebody has who is quoted, no platform tells.
func (t *turn) seesQuote(in *chat.Inbound) bool {
	own := in.QuoteFrom.Self || in.QuoteFrom.ID != "" && in.QuoteFrom.ID == in.Sender.ID
	return own || in.Address.Kind == chat.Direct || t.cfg.ContextVisibility == VisibleAllowedOrQuote || t.sees(in.QuoteFrom.ID, nil)
}

// userMessage builds what somebody said, with pictures where there are some. Text that others wrote
// (a quote, a file) is framed as untrusted.
func (t *turn) userMessage(ctx context.Context, in *chat.Inbound, asked string) (llm.Message, error) {
	m := llm.Message{Role: llm.RoleUser}
	if in == nil {
		return t.task(asked)
	}
	var said []string
	if in.Quote != "" && t.seesQuote(in) {
		said = append(said, untrusted(quoteTitle(in), in.Quote))
	}
	if text := strings.ToValidUTF8(asked, "\uFFFD"); strings.TrimSpace(text) != "" {
		said = append(said, text)
	}
	for i, a := range in.Attachments {
		if i == maxAttachments {
			said = append(said, fmt.Sprintf("[%d more files were left out]", len(in.Attachments)-i))
			break
		}
		part, note := t.attachment(ctx, in, a)
		if part != nil {
			m.Parts = append(m.Parts, *part)
		}
		if note != "" {
			said = append(said, note)
		}
	}
	if len(said) == 0 && len(m.Parts) == 0 {
		return m, errEmptyMessage
	}
	text := envelope(in, t.cfg.Zone) + "\n" + strings.Join(said, "\n\n")
	m.Parts = append([]llm.Part{{Text: text}}, m.Parts...)
	return m, nil
}

// task builds the message of a turn that nobody wrote. What it needs to know stands in it and not in
// the system prompt, which so is the same as in the turns before and after.
func (t *turn) task(asked string) (llm.Message, error) {
	if strings.TrimSpace(asked) == "" {
		return llm.Message{Role: llm.RoleUser}, errEmptyMessage
	}
	if !t.req.internal() {
		return llm.Text(llm.RoleUser, asked), nil
	}
	what := "Scheduled task"
	if t.req.Kind == Heartbeat {
		what = "Heartbeat"
	}
	return llm.Text(llm.RoleUser, fmt.Sprintf("[%s %s. %s]\n%s", what, t.local(t.began).Format(envelopeTime), unattended, asked)), nil
}

// unattended is the contract of turns that answer nobody (spec/chat.md §5.5, §6.3).
const unattended = "Nobody is there to answer questions now; your final text is the result. If there is nothing to report, answer with exactly HEARTBEAT_OK."

func quoteTitle(in *chat.Inbound) string {
	if name := oneLine(in.QuoteFrom.Name); name != "" {
		return "Replying to " + name
	}
	return "Replying to an earlier message"
}
