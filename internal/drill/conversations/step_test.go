package conversations

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/app"
	"understudy/internal/emulate/llm"
)

// step does one line of a script. What it returns is shown below the line; nil = what the bot does next.
func (w *world) step(text string) ([]string, error) {
	subject, arg, _ := strings.Cut(text+" ", ": ")
	subject, arg = strings.TrimSpace(subject), strings.TrimSpace(arg)
	if name, ok := strings.CutPrefix(arg, "{"); ok && strings.HasSuffix(name, "}") && name != "bot}" {
		arg = strings.TrimSpace(w.texts.section(strings.TrimSuffix(name, "}")))
	}
	arg = strings.ReplaceAll(arg, "⏎", "\n")
	words := strings.Fields(subject)
	switch {
	case slices.Contains(people, words[0]):
		return nil, w.person(words[0], words[1:], arg)
	case words[0] == "a1" || words[0] == "b1":
		return []string{}, w.model(words[0], strings.Join(words[1:], " "), arg)
	case words[0] == "wait":
		d, err := time.ParseDuration(words[1])
		return w.pass(d), err
	}
	quiet := []string{}
	switch subject {
	case "models recover":
		w.models.Heal()
	case "the platform is away":
		w.side.away()
	case "the platform is back":
		w.side.back()
		return nil, nil
	case "the platform refuses the next":
		status, err := strconv.Atoi(arg)
		w.side.refuse(status)
		return quiet, err
	case "the platform loses the next receipt":
		w.side.loseReceipt()
	case "the owner approves":
		return nil, w.approve()
	case "the studio closes":
		w.studio.closed.Store(true)
	case "restart":
		w.stop()
		w.start()
		return nil, nil
	case "who was asked":
		return w.who(), nil
	case "what was asked":
		return w.what(), nil
	default:
		return nil, errors.New("unknown step")
	}
	return quiet, nil
}

// person does what a person does.
func (w *world) person(who string, words []string, arg string) error {
	x := say{who: who, place: private, text: arg}
	if len(words) > 1 && words[0] == "in" {
		x.place, words = words[1], words[2:]
	}
	switch how := strings.Join(words, " "); how {
	case "":
	case "sends a picture", "sends a voice note":
		x.file = strings.TrimPrefix(how, "sends a ")
	case "edits":
		w.side.edit(who, arg)
		return nil
	case "deletes":
		w.side.remove(who)
		return nil
	case "runs":
		w.side.run(who, x.place, arg)
		return nil
	case "presses":
		if !w.side.press(who, arg) {
			return errors.New("there is no such button")
		}
		return nil
	default:
		return fmt.Errorf("nobody %s", how)
	}
	w.side.say(x)
	return nil
}

// model decides what a model does.
func (w *world) model(name, how, arg string) error {
	m := llm.Match{Model: name, Times: 1}
	switch how {
	case "answers":
		w.models.Reply(llm.Reply{Match: m, Text: arg})
	case "answers slowly":
		w.models.Reply(llm.Reply{Match: m, Text: arg, ChunkSize: 60, ChunkDelay: time.Second})
	case "calls":
		tool, input, _ := strings.Cut(arg, " ")
		w.models.Reply(llm.Reply{Match: m, ToolCalls: []llm.ToolCall{{Name: tool, Arguments: input}}})
	case "fails", "fails once":
		if how == "fails" {
			m.Times = 0
		}
		f := llm.Fault{Match: m}
		if said, ok := strings.CutPrefix(arg, "cut after "); ok {
			f.Say, f.Cut, f.Hang = said, false, true
		} else if status, err := strconv.Atoi(arg); err == nil {
			f.Status = status
		} else {
			return err
		}
		w.models.Fault(f)
	default:
		return errors.New("a model answers, answers slowly, calls, fails or fails once")
	}
	return nil
}

// who names the models that were asked since the last time.
func (w *world) who() []string {
	all := w.models.Requests()
	var names []string
	for _, r := range all[w.asked:] {
		names = append(names, r.Model)
	}
	w.asked = len(all)
	if names == nil {
		names = []string{"nobody"}
	}
	return []string{strings.Join(names, ", ")}
}

// what shows the newest message of each request since the last time, how many pictures it holds, and
// whether the model is told how to have answers spoken.
func (w *world) what() (out []string) {
	all := w.models.Requests()
	for _, r := range all[w.asked:] {
		text := r.Model + ": " + frame.ReplaceAllString(strings.ReplaceAll(r.LastUser, "\n", "⏎"), "<<<$1>>>")
		if n := strings.Count(string(r.Body), "data:image/"); n > 0 {
			text += fmt.Sprintf(" <pictures in all: %d>", n)
		}
		if strings.Contains(string(r.Body), "To have one read aloud") {
			text += " <is told how to speak>"
		}
		out = append(out, text)
	}
	w.asked = len(all)
	return out
}

// approve lets in whoever got the newest code.
func (w *world) approve() error {
	for _, m := range slices.Backward(w.side.messages()) {
		_, rest, ok := strings.Cut(m.text, "Pairing code: ")
		if !ok {
			continue
		}
		code, _, _ := strings.Cut(rest, "\n")
		var out bytes.Buffer
		if app.PairingApprove(w.t.Context(), w.options(), app.Std{Out: &out, Err: &out}, w.platform, "", code, false) != app.ExitOK {
			return errors.New(out.String())
		}
		return nil
	}
	return errors.New("nobody got a code")
}
