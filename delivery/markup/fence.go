package markup

import "strings"

// zeroWidth is put in front of text that must not be read as markup.
const zeroWidth = "\u200b"

// fence is an open code fence; the zero value means that none is open.
type fence struct {
	char   byte
	length int
	reopen string // the line that opens it again in the next chunk
	closer string // the line that closes it
}

func (f fence) open() bool { return f.length > 0 }

// marker reads the run of fence characters a line starts with: up to three spaces, then at least
// three backticks or tildes (spec/chat.md §2.5, rule 2).
func marker(line string) (indent string, char byte, length int, rest string) {
	i := 0
	for i < len(line) && i < 3 && line[i] == ' ' {
		i++
	}
	j := i
	for j < len(line) && (line[j] == '`' || line[j] == '~') && line[j] == line[i] {
		j++
	}
	if j-i < 3 {
		return "", 0, 0, ""
	}
	return line[:i], line[i], j - i, line[j:]
}

// looksLikeFence reports whether a line could open or close some fence.
func looksLikeFence(line string) bool {
	_, _, n, _ := marker(line)
	return n > 0
}

// opens reports whether a line outside any fence opens one.
func opens(line string) (fence, bool) {
	indent, char, n, info := marker(line)
	if n == 0 || char == '`' && strings.Contains(info, "`") {
		return fence{}, false
	}
	closer := indent + strings.Repeat(string(char), n)
	return fence{char: char, length: n, reopen: closer + strings.TrimRight(info, " \t"), closer: closer}, true
}

// closes reports whether a line inside f closes it.
func (f fence) closes(line string) bool {
	_, char, n, rest := marker(line)
	return n >= f.length && char == f.char && strings.Trim(rest, " \t") == ""
}

// after returns the fence that is open after a line.
func (f fence) after(line string) fence {
	if f.open() {
		if f.closes(line) {
			return fence{}
		}
		return f
	}
	g, _ := opens(line)
	return g
}

// openFence returns the fence that is open at the end of a text.
func openFence(md string) fence {
	var f fence
	for line := range strings.SplitSeq(md, "\n") {
		f = f.after(line)
	}
	return f
}
