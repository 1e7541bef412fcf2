package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"understudy/chat"
	"understudy/commands"
	"understudy/reply"
)

// approvals are the questions whether a tool may run that nobody has answered yet. They live as long as
// the turn that asks, so a restart forgets them.
type approvals struct {
	mu   sync.Mutex
	open map[string]*question // by token
}

// question is one of them.
type question struct {
	sender string // whose message led to the call
	key    string // of the session
	tool   string
	answer chan bool     // holds the answer
	closed chan struct{} // nobody waits any more
}

// ballot is an answer to a question.
type ballot struct {
	token string
	yes   bool
}

// The words before a token. A button sends them, and people may type them.
const (
	wordApprove = "/approve"
	wordDeny    = "/deny"
)

const (
	tokenLength  = 6
	mostOpen     = 1000 // questions at a time
	longestInput = 600  // characters of a call that are shown
)

// Texts about questions; textAsk takes the tool, where it comes from, its input, and the two commands.
const (
	textAsk      = "🔐 May I run `%s`%s?\n```\n%s\n```\nPress a button, or write `%s` or `%s`, within 60 seconds."
	textMay      = "✅ `%s` may run."
	textMayNot   = "🚫 `%s` does not run."
	textTooLate  = "This question is answered, or its time is over."
	textNotYours = "Only whoever asked for it, or the bot owner, can decide that."
)

var errManyQuestions = errors.New("too many questions are open")

// match recognises an answer.
func (x *approvals) match(text string) (ballot, bool) {
	words := strings.Fields(text)
	if len(words) != 2 || len(words[1]) != tokenLength {
		return ballot{}, false
	}
	switch word, _, _ := strings.Cut(strings.ToLower(words[0]), "@"); word {
	case wordApprove:
		return ballot{strings.ToUpper(words[1]), true}, true
	case wordDeny:
		return ballot{strings.ToUpper(words[1]), false}, true
	}
	return ballot{}, false
}

// ask opens a question.
func (x *approvals) ask(q *question) (token string, err error) {
	token = rand.Text()[:tokenLength]
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, taken := x.open[token]; taken || len(x.open) >= mostOpen {
		return "", errManyQuestions
	}
	if x.open == nil {
		x.open = map[string]*question{}
	}
	x.open[token] = q
	return token, nil
}

// end closes a question.
func (x *approvals) end(token string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.open, token)
}

// take closes a question for whoever may answer it. known is false when nobody waits for an answer.
func (x *approvals) take(token, key, sender string, owner bool) (q *question, known, may bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	q = x.open[token]
	if q == nil || q.key != key {
		return nil, false, false
	}
	if !owner && (sender == "" || sender != q.sender) {
		return nil, true, false
	}
	delete(x.open, token)
	return q, true, true
}

// approve asks in the conversation whether a call may run, and waits; see reply.Deps.Approve.
func (a *App) approve(ctx context.Context, call reply.Approval) (bool, error) {
	q := &question{sender: call.Sender.ID, key: call.Key, tool: call.Tool, answer: make(chan bool, 1), closed: make(chan struct{})}
	token, err := a.approvals.ask(q)
	if err != nil {
		return false, err
	}
	defer a.approvals.end(token)
	yes, no := wordApprove+" "+token, wordDeny+" "+token
	from := ""
	if call.Source != "" {
		from = " of " + call.Source
	}
	err = a.delivery.Send(ctx, chat.Outbound{
		To: call.To, Class: chat.Command, TurnID: call.Turn + "-ask-" + token,
		Markdown: fmt.Sprintf(textAsk, call.Tool, from, a.hide.Text(shownInput(call.Input)), yes, no),
		Buttons:  []chat.Button{{Label: "Allow", Command: yes}, {Label: "Deny", Command: no}},
	})
	if err != nil {
		return false, err
	}
	if err := a.opts.Clock.Await(ctx, q.closed); err != nil {
		return false, err
	}
	return <-q.answer, nil
}

// shownInput is what a call is made with, as people are shown it: a model wrote it, so it must not end
// the block it stands in.
func shownInput(raw json.RawMessage) string {
	var b bytes.Buffer
	text := string(raw)
	if json.Indent(&b, raw, "", "  ") == nil {
		text = b.String()
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "`", "'")
	if r := []rune(text); len(r) > longestInput {
		text = string(r[:longestInput]) + "…"
	}
	return text
}

// vote takes in the answer to a question.
func (j *job) vote(ctx context.Context, b ballot) {
	if _, err := j.a.inbound.Dispatched(ctx, j.seq); err != nil {
		j.notBegun(ctx, err)
		return
	}
	text := textTooLate
	switch q, known, may := j.a.approvals.take(b.token, j.key, j.in.Sender.ID, j.owner); {
	case known && !may:
		text = textNotYours
	case known:
		defer func() { // after the reply, so that it does not stand below what the turn then says
			q.answer <- b.yes
			close(q.closed)
		}()
		text = textMay
		if !b.yes {
			text = textMayNot
		}
		text = fmt.Sprintf(text, q.tool)
	}
	j.done(ctx, j.reply(ctx, commands.Reply{Text: text}, ""))
}
