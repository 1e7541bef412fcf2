package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// FileName is what a configuration file is called where none is named.
const FileName = "bot.yaml"

// Options say where a configuration comes from.
type Options struct {
	// Path is the file that was asked for with --config; "" = search (see Locate).
	Path string
	// Dir is the working directory; "" = the current one.
	Dir string
	// Env looks up environment variables; nil = the process environment.
	Env func(string) (string, bool)
	// InsecurePerms accepts a file that holds secrets and that other users can read.
	InsecurePerms bool
	// AnyProvider takes every provider that is named anywhere as callable, as `bot simulate` does.
	AnyProvider bool

	readSecret func(path string) ([]byte, error)
	distrust   string // why the file must name neither secrets nor where they go (spec/chat.md §12 D12)
}

func (o Options) env() func(string) (string, bool) {
	if o.Env == nil {
		return os.LookupEnv
	}
	return o.Env
}

func (o Options) secretReader() func(string) ([]byte, error) {
	if o.readSecret == nil {
		return readSecretFile
	}
	return o.readSecret
}

// Locate returns the configuration file to use: the one asked for, else bot.yaml in the state
// directory, else bot.yaml in the working directory, else "" (spec/chat.md §12 D12). A file that
// was asked for is returned whether or not it exists.
func Locate(opts Options) string {
	for _, c := range candidates(opts) {
		if info, err := os.Stat(c); opts.Path != "" || (err == nil && !info.IsDir()) {
			return c
		}
	}
	return ""
}

func candidates(opts Options) []string {
	if opts.Path != "" {
		return []string{opts.Path}
	}
	var list []string
	if env, _ := ReadEnv(opts.env()); env.StateDir != "" {
		list = append(list, filepath.Join(env.StateDir, FileName))
	}
	return append(list, filepath.Join(opts.Dir, FileName))
}

// Load finds and reads the configuration. Without a file the defaults are used; Config.Path says
// which file it was. The error is an *Error.
func Load(opts Options) (*Config, []Warning, error) {
	path := Locate(opts)
	if path == "" {
		return parse("", nil, opts)
	}
	return loadFile(path, opts)
}

func loadFile(path string, opts Options) (*Config, []Warning, error) {
	fail := func(text, hint string) (*Config, []Warning, error) {
		return nil, nil, &Error{Problems: []Problem{{File: path, Text: text, Hint: hint}}}
	}
	data, info, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail("there is no such file", "bot config init writes one")
	case err != nil:
		return fail("it cannot be read: "+reasonOf(err), "")
	}
	if env, _ := ReadEnv(opts.env()); opts.Path == "" && (env.StateDir == "" || !sameFile(path, filepath.Join(env.StateDir, FileName))) {
		opts.distrust = distrust(info)
	}
	c, warnings, err := parse(path, data, opts)
	if err != nil {
		return nil, nil, err
	}
	if info.Mode().Perm()&0o004 != 0 && len(c.plaintext) > 0 && !opts.InsecurePerms {
		return fail(fmt.Sprintf("every user of this machine can read the secret in %s", strings.Join(c.plaintext, ", ")),
			"chmod 600 the file, or refer to the secret with ${NAME} or file:/path")
	}
	c.Path, c.stamp = path, stampOf(path, info)
	c.stamp.texts = marks(c.texts)
	return c, warnings, nil
}

// readFile reads a configuration file, at most one byte more than is allowed.
func readFile(path string) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	return data, info, err
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// distrust says why a file that merely lay in the working directory must name neither secrets nor
// where they go, or "".
func distrust(info fs.FileInfo) string {
	if info.Mode().Perm()&0o002 != 0 {
		return "every user of this machine can change the file"
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return "the file belongs to another user"
	}
	return ""
}
