package schedule_test

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"understudy/cron/schedule"
)

var update = flag.Bool("update", false, "write the golden file")

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// thursday is a Thursday morning in Berlin, 11:12 there.
var thursday = time.Date(2026, 3, 5, 10, 12, 0, 0, time.UTC)

// TestWhatPeopleType reads testdata/sentences.golden: each line that is not indented is typed on a
// Thursday at 11:12 in Berlin, and what follows is what it means.
func TestWhatPeopleType(t *testing.T) {
	const path = "testdata/sentences.golden"
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := schedule.Frame{Now: thursday, Zone: zone(t, "Europe/Berlin"), Named: true}
	var b strings.Builder
	for lines := bufio.NewScanner(strings.NewReader(string(was))); lines.Scan(); {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "\t"):
			continue
		case line == "" || strings.HasPrefix(line, "== "):
			fmt.Fprintln(&b, line)
			continue
		}
		fmt.Fprintf(&b, "%s\n\t%s\n", line, strings.ReplaceAll(reading(line, f), "\n", "\n\t"))
	}
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(was), b.String()); diff != "" && !*update {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func reading(text string, f schedule.Frame) string {
	s, err := schedule.Parse(text, f)
	if err != nil {
		return "✗ " + err.Error()
	}
	var times []string
	for _, n := range s.Upcoming(f.Now, 3) {
		times = append(times, n.Format("Mon 2006-01-02 15:04:05"))
	}
	return s.Describe() + "\n" + strings.Join(times, " · ")
}

func TestErrorsAreForPeople(t *testing.T) {
	for _, text := range []string{"", "0 25 * * *", "hello", "\x00", "TZ=UTC", strings.Repeat("ä", 300), "every\u202e day"} {
		_, err := schedule.Parse(text, schedule.Frame{Now: thursday})
		var e *schedule.Error
		if !errors.As(err, &e) {
			t.Fatalf("%q: %v is not an *Error", text, err)
		}
		if e.Public() != err.Error() || e.What == "" || len(err.Error()) > 400 || !utf8.ValidString(err.Error()) || strings.ContainsAny(err.Error(), "\x00\u202e") {
			t.Errorf("%q: %q", text, err)
		}
	}
}

func TestADateWithoutAnOffsetIsUTCUnlessSomebodyChoseAZone(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	for _, x := range []struct {
		named bool
		text  string
		want  string
	}{
		{true, "2026-12-24 18:00", "2026-12-24T17:00:00Z"},
		{false, "2026-12-24 18:00", "2026-12-24T18:00:00Z"},
		{false, "2026-12-24T18:00", "2026-12-24T18:00:00Z"},
		{false, "2026-12-24 18:00 Asia/Tokyo", "2026-12-24T09:00:00Z"},
		{false, "2026-12-24T18:00:00+01:00", "2026-12-24T17:00:00Z"},
		{false, "tomorrow 9:00", "2026-03-06T08:00:00Z"}, // words are said by somebody who is somewhere
	} {
		s, err := schedule.Parse(x.text, schedule.Frame{Now: thursday, Zone: berlin, Named: x.named})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Spec().At.UTC().Format(time.RFC3339); got != x.want {
			t.Errorf("%q (named %v): %s, want %s", x.text, x.named, got, x.want)
		}
	}
}

func TestASingleTimeAtAChangeOfClocks(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	for _, x := range []struct{ text, want string }{
		{"2026-03-29 02:30", "2026-03-29T03:00:00+02:00"}, // left out
		{"2026-10-25 02:30", "2026-10-25T02:30:00+02:00"}, // comes twice
	} {
		s, err := schedule.Parse(x.text, schedule.Frame{Now: thursday, Zone: berlin, Named: true})
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := s.Next(thursday); got.Format(time.RFC3339) != x.want {
			t.Errorf("%s: %s, want %s", x.text, got.Format(time.RFC3339), x.want)
		}
	}
}

func TestTheZoneIsStored(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	s, err := schedule.Parse("every day at 9", schedule.Frame{Now: thursday, Zone: berlin, Own: true})
	if err != nil || s.Spec().TZ != "Europe/Berlin" {
		t.Errorf("%+v, %v", s.Spec(), err)
	}
	// The host's own zone has no name that another host would understand.
	s, err = schedule.Parse("every day at 9", schedule.Frame{Now: thursday, Zone: time.Local, Own: true})
	if err != nil || s.Spec().TZ != "" {
		t.Errorf("%+v, %v", s.Spec(), err)
	}
}

func TestStoredSchedulesAreChecked(t *testing.T) {
	for _, x := range []struct {
		name string
		spec schedule.Spec
	}{
		{"no kind", schedule.Spec{}},
		{"no time", schedule.Spec{Kind: schedule.At}},
		{"too often", schedule.Spec{Kind: schedule.Every, EveryMs: 59_999}},
		{"an overflow", schedule.Spec{Kind: schedule.Every, EveryMs: 1 << 62}},
		{"no expression", schedule.Spec{Kind: schedule.Cron}},
		{"a descriptor", schedule.Spec{Kind: schedule.Cron, Expr: "@every 1s"}},
		{"a zone inside", schedule.Spec{Kind: schedule.Cron, Expr: "TZ=UTC"}},
		{"an unknown zone", schedule.Spec{Kind: schedule.Cron, Expr: "0 9 * * *", TZ: "Moon/Sea"}},
		{"the zone of a host", schedule.Spec{Kind: schedule.Cron, Expr: "0 9 * * *", TZ: "Local"}},
		{"a path", schedule.Spec{Kind: schedule.Cron, Expr: "0 9 * * *", TZ: "../../etc/passwd"}},
		{"too much stagger", schedule.Spec{Kind: schedule.Cron, Expr: "0 * * * *", StaggerMs: 300_001}},
	} {
		if s, err := x.spec.Compile(nil, nil); err == nil {
			t.Errorf("%s: compiled to %s", x.name, s.Describe())
		}
	}
}

func FuzzParse(f *testing.F) {
	golden, err := os.ReadFile("testdata/sentences.golden")
	if err != nil {
		f.Fatal(err)
	}
	for _, line := range strings.Split(string(golden), "\n") {
		f.Add(line)
	}
	berlin := zone(f, "Europe/Berlin")
	f.Fuzz(func(t *testing.T, text string) {
		frame := schedule.Frame{Now: thursday, Zone: berlin, Named: true}
		s, err := schedule.Parse(text, frame)
		if err != nil {
			if len(err.Error()) > 1000 || !utf8.ValidString(err.Error()) {
				t.Errorf("error %q", err)
			}
			return
		}
		times := s.Upcoming(thursday, 5)
		if len(times) == 0 || s.Describe() == "" {
			t.Fatalf("%q has no future", text)
		}
		for i := 1; i < len(times); i++ {
			if d := times[i].Sub(times[i-1]); d <= 0 {
				t.Fatalf("%q: %s after %s", text, times[i], times[i-1])
			}
		}
		again, err := s.Spec().Compile(berlin, nil)
		if err != nil {
			t.Fatalf("%q cannot be stored: %v", text, err)
		}
		if diff := cmp.Diff(times, again.Upcoming(thursday, 5)); diff != "" {
			t.Errorf("%q changes when it is stored:\n%s", text, diff)
		}
	})
}
