package committer

import (
	"context"
	"io"

	"hbackup/storage"
)

// Direct is the committer for every store: files go to their final keys, and
// only the manifest's creation counts.
type Direct struct {
	store storage.Store
}

// NewDirect gives the committer for a store.
func NewDirect(s storage.Store) *Direct { return &Direct{store: s} }

// Protocol says ProtocolDirect.
func (*Direct) Protocol() Protocol { return ProtocolDirect }

// Begin starts an image. Nothing is written yet.
func (d *Direct) Begin(guard Guard) *Image {
	return &Image{store: d.store, guard: guard, files: putFiles{d.store}}
}

// putFiles are objects as soon as they are put; there is nothing to do for the rest.
type putFiles struct{ store storage.Store }

func (f putFiles) put(ctx context.Context, key storage.Key, size int64, body io.Reader) (storage.Object, error) {
	return f.store.Put(ctx, key, body, storage.PutOptions{Size: size, IfAbsent: true})
}

func (putFiles) expect([]storage.Key)                       {}
func (putFiles) adopt(storage.Key)                          {}
func (putFiles) publish(context.Context) error              { return nil }
func (putFiles) end(context.Context) error                  { return nil }
func (putFiles) passed(context.Context, storage.Key, int64) {}
func (putFiles) takeOver(context.Context, Accounted) (map[storage.Key]Filled, error) {
	return nil, nil
}
