package delivery

import (
	"context"
	"fmt"
	"slices"

	"understudy/channels"
	"understudy/chat"
)

// The abilities of the fake platform that not every platform has. It is strict: a stream that was
// stopped does not grow, and one that was not cannot be edited or deleted.

func (f *platform) Quiet(context.Context, chat.Address) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log("quiet")
	f.tell("quiet")
	return nil
}

func (f *platform) Recording(context.Context, chat.Address) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log("recording")
	f.tell("recording")
	return nil
}

func (f *platform) React(_ context.Context, _ chat.Address, id, emoji string) error {
	return f.reaction(id, "react "+emoji, func(all []string) []string { return append(all, emoji) })
}

func (f *platform) Unreact(_ context.Context, _ chat.Address, id, emoji string) error {
	return f.reaction(id, "unreact "+emoji, func(all []string) []string {
		return slices.DeleteFunc(all, func(x string) bool { return x == emoji })
	})
}

func (f *platform) reaction(id, call string, do func([]string) []string) error {
	f.mu.Lock()
	if f.reacting[id] {
		panic("two reaction calls for one message at a time")
	}
	f.reacting[id] = true
	f.log(call)
	hook := f.onReact
	f.mu.Unlock()
	var err error
	if hook != nil {
		err = hook(call)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reacting[id] = false
	if err == nil {
		f.reactions[id] = do(f.reactions[id])
		f.tell("%s %s", call, id)
	}
	return err
}

// shows returns the reactions of a message.
func (f *platform) shows(id string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.reactions[id])
}

// Streams allows streams in threads only.
func (f *platform) Streams(p channels.Piece) bool { return p.To.Thread != "" || p.ReplyTo != "" }

func (f *platform) StartStream(_ context.Context, p channels.Piece) (string, error) {
	done, err := f.streaming("start")
	if !done {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nextID++
	m := said{
		ID: fmt.Sprint(f.nextID), Text: p.Text, ReplyTo: p.ReplyTo, Class: p.Class,
		Conversation: p.To.Conversation, Thread: p.To.Thread, For: p.For, Growing: true,
	}
	f.said = append(f.said, m)
	f.tell("#%s grows%s: %s", m.ID, special(p), m.Text)
	if err != nil {
		return "", err
	}
	return m.ID, nil
}

func (f *platform) AppendStream(_ context.Context, _ chat.Address, id, text string) error {
	return f.grow("append", id, func(m *said) {
		m.Text += text
		f.tell("#%s grows by: %s", id, text)
	})
}

func (f *platform) StopStream(_ context.Context, _ chat.Address, id string) error {
	return f.grow("stop", id, func(m *said) {
		m.Growing = false
		f.tell("#%s stopped", id)
	})
}

func (f *platform) grow(call, id string, do func(*said)) error {
	done, err := f.streaming(call)
	if !done {
		return err
	}
	defer f.done()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.said {
		if m := &f.said[i]; m.ID == id {
			if !m.Growing {
				return &channels.SendError{Verdict: channels.Refused, Code: "not_streaming", Err: fmt.Errorf("no such stream")}
			}
			do(m)
			return err
		}
	}
	return &channels.SendError{Verdict: channels.Missing, Code: "missing"}
}

// streaming logs a call and asks the hook what becomes of it.
func (f *platform) streaming(call string) (bool, error) {
	f.mu.Lock()
	f.log(call)
	hook := f.onStream
	f.mu.Unlock()
	if hook == nil {
		return true, nil
	}
	done, err := hook(call)
	if err != nil {
		f.mu.Lock()
		f.tell("%s fails: %s", call, verdict(err).Code)
		f.mu.Unlock()
	}
	return done, err
}
