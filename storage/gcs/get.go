package gcs

import (
	"context"
	"errors"
	"io"
	"net/http"

	gcs "cloud.google.com/go/storage"

	"hbackup"
	"hbackup/storage"
)

// Stat describes one object.
func (s *Store) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	if err := s.check(ctx, "stat", key); err != nil {
		return storage.Object{}, err
	}
	attrs, err := s.object(key).Attrs(ctx)
	if err != nil {
		return storage.Object{}, s.failObject(ctx, "stat", key, err)
	}
	s.sawBucket()
	if attrs.Generation == 0 {
		return storage.Object{}, hbackup.E("stat", s.loc.At(key), hbackup.KindUnsupported, errNoGeneration)
	}
	obj := describe(key, attrs)
	obj.Ours = attrs.Metadata[stampName] != ""
	return obj, nil
}

var errNoGeneration = errors.New("the answer names no generation; something that is not Google Cloud Storage has answered")

// describe turns the service's description into ours.
func describe(key storage.Key, attrs *gcs.ObjectAttrs) storage.Object {
	obj := storage.Object{Key: key, Size: attrs.Size, Modified: attrs.Updated}
	if d, err := storage.ParseDigest(attrs.Metadata[digestName]); err == nil {
		obj.Digest, obj.HasDigest = d, true
	}
	return obj
}

// Get opens the bytes of the range.
func (s *Store) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	if err := s.check(ctx, "get", key); err != nil {
		return nil, storage.Object{}, err
	}
	if _, _, err := (storage.Range{Offset: min(r.Offset, 0), Length: r.Length}).Of(0); err != nil {
		return nil, storage.Object{}, hbackup.E("get", s.loc.At(key), hbackup.KindUsage, err)
	}
	// The object may be replaced by a smaller or larger one between the answer that
	// a range cannot be and the look at its size.
	for range 3 {
		body, obj, err := s.open(ctx, key, r)
		if err == nil {
			return body, obj, nil
		}
		if statusOf(err) != http.StatusRequestedRangeNotSatisfiable {
			return nil, storage.Object{}, s.failObject(ctx, "get", key, err)
		}
		obj, err = s.Stat(ctx, key)
		if err != nil {
			return nil, storage.Object{}, err
		}
		_, n, err := r.Of(obj.Size)
		if err != nil {
			return nil, storage.Object{}, s.fail(ctx, "get", key, err)
		}
		if n == 0 {
			return &reader{s: s, ctx: ctx, key: key, size: obj.Size, at: r.Offset, end: r.Offset}, obj, nil
		}
	}
	return nil, storage.Object{}, hbackup.Errorf("get", s.loc.At(key), hbackup.KindUnavailable, "the object keeps changing")
}

// open sends the first request and takes from its answer what the object is. The
// library pins the generation that the answer names: bytes of two contents never
// mix when it goes on after a broken connection.
func (s *Store) open(ctx context.Context, key storage.Key, want storage.Range) (io.ReadCloser, storage.Object, error) {
	length := want.Length
	if length == 0 {
		length = -1
	}
	body, err := s.object(key).NewRangeReader(withDownload(ctx), want.Offset, length)
	if err != nil {
		return nil, storage.Object{}, err
	}
	s.sawBucket()
	a := body.Attrs
	from, n, err := want.Of(max(a.Size, 0))
	switch {
	case err != nil:
	case a.Generation <= 0:
		err = hbackup.E("get range", "", hbackup.KindUnsupported, errNoGeneration)
	case a.Size < 0 || a.StartOffset != from || body.Remain() != n:
		err = hbackup.Errorf("get range", "", hbackup.KindUnsupported,
			"the store gave %d bytes from %d on of %d, which were not asked for", body.Remain(), a.StartOffset, a.Size)
	}
	if err != nil {
		body.Close()
		return nil, storage.Object{}, err
	}
	obj := storage.Object{Key: key, Size: a.Size, Modified: a.LastModified}
	return &reader{s: s, ctx: ctx, key: key, body: body, size: a.Size, at: from, end: from + n}, obj, nil
}

// reader gives the bytes of a range and ends in io.EOF only after all of them.
// Of a whole object the library has then checked the CRC32C.
type reader struct {
	s    *Store
	ctx  context.Context
	key  storage.Key
	body *gcs.Reader // nil when there are no bytes to read

	size    int64 // of the whole object
	at, end int64 // the next byte, and the one behind the last
	err     error // the last word
}

// Read gives the next bytes.
func (r *reader) Read(p []byte) (int, error) {
	if r.err == nil && r.ctx.Err() != nil {
		r.err = r.s.fail(r.ctx, "get", r.key, r.ctx.Err())
	}
	switch {
	case r.err != nil:
		return 0, r.err
	case r.at == r.end:
		r.err = r.finish()
		return 0, r.err
	case len(p) == 0:
		return 0, nil
	}
	n, err := r.body.Read(p[:min(int64(len(p)), r.end-r.at)])
	r.at += int64(n)
	if err != nil && (err != io.EOF || r.at < r.end) {
		r.err = r.broke(err)
		return n, r.err
	}
	return n, nil
}

// broke gives the error of a reading that came to no good end.
func (r *reader) broke(err error) error {
	if r.ctx.Err() != nil {
		return r.s.fail(r.ctx, "get", r.key, err)
	}
	v := r.s.judge(err)
	switch {
	case err == io.EOF:
		v = verdict{text: "the store sent fewer bytes than it announced"}
	case isMissing(err) || statusOf(err) == http.StatusPreconditionFailed || statusOf(err) == http.StatusRequestedRangeNotSatisfiable:
		v = verdict{text: "the object was deleted or replaced while it was read"}
	}
	if v.kind != hbackup.KindCorrupt && v.kind != hbackup.KindDenied {
		v.kind = hbackup.KindIncomplete
	}
	out := hbackup.Errorf("read", r.s.loc.At(r.key), v.kind, "after %d of %d bytes: %w", r.at, r.size, &cause{text: v.text, err: noEOF(err)})
	out.Hint = v.hint
	return out
}

// noEOF keeps an early end from being taken for the end.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// finish makes sure that the store, too, is at the end, and lets the library
// compare the checksum.
func (r *reader) finish() error {
	if r.body == nil {
		return io.EOF
	}
	for {
		n, err := r.body.Read(make([]byte, 1))
		switch {
		case n > 0:
			return hbackup.Errorf("read", r.s.loc.At(r.key), hbackup.KindCorrupt, "the store sent more bytes than it announced")
		case err == io.EOF:
			return io.EOF
		case err != nil:
			return r.broke(err)
		}
	}
}

var errClosed = errors.New("the reader is closed")

// Close releases the connection.
func (r *reader) Close() error {
	if r.err == nil || r.err == io.EOF {
		r.err = errClosed
	}
	if r.body != nil {
		r.body.Close() // of an answer; there is nothing in its error
	}
	return nil
}
