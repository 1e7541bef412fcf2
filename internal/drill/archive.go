package drill

import (
	"fmt"
	"strings"
)

// archive is a txtar file: prose, then named sections.
type archive map[string]string

// parseArchive splits a txtar file.
func parseArchive(text string) (archive, error) {
	a := archive{}
	name := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if inner, ok := strings.CutPrefix(trimmed, "-- "); ok && strings.HasSuffix(inner, " --") {
			name = strings.TrimSpace(strings.TrimSuffix(inner, " --"))
			if _, twice := a[name]; twice || name == "" {
				return nil, fmt.Errorf("the section %q is there twice or has no name", name)
			}
			a[name] = ""
			continue
		}
		a[name] += line
	}
	return a, nil
}

// expand returns the section that a text in braces names, else the text itself.
func (a archive) expand(text string) string {
	if name, ok := strings.CutPrefix(text, "{"); ok {
		if section, ok := a[strings.TrimSuffix(name, "}")]; ok && name != "*}" {
			return strings.TrimSpace(section)
		}
	}
	return text
}
