package discord

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/bwmarrin/discordgo"

	"understudy/channels"
	"understudy/chat"
)

const (
	longestThreadName = 80  // of a thread for a question
	longestPostName   = 100 // of a post in a forum
	archiveAfter      = 1440
	mostPlanned       = 4096
	// together is how soon the next piece for a forum follows when it is a part of the same answer.
	together = 5 * time.Second
)

// planned knows the threads that questions shall get, until they are opened.
type planned struct {
	mu    sync.Mutex
	known map[string]plan
	order []string
}

type plan struct {
	name string
	// refused tells that the thread cannot be opened: the answers go to the channel.
	refused bool
}

func newPlanned() *planned { return &planned{known: map[string]plan{}} }

func (p *planned) add(id, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.known[id]; known {
		return
	}
	if len(p.order) >= mostPlanned {
		delete(p.known, p.order[0])
		p.order = p.order[1:]
	}
	p.known[id] = plan{name: name}
	p.order = append(p.order, id)
}

func (p *planned) get(id string) (plan, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, ok := p.known[id]
	return one, ok
}

// opened removes a plan; the places of those in order stay until their turn comes.
func (p *planned) opened(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, id)
}

func (p *planned) refuse(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one, ok := p.known[id]; ok {
		one.refused = true
		p.known[id] = one
	}
}

// place is the channel or thread that an address stands for. A thread that is not there yet is its
// channel.
func (b *Bot) place(to chat.Address) string {
	if to.Thread == "" {
		return to.Conversation
	}
	if _, waiting := b.planned.get(to.Thread); waiting {
		return to.Conversation
	}
	return to.Thread
}

// post sends one message, and clears away what can stand in its way: a thread that has to be opened
// first, or again, a forum that takes only posts, a reference that may not be made.
func (b *Bot) post(ctx context.Context, p channels.Piece) (string, error) {
	opened, err := b.open(ctx, p.To)
	if err != nil {
		return "", err
	}
	if p.ReplyTo == p.To.Thread && p.ReplyTo != "" && !b.isForum(p.To.Conversation) {
		p.ReplyTo = "" // the question stands above the thread, in another channel
	}
	place := b.place(p.To)
	if b.isForum(place) {
		return b.publish(ctx, p)
	}
	m, files := b.compose(ctx, p)
	id, err := b.create(ctx, place, m, files)
	switch {
	case hasCode(err, codeArchived) && p.To.Thread != "":
		if failure := b.unarchive(ctx, place); failure != nil {
			return b.around(ctx, p, err, failure)
		}
	case hasCode(err, codeUnknownChannel) && p.To.Thread != "" && !opened && b.opensThreads():
		// A plan from before the last start.
		if failure := b.openThread(ctx, p.To, b.questionTitle(ctx, p.To)); failure != nil {
			return "", err
		}
	case hasCode(err, codeNotText) && p.To.Thread == "":
		if c, failure := b.channel(ctx, place); failure != nil || !c.forum() {
			return "", err
		}
		return b.publish(ctx, p)
	case hasCode(err, codeNoHistory) && m.Reference != nil:
		m.Reference = nil
	default:
		return id, err
	}
	return b.create(ctx, place, m, uploads(p.Media))
}

func (b *Bot) isForum(id string) bool {
	c, ok := b.directory.channel(id)
	return ok && c.forum()
}

// open opens the thread that was planned for a question. Where Discord does not allow it, the answers
// go to the channel.
func (b *Bot) open(ctx context.Context, to chat.Address) (opened bool, err error) {
	plan, waiting := b.planned.get(to.Thread)
	if !waiting || plan.refused {
		return false, nil
	}
	err = b.openThread(ctx, to, plan.name)
	if err == nil {
		b.planned.opened(to.Thread)
		return true, nil
	}
	if v := verdict(err, true); v.Verdict == channels.Retry {
		return false, err
	}
	b.log.Warn("thread not opened; the answer goes to the channel", "conversation", to.Conversation, "error", err)
	b.planned.refuse(to.Thread)
	return false, nil
}

func (b *Bot) openThread(ctx context.Context, to chat.Address, name string) error {
	_, err := b.api.call(ctx, request{
		what: "open thread", method: http.MethodPost, url: discordgo.EndpointChannelMessageThread(to.Conversation, to.Thread), route: "open thread " + to.Conversation,
		body: map[string]any{"name": name, "auto_archive_duration": archiveAfter},
	})
	if hasCode(err, codeThreadExists) {
		return nil
	}
	return err
}

// opensThreads reports whether threads are opened anywhere.
func (b *Bot) opensThreads() bool {
	if b.cfg.AutoThread {
		return true
	}
	for _, g := range b.cfg.Guilds {
		if g.AutoThread != nil && *g.AutoThread {
			return true
		}
		for _, c := range g.Channels {
			if c.AutoThread != nil && *c.AutoThread {
				return true
			}
		}
	}
	return false
}

// questionTitle reads the question that a thread hangs on.
func (b *Bot) questionTitle(ctx context.Context, to chat.Address) string {
	data, err := b.api.call(ctx, request{
		what: "get message", method: http.MethodGet, url: discordgo.EndpointChannelMessage(to.Conversation, to.Thread), route: "get message " + to.Conversation,
	})
	var m message
	if err == nil {
		decode(data, &m)
	}
	return title(token.ReplaceAllString(m.Content, ""), longestThreadName)
}

// around answers in the channel what was asked in a thread that is closed to the bot, with a link to
// the thread in front. The people of a private thread are fewer than those of its channel, so that an
// answer there ends with the thread, which closed tells.
func (b *Bot) around(ctx context.Context, p channels.Piece, closed, failure error) (string, error) {
	if v := verdict(failure, true); v.Verdict == channels.Retry {
		return "", failure
	}
	if c, err := b.channel(ctx, p.To.Thread); err != nil || c.Type != typePublicThread && c.Type != typeNewsThread {
		return "", closed
	}
	b.log.Info("thread is closed; the answer goes to the channel", "conversation", p.To.Conversation, "thread", p.To.Thread)
	link := "<#" + p.To.Thread + ">\n"
	if utf8.RuneCountInString(link+content(p)) > longestText {
		first := channels.Piece{To: p.To, Class: p.Class, Text: link, Silent: true}
		if p.Key != "" {
			first.Key = p.Key + "+link"
		}
		if _, err := b.instead(ctx, first); err != nil {
			return "", err
		}
		link = ""
	}
	p.Text, p.Plain = link+content(p), link+p.Plain
	return b.instead(ctx, p)
}

// instead sends a piece for a thread to the thread's channel.
func (b *Bot) instead(ctx context.Context, p channels.Piece) (string, error) {
	thread := p.To.Thread
	p.To.Thread, p.ReplyTo = "", ""
	id, err := b.post(ctx, p)
	if err == nil {
		b.detours.put(id, thread)
	}
	return id, err
}

func (b *Bot) unarchive(ctx context.Context, thread string) error {
	_, err := b.api.call(ctx, request{
		what: "reopen thread", method: http.MethodPatch, url: discordgo.EndpointChannel(thread), route: "change " + thread, body: map[string]any{"archived": false},
	})
	return err
}

// title is the first line of a text that says something.
func title(text string, most int) string {
	for line := range strings.Lines(text) {
		if line = oneLine(strings.TrimLeft(line, "#>*_-`~| \t")); line != "" {
			return clip(strings.TrimRight(line, "*_`~|"), most)
		}
	}
	return "Conversation"
}

// posts remembers the latest post in each forum, for the further parts of one answer.
type posts struct {
	mu   sync.Mutex
	last map[string]latest
}

type latest struct {
	thread string
	class  chat.Class
	at     time.Time
}

func (p *posts) follow(forum string, class chat.Class) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.last[forum]; l.class == class && time.Since(l.at) <= together {
		l.at = time.Now()
		p.last[forum] = l
		return l.thread
	}
	return ""
}

func (p *posts) put(forum string, l latest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil || len(p.last) >= mostPlanned {
		p.last = map[string]latest{}
	}
	p.last[forum] = l
}

// publish opens a post in a forum, or continues the one of a moment ago. The first line is its title. One
// that was perhaps opened before is looked for first.
func (b *Bot) publish(ctx context.Context, p channels.Piece) (string, error) {
	forum := p.To.Conversation
	p.ReplyTo = ""
	m, files := b.compose(ctx, p)
	if thread := b.posts.follow(forum, p.Class); thread != "" {
		return b.create(ctx, thread, m, files)
	}
	name := title(token.ReplaceAllString(m.Content, ""), longestPostName)
	began := time.Now()
	if since, again := b.tries.get(p.Key); again {
		if id, err := b.posted(ctx, forum, name, m.Content, since); id != "" || err != nil {
			return b.opened(forum, p, id, err)
		}
	}
	data, err := b.api.call(ctx, request{
		what: "open post", method: http.MethodPost, url: discordgo.EndpointChannelThreads(forum), route: "open post " + forum, files: files, limit: limitOf(files),
		body: map[string]any{"name": name, "auto_archive_duration": archiveAfter, "message": m},
	})
	id := ""
	if err == nil {
		id, err = messageID("open post", data)
	}
	if err != nil && verdict(err, false).Verdict == channels.Unsure {
		b.tries.failed(p.Key, began)
	}
	return b.opened(forum, p, id, err)
}

// opened takes in that a post was opened, if it was.
func (b *Bot) opened(forum string, p channels.Piece, id string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	b.tries.done(p.Key)
	b.posts.put(forum, latest{thread: id, class: p.Class, at: time.Now()})
	return id, nil
}
