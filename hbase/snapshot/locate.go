package snapshot

import (
	"context"
	"io"

	"hbackup"
	"hbackup/hbase/rootfs"
)

// Candidates gives the paths at which a living root directory may hold the
// target, the likeliest first. HBase moves files from one to another by renaming
// at any moment: a compacted file, or one of a dropped table, goes to the archive.
func Candidates(root string, t Target) [4]string {
	if t.MOB {
		return [4]string{MOBPath(root, t), ArchivePath(root, t), DataPath(root, t), TempPath(root, t)}
	}
	return [4]string{DataPath(root, t), ArchivePath(root, t), TempPath(root, t), MOBPath(root, t)}
}

// looks is how often the whole list of candidates is tried. A file that is
// renamed between two looks, from a place not yet tried to one already tried, is
// missed by a single pass.
const looks = 2

// Locate finds the target in a living root directory. One that is at none of its
// places, tried twice, is KindIncomplete.
func Locate(ctx context.Context, fs FS, root string, t Target) (rootfs.Info, error) {
	var found rootfs.Info
	err := tryAll(fs, root, t, func(p string) error {
		info, err := fs.Stat(ctx, p)
		if err == nil && info.Dir {
			return hbackup.Errorf("locate store file", fs.URI()+p, hbackup.KindCorrupt, "it is a directory")
		}
		found = info
		return err
	})
	return found, err
}

// tryAll calls try for each candidate until one is there.
func tryAll(fs FS, root string, t Target, try func(path string) error) error {
	const op = "locate store file"
	if err := t.Validate(); err != nil {
		return hbackup.E(op, root, hbackup.KindCorrupt, err)
	}
	paths := Candidates(root, t)
	for range looks {
		for _, p := range paths {
			err := try(p)
			if err == nil {
				return nil
			}
			if !hbackup.IsKind(err, hbackup.KindNotFound) {
				return hbackup.E(op, fs.URI()+p, hbackup.KindOther, err)
			}
		}
	}
	return missing(fs, root, t)
}

func missing(fs FS, root string, t Target) *hbackup.Error {
	return hbackup.Errorf("locate store file", fs.URI()+ArchivePath(root, t), hbackup.KindIncomplete,
		"%s is neither there nor at any other place where HBase keeps store files", t).
		WithHint("HBase has lost or deleted the file; compact or repair the table and take a new snapshot")
}

// Open opens the target for one pass from the given offset and follows it when
// HBase renames it before or while it is read. Errors, from Open and from the
// reader: KindIncomplete when the file is truly missing, KindCorrupt when another
// file has taken its place, else those of the file system.
func Open(ctx context.Context, fs FS, root string, t Target, offset int64) (io.ReadCloser, rootfs.Info, error) {
	r := &follower{ctx: ctx, fs: fs, root: root, target: t, offset: offset}
	if err := r.open(); err != nil {
		return nil, rootfs.Info{}, err
	}
	return r, r.info, nil
}

// follower reads a file that may be renamed.
type follower struct {
	ctx    context.Context
	fs     FS
	root   string
	target Target
	offset int64 // of the next byte
	file   io.ReadCloser
	info   rootfs.Info
	stuck  int // times the file was opened again without a byte in between
}

// open finds the file again and goes on at the offset.
func (r *follower) open() error {
	return tryAll(r.fs, r.root, r.target, func(p string) error {
		file, info, err := r.fs.Open(r.ctx, p, r.offset)
		if err != nil {
			return err
		}
		was := r.info
		if was.Path != "" && (was.Size != info.Size || was.ID != info.ID) {
			file.Close()
			return hbackup.Errorf("read store file", r.fs.URI()+p, hbackup.KindCorrupt,
				"another file has taken its place: %d bytes instead of %d", info.Size, was.Size)
		}
		r.file, r.info = file, info
		return nil
	})
}

func (r *follower) Read(p []byte) (int, error) {
	for {
		n, err := r.file.Read(p)
		r.offset += int64(n)
		if n > 0 {
			r.stuck = 0
		}
		if err == nil || !hbackup.IsKind(err, hbackup.KindNotFound) {
			return n, err
		}
		if n > 0 {
			return n, nil // the next call meets the error again
		}
		if r.stuck++; r.stuck > looks {
			return 0, hbackup.E("read store file", r.fs.URI()+r.info.Path, hbackup.KindIncomplete, err)
		}
		r.file.Close() // it has failed already
		if err := r.open(); err != nil {
			r.file = failed{err}
			return 0, err
		}
	}
}

func (r *follower) Close() error { return r.file.Close() }

// failed is a file that could not be opened again.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }
func (f failed) Close() error             { return nil }
