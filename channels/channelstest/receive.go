package channelstest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"understudy/channels"
	"understudy/chat"
)

func receivesText(t *testing.T, s *Subject, r *Recorder) {
	id := s.Platform.Say(s.Person, s.Direct, "hello there", "")
	in := r.Next(t)
	if in.ID != id || in.Text != "hello there" || in.Address != s.Direct {
		t.Errorf("got %+v", in)
	}
	if in.Sender.ID != s.Person || in.Sender.Bot || in.Sender.Local != s.Local {
		t.Errorf("sender %+v, want %q", in.Sender, s.Person)
	}
	if in.EventKey == "" || in.At.IsZero() || in.Edited {
		t.Errorf("key %q at %v, edited %v", in.EventKey, in.At, in.Edited)
	}
	s.Platform.Say(s.Person, s.Direct, "and again", "")
	if second := r.Next(t); second.EventKey == in.EventKey {
		t.Errorf("two messages share the key %q", in.EventKey)
	}
}

func recognisesMentions(t *testing.T, s *Subject, r *Recorder) {
	if s.Group.Conversation == "" {
		t.Skip("no groups")
	}
	s.Platform.Say(s.Person, s.Group, "just talking", "")
	if in := r.Next(t); in.Mentioned || in.Address != s.Group {
		t.Errorf("got %+v", in)
	}
	s.Platform.Say(s.Person, s.Group, s.Platform.Name()+" are you there?", "")
	if in := r.Next(t); !in.Mentioned || in.Text != "are you there?" {
		t.Errorf("mentioned %v, text %q", in.Mentioned, in.Text)
	}
	s.Platform.Say(s.Person, s.Group, "hey "+s.Platform.Name(), "")
	if in := r.Next(t); !in.Mentioned {
		t.Error("a mention at the end is not seen")
	}
}

func knowsReplies(t *testing.T, s *Subject, r *Recorder) {
	if s.Group.Conversation == "" || !s.Adapter.Traits().References {
		t.Skip("no references")
	}
	id := s.send(t, s.Group, "what I said")
	s.Platform.Say(s.Person, s.Group, "why?", id)
	in := r.Next(t)
	if in.ReplyTo != id || in.Quote != "what I said" || !in.Mentioned {
		t.Errorf("reply to %q, quote %q, mentioned %v", in.ReplyTo, in.Quote, in.Mentioned)
	}
	own := s.Platform.Say(s.Person, s.Group, "mine", "")
	r.Next(t)
	s.Platform.Say(s.Person, s.Group, "to myself", own)
	if in := r.Next(t); in.ReplyTo != own || in.Mentioned {
		t.Errorf("reply to %q, mentioned %v", in.ReplyTo, in.Mentioned)
	}
}

func keepsToThreads(t *testing.T, s *Subject, r *Recorder) {
	if s.Thread.Conversation == "" {
		t.Skip("no threads")
	}
	s.Platform.Say(s.Person, s.Thread, "in here", "")
	in := r.Next(t)
	if in.Address != s.Thread || in.ReplyTo != "" {
		t.Errorf("address %+v, reply to %q", in.Address, in.ReplyTo)
	}
	s.send(t, in.Address, "answer")
	if got := s.last(t, s.Thread); got.Text != "answer" {
		t.Errorf("last in the thread: %+v", got)
	}
}

func delivers(t *testing.T, s *Subject, r *Recorder) {
	r.Refuse(errors.New("disk full"))
	s.Platform.Say(s.Person, s.Direct, "important", "")
	refused := r.Refused(t)
	r.Refuse(nil)
	in := r.Next(t)
	if in.Text != "important" || in.EventKey != refused.EventKey {
		t.Errorf("got %q with key %q, refused was %q", in.Text, in.EventKey, refused.EventKey)
	}
}

func keepsOrder(t *testing.T, s *Subject, r *Recorder) {
	const many = 30
	for i := range many {
		s.Platform.Say(s.Person, s.Direct, fmt.Sprint(i), "")
	}
	for i := range many {
		if in := r.Next(t); in.Text != fmt.Sprint(i) {
			t.Errorf("message %d is %q", i, in.Text)
		}
	}
	r.nothing(t)
}

func tellsEdits(t *testing.T, s *Subject, r *Recorder) {
	p := ability[Editable](t, s, "people cannot edit")
	id := s.Platform.Say(s.Person, s.Direct, "teh text", "")
	first := r.Next(t)
	p.Edit(s.Person, s.Direct, id, "the text")
	in := r.Next(t)
	if !in.Edited || in.Deleted || in.ID != first.ID || in.Text != "the text" || in.Address != s.Direct || in.Sender.ID != s.Person {
		t.Errorf("got %+v", in)
	}
	if in.EventKey == "" || in.EventKey == first.EventKey {
		t.Errorf("the edit has the key %q, the message %q", in.EventKey, first.EventKey)
	}
	r.nothing(t)
}

func tellsDeletions(t *testing.T, s *Subject, r *Recorder) {
	p := ability[Deletable](t, s, "deletions are not told")
	id := s.Platform.Say(s.Person, s.Direct, "oops", "")
	first := r.Next(t)
	p.Delete(s.Person, s.Direct, id)
	in := r.Next(t)
	if !in.Deleted || in.ID != first.ID || in.Address != s.Direct {
		t.Errorf("got %+v", in)
	}
	if in.EventKey == "" || in.EventKey == first.EventKey {
		t.Errorf("the deletion has the key %q, the message %q", in.EventKey, first.EventKey)
	}
	r.nothing(t)
}

// knowsDuplicates: a message that comes twice is recognised by a key, or kept back.
func knowsDuplicates(t *testing.T, s *Subject, r *Recorder) {
	p := ability[Duplicator](t, s, "nothing is delivered twice")
	id := s.Platform.Say(s.Person, s.Direct, "hello", "")
	first := r.Next(t)
	p.Duplicate(s.Direct, id)
	s.Platform.Say(s.Person, s.Direct, "next", "")
	in := r.Next(t)
	if in.Text == "hello" {
		if !shareKey(first, in) {
			t.Errorf("keys %q %q, again %q %q", first.EventKey, first.AltKeys, in.EventKey, in.AltKeys)
		}
		in = r.Next(t)
	}
	if in.Text != "next" || shareKey(first, in) {
		t.Errorf("got %q with keys %q %q", in.Text, in.EventKey, in.AltKeys)
	}
	r.nothing(t)
}

// shareKey reports whether two messages are one for the dedupe of the inbound pipeline.
func shareKey(a, b chat.Inbound) bool {
	keys := append([]string{b.EventKey}, b.AltKeys...)
	return slices.ContainsFunc(append([]string{a.EventKey}, a.AltKeys...), func(k string) bool { return slices.Contains(keys, k) })
}

func takesFiles(t *testing.T, s *Subject, r *Recorder) {
	p := ability[Sharer](t, s, "no files")
	f, ok := s.Adapter.(channels.Fetcher)
	if !ok {
		t.Fatal("the platform has files, the adapter fetches none")
	}
	data := []byte("0123456789")
	id := p.Share(s.Person, s.Direct, "look", chat.Attachment{Name: "a.txt", MediaType: "text/plain", Data: data})
	in := r.Next(t)
	if in.ID != id || in.Text != "look" || len(in.Attachments) != 1 {
		t.Fatalf("got %+v", in)
	}
	a := in.Attachments[0]
	if a.Name != "a.txt" || a.MediaType != "text/plain" || a.Size != int64(len(data)) || a.Ref == "" || a.Data != nil {
		t.Errorf("attachment %+v", a)
	}
	got, err := f.Fetch(t.Context(), a, int64(len(data)))
	if err != nil || string(got) != string(data) {
		t.Errorf("fetched %q, %v", got, err)
	}
	if _, err := f.Fetch(t.Context(), a, int64(len(data))-1); err == nil {
		t.Error("a file above the limit is fetched")
	}
	a.Size = 0 // platforms do not always tell
	if got, err := f.Fetch(t.Context(), a, int64(len(data))-1); err == nil || got != nil {
		t.Errorf("a file of unknown size is fetched beyond the limit: %q", got)
	}
}
