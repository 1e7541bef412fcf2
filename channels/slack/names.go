package slack

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"

	"github.com/slack-go/slack"
)

// Bounds of looking up names.
const (
	mostWanted  = 64
	nameEvery   = time.Second // between two look-ups
	nameLimit   = 10 * time.Second
	nameFor     = 24 * time.Hour
	unknownFor  = 10 * time.Minute // before a failed look-up is tried again
	longestName = 80
)

// names knows what people call themselves, and their channels. Nobody waits for a name: who is not
// known is looked up behind the message, and has a name from the next one on.
type names struct {
	known  *recent[named]
	wanted chan string
}

type named struct {
	name  string
	until time.Time
}

func newNames() *names {
	return &names{known: newRecent[named](mostRemembered), wanted: make(chan string, mostWanted)}
}

// get returns a name, "" if it is not known.
func (n *names) get(user string) string {
	known, _ := n.known.get(user)
	return known.name
}

// put notes a name that came by itself.
func (n *names) put(user, name string) {
	if name = plainName(name); name != "" && n.get(user) == "" {
		n.known.put(user, named{name: name, until: time.Now().Add(nameFor)})
	}
}

// want has a name looked up, unless it is known or there are too many to look up already.
func (n *names) want(user string) {
	if known, ok := n.known.get(user); user == "" || user[0] == 'B' || ok && time.Now().Before(known.until) {
		return
	}
	select {
	case n.wanted <- user:
	default:
	}
}

// learnNames looks names up until ctx ends.
func (b *Bot) learnNames(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case user := <-b.names.wanted:
			if known, ok := b.names.known.get(user); ok && time.Now().Before(known.until) {
				continue
			}
			sleep(ctx, max(b.learnName(ctx, user), nameEvery))
		}
	}
}

// learnName looks one name up and returns how long to wait before the next.
func (b *Bot) learnName(ctx context.Context, user string) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, nameLimit)
	defer cancel()
	if user[0] == 'C' || user[0] == 'G' {
		return b.missingName(user, b.learnPlace(ctx, user))
	}
	var u *slack.User
	err := b.api.call(ctx, "users.info", func(ctx context.Context, c *slack.Client) (err error) {
		u, err = c.GetUserInfoContext(ctx, user)
		return err
	})
	if err != nil {
		return b.missingName(user, err)
	}
	name := plainName(u.Profile.DisplayName)
	for _, other := range []string{u.RealName, u.Profile.RealName, u.Name} {
		if name == "" {
			name = plainName(other)
		}
	}
	b.names.known.put(user, named{name: name, until: time.Now().Add(nameFor)})
	return 0
}

// missingName notes what was not found, if it was not, and returns how long to wait before the next.
func (b *Bot) missingName(id string, err error) time.Duration {
	if err == nil {
		return 0
	}
	b.names.known.put(id, named{name: b.names.get(id), until: time.Now().Add(unknownFor)})
	var e *callError
	if errors.As(err, &e) && e.code == codeRateLimited {
		return min(max(e.retryAfter, nameEvery), time.Minute)
	}
	return 0
}

// plainName makes one short line of a name.
func plainName(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) }), " ")
	return shorten(s, longestName)
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
