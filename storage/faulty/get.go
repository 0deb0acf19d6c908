package faulty

import (
	"context"
	"errors"
	"io"

	"hbackup/storage"
)

// Get can fail when it opens and later, or give what is not there.
func (s *Store) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	f, err := s.next(ctx, opGet, key)
	if err != nil {
		return nil, storage.Object{}, err
	}
	body, obj, err := s.Store.Get(ctx, key, r)
	if err != nil {
		return nil, obj, err
	}
	path := s.Location().At(key)
	_, length, err := r.Of(obj.Size)
	switch {
	case f.name == "lost":
		return nil, storage.Object{}, errors.Join(f.err(opGet, path), body.Close())
	case err != nil:
		return nil, storage.Object{}, errors.Join(err, body.Close())
	case f.name == "half" || f.name == "reset":
		return &reader{io.MultiReader(io.LimitReader(body, f.part(length)), broken{f.err("read", path)}), body}, obj, nil
	case f.name == "cut":
		return &reader{io.LimitReader(body, length/2), body}, obj, nil
	case f.name == "flip":
		return &reader{&flipper{r: body, at: length / 2}, body}, obj, nil
	}
	return body, obj, nil
}

type reader struct {
	io.Reader
	io.Closer
}

// flipper turns one bit of the byte at a position.
type flipper struct {
	r  io.Reader
	at int64
}

func (f *flipper) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if f.at >= 0 && f.at < int64(n) {
		p[f.at] ^= 1
	}
	f.at -= int64(n)
	return n, err
}
