package gcs

import (
	"context"
	"testing"

	"hbackup/storage"
	"hbackup/storage/storetest"
)

func TestContract(t *testing.T) {
	testContract(t, configFor, storetest.PartSize(chunkQuantum))
}

// TestContractOneRequest has all but the largest object sent with one request.
func TestContractOneRequest(t *testing.T) {
	if testing.Short() {
		t.Skip("long; run without -short")
	}
	testContract(t, func(t testing.TB) Config {
		c := configFor(t)
		c.ChunkSize = DefaultChunkSize
		return c
	}, storetest.Keys(100), storetest.LargeSize(24<<20))
}

// TestContractInParallel has all objects that are larger than a chunk sent in parts.
func TestContractInParallel(t *testing.T) {
	if testing.Short() {
		t.Skip("long; run without -short")
	}
	testContract(t, func(t testing.TB) Config {
		c := configFor(t)
		inShape(&c)
		return c
	}, storetest.PartSize(minPart), storetest.Keys(100), storetest.LargeSize(64<<20))
}

// testContract runs the suite against the places that each describes.
func testContract(t *testing.T, each func(testing.TB) Config, opts ...storetest.Option) {
	opts = append(opts, storetest.FolderMarker(func(ctx context.Context, s storage.Store, name string) error {
		return s.(*Store).object(storage.Key(name)).NewWriter(ctx).Close()
	}))
	storetest.Run(t, func(t *testing.T) storage.Store { return open(t, each(t)) }, opts...)
}

// TestHolder has parts of the least size that the service takes.
func TestHolder(t *testing.T) {
	again := func(t *testing.T, s storage.Store) storage.Store { return open(t, s.(*Store).c) }
	storetest.RunHolder(t, func(t *testing.T) storage.Store {
		c := configFor(t)
		c.ChunkSize = minPart
		s := open(t, c)
		t.Cleanup(func() {
			left, err := s.uploads(context.WithoutCancel(t.Context()), s.full(""))
			if err != nil || len(left) > 0 {
				t.Errorf("uploads were left open: %v, %v", left, err)
			}
		})
		return s
	}, again, storetest.PartSize(minPart))
}
