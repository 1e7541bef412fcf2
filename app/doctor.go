package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"understudy/authstore/imports"
	"understudy/config"
)

// DoctorOptions say what `bot doctor` does beside looking.
type DoctorOptions struct {
	Fix        bool
	From       string // another program's state directory to import from
	AdoptOAuth bool   // with From: take its sign-ins too
	Probe      bool   // ask providers with every credential, and the platforms of channels
	JSON       bool
}

// level is how bad a finding is.
type level string

const (
	levelOK    level = "ok"
	levelWarn  level = "warn"
	levelError level = "error"
)

// finding is one result of a check.
type finding struct {
	Check string `json:"check"` // what was looked at: config, files, secrets, credentials, models, import, channels, messages, sessions, tasks, speech, tools, system
	Level level  `json:"level"`
	Text  string `json:"message"`
	Fix   string `json:"fix,omitempty"` // what a person can do
	// Import is the source that the finding is about.
	Import *imports.Result `json:"import,omitempty"`
}

// doctor looks at one installation. What it finds is in the order of looking.
type doctor struct {
	opts     Options
	do       DoctorOptions
	state    string
	cfg      *config.Config // nil = the configuration is not usable
	keys     *keyring       // nil likewise
	now      time.Time
	findings []finding
}

func (d *doctor) ok(check, text string, args ...any) {
	d.findings = append(d.findings, finding{Check: check, Level: levelOK, Text: fmt.Sprintf(text, args...)})
}

func (d *doctor) warn(check, fix, text string, args ...any) {
	d.findings = append(d.findings, finding{Check: check, Level: levelWarn, Fix: fix, Text: fmt.Sprintf(text, args...)})
}

func (d *doctor) bad(check, fix, text string, args ...any) {
	d.findings = append(d.findings, finding{Check: check, Level: levelError, Fix: fix, Text: fmt.Sprintf(text, args...)})
}

// healthy reports whether nothing is an error.
func (d *doctor) healthy() bool {
	for _, f := range d.findings {
		if f.Level == levelError {
			return false
		}
	}
	return true
}

// Doctor is `bot doctor`: it looks at configuration, files, secrets and credentials and says how to
// put things right; with Fix it does what it can. It exits 1 when something is wrong, and always 0
// with JSON (spec/chat.md §7.2).
func Doctor(ctx context.Context, o Options, std Std, do DoctorOptions) int {
	if do.From != "" && !do.Fix {
		fmt.Fprintln(std.Err, "bot: --from imports credentials, so it needs --fix")
		return ExitUsage
	}
	d := &doctor{opts: o, do: do, now: o.Clock.Now()}
	d.config()
	if d.state == "" {
		d.bad("files", "set OPENCLAW_STATE_DIR", "there is no home directory and no state directory")
	} else {
		d.files()
		d.imports(ctx)
		d.databases(ctx)
		d.disk()
	}
	if d.cfg != nil && d.state != "" {
		d.secrets()
		d.credentials(ctx)
		d.channels(ctx)
		d.voices()
	}
	if d.state != "" {
		d.undelivered(ctx)
	}
	d.surroundings()
	d.toolServers(ctx)
	d.clock(ctx)
	if d.keys != nil {
		if err := d.keys.close(); err != nil {
			d.bad("credentials", "", "a credential store could not be closed: %s", err)
		}
	}
	return d.report(std)
}

// report prints the findings.
func (d *doctor) report(std Std) int {
	if d.do.JSON {
		if err := printJSON(std.Out, map[string]any{"ok": d.healthy(), "findings": d.findings}); err != nil {
			return fail(std, err)
		}
		return ExitOK
	}
	if err := d.print(std.Out); err != nil {
		return fail(std, err)
	}
	if !d.healthy() {
		return ExitFailed
	}
	return ExitOK
}

func (d *doctor) print(w io.Writer) error {
	var errs []error
	for _, f := range d.findings {
		_, err := fmt.Fprintf(w, "%-5s  %s: %s\n", f.Level, f.Check, f.Text)
		errs = append(errs, err)
		if f.Fix != "" {
			_, err := fmt.Fprintf(w, "       → %s\n", f.Fix)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// config reads the configuration. Everything else is looked at with or without it.
func (d *doctor) config() {
	env, _ := config.ReadEnv(d.opts.env())
	d.state = env.StateDir
	cfg, warnings, err := config.Load(loadOptions(d.opts))
	var bad *config.Error
	switch {
	case errors.As(err, &bad):
		for _, p := range bad.Problems {
			d.bad("config", "", "%s", p.String())
		}
		return
	case err != nil:
		d.bad("config", "", "%s", err)
		return
	}
	for _, w := range warnings {
		d.warn("config", "", "%s", w.String())
	}
	if cfg.Path == "" {
		d.ok("config", "there is no configuration file; the defaults are used")
	} else {
		d.ok("config", "%s is valid", cfg.Path)
	}
	d.cfg = cfg
	if d.state == "" {
		return
	}
	if d.keys, err = newKeyring(d.opts, cfg); err != nil {
		d.bad("config", "", "auth.providers: %s", err)
	}
}
