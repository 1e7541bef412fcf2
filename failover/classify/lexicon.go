package classify

import (
	"strings"

	"understudy/llm"
)

// verdict is what a rule says of a failure. A zero reason is no verdict.
type verdict struct {
	reason llm.Reason
	detail llm.Detail
	scope  llm.Scope
	rule   string

	notSent bool // the request never left
}

// group is a set of phrases with one meaning. Groups stand in order of precedence.
type group struct {
	verdict
	only    family                // fires for these providers only; 0 = for all
	when    func(status int) bool // nil = always
	phrases []string
}

// elem is one position of a phrase.
type elem struct {
	kind elemKind
	word string
}

type elemKind uint8

const (
	elemWord   elemKind = iota // this word
	elemNumber                 // "#": a number
	elemName                   // "@": a name or a quoted span
	elemAny                    // "_": one token, whatever it is
	elemGap                    // "*": up to maxGap tokens of one sentence
)

// maxGap is how many tokens a "*" may stand for.
const maxGap = 9

// pattern is a compiled phrase.
type pattern struct {
	elems []elem
	group int
}

// lexicon finds phrases in messages, word by word.
type lexicon struct {
	groups []group
	byWord map[string][]pattern // by the first word
}

// compile prepares groups. A phrase starts with a word and is cut exactly as messages are.
func compile(groups []group) *lexicon {
	l := &lexicon{groups: groups, byWord: make(map[string][]pattern)}
	var w words
	for g := range groups {
		for _, phrase := range groups[g].phrases {
			var p pattern
			p.group = g
			for _, part := range strings.Fields(phrase) {
				switch part {
				case "*":
					p.elems = append(p.elems, elem{kind: elemGap})
				case "#":
					p.elems = append(p.elems, elem{kind: elemNumber})
				case "_":
					p.elems = append(p.elems, elem{kind: elemAny})
				case "@":
					p.elems = append(p.elems, elem{kind: elemName})
				default:
					w.cut([]byte(part))
					for i := range w.n {
						p.elems = append(p.elems, elem{word: string(w.text(i))})
					}
				}
			}
			first := p.elems[0].word
			l.byWord[first] = append(l.byWord[first], p)
		}
	}
	return l
}

// find returns the first group, in order of precedence, of which a phrase stands in the message.
// No match is -1.
func (l *lexicon) find(w *words, fam family, status int) int {
	best := -1
	for i := range w.n {
		if w.list[i].kind == tokenQuote {
			continue
		}
		for _, p := range l.byWord[string(w.text(i))] {
			if best >= 0 && p.group >= best {
				continue
			}
			if g := &l.groups[p.group]; g.only != 0 && g.only&fam == 0 || g.when != nil && !g.when(status) {
				continue
			}
			if w.match(i+1, p.elems[1:], i) {
				best = p.group
			}
		}
	}
	return best
}

// match reports whether elems stand at token i; last is the token matched before.
func (w *words) match(i int, elems []elem, last int) bool {
	for n, e := range elems {
		if e.kind == elemGap {
			for j := i; j <= i+maxGap && j <= w.n; j++ {
				if j < w.n && w.list[j].sentence != w.list[last].sentence {
					break
				}
				if w.match(j, elems[n+1:], last) {
					return true
				}
			}
			return false
		}
		if i >= w.n || !w.is(i, e) {
			return false
		}
		last = i
		i++
	}
	return true
}

func (w *words) is(i int, e elem) bool {
	switch t := w.list[i]; e.kind {
	case elemNumber:
		return t.kind == tokenNumber
	case elemAny:
		return true
	case elemName:
		return t.kind == tokenName || t.kind == tokenQuote
	default:
		return t.kind != tokenQuote && string(w.text(i)) == e.word
	}
}
