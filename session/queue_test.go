package session

import (
	"strings"
	"testing"
	"time"
)

func TestQueueOptionsAreReadAndWritten(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"collect", "collect"},
		{"Steer debounce:2s cap:5 drop:old", "steer debounce:2s cap:5 drop:old"},
		{"drop:summarize followup", "followup drop:summarize"},
		{"debounce:0", "debounce:0s"},
		{"debounce:750", "debounce:750ms"},
		{"debounce:1m", "debounce:1m"},
		{"interrupt cap:100", "interrupt cap:100"},
		{"debounce:6m", "! up to 5m"},
		{"debounce:99999999999d", "! up to 5m"},
		{"debounce:-1", "! up to 5m"},
		{"debounce:", "! up to 5m"},
		{"cap:0", "! from 1 to 100"},
		{"cap:1e3", "! from 1 to 100"},
		{"drop:all", `! "drop:all" is no queue option`},
		{"someday", `! "someday" is no queue option`},
	} {
		q, err := ParseQueue(c.in)
		problem, isBad := strings.CutPrefix(c.want, "! ")
		switch {
		case isBad != (err != nil), isBad && !strings.Contains(err.Error(), problem):
			t.Errorf("%q: error %v", c.in, err)
		case !isBad && q.String() != c.want:
			t.Errorf("%q is %q", c.in, q)
		}
		if again, err := ParseQueue(q.String()); err != nil || again.String() != q.String() {
			t.Errorf("%q does not survive being written: %v", q, err)
		}
	}
}

func TestWhichQueueOptionsCount(t *testing.T) {
	ms := func(n int) *int { return &n }
	second := time.Second
	cfg := QueueConfig{
		Mode: QueueCollect, ByChannel: map[string]QueueMode{"slack": QueueFollowup},
		DebounceMs: ms(100), DebounceMsByChannel: map[string]int{"discord": 300}, Drop: DropOld,
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		channel string
		stored  Queue
		want    string
	}{
		{"telegram", Queue{}, "collect debounce:100ms cap:20 drop:old"},
		{"slack", Queue{}, "followup debounce:100ms cap:20 drop:old"},
		{"discord", Queue{Cap: 3}, "collect debounce:300ms cap:3 drop:old"},
		{"slack", Queue{Mode: QueueSteer, Debounce: &second, Drop: DropNew}, "steer debounce:1s cap:20 drop:new"},
	} {
		if got := cfg.For(c.channel, c.stored).String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.channel, got, c.want)
		}
	}
	if got := (QueueConfig{}).For("web", Queue{}).String(); got != "steer debounce:500ms cap:20 drop:summarize" {
		t.Errorf("the defaults are %s", got)
	}
	bad := QueueConfig{Mode: "never", ByChannel: map[string]QueueMode{"web": "x"}, DebounceMs: ms(-1), Cap: 1000, Drop: "all"}
	for _, part := range []string{"mode:", "byChannel.web:", "debounceMs:", "cap:", "drop:"} {
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s is not reported: %v", part, err)
		}
	}
}
