package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/clusterawsadm/clusterawsadm/internal/clock"
	"github.com/clusterawsadm/clusterawsadm/pkg/plan"
)

// fileRecords stores lock records as files in a folder. The operating system locks one more
// file for as long as the process lives, so that no other process of the machine uses the
// records, whatever the clocks show. The file remains: another process may have opened it
// already.
type fileRecords struct {
	folder string
	clock  *clock.Clock
	lock   *flock.Flock
}

// open locks the folder for this process.
func (r *fileRecords) open(ctx context.Context) error {
	if err := os.MkdirAll(r.folder, 0o700); err != nil {
		return err
	}
	r.lock = flock.New(filepath.Join(r.folder, "running"))
	if locked, err := r.lock.TryLock(); err != nil || locked {
		return err
	}
	all, err := r.list(ctx)
	if err != nil {
		return err
	}
	if top := highest(all); top != nil && !top.Released {
		return lockedBy(*top)
	}
	return &plan.LockedError{Owner: "a process on this machine", Command: "active", Since: r.clock.Now()} // it has no record yet
}

func (r *fileRecords) close() error { return r.lock.Close() }

func (r *fileRecords) name(epoch int) string {
	return filepath.Join(r.folder, fmt.Sprintf("lock-%d.json", epoch))
}

func (r *fileRecords) list(context.Context) (out []Holder, err error) {
	files, err := os.ReadDir(r.folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, f := range files {
		if is, _ := filepath.Match("lock-*.json", f.Name()); !is {
			continue
		}
		name := filepath.Join(r.folder, f.Name())
		rec, err := r.load(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		rec.version, rec.age = rec.Version, r.clock.Since(rec.Seen)
		out = append(out, rec.Holder)
	}
	return out, nil
}

// fileRecord is a record as a file contains it.
type fileRecord struct {
	Holder
	Seen    time.Time `json:"seen"` // the time of the last heartbeat
	Version int64     `json:"version"`
	Before  *Holder   `json:"before,omitempty"` // the version before
}

func (*fileRecords) load(name string) (rec fileRecord, err error) {
	raw, err := os.ReadFile(name) //nolint:gosec // the name comes from the folder of the records
	if err != nil {
		return rec, err
	}
	epoch := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(name), "lock-"), ".json")
	if err := decodeRecord(raw, &rec, name, epoch); err != nil {
		err.Remedy = fmt.Sprintf("rm %q", name)
		return rec, err
	}
	return rec, nil
}

// put writes the record to a temporary file and then moves it into place, so that no
// reader sees a partial record.
func (r *fileRecords) put(rec fileRecord, place func(from, to string) error) error {
	rec.Seen = r.clock.Now()
	raw, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(r.folder, "writing-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // fails after a rename
	_, err = f.Write(raw)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return place(f.Name(), r.name(rec.Epoch))
}

func (r *fileRecords) create(_ context.Context, h Holder) (taken bool, err error) {
	err = r.put(fileRecord{Holder: h, Version: 1}, os.Link) // unlike os.Rename, os.Link fails if the target exists
	if errors.Is(err, fs.ErrExist) {
		return true, nil
	}
	return false, err
}

func (r *fileRecords) write(_ context.Context, h Holder) (version int64, err error) {
	before, err := r.load(r.name(h.Epoch))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	rec := fileRecord{Holder: h, Version: before.Version + 1, Before: &before.Holder}
	return rec.Version, r.put(rec, os.Rename)
}

func (*fileRecords) kept() int64 { return 1 }

func (r *fileRecords) read(_ context.Context, epoch int, version int64) (h Holder, err error) {
	rec, err := r.load(r.name(epoch))
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return h, err
	case version == rec.Version:
		return rec.Holder, nil
	case version == rec.Version-1 && rec.Before != nil:
		return *rec.Before, nil
	}
	return h, nil
}

func (*fileRecords) transient(error) bool { return false }

func (r *fileRecords) remove(_ context.Context, epoch int) error {
	err := os.Remove(r.name(epoch))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
