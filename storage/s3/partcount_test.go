package s3

import (
	"io"
	"runtime"
	"testing"

	"hbackup/storage"
)

// TestTenThousandParts uploads an object of as many parts as one upload can have,
// and one that would have one more. The parts are small, so that it does not take
// 50 GB.
func TestTenThousandParts(t *testing.T) {
	long(t)
	const partSize = 4 << 10
	for _, tc := range []struct {
		name  string
		size  int64
		parts int
	}{
		{"all full", maxParts * partSize, maxParts},
		{"one byte more, in larger parts", maxParts*partSize + 1, 40},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, c := newFake(t, false)
			s := open(t, c)
			s.c.PartSize = partSize
			if _, err := s.Put(t.Context(), "a/key", io.LimitReader(zeros{}, tc.size), storage.PutOptions{Size: tc.size}); err != nil {
				t.Fatal(err)
			}
			if n := f.count("UploadPart"); n != tc.parts {
				t.Errorf("%d parts; want %d", n, tc.parts)
			}
			if obj, err := s.Stat(t.Context(), "a/key"); err != nil || obj.Size != tc.size {
				t.Errorf("%+v, %v", obj, err)
			}
		})
	}
}

// TestMemoryOfListing wants what is kept from a page to be gone with it.
func TestMemoryOfListing(t *testing.T) {
	long(t)
	const keys = 200_000
	s := startListServer(t, keys)
	var least, most uint64
	n := 0
	for _, err := range s.List(t.Context(), "", storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n%10_000 == 0 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			if most = max(most, m.HeapAlloc); least == 0 {
				least = m.HeapAlloc
			}
		}
	}
	if n != keys || most > least+8<<20 {
		t.Errorf("%d keys; from %d bytes in use after 10,000 up to %d", n, least, most)
	}
}
