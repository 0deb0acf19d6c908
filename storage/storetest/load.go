package storetest

import (
	"fmt"
	"io"
	"runtime"
	"sync"

	"hbackup/storage"
)

// manyWriters lets writers, readers and deleters work on different keys of the
// same folders at once.
func manyWriters(e *env) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var want []storage.Key
	for w := range 24 {
		wg.Go(func() {
			for i := range 6 {
				// Folders come and go under the other writers' feet.
				key := storage.Key(fmt.Sprintf("w/%d/%d/%d", i%2, i, w))
				data := content(uint64(100*w+i), int64(1000*w+i))
				obj, err := e.tryPut(key, data)
				if err != nil || obj.Digest != storage.DigestOf(data) {
					e.Errorf("Put %s: %+v, %v", key, obj, err)
					return
				}
				got, _, err := e.get(key, storage.Range{})
				if err != nil || storage.DigestOf(got) != storage.DigestOf(data) {
					e.Errorf("Get %s gave %d bytes, %v; want %d", key, len(got), err, len(data))
					return
				}
				if i >= 2 {
					if err := e.s.Delete(e.ctx, key); err != nil {
						e.Errorf("Delete %s: %v", key, err)
						return
					}
					continue
				}
				mu.Lock()
				want = append(want, key)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	e.lists("w/", storage.ListOptions{}, want...)
}

// largeObject streams an object that is larger than the memory it may take.
func largeObject(e *env) {
	const seed = 42
	n := e.o.largeSize
	heap := &heapWatch{}
	heap.start()
	obj, err := e.s.Put(e.ctx, "large/key", io.TeeReader(stream(seed, n), heap), storage.PutOptions{Size: n})
	if err != nil {
		e.Fatalf("Put: %v", err)
	}
	sum := storage.NewHash()
	if _, err := io.Copy(sum, stream(seed, n)); err != nil {
		e.Fatal(err)
	}
	want := storage.Digest(sum.Sum64())
	if obj.Size != n || obj.Digest != want {
		e.Fatalf("Put gave %+v; want size %d and digest %s", obj, n, want)
	}
	body, _, err := e.s.Get(e.ctx, "large/key", storage.Range{})
	if err != nil {
		e.Fatalf("Get: %v", err)
	}
	defer body.Close()
	sum.Reset()
	read, err := io.Copy(io.MultiWriter(sum, heap), body)
	if err != nil || read != n || storage.Digest(sum.Sum64()) != want {
		e.Fatalf("Get gave %d bytes with digest %s, %v; want %d with %s", read, storage.Digest(sum.Sum64()), err, n, want)
	}
	if limit := e.o.heapLimit; limit >= 0 && heap.grown() > limit {
		e.Fatalf("the heap grew by %d bytes for an object of %d; want at most %d", heap.grown(), n, limit)
	}
}

// heapWatch is a writer that looks at the live heap every few MiB.
type heapWatch struct {
	base, peak uint64
	since      int
}

func (h *heapWatch) start() { h.base = liveHeap(); h.peak = h.base }

func (h *heapWatch) Write(p []byte) (int, error) {
	if h.since += len(p); h.since >= 4<<20 {
		h.since = 0
		h.peak = max(h.peak, liveHeap())
	}
	return len(p), nil
}

func (h *heapWatch) grown() int64 { return int64(h.peak - h.base) }

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
