package gcs

import (
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

// testContract runs the suite against the places that each describes.
func testContract(t *testing.T, each func(testing.TB) Config, opts ...storetest.Option) {
	opts = append(opts, storetest.FolderMarker(func(t *testing.T, s storage.Store, name string) {
		st := s.(*Store)
		if err := st.object(storage.Key(name)).NewWriter(t.Context()).Close(); err != nil {
			t.Fatalf("put the folder marker %s: %v", name, err)
		}
	}))
	storetest.Run(t, func(t *testing.T) storage.Store { return open(t, each(t)) }, opts...)
}
