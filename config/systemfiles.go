package config

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// SystemFile is a text of the operator's for the system prompt of an agent.
type SystemFile struct {
	Name string // of the file, without its folder
	Text string
}

// Bounds of the texts of one agent.
const (
	mostSystemFiles = 20
	maxSystemFile   = 64 << 10  // bytes of one
	maxSystemFiles  = 256 << 10 // of all
)

// systemFiles reads the texts that a list of an agent names. A path is relative to the folder of the
// configuration file.
func (c *Config) systemFiles(d *decoder, list []string, at string) (files []SystemFile) {
	if len(list) == 0 {
		return nil
	}
	if d.distrust != "" {
		d.fail(at, "texts that models are shown are named here, but "+d.distrust, "name the file with --config if you trust it")
		return nil
	}
	if len(list) > mostSystemFiles {
		d.fail(at, fmt.Sprintf("more than %d files", mostSystemFiles), "")
		return nil
	}
	size := 0
	for i, path := range list {
		here := fmt.Sprintf("%s[%d]", at, i)
		if path == "" {
			d.fail(here, "is the path of a file", "")
			continue
		}
		hint := ""
		if !filepath.IsAbs(path) {
			hint = "relative paths begin at the folder of the configuration file"
			path = filepath.Join(filepath.Dir(d.file), path)
		}
		if !slices.Contains(c.texts, path) {
			c.texts = append(c.texts, path)
		}
		text, err := readText(path)
		if err != nil {
			d.fail(here, fmt.Sprintf("the file %s cannot be used: %s", quote(list[i]), reasonOf(err)), hint)
			continue
		}
		size += len(text)
		files = append(files, SystemFile{filepath.Base(path), text})
	}
	if size > maxSystemFiles {
		d.fail(at, fmt.Sprintf("the files have more than %d KiB together", maxSystemFiles>>10), "every request would carry them")
	}
	return files
}

func readText(path string) (string, error) {
	data, _, err := readFile(path)
	switch {
	case err != nil:
		return "", err
	case len(data) > maxSystemFile:
		return "", fmt.Errorf("it is larger than %d KiB", maxSystemFile>>10)
	case !utf8.Valid(data) || slices.Contains(data, 0):
		return "", errors.New("it is not UTF-8 text")
	}
	return strings.TrimPrefix(string(data), "\ufeff"), nil
}

// marks tells files apart from what they were: it changes when one of them does. 0 = there are none.
func marks(paths []string) uint64 {
	if len(paths) == 0 {
		return 0
	}
	h := fnv.New64a()
	for _, p := range paths {
		s := stamp{path: p}
		if info, err := os.Stat(p); err == nil {
			s = stampOf(p, info)
		}
		fmt.Fprintln(h, s)
	}
	return h.Sum64()
}
