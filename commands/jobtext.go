package commands

import (
	"fmt"
	"strings"
	"time"
)

// textNoSchedule explains /cron add.
const textNoSchedule = "Write the schedule in quotation marks and the task behind it, for example `/cron add \"every weekday at 9\" Summarise what is new`. One word such as 20m needs no marks."

// readDraft reads what stands behind /cron add: a schedule, options, and the text of the task.
func readDraft(args string) (JobDraft, error) {
	var d JobDraft
	schedule, rest, ok := cutQuoted(args)
	if !ok || schedule == "" {
		return d, &Refusal{textNoSchedule}
	}
	d.Schedule = schedule
	rest, err := options(rest, func(name, value string) (bool, error) {
		switch name {
		case "exact":
			return true, toggle(name, value, &d.Exact)
		case "quiet":
			return true, toggle(name, value, &d.Quiet)
		case "keep":
			return true, toggle(name, value, &d.Keep)
		case "timeout":
			t, err := timeout(value)
			d.Timeout = t
			return true, err
		default:
			field := map[string]*string{
				"tz": &d.Zone, "name": &d.Name, "model": &d.Model, "think": &d.Thinking, "session": &d.Session,
			}[name]
			if field == nil {
				return false, nil
			}
			*field = value
		}
		return true, nil
	})
	if err != nil {
		return d, err
	}
	if d.Prompt = rest; rest == "" {
		return d, &Refusal{"The task itself is missing. " + textNoSchedule}
	}
	return d, nil
}

// readPatch reads what stands behind /cron edit <task>.
func readPatch(args string) (JobPatch, error) {
	var p JobPatch
	flags := map[string]**bool{"exact": &p.Exact, "quiet": &p.Quiet, "keep": &p.Keep}
	texts := map[string]**string{
		"schedule": &p.Schedule, "tz": &p.Zone, "name": &p.Name, "model": &p.Model, "think": &p.Thinking, "session": &p.Session,
	}
	rest, err := options(args, func(name, value string) (bool, error) {
		if flag := flags[name]; flag != nil {
			*flag = new(bool)
			return true, toggle(name, value, *flag)
		}
		if name == "timeout" {
			t, err := timeout(value)
			p.Timeout = &t
			return true, err
		}
		if texts[name] == nil {
			return false, nil
		}
		*texts[name] = &value
		return true, nil
	})
	if err != nil {
		return p, err
	}
	if rest != "" {
		p.Prompt = &rest
	}
	return p, nil
}

// toggle reads on or off.
func toggle(name, value string, flag *bool) error {
	switch strings.ToLower(value) {
	case "on":
		*flag = true
	case "off":
		*flag = false
	default:
		return &Refusal{fmt.Sprintf("%s= is on or off.", name)}
	}
	return nil
}

// options takes name=value pairs off the beginning of a text, as long as take knows them.
// It returns what is left.
func options(text string, take func(name, value string) (bool, error)) (rest string, err error) {
	for {
		text = strings.TrimSpace(text)
		end := strings.IndexAny(text, " \t=")
		if end < 0 {
			end = len(text)
		}
		name, value, rest := strings.ToLower(text[:end]), "", text[end:]
		after, ok := strings.CutPrefix(rest, "=")
		if !ok {
			return text, nil
		}
		if value, rest, ok = cutQuoted(after); !ok {
			return "", &Refusal{fmt.Sprintf("The quotation mark behind %s= has no end.", clip(name, maxQuote))}
		}
		ok, err := take(name, value)
		if err != nil {
			return "", err
		}
		if !ok {
			return text, nil
		}
		text = rest
	}
}

// cutQuoted takes a word or a text in quotation marks off the beginning; phones write curly ones. ok is
// false where a mark has no partner.
func cutQuoted(text string) (value, rest string, ok bool) {
	text = strings.TrimSpace(text)
	for open, closing := range map[string]string{`"`: `"`, "“": "”“\"", "„": "“”", "«": "»", "'": "'"} {
		body, quoted := strings.CutPrefix(text, open)
		if !quoted {
			continue
		}
		end := strings.IndexAny(body, closing)
		if end < 0 {
			return "", "", false
		}
		rest = strings.TrimLeft(body[end:], closing)
		return strings.TrimSpace(body[:end]), strings.TrimSpace(rest), true
	}
	value, rest = cutWord(text)
	return value, rest, true
}

// timeout reads how long a run may take.
func timeout(value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d < time.Second || d > 24*time.Hour {
		return 0, &Refusal{"timeout= takes a time such as 90s or 10m, up to 24h."}
	}
	return d, nil
}
