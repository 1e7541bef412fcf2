package inbound

import (
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/channels"
	"understudy/chat"
)

func TestMenus(t *testing.T) {
	bubble(t, func(w *world) {
		ctx := w.t.Context()
		menu := channels.Menu{
			To: inRoom(1, "1", "").Address, For: "1", Until: time.Now().Add(24 * time.Hour),
			Buttons: []chat.Button{{Label: "a", Command: "/model a", Group: "g", Chosen: true}, {Label: "b", Command: "/model b"}},
		}
		token, err := w.p.Menus().Put(ctx, menu)
		if err != nil || !regexp.MustCompile(`^[0-9A-Za-z]{20,26}$`).MatchString(token) {
			t.Fatalf("%q, %v", token, err)
		}
		w.boot()
		ctx = w.t.Context()
		got, err := w.p.Menus().Get(ctx, token)
		if err != nil {
			t.Fatal(err)
		}
		menu.Until = time.Now().Add(channels.MenuLife)
		if d := cmp.Diff(menu, got); d != "" {
			t.Error(d)
		}
		if !got.Allows("C1", "1") || got.Allows("C1", "2") || got.Allows("C2", "1") {
			t.Error("the wrong people may press")
		}
		for _, unknown := range []string{"", "x", token + "x", token[1:]} {
			if _, err := w.p.Menus().Get(ctx, unknown); !errors.Is(err, channels.ErrExpired) {
				t.Errorf("%q: %v", unknown, err)
			}
		}
		w.pass(channels.MenuLife)
		if _, err := w.p.Menus().Get(ctx, token); !errors.Is(err, channels.ErrExpired) {
			t.Errorf("after its time: %v", err)
		}
		other, err := w.p.Menus().Put(ctx, channels.Menu{})
		if err != nil || other == token {
			t.Fatalf("%q, %v", other, err)
		}
		if n := w.count("SELECT count(*) FROM callbacks"); n != 1 {
			t.Errorf("%d menus are kept", n)
		}
	})
}

// TestMenusAreBounded: the newest stay.
func TestMenusAreBounded(t *testing.T) {
	bubble(t, func(w *world) {
		ctx := w.t.Context()
		first, err := w.p.Menus().Put(ctx, channels.Menu{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.db.Writer().ExecContext(ctx, "UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'callbacks'", maxMenus-1)
		if err != nil {
			t.Fatal(err)
		}
		second, err := w.p.Menus().Put(ctx, channels.Menu{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.p.Menus().Get(ctx, first); !errors.Is(err, channels.ErrExpired) {
			t.Errorf("the oldest: %v", err)
		}
		if _, err := w.p.Menus().Get(ctx, second); err != nil {
			t.Errorf("the newest: %v", err)
		}
	})
}
