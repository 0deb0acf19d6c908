package local

import (
	"context"
	"io"
	"iter"

	"hbackup/bench"
	"hbackup/storage"
)

// counted is the product's store, whose calls are counted.
type counted struct {
	storage.Store
	meter *bench.Meter
}

func (c *counted) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	if err := c.meter.Request(ctx, "put"); err != nil {
		return storage.Object{}, err
	}
	o, err := c.Store.Put(ctx, key, body, opts)
	if err == nil {
		c.meter.Moved(o.Size, 0)
	}
	return o, err
}

func (c *counted) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	if err := c.meter.Request(ctx, "get"); err != nil {
		return nil, storage.Object{}, err
	}
	return c.Store.Get(ctx, key, r)
}

func (c *counted) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	if err := c.meter.Request(ctx, "stat"); err != nil {
		return storage.Object{}, err
	}
	return c.Store.Stat(ctx, key)
}

func (c *counted) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		if err := c.meter.Request(ctx, "list"); err != nil {
			yield(storage.Object{}, err)
			return
		}
		c.Store.List(ctx, prefix, opts)(yield)
	}
}

func (c *counted) Delete(ctx context.Context, key storage.Key) error {
	if err := c.meter.Request(ctx, "delete"); err != nil {
		return err
	}
	return c.Store.Delete(ctx, key)
}
