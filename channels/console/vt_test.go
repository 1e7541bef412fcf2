package console

import (
	"strconv"
	"strings"
	"sync"
)

// vt is a terminal as wide as told and without scrolling, for what the tests print: text, line
// feeds, cursor movements and erasing.
type vt struct {
	mu     sync.Mutex
	width  int
	rows   [][]rune
	x, y   int
	escape string // what of a sequence has arrived
}

func newVT(width int) *vt { return &vt{width: width, rows: [][]rune{nil}} }

// Write implements io.Writer.
func (v *vt) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range string(p) {
		v.put(r)
	}
	return len(p), nil
}

func (v *vt) put(r rune) {
	switch {
	case v.escape != "":
		v.escape += string(r)
		if r != '[' && r >= '@' && r <= '~' {
			v.sequence(v.escape[2:len(v.escape)-1], r)
			v.escape = ""
		}
	case r == 0x1b:
		v.escape = "\x1b"
	case r == '\r':
		v.x = 0
	case r == '\n':
		v.move(v.x, v.y+1)
	default:
		if v.x >= v.width {
			v.move(0, v.y+1)
		}
		row := v.rows[v.y]
		for len(row) <= v.x {
			row = append(row, ' ')
		}
		row[v.x] = r
		v.rows[v.y] = row
		v.x++
	}
}

func (v *vt) move(x, y int) {
	v.x, v.y = max(0, x), max(0, y)
	for len(v.rows) <= v.y {
		v.rows = append(v.rows, nil)
	}
}

func (v *vt) sequence(args string, verb rune) {
	n, err := strconv.Atoi(args)
	if err != nil {
		n = 1
	}
	switch verb {
	case 'A':
		v.move(v.x, v.y-n)
	case 'B':
		v.move(v.x, v.y+n)
	case 'C':
		v.move(min(v.x+n, v.width), v.y)
	case 'D':
		v.move(v.x-n, v.y)
	case 'K':
		v.rows[v.y] = v.rows[v.y][:min(v.x, len(v.rows[v.y]))]
	case 'J':
		v.rows[v.y] = v.rows[v.y][:min(v.x, len(v.rows[v.y]))]
		v.rows = v.rows[:v.y+1]
	}
}

// text is what the screen shows, without the greeting and without blanks at the ends of rows.
func (v *vt) text() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var b strings.Builder
	for _, row := range v.rows {
		b.WriteString(strings.TrimRight(string(row), " ") + "\n")
	}
	_, text, _ := strings.Cut(b.String(), "leaves.\n")
	return strings.Trim(text, "\n")
}
