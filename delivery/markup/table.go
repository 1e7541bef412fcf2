package markup

import (
	"regexp"
	"strings"
	"unicode"
)

// widestPadding is the width up to which cells are padded; wider cells would only push their
// neighbours off the screen.
const widestPadding = 32

// delimiterRow is the second line of a table.
var delimiterRow = regexp.MustCompile(`^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$`)

// expand replaces tables by aligned code blocks for dialects that have no tables
// (spec/chat.md §2.6). It is done in the source, before splitting, so that a long table is cut
// like any other code block.
func expand(md string, d Dialect) string {
	if d == Markdown || d == SlackMarkdown || !strings.Contains(md, "|") {
		return md
	}
	lines := strings.Split(normalise(md), "\n")
	out := make([]string, 0, len(lines))
	var f fence
	for i := 0; i < len(lines); {
		if n := tableLength(lines[i:], f); n > 0 {
			out = append(out, alignedBlock(lines[i:i+n])...)
			i += n
			continue
		}
		f = f.after(lines[i])
		out = append(out, lines[i])
		i++
	}
	return strings.Join(out, "\n")
}

// tableLength returns how many of the lines are a table, 0 if they do not start with one.
func tableLength(lines []string, f fence) int {
	if f.open() || len(lines) < 2 || !isRow(lines[0]) || !strings.Contains(lines[1], "|") || !delimiterRow.MatchString(lines[1]) {
		return 0
	}
	if len(cells(lines[0])) != len(cells(lines[1])) {
		return 0
	}
	n := 2
	for n < len(lines) && isRow(lines[n]) {
		n++
	}
	return n
}

func isRow(line string) bool {
	return strings.Contains(line, "|") && !strings.HasPrefix(line, "    ") && !looksLikeFence(line)
}

// cells splits a row; a bar behind a backslash belongs to its cell.
func cells(row string) []string {
	row = strings.TrimPrefix(strings.TrimSpace(row), "|")
	var out []string
	var cell strings.Builder
	for i := 0; i < len(row); i++ {
		switch {
		case row[i] == '\\' && i+1 < len(row) && row[i+1] == '|':
			cell.WriteByte('|')
			i++
		case row[i] == '|':
			out = append(out, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			cell.WriteByte(row[i])
		}
	}
	if last := strings.TrimSpace(cell.String()); last != "" || len(out) == 0 || !strings.HasSuffix(row, "|") {
		out = append(out, last)
	}
	return out
}

// alignedBlock writes a table as a code block.
func alignedBlock(rows []string) []string {
	columns := len(cells(rows[0]))
	width := make([]int, columns)
	var grid [][]string
	for i, row := range rows {
		if i == 1 {
			continue
		}
		line := make([]string, columns)
		copy(line, cells(row))
		for j := range line {
			line[j] = strings.ReplaceAll(renderTree(line[j], plainStyle{}), "\n", " ")
			width[j] = max(width[j], min(columnsOf(line[j]), widestPadding))
		}
		grid = append(grid, line)
	}
	out := make([]string, 0, len(rows)+2)
	ticks := 3
	for i, line := range grid {
		out = append(out, padded(line, width))
		ticks = max(ticks, longestRun(out[len(out)-1])+1)
		if i == 0 {
			out = append(out, ruler(width))
		}
	}
	mark := strings.Repeat("`", ticks)
	return append(append([]string{mark}, out...), mark)
}

func padded(line []string, width []int) string {
	var b strings.Builder
	for j, cell := range line {
		if j > 0 {
			b.WriteString(" | ")
		}
		b.WriteString(cell)
		b.WriteString(strings.Repeat(" ", max(0, width[j]-columnsOf(cell))))
	}
	return strings.TrimRight(b.String(), " ")
}

func ruler(width []int) string {
	parts := make([]string, len(width))
	for j, w := range width {
		parts[j] = strings.Repeat("-", max(w, 1))
	}
	return strings.Join(parts, "-+-")
}

// longestRun returns the length of the longest run of backticks.
func longestRun(s string) int {
	longest, n := 0, 0
	for i := range len(s) {
		if s[i] != '`' {
			n = 0
			continue
		}
		n++
		longest = max(longest, n)
	}
	return longest
}

// columnsOf returns how many columns of a fixed-width font a text takes: East Asian and emoji
// characters take two, combining marks none.
func columnsOf(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case r == joiner || unicode.Is(unicode.Mn, r):
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) ||
			r >= 0xFF01 && r <= 0xFF60 || r >= 0x3000 && r <= 0x303F || r >= 0x1F300 && r <= 0x1FAFF:
			n += 2
		default:
			n++
		}
	}
	return n
}
