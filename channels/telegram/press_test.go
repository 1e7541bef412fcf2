package telegram

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/channels"
	"understudy/channels/channelstest"
	"understudy/chat"

	emulator "understudy/internal/emulate/telegram"
)

// menu sends a message with buttons and returns its id and the data of the first.
func (a *account) menu(t *testing.T, to chat.Address, n int, owner string) (int, string) {
	t.Helper()
	p := channels.Piece{To: to, Class: chat.Command, Plain: "choose", For: owner}
	for i := range n {
		p.Buttons = append(p.Buttons, chat.Button{Label: fmt.Sprint("B", i), Command: fmt.Sprint("/model ", i)})
	}
	got, err := a.Send(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := strconv.Atoi(got.IDs[0])
	return id, a.keys(to, id)[0].Data
}

// keys are the buttons below a message.
func (a *account) keys(to chat.Address, id int) []emulator.Button {
	conversation, _ := ids(to)
	for _, m := range a.srv.Sent(conversation) {
		if m.ID == id {
			return m.Buttons
		}
	}
	return nil
}

func TestPressInTopic(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		id, _ := a.menu(t, inTopic, 1, "")
		query := a.srv.Press(forum, ann, id, "B0")
		in := a.got.Next(t)
		if in.Address != inTopic || in.Sender.ID != "1001" || !in.Mentioned || in.Via != "" || in.Text != "/model 0" {
			t.Errorf("got %+v", in)
		}
		a.await(t, time.Minute, func() bool { return a.srv.Answered(query) })
	})
}

// A press that is forged, of another chat, of somebody else or too late is answered and does nothing.
func TestPressRefused(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		id, data := a.menu(t, direct, 3, "")
		other, _ := a.menu(t, inGroup, 1, "1001")
		token := data[:len(data)-1]
		a.srv.PressData(ann, ann, id, "m:guess:0")
		a.srv.PressData(ann, ann, id, "/model a")
		a.srv.PressData(ann, ann, id, token+"3") // there is no such choice
		a.srv.PressData(group, ann, other, data)
		query := a.srv.Press(group, bob, other, "B0")
		a.await(t, time.Minute, func() bool { return a.srv.Answered(query) })
		timer := time.NewTimer(channels.MenuLife)
		<-timer.C
		query = a.srv.PressData(ann, ann, id, data)
		a.await(t, time.Minute, func() bool { return a.srv.Answered(query) })
		expired := channels.TextExpired
		if diff := cmp.Diff([]string{expired, expired, expired, expired, expired}, a.srv.Toasts(ann)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{channels.TextOthers}, a.srv.Toasts(bob)); diff != "" {
			t.Error(diff)
		}
		synctest.Wait()
		if n := a.got.Pending(); n != 0 {
			t.Errorf("%d presses got through", n)
		}
	})
}

func TestMenuTurnsPagesAndCloses(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		id, _ := a.menu(t, direct, 10, "1001")
		first := a.keys(direct, id)
		for _, label := range []string{"▶", "◀", "1/2"} {
			query := a.srv.Press(ann, ann, id, label)
			synctest.Wait()
			if !a.srv.Answered(query) {
				t.Errorf("%s is not answered", label)
			}
		}
		if diff := cmp.Diff(first, a.keys(direct, id)); diff != "" {
			t.Error(diff)
		}
		a.srv.Press(ann, ann, id, labelClose)
		synctest.Wait()
		if keys := a.keys(direct, id); len(keys) != 0 {
			t.Errorf("after closing: %+v", keys)
		}
		if n := a.got.Pending(); n != 0 {
			t.Errorf("%d messages", n)
		}
	})
}

// Buttons work after a restart when their menus are kept.
func TestMenuOutlivesTheProcess(t *testing.T) {
	kept := channelstest.NewMenus()
	prepare := func(_ *emulator.Server, _ *Config, d *Deps) { d.Menus = kept }
	running(t, emulator.Config{}, prepare, func(t *testing.T, a *account) {
		id, _ := a.menu(t, direct, 1, "")
		a.stop()
		<-a.done
		a.Close()
		a.Bot = newBot(t, a.srv, func(_ *Config, d *Deps) { d.Menus, d.Offsets = kept, a.offsets })
		a.start(t)
		a.srv.Press(ann, ann, id, "B0")
		if in := a.got.Next(t); in.Text != "/model 0" {
			t.Errorf("got %+v", in)
		}
	})
}

// brokenMenus cannot read for a while.
type brokenMenus struct {
	channels.Menus
	mu  sync.Mutex
	err error
}

func (b *brokenMenus) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

func (b *brokenMenus) problem() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

func (b *brokenMenus) Put(ctx context.Context, m channels.Menu) (string, error) {
	if err := b.problem(); err != nil {
		return "", err
	}
	return b.Menus.Put(ctx, m)
}

func (b *brokenMenus) Get(ctx context.Context, token string) (channels.Menu, error) {
	if err := b.problem(); err != nil {
		return channels.Menu{}, err
	}
	return b.Menus.Get(ctx, token)
}

// A press whose menu cannot be read now comes again; a menu that cannot be kept is not sent.
func TestMenusThatCannotBeRead(t *testing.T) {
	menus := &brokenMenus{Menus: channelstest.NewMenus()}
	prepare := func(_ *emulator.Server, _ *Config, d *Deps) { d.Menus = menus }
	running(t, emulator.Config{}, prepare, func(t *testing.T, a *account) {
		id, _ := a.menu(t, direct, 1, "")
		menus.fail(errors.New("locked"))
		a.srv.Press(ann, ann, id, "B0")
		synctest.Wait()
		if s := a.got.State(); s != channels.Down {
			t.Errorf("state %q", s)
		}
		p := piece(direct, "x")
		p.Buttons = []chat.Button{{Label: "a", Command: "/a"}}
		_, err := a.Send(t.Context(), p)
		checkVerdict(t, err, channels.Retry, "menu")
		menus.fail(nil)
		if in := a.got.Next(t); in.Text != "/model 0" {
			t.Errorf("got %+v", in)
		}
	})
}

func TestMemoryMenusAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemoryMenus()
		put := func() string {
			token, err := m.Put(t.Context(), channels.Menu{Until: time.Now().Add(channels.MenuLife)})
			if err != nil {
				t.Fatal(err)
			}
			return token
		}
		first := put()
		for range mostMenus {
			put()
		}
		if len(m.known) != mostMenus || len(m.order) != mostMenus {
			t.Errorf("%d menus are kept", len(m.known))
		}
		if _, err := m.Get(t.Context(), first); !errors.Is(err, channels.ErrExpired) {
			t.Errorf("got %v", err)
		}
		<-time.After(channels.MenuLife)
		put()
		if len(m.known) != 1 {
			t.Errorf("%d menus are kept", len(m.known))
		}
	})
}
