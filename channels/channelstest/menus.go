package channelstest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/channels"
	"understudy/chat"
)

func buttons(t *testing.T, s *Subject, r *Recorder) {
	p := piece(s.Direct, "choose")
	p.Buttons = []chat.Button{{Label: "First", Command: "/model first"}, {Label: "Second", Command: "/model second/" + strings.Repeat("long", 30)}}
	got, err := s.Adapter.Send(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	s.Platform.Press(s.Person, s.Direct, got.IDs[0], "Second")
	in := r.Next(t)
	if in.Text != p.Buttons[1].Command || in.Address != s.Direct || in.Sender.ID != s.Person || in.EventKey == "" {
		t.Errorf("got %+v", in)
	}
}

// mostTurns bounds how many pages a menu may need.
const mostTurns = 20

// menu sends a menu for Person with so many choices, in three groups, the third one chosen.
func (s *Subject) menu(t *testing.T, to chat.Address, n int) string {
	t.Helper()
	p := piece(to, "choose")
	p.Class, p.For = chat.Command, s.Person
	for i := range n {
		p.Buttons = append(p.Buttons, chat.Button{
			Label: fmt.Sprintf("Model %02d", i), Command: fmt.Sprintf("/model m%d", i), Group: fmt.Sprintf("group %d", i*3/n), Chosen: i == 2,
		})
	}
	got, err := s.Adapter.Send(t.Context(), p)
	if err != nil || len(got.IDs) == 0 {
		t.Fatalf("send: %v, receipt %v", err, got)
	}
	return got.IDs[0]
}

// offered finds the option with a label among those of a page; what marks the chosen one may stand
// around it.
func offered(options []string, label string) string {
	i := slices.IndexFunc(options, func(o string) bool { return strings.Contains(o, label) })
	if i < 0 {
		return ""
	}
	return options[i]
}

// manyChoices: every one of many choices can be reached and stands for its own command.
func manyChoices(t *testing.T, s *Subject, r *Recorder) {
	p := ability[Chooser](t, s, "menus are not shown")
	const many = 30
	for _, want := range []int{0, 2, 11, many - 1} {
		id := s.menu(t, s.Direct, many)
		label := ""
		for range mostTurns {
			options := p.Options(s.Direct, id)
			if label = offered(options, fmt.Sprintf("Model %02d", want)); label != "" || !slices.Contains(options, p.Next()) {
				break
			}
			s.Platform.Press(s.Person, s.Direct, id, p.Next())
			synctest.Wait()
		}
		if label == "" {
			t.Errorf("choice %d is not offered; at the end %q", want, p.Options(s.Direct, id))
			continue
		}
		r.nothing(t) // turning pages says nothing
		s.Platform.Press(s.Person, s.Direct, id, label)
		in := r.Next(t)
		if in.Text != fmt.Sprintf("/model m%d", want) || in.Address != s.Direct || in.Sender.ID != s.Person || !in.Mentioned || in.EventKey == "" {
			t.Errorf("choice %d: got %+v", want, in)
		}
	}
	r.nothing(t)
}

// refusesForeign: the menu of one person does nothing for another.
func refusesForeign(t *testing.T, s *Subject, r *Recorder) {
	p := ability[Chooser](t, s, "menus are not shown")
	if s.Other == "" || s.Group.Conversation == "" {
		t.Skip("there is nobody else")
	}
	id := s.menu(t, s.Group, 4)
	label := offered(p.Options(s.Group, id), "Model 01")
	s.Platform.Press(s.Other, s.Group, id, label)
	r.nothing(t)
	if told := p.Told(s.Other); !strings.Contains(strings.Join(told, "\n"), channels.TextOthers) {
		t.Errorf("the other was told %q", told)
	}
	s.Platform.Press(s.Person, s.Group, id, label)
	if in := r.Next(t); in.Text != "/model m1" || in.Address != s.Group || in.Sender.ID != s.Person {
		t.Errorf("got %+v", in)
	}
}

func expires(t *testing.T, s *Subject, r *Recorder) {
	p := ability[Chooser](t, s, "menus are not shown")
	id := s.menu(t, s.Direct, 4)
	label := offered(p.Options(s.Direct, id), "Model 01")
	pass(channels.MenuLife + time.Second)
	s.Platform.Press(s.Person, s.Direct, id, label)
	r.nothing(t)
	if told := p.Told(s.Person); !strings.Contains(strings.Join(told, "\n"), channels.TextExpired) {
		t.Errorf("told %q", told)
	}
}

// tellsPressers: where a press waits for its reply, a refusal is that reply, and is final.
func tellsPressers(t *testing.T, s *Subject, r *Recorder) {
	p := ability[Chooser](t, s, "menus are not shown")
	const text = "You may not use this here."
	id := s.menu(t, s.Direct, 4)
	r.Refuse(&channels.Refusal{Text: text})
	s.Platform.Press(s.Person, s.Direct, id, offered(p.Options(s.Direct, id), "Model 01"))
	in := r.Refused(t)
	r.Refuse(nil)
	pass(patience)
	r.nothing(t) // it is dealt with: nothing comes again
	if in.Via == "" {
		t.Skip("presses do not wait")
	}
	if told := p.Told(s.Person); !strings.Contains(strings.Join(told, "\n"), text) {
		t.Errorf("told %q", told)
	}
}
