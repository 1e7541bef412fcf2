package app_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/emulate/slack"
)

func TestAMessageThatChangesWhileItWaitsIsAnsweredAsItIsThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, "")
		s := o.slackServer("slack.test", slack.Config{})
		o.configure("queue: {mode: followup}\nchannels: {slack: " + slackBlock(s, slack.Root, "dmPolicy: allowlist, allowFrom: ["+slackAlice+`], replyToModeByChatType: {direct: "off"}, streaming: {mode: "off"}`) + "}\n")
		o.open()
		s.UserSays(slackDM, slackAlice, "the first one, which takes a while")
		pass(time.Second)
		edited := s.UserSays(slackDM, slackAlice, "not meant so")
		deleted := s.UserSays(slackDM, slackAlice, "not meant at all")
		s.UserSays(slackDM, slackAlice, "the last one")
		pass(500 * time.Millisecond)
		s.UserEdits(slackDM, edited, "/think high meant like this")
		s.UserDeletes(slackDM, deleted)
		o.settle()
		var heard []string
		for _, m := range s.Sent(slackDM) {
			_, rest, _ := strings.Cut(m.Text, "You said: “")
			text, _, _ := strings.Cut(rest, "”")
			heard = append(heard, text)
		}
		want := []string{"the first one, which takes a while", "meant like this", "the last one"}
		if strings.Join(heard, "|") != strings.Join(want, "|") {
			t.Errorf("answered: %q\n%s", heard, o.logs)
		}
	})
}
