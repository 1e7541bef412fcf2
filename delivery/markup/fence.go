package markup

import "strings"

// zeroWidth is put in front of text that must not be read as markup.
const zeroWidth = "\u200b"

// fence is an open code fence; the zero value means that none is open.
type fence struct {
	char   byte
	length int
}

func (f fence) open() bool { return f.length > 0 }

// marker reads the run of fence characters a line starts with: up to three spaces, then at least
// three backticks or tildes (spec/chat.md §2.5, rule 2).
func marker(line string) (char byte, length int, rest string) {
	i := 0
	for i < len(line) && i < 3 && line[i] == ' ' {
		i++
	}
	j := i
	for j < len(line) && (line[j] == '`' || line[j] == '~') && line[j] == line[i] {
		j++
	}
	if j-i < 3 {
		return 0, 0, ""
	}
	return line[i], j - i, line[j:]
}

// looksLikeFence reports whether a line could open or close some fence.
func looksLikeFence(line string) bool {
	_, n, _ := marker(line)
	return n > 0
}

// after returns the fence that is open after a line.
func (f fence) after(line string) fence {
	char, n, rest := marker(line)
	switch {
	case f.open():
		if n >= f.length && char == f.char && strings.Trim(rest, " \t") == "" {
			return fence{}
		}
		return f
	case n > 0 && (char == '~' || !strings.Contains(rest, "`")):
		return fence{char: char, length: n}
	default:
		return fence{}
	}
}
