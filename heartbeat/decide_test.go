package heartbeat

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"understudy/chat"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// fine is a moment at which a heartbeat happens.
func fine() Moment {
	return Moment{
		Now: noon, Routed: true, To: chat.Address{Channel: "telegram", Conversation: "1", Kind: chat.Direct},
		Settings: Settings{Every: 30 * time.Minute, Show: Show{Alerts: true, Indicator: true}}.WithDefaults(),
	}
}

// obstacles are the reasons not to have one, in the order in which they are looked at; each is put in the
// way by its function.
var obstacles = []struct {
	why   Why
	put   func(*Moment)
	asked bool // it holds for one that somebody asked for, too
}{
	{WhyDisabled, func(m *Moment) { m.Off = true }, true},
	{WhyQuietHours, func(m *Moment) { m.Settings.Hours = &Hours{Start: 0, End: 60} }, false},
	{WhyHidden, func(m *Moment) { m.Settings.Show = Show{} }, true},
	{WhyNoRoute, func(m *Moment) { m.Routed = false }, true},
	{WhyDirect, func(m *Moment) { m.Settings.BlockDirect = true }, true},
	{WhyNothingToDo, func(m *Moment) { m.Scratch, m.HasScratch = "# Checklist\n\n- [ ]\n<!-- later -->\n", true }, true},
	{WhyBusy, func(m *Moment) { m.LaneBusy = true }, true},
	{WhyBusy, func(m *Moment) { m.AgentBusy = true }, false},
	{WhyTooSoon, func(m *Moment) { m.LastRun = noon.Add(-10 * time.Minute) }, false},
	{WhyBudget, func(m *Moment) { m.Spent = true }, true},
	{WhyResting, func(m *Moment) { m.Settings.NoFallbacks, m.Resting = true, true }, true},
}

func TestChecksComeInOrder(t *testing.T) {
	if why := Decide(fine()); why != "" {
		t.Fatalf("nothing is in the way, and still: %s", why)
	}
	rapid.Check(t, func(t *rapid.T) {
		m := fine()
		m.Manual = rapid.Bool().Draw(t, "manual")
		want := Why("")
		for _, o := range obstacles {
			if !rapid.Bool().Draw(t, string(o.why)) {
				continue
			}
			o.put(&m)
			if want == "" && (o.asked || !m.Manual) {
				want = o.why
			}
		}
		if got := Decide(m); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestOffMeansOffForTheScheduleOnly(t *testing.T) {
	m := fine()
	m.Settings.Every = 0
	if Decide(m) != WhyDisabled {
		t.Error("a heartbeat without an interval happens")
	}
	m.Manual = true
	if why := Decide(m); why != "" {
		t.Errorf("one that was asked for does not: %s", why)
	}
}

func TestPendingEventsAreSomethingToDo(t *testing.T) {
	m := fine()
	m.Scratch, m.HasScratch, m.Pending = "", true, true
	if why := Decide(m); why != "" {
		t.Error(why)
	}
}

func TestTargetNoneNeedsNobody(t *testing.T) {
	m := fine()
	m.Settings.Target, m.Routed, m.To, m.Settings.BlockDirect = TargetNone, false, chat.Address{}, true
	if why := Decide(m); why != "" {
		t.Error(why)
	}
}

func TestShowOfAChannelCounts(t *testing.T) {
	m := fine()
	m.Settings.ShowOn = map[string]Show{"telegram": {}}
	if Decide(m) != WhyHidden {
		t.Error("what the channel hides happens")
	}
	m.To.Channel = "slack"
	if why := Decide(m); why != "" {
		t.Error(why)
	}
}

func TestWhatAnEmptyChecklistIs(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "\n\n": true, "# Title\n## Sub": true, "- \n* \n+ \n": true, "- [ ]\n- [x] \n": true, "<!-- a\nb -->\n": true, "---": true,
		"<!-- a --> look": false, "look": false, "- look": false, "- [ ] look": false, "# Title\nlook": false, "<!-- a": true, "1": false,
	} {
		if got := idle(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

func TestActiveHours(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	at := func(h, m int) time.Time { return time.Date(2026, 3, 2, h, m, 30, 0, time.UTC) }
	for _, x := range []struct {
		start, end string
		zone       *time.Location
		t          time.Time
		want       bool
	}{
		{"08:00", "22:00", nil, at(8, 0), true},
		{"08:00", "22:00", nil, at(7, 59), false},
		{"08:00", "22:00", nil, at(22, 0), false},
		{"08:00", "24:00", nil, at(23, 59), true},
		{"22:00", "06:00", nil, at(23, 0), true},
		{"22:00", "06:00", nil, at(5, 59), true},
		{"22:00", "06:00", nil, at(6, 0), false},
		{"09:00", "09:00", nil, at(9, 0), false},
		{"00:00", "24:00", nil, at(0, 0), true},
		{"08:00", "22:00", newYork, at(12, 0), false}, // 07:00 there
		{"08:00", "22:00", newYork, at(13, 0), true},
	} {
		h, err := ParseHours(x.start, x.end, x.zone)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.Contain(x.t); got != x.want {
			t.Errorf("%s to %s at %s: %t", x.start, x.end, x.t, got)
		}
	}
	for _, bad := range []string{"", "8", "8:0", "24:01", "25:00", "12:60", "-1:00", "aa:00", "012:00"} {
		if _, err := ParseHours(bad, "12:00", nil); err == nil {
			t.Errorf("%q is a time of day", bad)
		}
	}
}
