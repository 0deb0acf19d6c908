package hdfs

import (
	"context"
	"io"
	"sync"

	"hbackup"
	"hbackup/internal/files"
	"hbackup/storage"
)

// buffers are for copying, several packets of a data node each.
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

func (s *Store) put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	if err := s.mayPut(ctx, key, opts); err != nil {
		return storage.Object{}, err
	}
	w, path, err := s.createTemp(ctx)
	if err != nil {
		return storage.Object{}, err
	}
	b := storage.NewBody(ctx, body, opts)
	if err := fill(w, b); err != nil {
		w.Abort() // what stays is swept later
		return storage.Object{}, err
	}
	if err := w.Close(); err != nil {
		return storage.Object{}, fixed(err)
	}
	info := w.Info()
	if info.Size != opts.Size {
		err = hbackup.Errorf("close", path, hbackup.KindCorrupt, "the file has %d bytes; %d were written", info.Size, opts.Size)
	}
	if err == nil {
		err = s.publish(ctx, info, key, opts.IfAbsent)
	}
	if err != nil {
		s.discard(ctx, path)
		return storage.Object{}, err
	}
	obj := object(key, info)
	obj.Digest, obj.HasDigest = b.Digest(), true
	return obj, nil
}

// lookFrom is the size of a body from which on it is worth a call to the name node
// to know beforehand that the key is taken. A smaller one is written, and then
// refused its key.
const lookFrom = 1 << 20

// mayPut looks for what would make a create fail, before a large body is read.
func (s *Store) mayPut(ctx context.Context, key storage.Key, opts storage.PutOptions) error {
	if !opts.IfAbsent || opts.Size < lookFrom {
		return nil
	}
	info, err := s.fs.Stat(ctx, s.at(string(key)))
	switch {
	case err == nil && info.Dir:
		return errFolder
	case err == nil:
		return errTaken
	case hbackup.IsKind(err, hbackup.KindNotFound):
		return nil
	}
	return err
}

// fill writes the body. The body's own failure is given back as it is.
func fill(w io.Writer, b *storage.Body) error {
	buf := buffers.Get().(*[256 << 10]byte)
	defer buffers.Put(buf)
	for {
		n, err := b.Read(buf[:])
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return fixed(err)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// publish gives the file its key. Directories may be deleted under its feet as
// the last object in them goes; then it makes them again.
func (s *Store) publish(ctx context.Context, file files.Info, key storage.Key, ifAbsent bool) error {
	var err error
	for range maxRemoved {
		if err = s.makeDirs(ctx, folder(key)); err != nil {
			return err
		}
		err = s.fs.Publish(ctx, file, s.at(string(key)), !ifAbsent)
		if !hbackup.IsKind(err, hbackup.KindNotFound) {
			break
		}
		s.dirs.forget(folder(key))
		if _, statErr := s.fs.Stat(ctx, file.Path); statErr != nil {
			return hbackup.Errorf("publish", file.Path, hbackup.KindConflict, "somebody has removed the file: %v", statErr)
		}
	}
	return fixed(err)
}

// fixed keeps the errors of a put from saying that an object is missing: it is
// a name of the store's own that is.
func fixed(err error) error {
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return hbackup.E("write", "", hbackup.KindConflict, err).WithHint("somebody removes files of the location while it is written to")
	}
	return err
}
