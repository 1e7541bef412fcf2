package telegram

import (
	"strconv"
	"time"
	"unicode/utf16"

	"understudy/chat"
)

// Clients cut a long text that somebody pastes into several messages; nothing else tells that they
// belong together (spec/chat.md §2.9).
const (
	cutText    = 4000 // UTF-16 units from which on a text may have been cut
	cutWithin  = time.Second
	mostPastes = 256 // places in which one may be under way
)

// pastes recognises the pieces of a pasted text: one that is long enough to have been cut, and what
// follows it directly. The inbound pipeline merges messages of one album, so the pieces become one. It
// belongs to whoever handles updates. The zero value is ready.
type pastes struct {
	last map[string]pasted // by place
}

// pasted is a message behind which the rest of a pasted text may come.
type pasted struct {
	sender, album string
	id            int
	at            time.Time
}

// album returns the album that a message belongs to, "" = it is no piece of a pasted text.
func (p *pastes) album(m *chat.Inbound) string {
	id, err := strconv.Atoi(m.ID)
	if err != nil || len(m.Attachments) > 0 {
		return ""
	}
	before, known := p.last[m.Address.Destination()]
	if known && before.followedBy(m, id) {
		return before.album
	}
	if !cut(m.Text) {
		return ""
	}
	return "paste:" + m.Sender.ID + ":" + m.ID
}

// followedBy reports whether a message came directly behind a piece. The private chats of a bot share one
// sequence of ids, so that there other people's messages leave gaps.
func (x pasted) followedBy(m *chat.Inbound, id int) bool {
	direct := id == x.id+1 || m.Address.Kind == chat.Direct && id > x.id
	return direct && x.sender == m.Sender.ID && m.At.Sub(x.at).Abs() <= cutWithin
}

// note takes note of a message that was accepted.
func (p *pastes) note(m *chat.Inbound) {
	place := m.Address.Destination()
	id, err := strconv.Atoi(m.ID)
	if err != nil || m.Album == "" || !cut(m.Text) {
		delete(p.last, place)
		return
	}
	if p.last == nil || len(p.last) >= mostPastes {
		p.last = map[string]pasted{}
	}
	p.last[place] = pasted{sender: m.Sender.ID, album: m.Album, id: id, at: m.At}
}

// cut reports whether a text is so long that it may be the beginning of a longer one.
func cut(text string) bool {
	return len(text) >= cutText && len(utf16.Encode([]rune(text))) >= cutText
}
