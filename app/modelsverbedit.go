package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"understudy/config"
	"understudy/internal/redact"
	"understudy/llm"
)

// ModelsChange is one change of the configured models; exactly one field is set.
type ModelsChange struct {
	Primary     string
	Add, Remove string // of fallbacks
	Clear       bool
}

// ModelsEdit is `bot models set` and `bot models fallbacks …`: it changes agents.defaults.model in the
// configuration file and nothing else there. The new text is checked before it takes the place of the
// old one; a running bot notices by itself.
func ModelsEdit(o Options, std Std, change ModelsChange, dryRun bool) int {
	cfg, _, err := config.Load(loadOptions(o))
	if err != nil {
		return fail(std, err)
	}
	if cfg.Path == "" {
		return fail(std, errors.New("there is no configuration file to change; bot config init writes one"))
	}
	path, err := filepath.EvalSymlinks(cfg.Path)
	if err != nil {
		return fail(std, err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		return fail(std, err)
	}
	after, err := edited(o, cfg, before, change)
	if err != nil {
		return fail(std, err)
	}
	hide := redact.New()
	hide.Add(cfg.Secrets()...)
	switch {
	case bytes.Equal(before, after):
		fmt.Fprintln(std.Out, "That is so already; nothing was changed.")
		return ExitOK
	case dryRun:
		err = printChange(std.Out, cfg.Path, hide.Text(string(before)), hide.Text(string(after)))
	default:
		err = replaceFile(path, before, after)
	}
	if err != nil {
		return fail(std, err)
	}
	if !dryRun {
		fmt.Fprintf(std.Out, "Changed %s. A running bot takes it over within seconds.\n", cfg.Path)
	}
	return ExitOK
}

// edited returns the text after a change, which is a valid configuration that differs in the models
// alone.
func edited(o Options, cfg *config.Config, text []byte, change ModelsChange) ([]byte, error) {
	if id := cfg.DefaultAgent(); cfg.Agent(id).Models.Own {
		return nil, fmt.Errorf("agent %s has a model of its own in agents.list, so agents.defaults.model does not count for it; edit the file by hand", id)
	}
	want, err := change.of(cfg)
	if err != nil {
		return nil, err
	}
	after, err := setModel(text, want.Primary, want.Fallbacks)
	if err != nil {
		return nil, err
	}
	got, _, err := config.Parse(cfg.Path, after, o.env())
	if err != nil {
		return nil, err
	}
	old, now := cfg.File, got.File
	if !slices.Equal(now.Agents.Defaults.Model.Fallbacks, want.Fallbacks) || now.Agents.Defaults.Model.Primary != want.Primary {
		return nil, errByHand
	}
	old.Agents.Defaults.Model, now.Agents.Defaults.Model = config.ModelChoice{}, config.ModelChoice{}
	if !reflect.DeepEqual(old, now) {
		return nil, errByHand
	}
	return after, nil
}

// of returns the models as they are to be written. What stays keeps its spelling.
func (x ModelsChange) of(cfg *config.Config) (config.ModelChoice, error) {
	want := cfg.Agents.Defaults.Model
	want.Fallbacks = slices.Clone(want.Fallbacks)
	if x.Primary != "" {
		ref, err := named(cfg, x.Primary)
		if at, e := named(cfg, want.Primary); err == nil && (e != nil || at != ref) {
			want.Primary = ref.String()
		}
		return want, err
	}
	if want.Primary == "" {
		return want, errors.New("no model is configured yet: bot models set <provider/model>")
	}
	switch {
	case x.Clear:
		want.Fallbacks = nil
	case x.Add != "":
		ref, err := named(cfg, x.Add)
		if err != nil {
			return want, err
		}
		if primary, _ := named(cfg, want.Primary); primary == ref {
			return want, fmt.Errorf("%s is the configured model itself", ref)
		}
		if at(cfg, want.Fallbacks, ref) < 0 {
			want.Fallbacks = append(want.Fallbacks, ref.String())
		}
	default:
		ref, err := named(cfg, x.Remove)
		if err != nil {
			return want, err
		}
		i := at(cfg, want.Fallbacks, ref)
		if i < 0 {
			return want, fmt.Errorf("%s is not among the fallbacks", ref)
		}
		want.Fallbacks = slices.Delete(want.Fallbacks, i, i+1)
	}
	return want, nil
}

func at(cfg *config.Config, list []string, ref llm.ModelRef) int {
	return slices.IndexFunc(list, func(text string) bool {
		got, err := named(cfg, text)
		return err == nil && got == ref
	})
}

// named reads a reference or an alias; a bare id of a guessed provider is not good enough for a file.
func named(cfg *config.Config, text string) (llm.ModelRef, error) {
	choice, err := cfg.Resolve(text, config.Known{})
	switch {
	case err != nil:
		return llm.ModelRef{}, err
	case choice.Guessed:
		return llm.ModelRef{}, fmt.Errorf("%q: name the provider too, as in %s", text, choice.Ref)
	case choice.Profile != "":
		return llm.ModelRef{}, fmt.Errorf("%q: a profile cannot be configured here; see bot auth order", text)
	}
	return choice.Ref, nil
}

// replaceFile puts a text in the place of a file at once, if that is still what it was. The new file is
// its owner's alone.
func replaceFile(path string, before, after []byte) (err error) {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".bot-*.yaml")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(after) // CreateTemp makes it 0600
	if st, ok := info.Sys().(*syscall.Stat_t); ok && err == nil && int(st.Uid) != os.Geteuid() {
		err = f.Chown(int(st.Uid), int(st.Gid))
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	now, err := os.ReadFile(path)
	if err == nil && !bytes.Equal(now, before) {
		err = fmt.Errorf("%s was changed by somebody else meanwhile; nothing was written", path)
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// printChange shows the lines that differ between two texts.
func printChange(w io.Writer, name, before, after string) error {
	a, b := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s, line %d:\n", name, head+1)
	writeLines(&out, "-", a[head:len(a)-tail])
	writeLines(&out, "+", b[head:len(b)-tail])
	_, err := io.WriteString(w, out.String())
	return err
}

func writeLines(b *strings.Builder, sign string, lines []string) {
	for _, l := range lines {
		if l != "" {
			b.WriteString(sign + " " + strings.TrimSuffix(l, "\n") + "\n")
		}
	}
}
