package channels

import (
	"context"
	"errors"
	"time"

	"understudy/chat"
)

// MenuLife is how long buttons below a message work (spec/chat.md §2.7–2.9).
const MenuLife = 30 * time.Minute

// ErrExpired tells that a menu is not known (any more).
var ErrExpired = errors.New("this menu has expired")

// Texts for people who press what they cannot.
const (
	TextExpired = "This menu has expired. Please send the command again."
	TextOthers  = "This menu belongs to somebody else."
)

// Menu is what the buttons below one message stand for. Whoever can press a button can also forge the
// press, so a button carries only the token of its menu and a number; the press is authorised like a
// message of the person who pressed (spec/chat.md §8, S13).
type Menu struct {
	To      chat.Address  `json:"to"`
	For     string        `json:"for,omitempty"` // the only one who may press; "" = anybody with access
	Buttons []chat.Button `json:"buttons"`
	Until   time.Time     `json:"until"`
}

// Allows reports whether a person may press in a conversation.
func (m Menu) Allows(conversation, sender string) bool {
	return m.To.Conversation == conversation && (m.For == "" || m.For == sender)
}

// Menus keeps menus over restarts. Both methods may be called from several goroutines.
type Menus interface {
	// Put keeps a menu and returns its token: letters and digits, at most 26.
	Put(ctx context.Context, m Menu) (token string, err error)
	// Get returns a menu; ErrExpired when it is unknown or too old.
	Get(ctx context.Context, token string) (Menu, error)
}
