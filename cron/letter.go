package cron

import (
	"fmt"
	"strings"
	"time"

	"understudy/chat"
)

// letterKind is what kind of thing is to be said.
type letterKind string

const (
	resultLetter letterKind = "result"
	alertKind    letterKind = "alert"
	ownerLetter  letterKind = "owner"
)

// letter is something to say, stored until somebody took it.
type letter struct {
	key   string
	kind  letterKind
	job   string
	run   string
	to    chat.Address // zero = the owner
	text  string
	media []chat.Attachment // of a result
	since time.Time
}

// Bounds of letters.
const (
	maxText  = 256 * 1024 // bytes of a result
	excerpts = 2048       // bytes of a result in the run log
)

// patience is after how long nobody waits for a letter's arrival any more.
func (l letter) patience() time.Duration {
	if l.kind == ownerLetter {
		return 7 * 24 * time.Hour
	}
	return 24 * time.Hour
}

// keyPrefix begins the keys of everything a scheduled task says.
const keyPrefix = "cron:"

// resultOf is the letter that carries what a run came to.
func resultOf(job Job, run Run, d deliverable) letter {
	return letter{
		key: keyPrefix + run.ID, kind: resultLetter, job: job.ID, run: run.ID, to: job.Delivery.To, text: clip(d.text, maxText), media: d.media,
	}
}

// toOwner tells the owner something about a job, with the command that helps.
func toOwner(job Job, run Run, what, verb string) letter {
	text := fmt.Sprintf("⏰ Cron %q %s. bot cron %s %s", oneLine(job.Name), what, verb, job.ID)
	return letter{key: keyPrefix + run.ID + ":owner", kind: ownerLetter, job: job.ID, run: run.ID, text: text}
}

// alertLetter is the text of spec/chat.md §5.7, on its way to the job's own place for alerts, the
// configured one, where the results go, or the owner. What could not be delivered is not told where
// it could not be delivered.
func alertLetter(job Job, run Run, rules Alert, failures int, why Reason, undelivered bool) letter {
	l := letter{key: keyPrefix + run.ID + ":alert", kind: alertKind, job: job.ID, run: run.ID}
	l.text = fmt.Sprintf("⏰ Cron %q failed %d× — %s. Last run %s. bot cron runs %s",
		oneLine(job.Name), failures, why.Text(), run.StartedAt.Format("2006-01-02 15:04 MST"), job.ID)
	switch to, err := Destination(rules.Channel, rules.To, "", ""); {
	case rules.Channel != "" && err == nil:
		l.to = to
	case job.Delivery.Mode == Announce && !undelivered:
		l.to = job.Delivery.To
	}
	if l.to == (chat.Address{}) {
		l.kind = ownerLetter
	}
	return l
}

// oneLine makes a name fit into a sentence.
func oneLine(s string) string { return clip(strings.Join(strings.Fields(s), " "), maxName) }

// clip cuts a text to at most so many bytes, at the end of a character.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}
