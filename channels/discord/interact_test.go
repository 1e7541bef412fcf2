package discord

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/channels"
	"understudy/channels/channelstest"
	"understudy/chat"

	emulator "understudy/internal/emulate/discord"
)

// reply is the reply of a command.
func reply(in chat.Inbound, text, key string) channels.Piece {
	return channels.Piece{To: in.Address, Class: chat.Command, Text: text, Plain: text, Via: in.Via, For: in.Sender.ID, Key: key}
}

// texts are what a person reads as the answers to an interaction.
func (a *account) texts(id string) []string {
	var out []string
	for _, m := range a.srv.Replies(id) {
		out = append(out, m.Content)
	}
	return out
}

func TestCommand(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		err := a.RegisterCommands(t.Context(), []channels.CommandInfo{
			{Name: "model", Description: "choose", Options: []channels.CommandOption{{Name: "scope"}, {Name: "name", Required: true}}},
			{Name: "tts", Description: "speech", Args: "on|off"},
		})
		if err != nil {
			t.Fatal(err)
		}
		id := a.srv.RunCommand(branch, ann, "model", emulator.Argument{Name: "name", Value: "beta/b1"}, emulator.Argument{Name: "scope", Value: "-s"})
		in := a.got.Next(t)
		want := chat.Inbound{
			EventKey: "discord:i:" + id, Address: inThread, Space: guildID, Roles: []string{staff}, Sender: chat.Sender{ID: ann, Name: "Ann"},
			Text: "/model -s beta/b1", Mentioned: true, Via: id, At: in.At, Title: "general / side talk",
		}
		if fmt.Sprintf("%+v", in) != fmt.Sprintf("%+v", want) {
			t.Errorf("got %+v, want %+v", in, want)
		}
		synctest.Wait()
		if i := a.srv.Interaction(id); i.Answer != emulator.AnswerLater || !i.Ephemeral || i.After != 0 {
			t.Errorf("answered with %+v", i)
		}
		for n, text := range []string{"one", "two", "two"} { // the second is sent again
			if _, err := a.Send(t.Context(), reply(in, text, []string{"k1", "k2", "k2"}[n])); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.Send(t.Context(), reply(in, "one again", "k1")); err != nil {
			t.Fatal(err)
		}
		if got := a.texts(id); !slices.Equal(got, []string{"one again", "two", "two"}) {
			t.Errorf("replies %q", got)
		}
		for _, m := range a.srv.Replies(id) {
			if !m.Ephemeral || m.For != ann {
				t.Errorf("seen by everybody: %+v", m)
			}
		}
		if n := len(a.srv.Sent(branch)); n != 0 {
			t.Errorf("%d ordinary messages", n)
		}
		a.srv.RunCommand(dm, ann, "voice", emulator.Argument{Name: "text", Value: "on"})
		if in := a.got.Next(t); in.Text != "/tts on" || in.Address != direct || in.Sender.ID != ann {
			t.Errorf("got %+v", in)
		}
	})
}

// Discord hears of it once the journal has it, but not too late.
func TestSlowJournal(t *testing.T) {
	for takes, want := range map[time.Duration]time.Duration{time.Second: time.Second, 10 * time.Second: hurryAfter} {
		synctest.Test(t, func(t *testing.T) {
			srv := newServer(emulator.Config{})
			defer srv.Close()
			b := newBot(t, srv, nil)
			sink := &slowSink{channelstest.NewRecorder(), takes}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- b.Run(ctx, sink) }()
			synctest.Wait()
			id := srv.RunCommand(general, ann, "status")
			in := sink.Next(t)
			synctest.Wait()
			if i := srv.Interaction(id); i.Answer != emulator.AnswerLater || i.After != want {
				t.Errorf("answered with %d after %v, want %v", i.Answer, i.After, want)
			}
			if _, err := b.Send(ctx, reply(in, "fine", "k")); err != nil {
				t.Error(err)
			}
			if r := srv.Replies(id); len(r) != 1 || r[0].Content != "fine" {
				t.Errorf("replies %+v", r)
			}
			stop()
			<-done
			b.Close()
		})
	}
}

func TestRefusedInteractions(t *testing.T) {
	for _, takes := range []time.Duration{0, 4 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			srv := newServer(emulator.Config{})
			defer srv.Close()
			b := newBot(t, srv, nil)
			sink := &slowSink{channelstest.NewRecorder(), takes}
			sink.Refuse(&channels.Refusal{Text: "You are not authorized to use this command here."})
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- b.Run(ctx, sink) }()
			synctest.Wait()
			id := srv.RunCommand(general, bob, "status")
			sink.Refused(t)
			time.Sleep(time.Second)
			r := srv.Replies(id)
			if len(r) != 1 || !r[0].Ephemeral || !strings.Contains(r[0].Content, "not authorized") {
				t.Errorf("after %v: replies %+v", takes, r)
			}
			if n := len(sink.Recorder.Statuses()); n == 0 || sink.Pending() != 0 {
				t.Error("the refusal counts as stored")
			}
			stop()
			<-done
			b.Close()
		})
	}
}

// When it is too late for the interaction, the reply is an ordinary message, and nothing is tried
// again and again.
func TestExpiredInteraction(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, a *account) (chat.Inbound, string){
		"the first answer came too late": func(t *testing.T, a *account) (chat.Inbound, string) {
			a.srv.Inject(emulator.Fault{Path: "/callback", Status: 404, Code: codeUnknownInteraction, Message: "Unknown interaction"})
			id := a.srv.RunCommand(general, ann, "status")
			return a.got.Next(t), id
		},
		"the token is dead": func(t *testing.T, a *account) (chat.Inbound, string) {
			id := a.srv.RunCommand(general, ann, "status")
			in := a.got.Next(t)
			time.Sleep(20 * time.Minute)
			return in, id
		},
		"the token died in between": func(t *testing.T, a *account) (chat.Inbound, string) {
			id := a.srv.RunCommand(general, ann, "status")
			a.srv.Inject(emulator.Fault{Path: "/webhooks/", Status: 401, Code: codeDeadToken, Message: "Invalid Webhook Token"})
			return a.got.Next(t), id
		},
		"the process was started again": func(t *testing.T, a *account) (chat.Inbound, string) {
			id := a.srv.RunCommand(general, ann, "status")
			in := a.got.Next(t)
			a.vias.known = map[string]*via{}
			a.vias.order = nil
			return in, id
		},
	} {
		t.Run(name, func(t *testing.T) {
			running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
				in, id := spoil(t, a)
				synctest.Wait()
				for _, text := range []string{"first", "second"} {
					if _, err := a.Send(t.Context(), reply(in, text, text)); err != nil {
						t.Fatal(err)
					}
				}
				sent := a.srv.Sent(general)
				if len(sent) != 2 || sent[0].Content != "first" || sent[1].Content != "second" {
					t.Errorf("sent %+v", sent)
				}
				if n := len(a.srv.Calls("POST", "/callback")); n != 1 {
					t.Errorf("%d first answers", n)
				}
				attempts := 0 // where the bot could know that it is too late
				if name == "the token died in between" {
					attempts = 1
				}
				if n := len(a.srv.Calls("", "/webhooks/")); n != attempts {
					t.Errorf("%d attempts to reply to %s", n, id)
				}
			})
		})
	}
}

// An answer that is for everybody takes the place of "thinking", which only one person saw.
func TestAnswerForEverybody(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		id := a.srv.RunCommand(general, ann, "new")
		in := a.got.Next(t)
		synctest.Wait()
		p := reply(in, "Hello!", "k")
		p.Class = chat.Assistant
		if _, err := a.Send(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if got := a.srv.Sent(general); len(got) != 1 || got[0].Content != "Hello!" {
			t.Errorf("sent %+v", got)
		}
		if i := a.srv.Interaction(id); i.Answer != emulator.AnswerLater {
			t.Errorf("answered with %+v", i)
		}
		for _, m := range a.srv.Messages(general) {
			if m.Ephemeral && !m.Deleted {
				t.Error("it still says that it is thinking")
			}
		}
	})
}

// menu sends a message with buttons and returns its id.
func (a *account) offerTo(t *testing.T, p channels.Piece, n int, group func(i int) string) string {
	t.Helper()
	for i := range n {
		p.Buttons = append(p.Buttons, chat.Button{Label: fmt.Sprintf("m%d", i), Command: fmt.Sprintf("/model p/m%d", i), Group: group(i), Chosen: i == 1})
	}
	got, err := a.Send(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return got.IDs[0]
}

func alone(int) string { return "" }

func TestPressedChoice(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		message := a.offerTo(t, say(inThread, "choose"), 3, alone)
		id := a.srv.Press(branch, bob, message, "m2")
		in := a.got.Next(t)
		if in.Text != "/model p/m2" || in.Address != inThread || in.Sender.ID != bob || in.ID != message || in.Via != id || in.EventKey != "discord:i:"+id || in.Space != guildID {
			t.Errorf("got %+v", in)
		}
		synctest.Wait()
		if _, err := a.Send(t.Context(), reply(in, "chosen", "k")); err != nil {
			t.Fatal(err)
		}
		if r := a.srv.Replies(id); len(r) != 2 || r[0].Content != "choose" || r[1].Content != "chosen" || !r[1].Ephemeral {
			t.Errorf("the menu for everybody and the reply for one read %+v", r)
		}
	})
}

// The picker of a command is seen by one person, and gives way to the result.
func TestPickerGivesWay(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		command := a.srv.RunCommand(general, ann, "model")
		in := a.got.Next(t)
		synctest.Wait()
		picker := a.offerTo(t, reply(in, "Which model?", "k"), 60, func(i int) string { return fmt.Sprintf("provider %d", i/30) })
		m := a.srv.Replies(command)[0]
		if m.ID != picker || len(m.Components) != 4 || !m.Ephemeral {
			t.Fatalf("picker %+v", m)
		}
		if p := m.Components[1].Components[0].Placeholder; p != "provider 0 (2/2)" {
			t.Errorf("placeholder %q", p)
		}
		if o := m.Components[0].Components[0].Options[1]; !o.Default || o.Label != "m1" {
			t.Errorf("what is chosen now: %+v", o)
		}
		press := a.srv.Press(general, ann, picker, "m41")
		chosen := a.got.Next(t)
		if chosen.Text != "/model p/m41" || chosen.ID != "" {
			t.Errorf("got %+v", chosen)
		}
		synctest.Wait()
		if i := a.srv.Interaction(press); i.Answer != emulator.UpdateLater {
			t.Errorf("answered with %+v", i)
		}
		if _, err := a.Send(t.Context(), reply(chosen, "Model: p/m41", "k2")); err != nil {
			t.Fatal(err)
		}
		r := a.srv.Replies(press)
		if len(r) != 1 || r[0].ID != picker || r[0].Content != "Model: p/m41" || len(r[0].Components) != 0 {
			t.Errorf("the picker reads %+v", r)
		}
	})
}

func TestPages(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		message := a.offerTo(t, say(inRoom, "choose"), 260, alone)
		labels := func() []string { return a.srv.Sent(general)[0].Labels() }
		if got := labels(); len(got) != 4*25+3 || got[101] != "1/3" || got[0] != "Choose (1/11) m0" {
			t.Fatalf("first page %q", got)
		}
		id := a.srv.Press(general, ann, message, "▶")
		synctest.Wait()
		if i := a.srv.Interaction(id); i.Answer != emulator.UpdateMessage {
			t.Errorf("answered with %+v", i)
		}
		if got := labels(); got[101] != "2/3" || got[0] != "Choose (5/11) m100" {
			t.Fatalf("second page %q", got)
		}
		a.srv.Press(general, ann, message, "▶")
		synctest.Wait()
		if got := labels(); got[len(got)-2] != "3/3" || got[len(got)-4] != "Choose (11/11) m259" {
			t.Errorf("third page %q", got)
		}
		if got := a.srv.Press(general, ann, message, "▶"); got != "" {
			t.Error("there is a way behind the last page")
		}
		a.srv.Press(general, ann, message, "m259")
		if in := a.got.Next(t); in.Text != "/model p/m259" {
			t.Errorf("got %+v", in)
		}
	})
}

// While the worker is held up, turning a page still does no harm.
func TestLatePage(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		message := a.offerTo(t, say(inRoom, "choose"), 260, alone)
		a.got.Refuse(errors.New("disk full"))
		a.srv.UserSays(general, ann, "holds up")
		synctest.Wait()
		id := a.srv.Press(general, ann, message, "▶")
		other := a.srv.PressData(general, ann, message, "p:made-up:0")
		pass(5 * time.Second)
		if i := a.srv.Interaction(id); i.Answer != emulator.UpdateLater || i.After != hurryAfter {
			t.Errorf("answered with %+v", i)
		}
		a.got.Refuse(nil)
		pass(20 * time.Second)
		if got := a.srv.Sent(general)[0].Labels(); got[101] != "2/3" {
			t.Errorf("the page reads %q", got[101])
		}
		if got := a.texts(other); len(got) != 2 || got[1] != channels.TextExpired {
			t.Errorf("replies %q", got)
		}
	})
}

// A press that is forged, of somebody else, of another conversation, or too late does nothing, and
// says so to the person who pressed.
func TestPressRefused(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		p := say(inRoom, "choose")
		p.For = ann
		message := a.offerTo(t, p, 2, alone)
		elsewhere := a.offerTo(t, say(direct, "choose"), 2, alone)
		custom := a.srv.Sent(general)[0].Components[0].Components[0].CustomID
		token, _, _ := parseCustomID(custom)
		cases := map[string]string{
			a.srv.Press(general, bob, message, "m0"):                      channels.TextOthers,
			a.srv.PressData(dm, ann, elsewhere, custom):                   channels.TextExpired,
			a.srv.PressData(general, ann, message, "p:guess:0"):           channels.TextExpired,
			a.srv.PressData(general, ann, message, "/model x"):            channels.TextExpired,
			a.srv.PressData(general, ann, message, "p:"+token+":2"):       channels.TextExpired,
			a.srv.PressData(general, ann, message, "p:"+token+":-1"):      channels.TextExpired,
			a.srv.PressData(general, ann, message, "p:"+token+":s0", "9"): channels.TextExpired,
			a.srv.PressData(general, ann, message, "p:"+token+":gx"):      channels.TextExpired,
		}
		pass(channels.MenuLife + time.Second)
		late := a.srv.PressData(general, ann, message, custom)
		cases[late] = channels.TextExpired
		synctest.Wait()
		for id, want := range cases {
			r := a.srv.Replies(id)
			if len(r) != 1 || r[0].Content != want || !r[0].Ephemeral {
				t.Errorf("replies %+v, want %q", r, want)
			}
		}
		if n := a.got.Pending(); n != 0 {
			t.Errorf("%d presses got through", n)
		}
	})
}

// The text of a menu goes out even when its buttons cannot be kept.
func TestMenusOutOfOrder(t *testing.T) {
	store := &memory{err: errors.New("database is locked")}
	running(t, emulator.Config{}, func(_ *Config, d *Deps) { d.Menus = store }, func(t *testing.T, a *account) {
		a.offerTo(t, say(inRoom, "choose"), 2, alone)
		m := a.srv.Sent(general)[0]
		if m.Content != "choose" || len(m.Components) != 0 {
			t.Errorf("sent %+v", m)
		}
		id := a.srv.PressData(general, ann, m.ID, "p:x:0")
		synctest.Wait()
		if got := a.texts(id); len(got) != 1 || got[0] != textBroken {
			t.Errorf("replies %q", got)
		}
	})
}

func TestSuggestions(t *testing.T) {
	var asked []channels.Completion
	change := func(_ *Config, d *Deps) {
		d.Authorised = func(_ context.Context, m chat.Inbound) bool {
			return m.Sender.ID == ann && m.Address == inThread && m.Space == guildID && m.Text == "/model"
		}
		d.Complete = func(_ context.Context, q channels.Completion) []chat.Button {
			asked = append(asked, q)
			out := []chat.Button{{Label: "too long", Command: strings.Repeat("x", 101)}, {Label: "only a label"}, {}}
			for i := range 40 {
				out = append(out, chat.Button{Label: strings.Repeat("ä", 120), Command: fmt.Sprint(i)})
			}
			return out
		}
	}
	running(t, emulator.Config{}, change, func(t *testing.T, a *account) {
		id := a.srv.Complete(branch, ann, "model", emulator.Argument{Name: "name", Value: "be", Focused: true})
		stranger := a.srv.Complete(branch, bob, "model", emulator.Argument{Name: "name", Value: "be", Focused: true})
		synctest.Wait()
		i := a.srv.Interaction(id)
		if i.Answer != emulator.AnswerComplete || len(i.Choices) != 25 || i.Choices[0].Value != "only a label" || len([]rune(i.Choices[1].Name)) != 100 {
			t.Errorf("suggested %+v", i)
		}
		if i := a.srv.Interaction(stranger); i.Answer != emulator.AnswerComplete || len(i.Choices) != 0 {
			t.Errorf("suggested to a stranger %+v", i)
		}
		if len(asked) != 1 || asked[0].Command != "model" || asked[0].Option != "name" || asked[0].Text != "be" || asked[0].Sender.ID != ann {
			t.Errorf("asked %+v", asked)
		}
		if n := a.got.Pending(); n != 0 {
			t.Error("a request for suggestions is no message")
		}
	})
}

// Suggestions do not wait for messages that cannot be stored, nor for a completer that hangs.
func TestSuggestionsAreQuick(t *testing.T) {
	change := func(_ *Config, d *Deps) {
		d.Authorised = func(context.Context, chat.Inbound) bool { return true }
		d.Complete = func(ctx context.Context, q channels.Completion) []chat.Button {
			if q.Text == "hang" {
				<-ctx.Done()
			}
			return []chat.Button{{Label: "x"}}
		}
	}
	running(t, emulator.Config{}, change, func(t *testing.T, a *account) {
		a.got.Refuse(errors.New("disk full"))
		a.srv.UserSays(general, ann, "holds up")
		synctest.Wait()
		id := a.srv.Complete(general, ann, "model", emulator.Argument{Name: "name", Value: "x", Focused: true})
		for range 2 * mostSuggesting {
			a.srv.Complete(general, ann, "model", emulator.Argument{Name: "name", Value: "hang", Focused: true})
		}
		synctest.Wait()
		if i := a.srv.Interaction(id); len(i.Choices) != 1 || i.After != 0 {
			t.Errorf("suggested %+v", i)
		}
		pass(3 * time.Second)
		id = a.srv.Complete(general, ann, "model", emulator.Argument{Name: "name", Value: "x", Focused: true})
		synctest.Wait()
		if i := a.srv.Interaction(id); len(i.Choices) != 1 {
			t.Errorf("those that hang keep others out: %+v", i)
		}
	})
}

func TestViasAreBounded(t *testing.T) {
	v := newVias()
	for i := range mostVias + 10 {
		v.add(&via{id: fmt.Sprint(i), until: time.Now().Add(time.Hour)})
	}
	if len(v.known) != mostVias || v.get("9") != nil || v.get("10") == nil || v.get("") != nil {
		t.Errorf("%d interactions wait", len(v.known))
	}
}

// An interaction that is told twice is answered once, and the replies go on behind the first.
func TestInteractionToldTwice(t *testing.T) {
	running(t, emulator.Config{}, nil, func(t *testing.T, a *account) {
		id := a.srv.RunCommand(general, ann, "status")
		in := a.got.Next(t)
		synctest.Wait()
		if _, err := a.Send(t.Context(), reply(in, "one", "k1")); err != nil {
			t.Fatal(err)
		}
		a.srv.Repeat()
		if again := a.got.Next(t); again.EventKey != in.EventKey {
			t.Errorf("keys %q and %q", again.EventKey, in.EventKey)
		}
		synctest.Wait()
		if _, err := a.Send(t.Context(), reply(in, "two", "k2")); err != nil {
			t.Fatal(err)
		}
		if got := a.texts(id); !slices.Equal(got, []string{"one", "two"}) {
			t.Errorf("replies %q", got)
		}
	})
}

// What goes wrong inside one event does not end the others.
func TestPanicsAreSurvived(t *testing.T) {
	change := func(_ *Config, d *Deps) {
		d.Authorised = func(context.Context, chat.Inbound) bool { panic("at once") }
		d.Complete = func(context.Context, channels.Completion) []chat.Button { return nil }
		d.Seen = panicking{}
	}
	running(t, emulator.Config{}, change, func(t *testing.T, a *account) {
		a.srv.Complete(general, ann, "model", emulator.Argument{Name: "name", Value: "x", Focused: true})
		a.srv.UserSays(general, ann, "still there?")
		if in := a.got.Next(t); in.Text != "still there?" {
			t.Errorf("got %+v", in)
		}
		synctest.Wait()
		if n := strings.Count(a.log.String(), "event skipped"); n != 2 {
			t.Errorf("%d events were skipped; log:\n%s", n, a.log)
		}
	})
}

type panicking struct{}

func (panicking) Marks(context.Context, time.Time, int) ([]channels.Mark, error) { panic("at once") }
