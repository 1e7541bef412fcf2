package app_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	emullm "understudy/internal/emulate/llm"
)

// TestAPersonStopsTheOwnWordsAlone: what others said in the same turn waits for the next one and is in the
// conversation once; of what something was done for already they are told.
func TestAPersonStopsTheOwnWordsAlone(t *testing.T) {
	look := emullm.ToolCall{Name: "session_status"}
	steered := func(e errands) {
		e.busy(bobID, look)
		e.says(opsGroup, aliceID, "ALICE asks")
		pass(15 * time.Second)
	}
	for name, c := range map[string]struct {
		tool []emullm.ToolCall // that runs after Alice was heard
		act  func(e errands)
		want string
	}{
		"steered":         {nil, steered, "for ALICE|⏹ Stopped."},
		"heard by a tool": {[]emullm.ToolCall{look}, steered, "⏹ Somebody else stopped the answer to this. Please say it again if you still want one.|⏹ Stopped."},
		"collected": {nil, func(e errands) {
			e.asks(opsGroup, aliceID, "@"+e.tg.Username()+" /queue collect")
			e.busy(daveID)
			e.says(opsGroup, bobID, "BOB asks")
			e.says(opsGroup, aliceID, "ALICE asks")
			pass(15 * time.Second)
		}, "for ALICE|⏹ Stopped."},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newErrands(t)
				if c.tool != nil {
					e.models.Reply(emullm.Reply{Match: emullm.Match{Contains: "ALICE", Times: 1}, ToolCalls: c.tool})
				}
				e.models.Reply(emullm.Reply{Match: emullm.Match{Contains: "ALICE", Times: 1}, Latency: time.Minute, Text: "too late"})
				e.models.Reply(emullm.Reply{Match: emullm.Match{Contains: "ALICE"}, Text: "for ALICE"})
				c.act(e)
				before := len(e.tg.Sent(opsGroup))
				e.says(opsGroup, bobID, "/stop")
				e.settle()
				got := tgTexts(e.office, opsGroup)[before:]
				slices.Sort(got) // the command and the turn end at the same time
				if strings.Join(got, "|") != c.want {
					t.Errorf("said %q, want %q\n%s", got, c.want, e.logs)
				}
				e.says(opsGroup, aliceID, "and ALICE again")
				e.settle()
				r := e.models.Requests()
				if n := strings.Count(string(r[len(r)-1].Body), "ALICE asks"); n != 1 {
					t.Errorf("in the conversation %d times", n)
				}
			})
		})
	}
}
