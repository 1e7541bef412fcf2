package commands

import "strings"

// piece is a part of a text: bytes from (included) to (excluded).
type piece struct{ from, to int }

// literals finds what of a message is no running text, in order: code blocks, quoted lines and code
// spans, as Markdown knows them.
func literals(text string) []piece {
	var list []piece
	fence, block := "", -1 // the mark of an open fence; where the running text began
	flush := func(to int) {
		if block >= 0 {
			list = append(list, codeSpans(text, piece{block, to})...)
			block = -1
		}
	}
	for at := 0; at < len(text); {
		end := len(text)
		if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		line := text[at:end]
		body := strings.TrimLeft(line, " ")
		indent := len(line) - len(body)
		mark := fenceMark(body)
		switch {
		case fence != "":
			list = append(list, piece{at, end})
			if indent < 4 && len(mark) >= len(fence) && mark[0] == fence[0] && strings.TrimSpace(body[len(mark):]) == "" {
				fence = ""
			}
		case indent < 4 && mark != "":
			flush(at)
			fence = mark
			list = append(list, piece{at, end})
		case strings.TrimSpace(body) == "":
			flush(at)
		case indent < 4 && body[0] == '>', block < 0 && (indent >= 4 || body[0] == '\t'):
			flush(at)
			list = append(list, piece{at, end})
		case block < 0:
			block = at
		}
		at = end
	}
	flush(len(text))
	return list
}

// fenceMark returns the three or more backticks or tildes that a line begins with, "" without.
func fenceMark(line string) string {
	for _, c := range []string{"`", "~"} {
		n := len(line) - len(strings.TrimLeft(line, c))
		if n >= 3 && (c == "~" || !strings.Contains(line[n:], "`")) {
			return line[:n]
		}
	}
	return ""
}

// codeSpans finds the pieces between runs of equally many backticks. Where such a run has no partner,
// none of its length behind it has one, so that each length is looked for in vain once.
func codeSpans(text string, in piece) []piece {
	var list []piece
	alone := map[int]bool{}
	for i := in.from; i < in.to; {
		n := backticks(text[i:in.to])
		if n == 0 {
			i++
			continue
		}
		end := -1
		if !alone[n] {
			end = partner(text[i+n:in.to], n)
		}
		if end < 0 {
			alone[n] = true
			i += n
			continue
		}
		list = append(list, piece{i, i + n + end})
		i += n + end
	}
	return list
}

func backticks(s string) int { return len(s) - len(strings.TrimLeft(s, "`")) }

// partner returns where the next run of n backticks ends, -1 = nowhere.
func partner(s string, n int) int {
	for i := 0; i < len(s); {
		k := backticks(s[i:])
		if k == n {
			return i + n
		}
		i += max(k, 1)
	}
	return -1
}
