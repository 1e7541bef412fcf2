package channels

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The time of an answer corrects ours where the two are far apart, and only there: a clock that is right
// must not move messages by the seconds that an answer takes.
func TestAPlatformsClockIsLearnedFromItsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Skew
		var said bytes.Buffer
		log := slog.New(slog.NewTextHandler(&said, nil))
		for _, tt := range []struct {
			date  time.Duration // of the answer, from now
			ahead time.Duration
			logs  int
		}{
			{0, 0, 0},
			{-20 * time.Second, 0, 0},
			{-2 * time.Hour, 2 * time.Hour, 1},
			{-2*time.Hour - 30*time.Second, 2 * time.Hour, 0}, // the same, told late
			{24 * time.Hour, -24 * time.Hour, 1},
			{10 * time.Second, 0, 1}, // ours was set
		} {
			said.Reset()
			s.Learn(http.Header{"Date": {time.Now().Add(tt.date).UTC().Format(http.TimeFormat)}}, log)
			if s.Ahead() != tt.ahead || strings.Count(said.String(), "\n") != tt.logs {
				t.Errorf("a date of %v: %v ahead, %d log lines", tt.date, s.Ahead(), strings.Count(said.String(), "\n"))
			}
			now := time.Now()
			if there := s.There(now); !there.Equal(now.Add(-tt.ahead)) || !s.Here(there).Equal(now) {
				t.Errorf("a date of %v: it is %v there", tt.date, there)
			}
		}
		for _, h := range []http.Header{nil, {"Date": {"yesterday"}}} {
			if s.Learn(h, log); s.Ahead() != 0 {
				t.Errorf("%v is believed", h)
			}
		}
	})
}
