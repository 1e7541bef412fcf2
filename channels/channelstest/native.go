package channelstest

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"understudy/channels"
	"understudy/chat"
)

// Commands are registered before native commands are run.
func Commands() []channels.CommandInfo {
	return []channels.CommandInfo{
		{Name: "status", Description: "What is going on"},
		{
			Name: "model", Description: "Choose a model", Args: "[name]",
			Options: []channels.CommandOption{{Name: "name", Description: "Name of a model"}},
		},
	}
}

// native registers the commands and returns the platform, or skips the behaviour.
func (s *Subject) native(t *testing.T) Commander {
	t.Helper()
	p := ability[Commander](t, s, "no native commands")
	reg, ok := s.Adapter.(channels.CommandRegistrar)
	if !ok {
		t.Skip("no native commands")
	}
	if err := reg.RegisterCommands(t.Context(), Commands()); err != nil {
		t.Fatal(err)
	}
	return p
}

// reply answers a command the way delivery does.
func (s *Subject) reply(t *testing.T, in chat.Inbound, text string) {
	t.Helper()
	p := piece(in.Address, text)
	p.Class, p.Via, p.For = chat.Command, in.Via, in.Sender.ID
	if _, err := s.Adapter.Send(t.Context(), p); err != nil {
		t.Errorf("reply: %v", err)
	}
	synctest.Wait()
}

// answersNative: a native command is a message like a typed one, and its replies reach the person who
// ran it, also the second one.
func answersNative(t *testing.T, s *Subject, r *Recorder) {
	p := s.native(t)
	to := s.Direct
	if s.Group.Conversation != "" {
		to = s.Group
	}
	p.Run(s.Person, to, "model", "gpt-5.5 high")
	in := r.Next(t)
	if in.Text != "/model gpt-5.5 high" || in.Address != to || in.Sender.ID != s.Person || !in.Mentioned || in.Via == "" || in.EventKey == "" {
		t.Errorf("got %+v", in)
	}
	s.reply(t, in, "It is chosen.")
	s.reply(t, in, "It is cheap.")
	private := strings.Join(p.Private(s.Person, to), "\n")
	if !strings.Contains(private, "It is chosen.") || !strings.Contains(private, "It is cheap.") {
		t.Errorf("the person reads %q", private)
	}
	if n := s.count(to); n != 0 {
		t.Errorf("everybody reads %d replies", n)
	}
	p.Run(s.Person, to, "status", "")
	if again := r.Next(t); again.Text != "/status" || again.EventKey == in.EventKey {
		t.Errorf("got %+v", again)
	}
}

// answersLate: when the platform takes no more replies to the command, the reply is not lost.
func answersLate(t *testing.T, s *Subject, r *Recorder) {
	p := s.native(t)
	run := p.Run(s.Person, s.Direct, "status", "")
	in := r.Next(t)
	p.Expire(run)
	s.reply(t, in, "All is well.")
	read := p.Private(s.Person, s.Direct)
	for _, m := range s.Platform.Transcript(s.Direct) {
		read = append(read, m.Text)
	}
	if !slices.ContainsFunc(read, func(m string) bool { return strings.Contains(m, "All is well.") }) {
		t.Errorf("the person reads %q", read)
	}
}

// refusesNative: a refusal is told to the person alone, and is final.
func refusesNative(t *testing.T, s *Subject, r *Recorder) {
	p := s.native(t)
	const text = "You may not use this here."
	r.Refuse(&channels.Refusal{Text: text})
	p.Run(s.Person, s.Direct, "status", "")
	r.Refused(t)
	r.Refuse(nil)
	pass(patience)
	r.nothing(t)
	if private := strings.Join(p.Private(s.Person, s.Direct), "\n"); !strings.Contains(private, text) {
		t.Errorf("the person reads %q", private)
	}
}
