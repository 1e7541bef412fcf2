package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// texts writes files into the folder of a configuration file and returns its path.
func texts(t *testing.T, config string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return place(t, dir, config, 0o600)
}

func TestSystemFilesAreReadWithTheConfiguration(t *testing.T) {
	path := texts(t, `
agents:
  defaults: {systemFiles: [persona.md, rules.md]}
  list:
    - {id: main, default: true}
    - {id: ops, systemFiles: [servers.md]}
    - {id: plain, systemFiles: []}
`, map[string]string{"persona.md": "You are kind.\n", "rules.md": "\ufeffNo jokes.", "servers.md": "There are two."})
	c, _, err := Load(Options{Path: path, Env: env()})
	if err != nil {
		t.Fatal(err)
	}
	for agent, want := range map[string][]SystemFile{
		"main": {{"persona.md", "You are kind.\n"}, {"rules.md", "No jokes."}}, "ops": {{"servers.md", "There are two."}}, "plain": nil,
	} {
		if diff := cmp.Diff(want, c.Agent(agent).SystemFiles); diff != "" {
			t.Errorf("%s (-want +got):\n%s", agent, diff)
		}
	}
}

func TestSystemFilesThatCannotBeUsed(t *testing.T) {
	files := map[string]string{"good.md": "x", "large.md": strings.Repeat("x", maxSystemFile+1), "binary.md": "a\x00b", "latin.md": "\xe4"}
	many := map[string]string{}
	var names []string
	for i := range 5 {
		name := fmt.Sprintf("part%d.md", i)
		many[name] = strings.Repeat("x", maxSystemFile)
		names = append(names, name)
	}
	for name, text := range many {
		files[name] = text
	}
	for list, want := range map[string]string{
		"[good.md, none.md]":                 `agents.defaults.systemFiles[1]: the file "none.md" cannot be used: no such file or directory (relative paths begin at`,
		"[large.md]":                         "it is larger than 64 KiB",
		"[binary.md]":                        "it is not UTF-8 text",
		"[latin.md]":                         "it is not UTF-8 text",
		"[.]":                                "it is not a regular file",
		`[""]`:                               "agents.defaults.systemFiles[0]: is the path of a file",
		"[" + strings.Join(names, ",") + "]": "the files have more than 256 KiB together",
		"[" + strings.Repeat("good.md,", 20) + " good.md]": "more than 20 files",
	} {
		path := texts(t, "agents: {defaults: {systemFiles: "+list+"}}", files)
		if _, _, err := Load(Options{Path: path, Env: env()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v", list, err)
		}
	}
}

// TestAFileThatIsNotTrustedNamesNoTexts: who can change a file in the working directory does not choose what
// of this machine models are shown.
func TestAFileThatIsNotTrustedNamesNoTexts(t *testing.T) {
	path := texts(t, "agents: {defaults: {systemFiles: [/etc/hostname]}}", nil)
	if err := os.Chmod(path, 0o606); err != nil {
		t.Fatal(err)
	}
	_, _, err := Load(Options{Dir: filepath.Dir(path), Env: env("OPENCLAW_STATE_DIR", t.TempDir())})
	if err == nil || !strings.Contains(err.Error(), "agents.defaults.systemFiles: texts that models are shown are named here, but every user of this machine can change the file") {
		t.Errorf("%v", err)
	}
}

// TestAChangedTextIsTakenIn: the texts are watched like the file that names them, also those that a reload
// named first.
func TestAChangedTextIsTakenIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := texts(t, "agents: {defaults: {systemFiles: [one.md]}}", map[string]string{"one.md": "1", "two.md": "2"})
		opts := Options{Path: path, Env: env()}
		c, _, err := Load(opts)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		w := NewWatcher(opts, c)
		go w.Run(t.Context(), func(c Change) error {
			if c.Err != nil {
				got = append(got, "broken")
				return c.Err
			}
			got = append(got, c.Config.Agent("").SystemFiles[0].Text)
			return nil
		})
		write := func(name, text string) {
			if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			<-time.After(10 * time.Second)
			synctest.Wait()
		}
		write("two.md", "2, which nobody named")
		write("one.md", "1, changed")
		write("bot.yaml", "agents: {defaults: {systemFiles: [two.md]}}")
		write("one.md", "1, which nobody names any more")
		write("two.md", "2, changed again")
		write("two.md", "\xff")
		write("two.md", "2, repaired")
		want := []string{"1, changed", "2, which nobody named", "2, changed again", "broken", "2, repaired"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
