package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "understudy"

// source is one Go file.
type source struct {
	path    string // relative to the root of the repository, with slashes
	text    string
	fset    *token.FileSet
	tree    *ast.File
	imports []imported
}

type imported struct {
	path string
	line int
}

// room is the folder of the file; "." is the root.
func (s source) room() string { return path.Dir(s.path) }

// belongsTo reports whether the file is part of a room: in its folder, in its own internal folder,
// or anywhere in app, which is one room with several folders.
func (s source) belongsTo(room string) bool {
	return s.room() == room || within(s.room(), room+"/internal") || (room == "app" && within(s.room(), room))
}

// forTests reports whether the file never becomes part of the product: a test, a package of test
// support (named …test), or one of the drivers that measure and break the product.
func (s source) forTests() bool {
	if strings.HasSuffix(s.path, "_test.go") {
		return true
	}
	return slices.ContainsFunc(strings.Split(s.room(), "/"), func(part string) bool { return strings.HasSuffix(part, "test") }) ||
		within(s.room(), "bench") || within(s.room(), "internal/drill") || within(s.room(), "internal/emulate")
}

func (s source) line(n ast.Node) int { return s.fset.Position(n.Pos()).Line }

// within reports whether dir is room or lies in it.
func within(dir, room string) bool { return dir == room || strings.HasPrefix(dir, room+"/") }

// ours returns the folder of an import of this module.
func (i imported) ours() (string, bool) {
	if i.path == module {
		return ".", true
	}
	return strings.CutPrefix(i.path, module+"/")
}

// parse reads one file from memory.
func parse(name, text string) (source, error) {
	s := source{path: name, text: text, fset: token.NewFileSet()}
	tree, err := parser.ParseFile(s.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return s, err
	}
	s.tree = tree
	for _, spec := range tree.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return s, err
		}
		s.imports = append(s.imports, imported{path: p, line: s.line(spec)})
	}
	return s, nil
}

// checkout reads every Go file of the repository.
func checkout(t *testing.T) []source {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var out []source
	err = filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		rel = filepath.ToSlash(rel)
		if e.IsDir() {
			if name := e.Name(); rel != "." && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || rel == "tools" || rel == "internal/deps") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		s, err := parse(rel, string(text))
		if err != nil {
			return err
		}
		out = append(out, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Fatal("no Go files found: the rules would hold for nothing")
	}
	return out
}
