package commands

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"understudy/llm"
	"understudy/session"
)

// Bounds of what is taken out of one message, of the places that are looked at closely, and of the
// text of a directive, in bytes: what strangers write must cost little.
const (
	maxInline = 8
	maxTried  = 64
	maxLine   = 1 << 10
)

// goesOn reports whether a text that begins with an inline command says more than the command, so that
// it is a message with a directive or a shortcut in it.
func (r *Registry) goesOn(s Spec, args string) bool {
	words := strings.Fields(args)
	if s.Inline == Directive {
		n := s.take(r, words)
		return n > 0 && n < len(words)
	}
	return len(words) > min(len(s.Args), 1)
}

// Extract takes the directives and the shortcuts out of a message that is no command by itself
// (spec/chat.md §3.1). They count as words of their own only: what stands in code, in a quoted line,
// or within an address or a path is left alone, and so is a directive without a value that it knows.
// A text without any is returned as it is. It says nothing about who may use them: of people who may
// not, nothing should be extracted.
func (r *Registry) Extract(text string) (rest string, directives, shortcuts []Invocation) {
	if !strings.Contains(text, "/") {
		return text, nil, nil
	}
	literal := literals(text)
	var cuts []piece
	tried := 0
	for i := 0; i < len(text) && len(cuts) < maxInline && tried < maxTried; i++ {
		if text[i] != '/' || !begins(text, i) {
			continue
		}
		for len(literal) > 0 && literal[0].to <= i {
			literal = literal[1:]
		}
		free := len(text) // a command ends where code begins
		if len(literal) > 0 {
			if free = literal[0].from; free <= i {
				i = literal[0].to - 1
				continue
			}
		}
		s, known := r.named(text[i+1 : free])
		if !known {
			continue
		}
		tried++
		inv, to, ok := r.inline(s, text[:free], i, free < len(text))
		if !ok {
			continue
		}
		if inv.Spec.Inline == Directive {
			directives = append(directives, inv)
		} else {
			shortcuts = append(shortcuts, inv)
		}
		cuts = append(cuts, piece{i, to})
		i = to - 1
	}
	if len(cuts) == 0 {
		return text, nil, nil
	}
	return without(text, cuts), directives, shortcuts
}

// begins reports whether a word begins at i.
func begins(text string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	return i == 0 || unicode.IsSpace(before)
}

// named finds the inline command whose name a text begins with.
func (r *Registry) named(text string) (Spec, bool) {
	text = text[:min(len(text), maxName)]
	if end := strings.IndexFunc(text, func(c rune) bool { return c == ':' || unicode.IsSpace(c) }); end >= 0 {
		text = text[:end]
	}
	i, ok := r.byName[strings.ToLower(text)]
	if !ok || r.specs[i].Inline == NotInline {
		return Spec{}, false
	}
	return r.specs[i], true
}

// maxName is more than any name of a command has, in bytes.
const maxName = 40

// inline reads a directive or shortcut at i, where its name stands. cut tells that something that is no
// blank follows text.
func (r *Registry) inline(s Spec, text string, i int, cut bool) (inv Invocation, to int, ok bool) {
	line := text[i+1:]
	if len(line) > maxLine {
		line, cut = line[:maxLine], true
	}
	if n := strings.IndexAny(line, "\r\n"); n >= 0 {
		line, cut = line[:n], false
	}
	end := strings.IndexFunc(line, func(c rune) bool { return c == ':' || unicode.IsSpace(c) })
	if end < 0 {
		end = len(line)
	}
	if end == len(line) && cut {
		return inv, 0, false
	}
	switch {
	case s.Inline == Shortcut && (end == len(line) || line[end] != ':'):
		return Invocation{Spec: s}, i + 1 + end, true
	case s.Inline != Directive || end == len(line):
		return inv, 0, false
	}
	words := wordsOf(line, end+1)
	if line[end] != ':' {
		if rest := strings.TrimLeftFunc(line[end:], unicode.IsSpace); strings.HasPrefix(rest, ":") {
			words = wordsOf(line, len(line)-len(rest)+1)
		}
	}
	if n := len(words); cut && n > 0 && words[n-1].to == len(line) {
		words = words[:n-1] // it goes on in code
	}
	texts := make([]string, len(words))
	for k, w := range words {
		texts[k] = line[w.from:w.to]
	}
	n := s.take(r, texts)
	if n == 0 {
		return inv, 0, false
	}
	return Invocation{Spec: s, Args: strings.Join(texts[:n], " ")}, i + 1 + words[n-1].to, true
}

// maxTaken bounds how many words a directive can have.
const maxTaken = 6

// wordsOf finds the first words of a line behind an index.
func wordsOf(line string, from int) []piece {
	var words []piece
	for i, c := range line[from:] {
		i += from
		last := len(words) - 1
		switch open := last >= 0 && words[last].to == 0; {
		case unicode.IsSpace(c) && open:
			words[last].to = i
		case unicode.IsSpace(c) || open:
		case len(words) == maxTaken:
			return words
		default:
			words = append(words, piece{from: i})
		}
	}
	if n := len(words); n > 0 && words[n-1].to == 0 {
		words[n-1].to = len(line)
	}
	return words
}

// without cuts pieces out of a text with the blanks that then have no purpose. A line of which nothing
// is left goes with them.
func without(text string, cuts []piece) string {
	var b strings.Builder
	at := 0
	for _, c := range cuts {
		b.WriteString(text[at:c.from])
		at = c.to
		kept := b.String()
		lineStart := kept == "" || kept[len(kept)-1] == '\n'
		blankBefore := lineStart || strings.HasSuffix(kept, " ") || strings.HasSuffix(kept, "\t")
		for blankBefore && at < len(text) && (text[at] == ' ' || text[at] == '\t') {
			at++
		}
		if lineStart && at < len(text) {
			at += len(text[at:]) - len(strings.TrimPrefix(strings.TrimPrefix(text[at:], "\r"), "\n"))
		}
	}
	b.WriteString(text[at:])
	return strings.TrimSpace(b.String())
}

// takesModel is Spec.take of /model: the next word, if it can be a model, and -s.
func takesModel(r *Registry, words []string) int {
	if len(words) == 0 || !r.looksLikeModel(words[0]) {
		return 0
	}
	if len(words) > 1 && words[1] == "-s" {
		return 2
	}
	return 1
}

// looksLikeModel reports whether a word within a text can be meant as a model: it is "default", an
// alias or an id that is known, or begins with a provider that can be asked. Numbers are not: the list
// they count is not before anybody's eyes there.
func (r *Registry) looksLikeModel(word string) bool {
	if r.deps.Models == nil {
		return false
	}
	name, _, _ := strings.Cut(word, "@")
	if strings.EqualFold(name, "default") {
		return true
	}
	if ref, err := llm.ParseRef(word); err == nil && r.deps.Models.Provider(ref.Provider) {
		return true
	}
	for _, ref := range r.deps.Models.Known(context.Background(), "") {
		for _, known := range []string{r.deps.Models.Alias(ref), ref.Model} {
			if known != "" && (strings.EqualFold(known, name) || strings.EqualFold(known, word)) {
				return true
			}
		}
	}
	return false
}

// takesWord makes a Spec.take of one word out of a few.
func takesWord(list ...string) func(*Registry, []string) int {
	return func(_ *Registry, words []string) int {
		if len(words) > 0 && slices.Contains(list, strings.ToLower(words[0])) {
			return 1
		}
		return 0
	}
}

// takesQueue is Spec.take of /queue: as many words as are options.
func takesQueue(_ *Registry, words []string) int {
	if len(words) > 0 && strings.EqualFold(words[0], wordDefault) {
		return 1
	}
	n := 0
	for n < len(words) {
		if _, err := session.ParseQueue(words[n]); err != nil {
			break
		}
		n++
	}
	return n
}
