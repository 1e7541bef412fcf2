package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/goccy/go-yaml/ast"

	"understudy/internal/secret"
	"understudy/llm"
)

// maxSecretBytes bounds a secret file (spec/chat.md §7.7).
const maxSecretBytes = 64 << 10

var variable = regexp.MustCompile(`\$?\$\{([A-Z_][A-Z0-9_]*)\}`)

// expand replaces ${NAME} by the environment variable of that name; $${NAME} stands for the text
// ${NAME} itself. A variable that is not set is a problem.
func (d *decoder) expand(n ast.Node, s, path string) (string, bool) {
	out, missing := d.expandVars(s)
	if missing != "" {
		d.problem(n, path, fmt.Sprintf("the environment variable %s is not set", missing), "write $${"+missing+"} for the text itself")
		return "", false
	}
	return out, true
}

func (d *decoder) expandVars(s string) (out, missing string) {
	if !strings.Contains(s, "${") {
		return s, ""
	}
	out = variable.ReplaceAllStringFunc(s, func(m string) string {
		if strings.HasPrefix(m, "$$") {
			return m[1:]
		}
		name := m[2 : len(m)-1]
		value, ok := d.env(name)
		if !ok && missing == "" {
			missing = name
		}
		return value
	})
	return out, missing
}

// secretRef is the long form of a reference to a secret.
type secretRef struct {
	Source string `yaml:"source" enum:"env|file" required:"true"`
	ID     string `yaml:"id"`
	Path   string `yaml:"path"`
}

// secret resolves a secret (spec/chat.md §7.7): ${NAME}, file:/path, {source: env, id: NAME},
// {source: file, path: /path}, or the text itself. The text never appears in a message.
func (d *decoder) secret(n ast.Node, path string) secret.String {
	if d.distrust != "" {
		d.problem(n, path, "a secret is named here, but "+d.distrust, "name the file with --config if you trust it")
		return secret.String{}
	}
	if t := n.Type(); t == ast.MappingType || t == ast.MappingValueType {
		var ref secretRef
		before := len(d.problems)
		d.section(n, reflect.ValueOf(&ref).Elem(), path)
		switch {
		case len(d.problems) > before:
			return secret.String{}
		case ref.Source == "env":
			return d.secretFromEnv(n, path, ref.ID)
		}
		return d.secretFromFile(n, path, ref.Path)
	}
	s, err := scalarText(n)
	if err != nil {
		d.problem(n, path, "here a secret is expected, not "+kindOf(n), "write ${NAME} or file:/path")
		return secret.String{}
	}
	if file, ok := strings.CutPrefix(s, "file:"); ok {
		return d.secretFromFile(n, path, file)
	}
	out, missing := d.expandVars(s)
	switch {
	case missing != "":
		d.unresolved(n, path, fmt.Sprintf("the environment variable %s is not set", missing))
		return secret.String{}
	case s != "" && out == "":
		d.unresolved(n, path, "the environment variable is empty")
		return secret.String{}
	case out == s && strings.Contains(s, "${"):
		d.problem(n, path, "this is not a variable that can be replaced", "names are upper-case: ${OPENAI_API_KEY}")
		return secret.String{}
	case out == s && s != "" && confidential(path):
		d.plaintext = append(d.plaintext, path)
	}
	return d.keep(out)
}

// confidential reports whether the value of a key would open something. Most headers do not.
func confidential(path string) bool {
	parts := splitPath(path)
	if len(parts) < 2 || parts[len(parts)-2] != "headers" {
		return true
	}
	name := strings.ToLower(parts[len(parts)-1])
	return slices.ContainsFunc([]string{"auth", "key", "token", "secret", "cookie", "password"}, func(w string) bool { return strings.Contains(name, w) })
}

// keep remembers a resolved secret for redaction. Very short ones are left out: replacing them
// would tear ordinary words apart, and they protect nothing.
func (d *decoder) keep(s string) secret.String {
	v := secret.New(s)
	if len(v.Reveal()) >= 6 {
		d.secrets = append(d.secrets, v)
	}
	return v
}

func (d *decoder) secretFromEnv(n ast.Node, path, name string) secret.String {
	if m := variable.FindString("${" + name + "}"); m != "${"+name+"}" {
		d.problem(n, path, fmt.Sprintf("%s is not the name of an environment variable", quote(name)), "give it as id, in upper case")
		return secret.String{}
	}
	value, ok := d.env(name)
	if !ok || strings.TrimSpace(value) == "" {
		d.unresolved(n, path, fmt.Sprintf("the environment variable %s is not set", name))
		return secret.String{}
	}
	return d.keep(value)
}

func (d *decoder) secretFromFile(n ast.Node, path, file string) secret.String {
	if !strings.HasPrefix(file, "/") {
		d.problem(n, path, fmt.Sprintf("%s is not an absolute path", quote(file)), "for example file:/run/secrets/openai")
		return secret.String{}
	}
	data, err := d.readSecret(file)
	if err == nil && strings.TrimSpace(string(data)) == "" {
		err = errors.New("the file is empty")
	}
	if err != nil {
		d.unresolved(n, path, fmt.Sprintf("the secret file %s cannot be used: %s", quote(file), reasonOf(err)))
		return secret.String{}
	}
	return d.keep(strings.TrimRight(string(data), "\r\n"))
}

// reasonOf drops the path that *fs.PathError repeats.
func reasonOf(err error) string {
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return err.Error()
}

// unresolved notes a reference that leads nowhere: what can do without is switched off by it, the rest
// cannot be used.
func (d *decoder) unresolved(n ast.Node, path, reason string) {
	u := ownerOf(path)
	if u == (Unavailable{}) {
		d.problem(n, path, reason, "")
		return
	}
	u.Problem = d.about(path, reason, "")
	d.unavailable = append(d.unavailable, u)
}

// ownerOf names what can be switched off alone and that a key belongs to; zero = nothing.
func ownerOf(path string) Unavailable {
	if part := speechPart(path); part != "" {
		return Unavailable{Part: part}
	}
	parts := splitPath(path)
	switch {
	case len(parts) > 3 && (parts[0] == "models" || parts[0] == "auth") && parts[1] == "providers":
		return Unavailable{Provider: llm.NormalizeProvider(parts[2])}
	case len(parts) > 4 && parts[0] == "channels" && parts[2] == "accounts":
		return Unavailable{Channel: parts[1], Account: parts[3]}
	case len(parts) > 2 && parts[0] == "channels":
		return Unavailable{Channel: parts[1]}
	case len(parts) > 3 && parts[0] == "mcp" && parts[1] == "servers":
		return Unavailable{Part: join("mcp.servers", parts[2])}
	case len(parts) > 1 && parts[0] == "stt":
		return Unavailable{Part: "stt"}
	}
	return Unavailable{}
}

// splitPath undoes join.
func splitPath(path string) []string {
	var parts []string
	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok {
			if quoted, err := strconv.QuotedPrefix(rest); err == nil {
				key, _ := strconv.Unquote(quoted)
				parts, path = append(parts, key), strings.TrimPrefix(strings.TrimPrefix(rest[len(quoted):], "]"), ".")
				continue
			}
		}
		i := strings.IndexAny(path, ".[")
		switch {
		case i < 0:
			return append(parts, path)
		case i == 0: // an index
			_, path, _ = strings.Cut(path, "]")
			path = strings.TrimPrefix(path, ".")
			continue
		}
		parts = append(parts, path[:i])
		path = strings.TrimPrefix(path[i:], ".")
	}
	return parts
}

// readSecretFile reads a secret from a regular file that strangers cannot read.
func readSecretFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, errors.New("it is a symbolic link")
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Mode().Perm()&0o004 != 0:
		return nil, errors.New("every user of this machine can read it: chmod o-r")
	case info.Size() > maxSecretBytes:
		return nil, errors.New("it is larger than 64 KiB")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSecretBytes+1))
	if err == nil && len(data) > maxSecretBytes {
		err = errors.New("it is larger than 64 KiB")
	}
	return data, err
}
