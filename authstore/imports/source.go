package imports

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"understudy/internal/sqlite"
)

// maxDocument bounds a document, in bytes.
const maxDocument = 8 << 20

// Names of the files and folders of spec/imports.md, below a state directory.
const (
	signInsFile  = "credentials/oauth.json"
	profilesFile = "auth-profiles.json"
	stateFile    = "auth-state.json"
	authFile     = "auth.json"
	agentStore   = "openclaw-agent.sqlite"
	machineStore = "state/openclaw.sqlite"
)

// source is one file or database to import.
type source struct {
	path   string // absolute
	format Format
	db     []document // of a database: what to read; nil = path is a JSON file
	keep   bool       // it is not renamed afterwards
	adopt  bool       // its sign-ins are taken only when that was asked for
}

// document is a row of a database that holds one.
type document struct {
	table  sqlite.Table
	key    string
	format Format
}

// raw is what was read of a source.
type raw struct {
	docs  []content
	size  int64
	sum   string
	info  fs.FileInfo // of a file
	inUse bool        // its program may be running
}

type content struct {
	name   string // of the document within a database
	format Format
	data   []byte
}

// agentSources lists what belongs to one agent, what counts most first. own tells that dir is our
// own state directory, whose databases are ours; main that the agent is the default one.
func agentSources(dir, agent string, own, main bool) []source {
	folder := filepath.Join(dir, "agents", agent, "agent")
	var list []source
	if !own {
		list = append(list, source{path: filepath.Join(folder, agentStore), db: []document{
			{sqlite.Table{Name: "auth_profile_store", Key: "store_key", Value: "store_json"}, "primary", FormatProfiles},
			{sqlite.Table{Name: "auth_profile_state", Key: "state_key", Value: "state_json"}, "primary", FormatState},
		}, keep: true, adopt: true})
		if main {
			table := sqlite.Table{Name: "config_machine_state", Key: "state_key", Value: "value_json"}
			list = append(list, source{path: filepath.Join(dir, machineStore), db: []document{
				{table, "authProfiles.store", FormatProfiles}, {table, "authProfiles.state", FormatState},
			}, keep: true, adopt: true})
		}
	}
	list = append(list,
		source{path: filepath.Join(folder, profilesFile), format: FormatProfiles, keep: !own, adopt: !own},
		source{path: filepath.Join(folder, stateFile), format: FormatState, keep: !own, adopt: !own},
		source{path: filepath.Join(folder, authFile), format: FormatAuth, keep: !own, adopt: !own},
	)
	if main {
		list = append(list, source{path: filepath.Join(dir, signInsFile), format: FormatOAuth, keep: true, adopt: !own})
	}
	return list
}

// agentsIn lists the agents that have a folder in a state directory; main comes first.
func agentsIn(dir, main string) []string {
	list := []string{main}
	entries, err := os.ReadDir(filepath.Join(dir, "agents"))
	if err != nil {
		return list
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != main && agentID(e.Name()) {
			list = append(list, e.Name())
		}
	}
	return list
}

// agentID reports whether a folder's name can be the id of an agent.
func agentID(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// read reads a source once. fs.ErrNotExist tells that there is none.
func (s source) read(ctx context.Context, scratch string, now time.Time) (raw, error) {
	if s.db == nil {
		data, info, err := readFile(s.path)
		if err != nil {
			return raw{}, err
		}
		sum := sha256.Sum256(data)
		return raw{docs: []content{{format: s.format, data: data}}, size: int64(len(data)), sum: hex.EncodeToString(sum[:]), info: info}, nil
	}
	db, err := sqlite.OpenForeign(ctx, s.path, scratch)
	if err != nil {
		return raw{}, err
	}
	r := raw{inUse: db.Open || locked(s.path, now)}
	hash := sha256.New()
	for _, d := range s.db {
		data, ok, err := db.Document(ctx, d.table, d.key, maxDocument)
		if err != nil {
			return raw{}, errors.Join(err, db.Close())
		}
		if !ok {
			continue
		}
		r.docs = append(r.docs, content{name: d.table.Name + " " + d.key, format: d.format, data: data})
		r.size += int64(len(data))
		fmt.Fprintf(hash, "%s %d\n", d.key, len(data))
		hash.Write(data)
	}
	r.sum = hex.EncodeToString(hash.Sum(nil))
	return r, db.Close()
}

// readFile reads a document from a regular file that is no symbolic link.
func readFile(path string) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, nil, errors.New("it is a symbolic link")
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, errors.New("it is not a regular file")
	case info.Size() > maxDocument:
		return nil, nil, errors.New("it is larger than 8 MiB")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err == nil && len(data) > maxDocument {
		err = errors.New("it is larger than 8 MiB")
	}
	return data, info, err
}

// freshLock is how recently a lock file must have been touched for its program to count as running.
const freshLock = 10 * time.Minute

// locked reports whether a fresh lock file lies beside a database.
func locked(path string, now time.Time) bool {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		info, err := e.Info()
		return err == nil && (strings.HasSuffix(e.Name(), ".lock") || strings.HasSuffix(e.Name(), ".pid")) && now.Sub(info.ModTime()) < freshLock
	})
}

// archive takes an imported file out of the way: it keeps its contents, for its owner only. It
// returns the new name. A file that is not the one that was read stays.
func archive(path string, read fs.FileInfo, now time.Time) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return "", err
	}
	info, err := f.Stat()
	if err == nil && (!os.SameFile(info, read) || info.Size() != read.Size() || !info.ModTime().Equal(read.ModTime())) {
		err = errors.New("it changed while it was imported")
	}
	if err == nil {
		err = f.Chmod(0o600)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	base := path + ".imported-" + now.UTC().Format("20060102T150405Z")
	name := base
	for n := 2; ; n++ {
		err := os.Link(path, name) // never over another archive
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return base, os.Rename(path, base) // a file system without links
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
	if err := os.Remove(path); err != nil {
		return "", err
	}
	return name, syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
