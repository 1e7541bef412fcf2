package markup

import "strings"

// deepestHeading is the smallest heading Discord knows.
const deepestHeading = 3

// smallHeadings makes bold lines of the headings Discord does not know. Everything else of its
// Markdown is what models write; who may be mentioned is said in the request, not in the text.
func smallHeadings(md string) string {
	lines := strings.Split(md, "\n")
	var f fence
	for i, line := range lines {
		was := f
		if f = f.after(line); was.open() || f.open() {
			continue
		}
		title := strings.TrimLeft(line, "#")
		level := len(line) - len(title)
		if level <= deepestHeading || level > 6 || !strings.HasPrefix(title, " ") {
			continue
		}
		title = strings.TrimSpace(strings.TrimRight(strings.TrimSpace(title), "#"))
		title = strings.ReplaceAll(title, "**", "")
		if title != "" {
			lines[i] = "**" + title + "**"
		}
	}
	return strings.Join(lines, "\n")
}
