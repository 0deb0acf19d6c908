package restore

import (
	"context"
	"io"
	"iter"
	"time"

	"hbackup/storage"
)

// gatedStore puts a gate before a location.
type gatedStore struct {
	storage.Store
	g *gate
}

func (s gatedStore) Put(ctx context.Context, k storage.Key, body io.Reader, o storage.PutOptions) (obj storage.Object, err error) {
	err = s.g.do("put "+string(k), func() error { obj, err = s.Store.Put(ctx, k, body, o); return err })
	return obj, err
}

func (s gatedStore) Get(ctx context.Context, k storage.Key, r storage.Range) (body io.ReadCloser, obj storage.Object, err error) {
	err = s.g.do("get "+string(k), func() error { body, obj, err = s.Store.Get(ctx, k, r); return err })
	if err != nil {
		return nil, obj, err
	}
	return gatedBody{body, s.g, string(k)}, obj, nil
}

func (s gatedStore) Stat(ctx context.Context, k storage.Key) (obj storage.Object, err error) {
	err = s.g.do("stat "+string(k), func() error { obj, err = s.Store.Stat(ctx, k); return err })
	return obj, err
}

func (s gatedStore) List(ctx context.Context, prefix string, o storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		if err := s.g.do("list "+prefix, func() error { return nil }); err != nil {
			yield(storage.Object{}, err)
			return
		}
		s.Store.List(ctx, prefix, o)(yield)
	}
}

func (s gatedStore) Delete(ctx context.Context, k storage.Key) error {
	return s.g.do("delete "+string(k), func() error { return s.Store.Delete(ctx, k) })
}

func (s gatedStore) ServerTime(ctx context.Context) (t time.Time, err error) {
	err = s.g.do("time", func() error { t, err = s.Store.ServerTime(ctx); return err })
	return t, err
}

type gatedBody struct {
	io.ReadCloser
	g *gate
	k string
}

func (b gatedBody) Read(p []byte) (n int, err error) {
	var end error
	err = b.g.do("read "+b.k, func() error {
		n, end = b.ReadCloser.Read(p)
		if end == io.EOF {
			return nil
		}
		return end
	})
	if err == nil {
		err = end
	}
	return n, err
}
