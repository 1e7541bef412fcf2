package faults

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"understudy/internal/drill"
)

// TestScenarios plays every file under testdata/scenarios on the virtual clock and compares what
// happened with what it expects. The name of a file is the behaviour it protects.
func TestScenarios(t *testing.T) {
	t.Parallel()
	each(t, "testdata/scenarios", func(t *testing.T, file, text string) {
		t.Parallel()
		test(t, file, text)
	})
}

// TestConversations plays the files under testdata/conversations with a whole bot; package drill
// explains their language.
func TestConversations(t *testing.T) {
	each(t, "testdata/conversations", func(t *testing.T, _, text string) {
		synctest.Test(t, func(t *testing.T) { drill.Play(t, text) })
	})
}

// each runs f for every file under dir.
func each(t *testing.T, dir string, f func(t *testing.T, file, text string)) {
	t.Helper()
	played := 0
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		played++
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), dir+"/"), ".txtar")
		t.Run(name, func(t *testing.T) { f(t, file, string(b)) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if played == 0 {
		t.Fatalf("there is nothing under %s", dir)
	}
}

// TestMain checks after all tests that no goroutine is left.
func TestMain(m *testing.M) {
	drill.Prepare()
	goleak.VerifyTestMain(m)
}

// test plays the scenarios of one file. Every `expect` part belongs to the scenario before it.
func test(t *testing.T, file, text string) {
	t.Helper()
	f, err := split(text)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if len(f.variants) == 0 {
		f.test(t, file)
	}
	for _, v := range f.variants {
		t.Run(v, func(t *testing.T) { f.with(v).test(t, file) })
	}
}

func (f faultFile) test(t *testing.T, file string) {
	t.Helper()
	for _, p := range f.parts {
		list, err := parseExpectations(p.expect)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		s := play(t, file, p.scenario)
		failed := false
		for _, x := range list {
			if err := x.check(s); err != nil {
				t.Errorf("%s\n\t%v", x.text, err)
				failed = true
			}
		}
		if failed {
			t.Logf("the trace:\n%s", s)
		}
	}
}

// faultFile is a file of scenarios: whatever stands before its first title is for the reader.
//
//	-- variants --      optional: each line is tried in the place of $VARIANT
//	-- any title --     a scenario
//	-- expect --        what is expected of the scenario before it
type faultFile struct {
	variants []string
	parts    []part
}

// part is a scenario with what is expected of it.
type part struct{ scenario, expect string }

// with returns the file with a variant filled in.
func (f faultFile) with(variant string) faultFile {
	out := faultFile{}
	for _, p := range f.parts {
		out.parts = append(out.parts, part{strings.ReplaceAll(p.scenario, "$VARIANT", variant), strings.ReplaceAll(p.expect, "$VARIANT", variant)})
	}
	return out
}

// split cuts a file into its parts.
func split(text string) (faultFile, error) {
	var f faultFile
	var variants, preface string
	into := &preface
	for line := range strings.Lines(text) {
		title, opened := strings.CutPrefix(strings.TrimSpace(line), "-- ")
		title, closed := strings.CutSuffix(title, " --")
		switch {
		case !opened || !closed:
			*into += line
		case title == "variants":
			into = &variants
		case title == "expect":
			if len(f.parts) == 0 || f.parts[len(f.parts)-1].expect != "" {
				return f, errors.New("an expect part without a scenario before it")
			}
			into = &f.parts[len(f.parts)-1].expect
		default:
			f.parts = append(f.parts, part{})
			into = &f.parts[len(f.parts)-1].scenario
		}
	}
	for line := range strings.Lines(variants) {
		if line = strings.TrimSpace(line); line != "" {
			f.variants = append(f.variants, line)
		}
	}
	switch {
	case len(f.parts) == 0:
		return f, errors.New("there is no scenario")
	case strings.TrimSpace(preface) == "":
		return f, errors.New("the file does not say what it is about")
	}
	for _, p := range f.parts {
		if p.expect == "" || p.scenario == "" {
			return f, errors.New("a scenario without an expect part")
		}
	}
	return f, nil
}
