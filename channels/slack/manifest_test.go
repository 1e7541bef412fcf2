package slack

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slack-go/slack/slackevents"
)

// manifest is what the app of the repository asks for.
type manifest struct{ scopes, events, commands []string }

func readManifest(t *testing.T) manifest {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "slack-manifest.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	var list *[]string
	for _, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, " #")
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "bot:":
			list = &m.scopes
		case trimmed == "bot_events:":
			list = &m.events
		case strings.HasPrefix(trimmed, "- command: "):
			m.commands = append(m.commands, strings.TrimPrefix(trimmed, "- command: "))
		case strings.HasPrefix(trimmed, "- ") && list != nil:
			*list = append(*list, strings.TrimPrefix(trimmed, "- "))
		case strings.HasSuffix(trimmed, ":"):
			list = nil
		}
	}
	slices.Sort(m.scopes)
	return m
}

// TestSubscribesToKnownEventsOnly: the library does not acknowledge an event it does not know, so
// nothing but our own second look stands between such an event and endless repetition.
func TestSubscribesToKnownEventsOnly(t *testing.T) {
	m := readManifest(t)
	if len(m.events) < 10 || len(m.scopes) < 15 {
		t.Fatalf("the manifest is not read: %+v", m)
	}
	for _, name := range m.events {
		kind, _, _ := strings.Cut(name, ".") // message.channels and its like are messages
		if _, known := slackevents.EventsAPIInnerEventMapping[slackevents.EventsAPIType(kind)]; !known {
			t.Errorf("the library does not know the event %s", name)
		}
	}
	if want := "/" + valid().SlashCommand.Name; !slices.Equal(m.commands, []string{want}) {
		t.Errorf("slash commands %v, want %s", m.commands, want)
	}
}
