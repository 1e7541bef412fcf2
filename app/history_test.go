package app

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy/channels/web"
	"understudy/chat"
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
	ses, _, err := store.Ensure(ctx, session.Seed{Key: "agent:main:web:direct:c1", AgentID: "main", Address: chat.Address{Channel: web.Channel, Conversation: "c1", Kind: chat.Direct}})
	if err != nil {
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
	if got := title(); got != "" {
		t.Errorf("nothing was said, and the title is %q", got)
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
