package conversations

import (
	"os"
	"slices"
	"strings"
)

// archive is a file of prose and named sections (txtar).
type archive struct {
	prose string
	parts []part
}

type part struct{ name, text string }

func readArchive(path string) (*archive, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	a := &archive{}
	for line := range strings.Lines(string(data)) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "-- ")
		switch {
		case ok && strings.HasSuffix(name, " --"):
			a.parts = append(a.parts, part{name: strings.TrimSuffix(name, " --")})
		case len(a.parts) == 0:
			a.prose += line
		default:
			a.parts[len(a.parts)-1].text += line
		}
	}
	return a, nil
}

// String is the whole file.
func (a *archive) String() string {
	var b strings.Builder
	b.WriteString(a.prose)
	for _, p := range a.parts {
		b.WriteString("-- " + p.name + " --\n" + p.text)
	}
	return b.String()
}

// section returns the text of a section, "" = there is none.
func (a *archive) section(name string) string {
	if i := a.find(name); i >= 0 {
		return a.parts[i].text
	}
	return ""
}

// set replaces the text of a section, or adds it.
func (a *archive) set(name, text string) {
	i := a.find(name)
	if i < 0 {
		a.parts = append(a.parts, part{name: name})
		i = len(a.parts) - 1
	}
	a.parts[i].text = text
}

func (a *archive) find(name string) int {
	return slices.IndexFunc(a.parts, func(p part) bool { return p.name == name })
}
