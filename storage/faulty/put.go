package faulty

import (
	"bytes"
	"context"
	"io"

	"hbackup"
	"hbackup/storage"
)

// part gives how much of a whole passes.
func (f fault) part(whole int64) int64 { return int64(f.share * float64(whole)) }

// Put can fail before, after, or in the middle of the body.
func (s *Store) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	f, err := s.next(ctx, opPut, key)
	if err != nil {
		return storage.Object{}, err
	}
	path := s.Location().At(key)
	switch f.name {
	case "half", "reset":
		body = io.MultiReader(io.LimitReader(body, f.part(opts.Size)), broken{f.err(opPut, path)})
	case "twice", "late":
		data, err := io.ReadAll(storage.NewBody(ctx, body, opts))
		if err != nil {
			return storage.Object{}, hbackup.E(opPut, path, hbackup.KindOther, err)
		}
		body = bytes.NewReader(data)
		if f.name == "late" {
			return storage.Object{}, s.postpone(f, opPut, path, func() { s.Store.Put(context.WithoutCancel(ctx), key, body, opts) })
		}
		s.Store.Put(ctx, key, bytes.NewReader(data), opts) // its answer goes nowhere
	}
	obj, err := s.Store.Put(ctx, key, body, opts)
	if err := f.lost(opPut, path, err); err != nil {
		return storage.Object{}, err
	}
	return obj, nil
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
