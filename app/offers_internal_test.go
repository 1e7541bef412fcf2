package app

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"understudy/channels"
	"understudy/chat"
	"understudy/internal/sqlite"
)

// TestOffersAreBounded keeps the newest offers, one of each place, and only while they can be taken.
func TestOffersAreBounded(t *testing.T) {
	ctx := t.Context()
	db, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "bot.sqlite"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	a := &App{db: db}
	x, err := a.openOffers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	at := func(n int) offer { return offer{To: chat.Address{Channel: "telegram", Conversation: fmt.Sprint(n)}} }
	add := func(o offer, at time.Time) string {
		token, err := x.add(ctx, o, at)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	for n := range mostOffers {
		o := at(n)
		o.Until = now.Add(time.Duration(n+1) * time.Second)
		x.known[fmt.Sprint(n)] = o
	}
	token := add(at(mostOffers), now)
	if _, oldest := x.known["0"]; oldest || len(x.known) != mostOffers {
		t.Errorf("%d offers, the oldest among them: %v", len(x.known), oldest)
	}
	if newer := add(at(mostOffers), now.Add(time.Hour/4)); x.known[token].Until != (time.Time{}) || x.known[newer].Until != now.Add(time.Hour/4+channels.MenuLife) {
		t.Errorf("the older one of a place: %+v, the newer one: %+v", x.known[token], x.known[newer])
	}
	if again, err := a.openOffers(ctx); err != nil || len(again.known) != len(x.known) {
		t.Errorf("after a restart: %v", err)
	}
	add(at(1), now.Add(2*time.Hour))
	if len(x.known) != 1 {
		t.Errorf("%d offers outlive their time", len(x.known))
	}
}
