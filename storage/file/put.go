//go:build unix

package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sys/unix"

	"hbackup"
	"hbackup/storage"
)

// reserveFrom is the size from which room is reserved before writing.
const reserveFrom = 1 << 20

// buffers are for copying; the size is that at which system calls stop to matter.
var buffers = sync.Pool{New: func() any { return new([256 << 10]byte) }}

// Put writes a file and publishes it.
func (s *Store) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	if err := s.check(ctx, "put", key); err != nil {
		return storage.Object{}, err
	}
	if err := storage.CheckPut(ctx, s.location, key, opts); err != nil {
		return storage.Object{}, err
	}
	obj, err := s.put(ctx, key, body, opts)
	if err != nil {
		return storage.Object{}, s.err("put", key, err)
	}
	return obj, nil
}

func (s *Store) put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (obj storage.Object, err error) {
	root, err := s.makeRoot()
	if err != nil {
		return obj, err
	}
	defer root.Close()
	if err := s.mayPut(root, key, opts); err != nil {
		return obj, err
	}
	t, err := s.newTemp(root)
	if err != nil {
		return obj, err
	}
	defer t.discard()
	b := storage.NewBody(ctx, body, opts)
	if err := s.fill(t, b, opts.Size); err != nil {
		return obj, err
	}
	info, err := t.Stat()
	if err != nil {
		return obj, err
	}
	if info.Size() != opts.Size {
		return obj, hbackup.Errorf("write", t.Name(), hbackup.KindCorrupt, "the file has %d bytes; %d were written", info.Size(), opts.Size)
	}
	if err := ctx.Err(); err != nil {
		return obj, err
	}
	if err := s.publish(root, t, key, opts.IfAbsent); err != nil {
		return obj, err
	}
	obj = object(key, info)
	obj.Digest, obj.HasDigest = b.Digest(), true
	return obj, nil
}

// mayPut looks for what would make the put fail, before the body is read.
func (s *Store) mayPut(root dir, key storage.Key, opts storage.PutOptions) error {
	dirs, name := split(key)
	d, err := s.lookUp(root, dirs)
	switch {
	case err == nil:
		st, err := d.stat(name)
		d.Close()
		switch {
		case err == nil && isDir(st):
			return isFolder(key)
		case err == nil && opts.IfAbsent:
			return s.taken(root, key)
		case err != nil && !isMissing(err):
			return err
		}
	case !isMissing(err):
		return err
	}
	var fs unix.Statfs_t
	if _, err := again(func() (int, error) { return 0, unix.Fstatfs(int(root.Fd()), &fs) }); err != nil {
		return pathError("ask the free space of", s.path, err)
	}
	// Some file systems do not tell; those say 0 blocks in all.
	if free := uint64(fs.Bavail) * uint64(fs.Bsize); fs.Blocks > 0 && free < uint64(opts.Size) {
		return hbackup.Errorf("check free space", s.path, hbackup.KindNoSpace, "%d bytes are free, %d are needed", free, opts.Size)
	}
	return nil
}

func isFolder(key storage.Key) error {
	return hbackup.Errorf("check", string(key), hbackup.KindConflict, "there are other keys below it")
}

// fill writes the body and makes it durable.
func (s *Store) fill(t *temp, b *storage.Body, size int64) error {
	if size >= reserveFrom {
		if err := reserve(t.File, size); err != nil {
			return err
		}
	}
	buf := buffers.Get().(*[256 << 10]byte)
	defer buffers.Put(buf)
	for {
		n, err := b.Read(buf[:])
		if n > 0 {
			if _, err := t.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if err := t.Sync(); err != nil {
		return err
	}
	s.did("sync file")
	return nil
}

// publish gives the file its key. Directories may be deleted under its feet as
// the last object in them goes; then it makes them again.
func (s *Store) publish(root dir, t *temp, key storage.Key, ifAbsent bool) error {
	dirs, name := split(key)
	var err error
	for range 1000 {
		var d dir
		if d, err = s.makeDirs(root, dirs); err == nil {
			err = s.publishIn(root, d, t, name, ifAbsent)
			d.Close()
		}
		if !isMissing(err) {
			break
		}
		s.durable.forget(dirs)
	}
	switch {
	case errors.Is(err, unix.EISDIR) || errors.Is(err, errFolder):
		return isFolder(key)
	case errors.Is(err, unix.EEXIST):
		return s.taken(root, key)
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTSUP):
		return hbackup.E("link", s.path, hbackup.KindUnsupported, fmt.Errorf("the file system makes no hard links: %w", err))
	}
	return err
}

var errFolder = errors.New("is a directory")

func (s *Store) publishIn(root, d dir, t *temp, name string, ifAbsent bool) error {
	err := t.link(d, name)
	if errors.Is(err, unix.EEXIST) {
		st, statErr := d.stat(name)
		switch {
		case isMissing(statErr) && !ifAbsent:
			return statErr // deleted in between: once more
		case statErr == nil && isDir(st):
			return errFolder
		case !ifAbsent:
			err = s.replace(root, d, t, name)
		}
	}
	if err != nil {
		return err
	}
	s.did("publish")
	if err := d.Sync(); err != nil {
		return err
	}
	s.did("sync directory")
	return nil
}

// replace puts the file in the place of another in one step.
func (s *Store) replace(root, d dir, t *temp, name string) error {
	in, err := s.openTempDir(root)
	if err != nil {
		return err
	}
	defer in.Close()
	aside := tempName()
	if err := t.link(in, aside); err != nil {
		return err
	}
	_, err = again(func() (int, error) { return 0, renameat(int(in.Fd()), aside, int(d.Fd()), name) })
	if err != nil {
		in.unlink(aside)
		if t.isAt(d, name) {
			return nil
		}
	}
	return pathError("replace", d.Name()+"/"+name, err)
}

// taken is what the loser of a create gets. The winner's process may have been
// killed before it made its object durable; as the loser may go on in the belief
// that the object is there, it makes up for that.
func (s *Store) taken(root dir, key storage.Key) error {
	dirs, name := split(key)
	d, err := s.makeDirs(root, dirs)
	if err != nil {
		return err
	}
	defer d.Close()
	st, err := d.stat(name)
	switch {
	case err == nil && isDir(st):
		return isFolder(key)
	case err == nil:
		err = d.Sync()
	case isMissing(err):
		err = nil // deleted since: it was there nevertheless
	}
	if err != nil {
		return err
	}
	return errTaken
}
