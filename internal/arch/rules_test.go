package arch

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// violation is one place that breaks a rule.
type violation struct {
	path string
	line int
	what string
}

// rule is one law of the house. Why is printed with every violation.
type rule struct {
	name  string
	why   string
	check func(all []source) []violation
}

var rules = []rule{
	{
		"plan", "imports point down, and a room knows only what the plan in internal/arch/rooms_test.go says: what else it needs it declares as a small interface that app wires",
		eachImport(func(s source, i imported) string {
			to, ours := i.ours()
			if !ours || s.forTests() {
				return ""
			}
			may, known := allowed(s.room())
			if !known || may(to) {
				return ""
			}
			return fmt.Sprintf("%s may not import %s", s.room(), to)
		}),
	},
	{
		"rooms", "every folder with code is a room of the plan, so that whoever adds one says what it may know",
		eachFile(func(s source) []violation {
			if _, known := allowed(s.room()); known || s.forTests() {
				return nil
			}
			return at(s, 1, "the room %s is not in the plan", s.room())
		}),
	},
	{
		"names", "folders are named for nouns of the field; a drawer for odds and ends attracts more of them",
		eachFile(func(s source) []violation {
			for _, part := range strings.Split(s.room(), "/") {
				switch part {
				case "util", "utils", "common", "types", "helper", "helpers", "manager", "misc", "base":
					return at(s, 1, "a folder is called %q", part)
				}
			}
			return nil
		}),
	},
	{
		"config", "components get their own Config handed to them; whoever reads the whole configuration depends on everything",
		eachImport(func(s source, i imported) string {
			to, ours := i.ours()
			if !ours || !within(to, "config") || within(s.room(), "config") || s.room() == "app" || within(s.room(), "app") || s.room() == "cmd/bot" || s.forTests() {
				return ""
			}
			return s.room() + " imports config"
		}),
	},
	{
		"parents", "a contract that imports its implementations cannot be implemented by anyone else; app registers them",
		eachImport(func(s source, i imported) string {
			to, ours := i.ours()
			if ours && slices.Contains(parents, s.room()) && strings.HasPrefix(to, s.room()+"/") && !s.forTests() {
				return fmt.Sprintf("%s imports its child %s", s.room(), to)
			}
			return ""
		}),
	},
	{
		"siblings", "adapters and providers know nothing of each other, so that none can break another",
		eachImport(func(s source, i imported) string {
			to, ours := i.ours()
			parent := path.Dir(s.room())
			if ours && slices.Contains(parents, parent) && path.Dir(to) == parent && to != s.room() && !s.forTests() {
				return fmt.Sprintf("%s imports its sibling %s", s.room(), to)
			}
			return ""
		}),
	},
	{
		"emulators", "the product must not depend on its own fakes: only tests, bench and internal/drill import internal/emulate",
		eachImport(func(s source, i imported) string {
			to, ours := i.ours()
			if ours && within(to, "internal/emulate") && !s.forTests() {
				return fmt.Sprintf("%s imports %s", s.room(), to)
			}
			return ""
		}),
	},
	{
		"test support", "packages named …test and testing libraries belong to tests; in the product they would cost size and trust",
		eachImport(func(s source, i imported) string {
			if s.forTests() {
				return ""
			}
			if to, ours := i.ours(); ours && strings.HasSuffix(path.Base(to), "test") {
				return fmt.Sprintf("%s imports %s", s.room(), to)
			}
			if slices.ContainsFunc(testOnly, func(lib string) bool { return within(i.path, lib) }) {
				return fmt.Sprintf("%s imports %s", s.room(), i.path)
			}
			return ""
		}),
	},
	{
		"one SDK, one room", "a library that leaks out of its room can no longer be replaced, and its quirks spread",
		eachImport(func(s source, i imported) string {
			for _, lib := range slices.Sorted(maps.Keys(sdks)) {
				if within(i.path, lib) && !s.forTests() && !slices.ContainsFunc(sdks[lib], s.belongsTo) {
					return fmt.Sprintf("%s is used in %s, its room is %s", i.path, s.room(), strings.Join(sdks[lib], " or "))
				}
			}
			return ""
		}),
	},
	{
		"pure imports", "a decision that can wait, log, lock or look something up cannot be tested as a function of its input",
		eachImport(func(s source, i imported) string {
			if !slices.Contains(pure, s.room()) || s.forTests() {
				return ""
			}
			for _, lib := range []string{"context", "sync", "os", "net", "log", "io/fs", "math/rand", "crypto/rand"} {
				if within(i.path, lib) && i.path != "net/url" && i.path != "net/netip" {
					return fmt.Sprintf("the pure room %s imports %s", s.room(), i.path)
				}
			}
			for _, w := range words {
				if i.path == module+"/"+w && w != "internal/secret" {
					return fmt.Sprintf("the pure room %s imports %s", s.room(), i.path)
				}
			}
			return ""
		}),
	},
	{
		"pure time", "in pure rooms time is an argument, so that a test can choose it",
		eachCall(func(s source, pkg, name string) string {
			if pkg != "time" || !slices.Contains(pure, s.room()) || s.forTests() {
				return ""
			}
			switch name {
			case "Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick":
				return fmt.Sprintf("the pure room %s calls time.%s", s.room(), name)
			}
			return ""
		}),
	},
	{
		"sleeping tests", "a test that sleeps is slow where it passes and flaky where it is busy; wait for the event, or sleep in a synctest bubble",
		eachCall(func(s source, pkg, name string) string {
			bubble := slices.ContainsFunc(s.imports, func(i imported) bool { return i.path == "testing/synctest" })
			if pkg == "time" && name == "Sleep" && strings.HasSuffix(s.path, "_test.go") && !bubble {
				return "time.Sleep in a test"
			}
			return ""
		}),
	},
	{
		"init", "what happens before main cannot be ordered, tested or switched off: app registers everything by hand",
		eachFile(func(s source) []violation {
			for _, d := range s.tree.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" && !s.forTests() {
					return at(s, s.line(f), "func init")
				}
			}
			return nil
		}),
	},
	{
		"file size", "a file holds one concept; beyond 600 lines it holds several",
		eachFile(func(s source) []violation {
			if n := strings.Count(s.text, "\n"); n > 600 && !ast.IsGenerated(s.tree) {
				return at(s, n, "%d lines", n)
			}
			return nil
		}),
	},
	{
		"home directories", "a path of somebody's machine works nowhere else and tells about them",
		eachFile(func(s source) []violation {
			var out []violation
			for i, l := range strings.Split(s.text, "\n") {
				if homePath.MatchString(l) {
					out = append(out, at(s, i+1, "an absolute path of a home directory")...)
				}
			}
			return out
		}),
	},
	{"package comments", "a reader who opens a room is told what it is for", packageComments},
	{
		"doc comments", "what is exported is a promise, and a promise is written down",
		eachFile(undocumented),
	},
}

var homePath = regexp.MustCompile(`["'` + "`" + ` (=](/home/[a-z]+|/Users/[A-Za-z]+|/root)/`)

// allowed returns what a room may import, and whether it is in the plan at all.
func allowed(room string) (may func(to string) bool, known bool) {
	key, own := room, room
	if _, ok := plan[key]; !ok {
		key = path.Dir(room) + "/*"
	}
	if i := strings.Index(room, "/internal"); i > 0 { // a room's own store belongs to the room
		key, own = room[:i], room[:i]
	}
	if within(room, "app") {
		key = "app"
	}
	list, ok := plan[key]
	if !ok {
		return nil, false
	}
	return func(to string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, to) || within(to, own+"/internal") || to == own ||
			(slices.Contains(words, to) && !slices.Contains(pure, room))
	}, true
}

func at(s source, line int, format string, args ...any) []violation {
	return []violation{{s.path, line, fmt.Sprintf(format, args...)}}
}

func eachFile(f func(source) []violation) func([]source) []violation {
	return func(all []source) []violation {
		var out []violation
		for _, s := range all {
			out = append(out, f(s)...)
		}
		return out
	}
}

func eachImport(f func(source, imported) string) func([]source) []violation {
	return eachFile(func(s source) []violation {
		var out []violation
		for _, i := range s.imports {
			if what := f(s, i); what != "" {
				out = append(out, violation{s.path, i.line, what})
			}
		}
		return out
	})
}

// eachCall looks at uses of package-level names of imported packages, such as time.Now.
func eachCall(f func(s source, pkg, name string) string) func([]source) []violation {
	return eachFile(func(s source) []violation {
		names := map[string]string{}
		for i, spec := range s.tree.Imports {
			p := s.imports[i].path
			names[path.Base(p)] = p
			if spec.Name != nil {
				names[spec.Name.Name] = p
			}
		}
		var out []violation
		ast.Inspect(s.tree, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && names[x.Name] != "" {
				if what := f(s, names[x.Name], sel.Sel.Name); what != "" {
					out = append(out, at(s, s.line(sel), "%s", what)...)
				}
			}
			return true
		})
		return out
	})
}

// packageComments finds packages without a comment.
func packageComments(all []source) []violation {
	first, documented := map[string]source{}, map[string]bool{}
	for _, s := range all {
		if strings.HasSuffix(s.path, "_test.go") || ast.IsGenerated(s.tree) {
			continue
		}
		if _, ok := first[s.room()]; !ok {
			first[s.room()] = s
		}
		if doc := strings.TrimSpace(s.tree.Doc.Text()); doc != "" {
			documented[s.room()] = true
		}
	}
	var out []violation
	for _, room := range slices.Sorted(maps.Keys(first)) {
		if !documented[room] {
			out = append(out, at(first[room], 1, "package %s has no comment", first[room].tree.Name.Name)...)
		}
	}
	return out
}

// undocumented finds exported names without a comment. One comment may serve a group of constants
// or variables.
func undocumented(s source) []violation {
	if strings.HasSuffix(s.path, "_test.go") || s.tree.Name.Name == "main" || ast.IsGenerated(s.tree) {
		return nil
	}
	var out []violation
	missing := func(n ast.Node, name string) { out = append(out, at(s, s.line(n), "%s has no comment", name)...) }
	for _, d := range s.tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Doc == nil && d.Name.IsExported() && receiverExported(d) {
				missing(d, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.IsExported() && spec.Doc == nil && (d.Doc == nil || len(d.Specs) > 1) {
						missing(spec, spec.Name.Name)
					}
				case *ast.ValueSpec:
					if name := spec.Names[0]; name.IsExported() && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
						missing(spec, name.Name)
					}
				}
			}
		}
	}
	return out
}

// receiverExported reports whether a function, or the type whose method it is, can be named from
// outside.
func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}
