package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"understudy/channels/web"
	"understudy/chat"
	"understudy/inbound"
	"understudy/internal/sqlite"
	"understudy/llm"
	"understudy/session"
)

// TestTitlesStayAndAreReadOnce lists a conversation before and after it has grown long.
func TestTitlesStayAndAreReadOnce(t *testing.T) {
	ctx := t.Context()
	db, err := sqlite.Open(ctx, t.TempDir()+"/bot.sqlite", sqlite.Options{Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	store, err := session.New(ctx, db, session.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	ensure := func(channel string) session.Session {
		t.Helper()
		at := chat.Address{Channel: channel, Conversation: "c1", Kind: chat.Direct}
		ses, _, err := store.Ensure(ctx, session.Seed{Key: "agent:main:" + channel + ":direct:c1", AgentID: "main", Address: at})
		if err != nil {
			t.Fatal(err)
		}
		return ses
	}
	ses := ensure(web.Channel)
	other := []session.Entry{{Kind: session.KindMessage, Message: llm.Text(llm.RoleUser, "none of the page's"), At: time.Now()}}
	if err := store.Append(ctx, ensure("telegram").ID, other); err != nil {
		t.Fatal(err)
	}
	say := func(role llm.Role, text string) {
		t.Helper()
		if err := store.Append(ctx, ses.ID, []session.Entry{{Kind: session.KindMessage, Message: llm.Text(role, text), At: time.Now()}}); err != nil {
			t.Fatal(err)
		}
	}
	h := &history{a: &App{sessions: store}}
	title := func() string {
		t.Helper()
		list, err := h.Sessions(ctx)
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
		return list[0].Title
	}
	if list, err := h.Sessions(ctx); err != nil || len(list) != 0 {
		t.Errorf("nothing was said, and the list is %v, %v", list, err)
	}
	say(llm.RoleUser, strings.Repeat("how ", 30)+"?")
	want := title()
	if !strings.HasPrefix(want, "how how") || !strings.HasSuffix(want, "…") {
		t.Errorf("title %q", want)
	}
	for i := range 150 {
		say(llm.RoleAssistant, "because")
		say(llm.RoleUser, fmt.Sprint("and ", i))
	}
	if got := title(); got != want {
		t.Errorf("the title changed to %q", got)
	}
	h.titles = nil // as after a restart
	if got := title(); got != want {
		t.Errorf("after a restart the title is %q", got)
	}
}

// nobody takes messages and answers none.
type nobody struct{}

func (nobody) Handle(context.Context, inbound.Message) {}

// TestWhatWaitsIsShownAfterARestart looks at a message that an earlier process took in, before and after its turn.
func TestWhatWaitsIsShownAfterARestart(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	a, err := New(ctx, Options{Version: "test", Listen: listenOff, NoControl: true, Log: quiet(), Env: func(name string) (string, bool) {
		v, ok := map[string]string{"OPENCLAW_STATE_DIR": dir, "OLLAMA_HOST": "127.0.0.1:1"}[name]
		return v, ok
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	earlier, err := inbound.New(ctx, inbound.Config{}, inbound.Deps{DB: a.db, Log: quiet(), Handler: nobody{}})
	if err != nil {
		t.Fatal(err)
	}
	defer earlier.Close()
	at := chat.Address{Channel: web.Channel, Conversation: "c1", Kind: chat.Direct}
	in := chat.Inbound{
		ID: "p1", EventKey: "web:c1:1", Address: at, Sender: chat.Sender{ID: web.Owner, Local: true},
		Text: "hello", Mentioned: true, At: time.Now().Truncate(time.Millisecond),
	}
	if err := errors.Join(earlier.Recover(ctx), earlier.Accept(ctx, in)); err != nil {
		t.Fatal(err)
	}
	h := &history{a: a}
	shown := func(want ...string) {
		t.Helper()
		list, err := h.Transcript(ctx, "c1", 10)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]string, len(list))
		for i, e := range list {
			got[i] = e.ID + " " + e.Text
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("shown (-want +got):\n%s", d)
		}
	}
	waits := func(want bool) {
		t.Helper()
		if got, err := h.Waits(ctx, "c1", "p1"); err != nil || got != want {
			t.Errorf("waits %t, %v", got, err)
		}
	}
	shown("p1 hello")
	waits(true)
	key := a.belongs(in).key
	if _, _, err := a.sessions.Ensure(ctx, session.Seed{Key: key, AgentID: "main", Address: at}); err != nil {
		t.Fatal(err)
	}
	said := []session.Entry{
		{Kind: session.KindMessage, Message: llm.Text(llm.RoleUser, "hello"), At: in.At},
		{Kind: session.KindMessage, Message: llm.Text(llm.RoleAssistant, "hi"), At: in.At},
	}
	if err := a.sessions.AppendOnce(ctx, key, inbound.TurnID(1), said); err != nil {
		t.Fatal(err)
	}
	shown(" hello", " hi") // its answer is on the way
	waits(true)
	if err := earlier.Done(ctx, 1); err != nil {
		t.Fatal(err)
	}
	waits(false)
}
