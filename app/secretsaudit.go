package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"understudy/authstore/imports"
)

// SecretsAudit is `bot secrets audit`: it looks for secrets that stand in the configuration itself,
// references that lead nowhere, credentials in files of other forms, and files that others can read. It
// changes nothing and shows no secret. It exits 1 when there is something to put right.
func SecretsAudit(ctx context.Context, o Options, std Std, asJSON bool) int {
	d := &doctor{opts: o, now: o.Clock.Now(), do: DoctorOptions{JSON: asJSON}}
	d.config()
	d.configMode()
	if d.state != "" {
		d.files()
		d.leftovers(ctx)
	}
	if d.cfg != nil {
		d.secrets()
	}
	if d.keys != nil {
		if err := d.keys.close(); err != nil {
			d.bad("credentials", "", "a credential store could not be closed: %s", err)
		}
	}
	if code := d.report(std); code != ExitOK {
		return code
	}
	for _, f := range d.findings {
		if f.Level != levelOK {
			return ExitFailed
		}
	}
	return ExitOK
}

// configMode looks at who can read the configuration.
func (d *doctor) configMode() {
	if d.cfg == nil || d.cfg.Path == "" {
		return
	}
	info, err := os.Stat(d.cfg.Path)
	switch {
	case err != nil:
		d.bad("files", "", "%s", err)
	case info.Mode().Perm()&0o022 != 0:
		d.bad("files", "chmod 600 "+d.cfg.Path, "other users can change %s (mode %04o)", d.cfg.Path, info.Mode().Perm())
	case info.Mode().Perm()&0o044 != 0 && len(d.cfg.Plaintext()) > 0:
		d.bad("files", "chmod 600 "+d.cfg.Path, "other users can read the secrets in %s (mode %04o)", d.cfg.Path, info.Mode().Perm())
	default:
		d.ok("files", "%s is closed to other users as far as it has to be", d.cfg.Path)
	}
}

// leftovers finds credentials that lie beside the stores: what waits to be imported, and what an import
// left behind.
func (d *doctor) leftovers(ctx context.Context) {
	if d.keys != nil {
		for _, r := range imports.Pending(ctx, d.keys.importing()) {
			d.warn("import", importCommand, "%s holds credentials in plain text", r.Source)
		}
	}
	err := filepath.WalkDir(d.state, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if ok, _ := filepath.Match("*.imported-*", e.Name()); ok {
				d.warn("import", "remove it when everything works: rm "+path, "%s still holds credentials that were imported", path)
			}
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.bad("files", "", "%s", err)
	}
}
