package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"understudy/config"
)

// ConfigCheck is `bot config check`: it explains every problem with its place.
func ConfigCheck(o Options, std Std) int {
	cfg, warnings, err := config.Load(loadOptions(o))
	if err != nil {
		fmt.Fprintln(std.Err, err)
		return ExitFailed
	}
	for _, w := range warnings {
		fmt.Fprintln(std.Err, "warning:", w)
	}
	for _, u := range cfg.Unavailable {
		fmt.Fprintln(std.Err, "unavailable:", u.Problem)
	}
	if cfg.Path == "" {
		fmt.Fprintln(std.Out, "There is no configuration file; the defaults are used. bot config init writes one.")
		return ExitOK
	}
	fmt.Fprintf(std.Out, "%s: ok\n", cfg.Path)
	return ExitOK
}

// ConfigInit is `bot config init`: it writes a starting point, and never over something else.
func ConfigInit(std Std, file string) int {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fail(std, fmt.Errorf("%s exists already; name another file: bot config init FILE", file))
	}
	if err != nil {
		return fail(std, err)
	}
	if err := errors.Join(config.Init(f), f.Close()); err != nil {
		return fail(std, err)
	}
	fmt.Fprintf(std.Out, "Wrote %s. Edit it, then: bot config check --config %s\n", file, file)
	return ExitOK
}

// ConfigShow is `bot config show`.
func ConfigShow(o Options, std Std) int {
	cfg, _, err := config.Load(loadOptions(o))
	if err != nil {
		return fail(std, err)
	}
	text, err := cfg.Redacted()
	if err != nil {
		return fail(std, err)
	}
	fmt.Fprint(std.Out, string(text))
	return ExitOK
}

// ConfigSchema is `bot config schema`.
func ConfigSchema(std Std) int {
	text, err := config.Schema()
	if err != nil {
		return fail(std, err)
	}
	fmt.Fprintln(std.Out, string(text))
	return ExitOK
}
