package reply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"understudy/chat"
	"understudy/llm"
	"understudy/session"
)

// Bounds of a prompt.
const (
	imageTokens     = 1_600 // what one picture costs, roughly
	bytesPerToken   = 4     // of text, roughly; errs on the safe side for most languages
	maxImageBytes   = 10 << 20
	maxInlineBytes  = 256 << 10
	maxAttachments  = 8
	groupSystemNote = "You are in a group conversation. Each message begins with a line in brackets that says who wrote it and when. If you have nothing useful to add, answer with exactly NO_REPLY."
)

// prompt builds the request of the turn's next step. Its beginning is the same for every turn of a
// session, so that provider caches stay warm; the clock is not part of it.
func (t *turn) prompt() llm.Request {
	q := llm.Request{System: t.system(), Tools: t.r.toolSpecs(), CacheKey: t.sess.ID, Thinking: t.sess.Think}
	for _, e := range t.entries {
		switch e.Kind {
		case session.KindMessage:
			q.Messages = append(q.Messages, e.Message)
		case session.KindCompaction:
			q.Messages = append(q.Messages, llm.Text(llm.RoleUser, "[Summary of the conversation so far]\n"+e.Message.PlainText()))
		}
	}
	for _, e := range t.fresh {
		q.Messages = append(q.Messages, e.Message)
	}
	return q
}

func (t *turn) system() string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(t.cfg.System))
	if t.req.To.Kind != chat.Direct && !t.req.internal() {
		b.WriteString("\n\n" + groupSystemNote)
	}
	if t.req.internal() {
		b.WriteString("\n\nNobody is there to answer questions now; your final text is the result. If there is nothing to report, answer with exactly HEARTBEAT_OK.")
	}
	zone := t.cfg.Zone
	now := t.r.deps.Clock.Now()
	if zone != nil {
		now = now.In(zone)
	}
	fmt.Fprintf(&b, "\n\nToday is %s (%s).", now.Format("Monday 2 January 2006"), now.Location())
	return strings.TrimSpace(b.String())
}

// said adds what the turn is to answer: the message that began it and those that came with it. Each
// is a message of its own, so that no text can pass for another person's.
func (t *turn) said(ctx context.Context) error {
	all := append([]Said{{t.req.In, t.req.Text}}, t.req.More...)
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
			m = t.withContext(m)
		}
		empty = false
		t.add(m, llm.ModelRef{}, nil)
	}
	if empty {
		return errEmptyMessage
	}
	return nil
}

// The labels of what precedes a message in a group (spec/chat.md §1.7).
const (
	labelHistory = "[Chat messages since your last reply - for context]"
	labelCurrent = "[Current message - respond to this]"
	labelDigests = "[Messages that came while you were busy and were left out, in short]"
)

// withContext puts what was said before above a message. It is part of the message, so that it is
// shown once and the beginning of later requests stays the same.
func (t *turn) withContext(m llm.Message) llm.Message {
	var before []string
	if len(t.req.History) > 0 {
		lines := make([]string, len(t.req.History))
		for i, h := range t.req.History {
			at := h.At
			if t.cfg.Zone != nil {
				at = at.In(t.cfg.Zone)
			}
			lines[i] = fmt.Sprintf("[%s %s] %s", oneLine(h.Sender), at.Format(envelopeTime), harmless(h.Text))
		}
		before = append(before, labelHistory+"\n"+untrusted("What others said", strings.Join(lines, "\n")))
	}
	if len(t.req.Digests) > 0 {
		before = append(before, labelDigests+"\n"+harmless(strings.Join(t.req.Digests, "\n")))
	}
	if len(before) == 0 {
		return m
	}
	before = append(before, labelCurrent+"\n"+m.Parts[0].Text)
	m.Parts = append([]llm.Part{{Text: strings.Join(before, "\n\n")}}, m.Parts[1:]...)
	return m
}

// userMessage builds what somebody said, with pictures where there are some. Text that others wrote
// (a quote, a file) is framed as untrusted.
func (t *turn) userMessage(ctx context.Context, in *chat.Inbound, asked string) (llm.Message, error) {
	m := llm.Message{Role: llm.RoleUser}
	if in == nil {
		if strings.TrimSpace(asked) == "" {
			return m, errEmptyMessage
		}
		return llm.Text(llm.RoleUser, asked), nil
	}
	var said []string
	if in.Quote != "" {
		said = append(said, untrusted("Replying to an earlier message", in.Quote))
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

var errEmptyMessage = errors.New("the message is empty")

// attachment turns a file into a part of the message, or into a note about it.
func (t *turn) attachment(ctx context.Context, in *chat.Inbound, a chat.Attachment) (*llm.Part, string) {
	name := harmless(oneLine(a.Name))
	if name == "" {
		name = "file"
	}
	image, plain := isImage(a.MediaType), isText(a.MediaType)
	limit := int64(maxImageBytes)
	if plain {
		limit = maxInlineBytes
	}
	if (!image && !plain) || a.Size > limit {
		return nil, fmt.Sprintf("[file: %s, %s, not shown]", name, oneLine(a.MediaType))
	}
	data := a.Data
	if data == nil {
		if t.r.deps.Fetch == nil {
			return nil, fmt.Sprintf("[file: %s, could not be loaded]", name)
		}
		var err error
		if data, err = t.r.deps.Fetch(ctx, in, a); err != nil {
			t.log.WarnContext(ctx, "attachment_not_loaded", "error", err.Error())
			return nil, fmt.Sprintf("[file: %s, could not be loaded]", name)
		}
	}
	switch {
	case int64(len(data)) > limit: // the platform did not say how large it is
		return nil, fmt.Sprintf("[file: %s, %s, not shown]", name, oneLine(a.MediaType))
	case image && len(data) > 0:
		return &llm.Part{Image: &llm.Image{MediaType: a.MediaType, Data: data, Name: name}}, ""
	case image:
		return nil, fmt.Sprintf("[file: %s, empty]", name)
	}
	return nil, untrusted("File "+name, string(data))
}

// isImage reports whether models take pictures of this type.
func isImage(mediaType string) bool {
	switch mediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

// isText reports whether a file can be read as it is.
func isText(mediaType string) bool {
	mediaType, _, _ = strings.Cut(mediaType, ";")
	return strings.HasPrefix(mediaType, "text/") || mediaType == "application/json"
}

// estimate guesses the size of a request in tokens.
func estimate(q llm.Request) int {
	n := len(q.System)
	for _, m := range q.Messages {
		n += weight(m)
	}
	for _, tool := range q.Tools {
		n += len(tool.Description) + len(tool.Schema)
	}
	return n / bytesPerToken
}

// weight is the size of a message in bytes of text, pictures counted as what they cost.
func weight(m llm.Message) (n int) {
	for _, p := range m.Parts {
		switch {
		case p.Image != nil:
			n += imageTokens * bytesPerToken
		case p.ToolCall != nil:
			n += len(p.ToolCall.Name) + len(p.ToolCall.Input)
		case p.ToolResult != nil:
			n += len(p.ToolResult.Text)
		default:
			n += len(p.Text)
		}
	}
	return n
}

// tooLong reports whether the prompt will hardly fit a model. A small window gives up a quarter of
// itself for the answer, not the whole reserve.
func (t *turn) tooLong(ref llm.ModelRef) bool {
	info := t.r.deps.Models().Info(ref)
	if !info.Known || info.ContextWindow <= 0 {
		return false
	}
	reserve := min(t.cfg.Compaction.ReserveTokens, info.ContextWindow/4)
	return estimate(t.request) > info.ContextWindow-reserve
}
