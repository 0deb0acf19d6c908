// Package storebench measures stores, all in the same way.
package storebench

import (
	"fmt"
	"io"
	"testing"

	"hbackup/storage"
)

// Run measures a store that is empty: small and large puts, reads and listings.
func Run(b *testing.B, s storage.Store) {
	ctx := b.Context()
	put := func(b *testing.B, key storage.Key, size int64) {
		if _, err := s.Put(ctx, key, zeros(size), storage.PutOptions{Size: size}); err != nil {
			b.Fatal(err)
		}
	}
	n := 0
	b.Run("PutSmall", func(b *testing.B) {
		for b.Loop() {
			put(b, storage.Key(fmt.Sprintf("small/%d/%d", n%10, n)), 1000)
			n++
		}
	})
	const large = 64 << 20
	b.Run("PutLarge", func(b *testing.B) {
		b.SetBytes(large)
		for b.Loop() {
			put(b, "large/key", large)
		}
	})
	b.Run("GetLarge", func(b *testing.B) {
		put(b, "large/key", large)
		b.SetBytes(large)
		for b.Loop() {
			body, _, err := s.Get(ctx, "large/key", storage.Range{})
			if err != nil {
				b.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, body); err != nil || n != large {
				b.Fatal(n, err)
			}
			body.Close()
		}
	})
	b.Run("List", func(b *testing.B) {
		const objects = 10_000
		for i := range objects {
			put(b, storage.Key(fmt.Sprintf("list/%02d/%02d/%04d", i%10, i%7, i)), 1)
		}
		b.ReportAllocs()
		for b.Loop() {
			seen := 0
			for _, err := range s.List(ctx, "list/", storage.ListOptions{}) {
				if err != nil {
					b.Fatal(err)
				}
				seen++
			}
			if seen != objects {
				b.Fatalf("%d objects; want %d", seen, objects)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/objects, "ns/object")
	})
}

// zeros is a body that costs nothing to make.
func zeros(n int64) io.Reader { return io.LimitReader(zero{}, n) }

type zero struct{}

func (zero) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
