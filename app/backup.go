package app

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"understudy/config"
	"understudy/internal/sqlite"
)

// Backup is `bot backup`: one archive with a copy of the conversations as they are at this moment and
// the configuration in effect without secrets. Credentials are not in it. A running bot does not mind.
func Backup(ctx context.Context, o Options, std Std, file string) int {
	if err := backup(ctx, o, file); err != nil {
		return fail(std, err)
	}
	fmt.Fprintf(std.Out, "Wrote %s. It holds conversations in plain text, and no credentials: those stay in the state directory.\n", file)
	return ExitOK
}

func backup(ctx context.Context, o Options, file string) (err error) {
	cfg, _, err := config.Load(loadOptions(o))
	if err != nil {
		return err
	}
	settings, err := cfg.Redacted()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			err = errors.Join(err, os.Remove(file)) // half a backup is none
		}
	}()
	copied, err := os.CreateTemp(filepath.Dir(file), ".bot-*.sqlite") // 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, copied.Close(), os.Remove(copied.Name())) }()
	if err := copyDatabase(ctx, o, copied.Name()); err != nil {
		return err
	}
	return archive(out, strings.HasSuffix(file, ".gz") || strings.HasSuffix(file, ".tgz"), settings, copied, o.Clock.Now())
}

// copyDatabase writes a consistent copy into an empty file.
func copyDatabase(ctx context.Context, o Options, to string) error {
	env, _ := config.ReadEnv(o.env())
	if _, err := os.Stat(filepath.Join(env.StateDir, "state", "bot.sqlite")); err != nil {
		return errNoDatabase
	}
	return withState(ctx, o, func(db *sqlite.DB) error {
		if _, err := db.Writer().ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
			return fmt.Errorf("copying the database: %w", err)
		}
		return nil
	})
}

// archive writes the parts of a backup as a tar file.
func archive(out io.Writer, zipped bool, settings []byte, database *os.File, at time.Time) error {
	packed := io.WriteCloser(nopCloser{out})
	if zipped {
		packed = gzip.NewWriter(out)
	}
	info, err := os.Stat(database.Name())
	if err != nil {
		return err
	}
	w := tar.NewWriter(packed)
	part := func(name string, size int64, content io.Reader) error {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: at, Format: tar.FormatPAX}); err != nil {
			return err
		}
		_, err := io.Copy(w, content)
		return err
	}
	err = errors.Join(
		part("bot.yaml", int64(len(settings)), strings.NewReader(string(settings))),
		part("state/bot.sqlite", info.Size(), database),
	)
	return errors.Join(err, w.Close(), packed.Close())
}

// nopCloser is a writer that somebody else closes.
type nopCloser struct{ io.Writer }

// Close implements io.Closer.
func (nopCloser) Close() error { return nil }
