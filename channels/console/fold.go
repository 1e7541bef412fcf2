package console

import "strings"

// narrowest is the least width at which lines are broken between words.
const narrowest = 20

// fold breaks lines that are wider than a terminal between words, and within a word only where it is wider
// than the terminal itself. The beginning of a text that grows changes in its last row at most.
func fold(text string, width int) string {
	if width < narrowest {
		return text
	}
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		foldLine(&b, line, width)
	}
	return b.String()
}

func foldLine(b *strings.Builder, line string, width int) {
	column := 0
	rest := line
	for rest != "" {
		blanks := rest[:len(rest)-len(strings.TrimLeft(rest, " "))]
		word, _, _ := strings.Cut(rest[len(blanks):], " ")
		rest = rest[len(blanks)+len(word):]
		switch w := span(word); {
		case column == 0, column+len(blanks)+w <= width:
			if column == 0 {
				blanks = blanks[:min(len(blanks), width/2)] // an indentation leaves room for words
			}
			b.WriteString(blanks)
			column += len(blanks)
		case word == "":
			continue // blanks at the end of a row
		default:
			b.WriteByte('\n')
			column = 0
		}
		for _, r := range word {
			if c := cells(r); column+c > width {
				b.WriteByte('\n')
				column = c
			} else {
				column += c
			}
			b.WriteRune(r)
		}
	}
}

// span is how many columns a word takes.
func span(word string) (n int) {
	for _, r := range word {
		n += cells(r)
	}
	return n
}
