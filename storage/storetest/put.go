package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing/iotest"

	"hbackup"
	"hbackup/storage"
)

func roundTrip(e *env) {
	data := content(1, 10_000)
	e.absent("a/b/c")
	e.put("a/b/c", data)
	e.has("a/b/c", data)
}

// trialSizes are the sizes at which a store may change its ways.
func (e *env) trialSizes() []int64 {
	if e.o.brief {
		if p := e.o.partSize; p > 0 {
			return []int64{0, 1, 4097, p + 1}
		}
		return []int64{0, 1, 4097, 1<<20 + 1}
	}
	sizes := []int64{0, 1, 2, 511, 512, 513, 4095, 4096, 4097, 65_535, 65_536, 65_537, 1<<20 - 1, 1 << 20, 1<<20 + 1}
	if p := e.o.partSize; p > 0 {
		sizes = append(sizes, p-1, p, p+1, 2*p-1, 2*p, 2*p+1)
	}
	return sizes
}

func sizes(e *env) {
	for i, n := range e.trialSizes() {
		key := storage.Key(fmt.Sprintf("sizes/%012d", n))
		data := content(uint64(i), n)
		e.put(key, data)
		e.has(key, data)
	}
}

// oddReaders gives bodies in ways that io.Reader allows and that are easily
// read wrong.
func oddReaders(e *env) {
	data := content(2, 3000)
	for name, body := range map[string]io.Reader{
		"one-byte":      iotest.OneByteReader(bytes.NewReader(data)),
		"half":          iotest.HalfReader(bytes.NewReader(data)),
		"data-with-eof": iotest.DataErrReader(bytes.NewReader(data)),
		"no-seek":       io.MultiReader(bytes.NewReader(data[:1000]), bytes.NewReader(data[1000:])),
		"empty-reads":   &emptyReads{r: bytes.NewReader(data)},
		"no-size":       struct{ io.Reader }{bytes.NewReader(data)},
	} {
		key := storage.Key("readers/" + name)
		obj, err := e.s.Put(e.ctx, key, body, storage.PutOptions{Size: int64(len(data))})
		if err != nil {
			e.Fatalf("Put from the reader %s: %v", name, err)
		}
		e.checkPut(obj, key, data)
		e.has(key, data)
	}
}

// emptyReads gives no byte and no error every other time.
type emptyReads struct {
	r    io.Reader
	turn bool
}

func (r *emptyReads) Read(p []byte) (int, error) {
	if r.turn = !r.turn; r.turn {
		return 0, nil
	}
	return r.r.Read(p[:min(len(p), 100)])
}

func overwrite(e *env) {
	for i, n := range []int64{5000, 5000, 10, 0, 70_000} {
		data := content(uint64(i), n)
		e.put("o/key", data)
		e.has("o/key", data)
	}
	e.lists("", storage.ListOptions{}, "o/key")
}

// overwriteWhileRead looks at a key that is overwritten all the time. Each
// reader must see one of the contents, whole.
func overwriteWhileRead(e *env) {
	versions := [][]byte{content(1, 40_000), content(2, 90_000), content(3, 10)}
	e.put("o/key", versions[0])
	ctx, stop := context.WithCancel(e.ctx)
	defer stop()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			defer stop()
			for range 20 {
				got, obj, err := e.get("o/key", storage.Range{})
				if err != nil {
					e.Errorf("Get: %v", err)
					return
				}
				if !isOneOf(versions, got) || obj.Size != int64(len(got)) {
					e.Errorf("Get gave %d bytes and size %d, which is none of the contents", len(got), obj.Size)
					return
				}
			}
		})
	}
	for i := 0; i < 3 || ctx.Err() == nil; i++ {
		e.put("o/key", versions[i%len(versions)])
	}
	wg.Wait()
}

func isOneOf(versions [][]byte, got []byte) bool {
	for _, v := range versions {
		if bytes.Equal(v, got) {
			return true
		}
	}
	return false
}

func expectedDigest(e *env) {
	for _, n := range e.trialSizes() {
		data := content(7, n)
		right := storage.DigestOf(data)
		wrong := right ^ 1
		key := storage.Key(fmt.Sprintf("digest/%d", n))
		_, err := e.s.Put(e.ctx, key, bytes.NewReader(data), storage.PutOptions{Size: n, Digest: &wrong})
		e.wantKind("Put with a wrong digest", err, hbackup.KindCorrupt)
		e.absent(key)
		_, err = e.s.Put(e.ctx, key, bytes.NewReader(data), storage.PutOptions{Size: n, Digest: &right})
		if err != nil {
			e.Fatalf("Put with the right digest: %v", err)
		}
		_, err = e.s.Put(e.ctx, key, bytes.NewReader(content(8, n)), storage.PutOptions{Size: n, Digest: &wrong})
		e.wantKind("Put with a wrong digest over an object", err, hbackup.KindCorrupt)
		e.has(key, data)
	}
}

// brokenPut tries a put that must fail on a free key, on a taken one and under
// IfAbsent, and checks that it left nothing behind each time.
func (e *env) brokenPut(name string, n int64, body func() io.Reader, check func(error)) {
	e.Helper()
	free := storage.Key(fmt.Sprintf("broken/%s-%d-free", name, n))
	taken := storage.Key(fmt.Sprintf("broken/%s-%d-taken", name, n))
	earlier := content(99, 1234)
	e.put(taken, earlier)
	for _, ifAbsent := range []bool{false, true} {
		_, err := e.s.Put(e.ctx, free, body(), storage.PutOptions{Size: n, IfAbsent: ifAbsent})
		check(err)
		e.absent(free)
	}
	_, err := e.s.Put(e.ctx, taken, body(), storage.PutOptions{Size: n})
	check(err)
	e.has(taken, earlier)
	data := content(98, 77)
	if _, err := e.s.Put(e.ctx, free, bytes.NewReader(data), storage.PutOptions{Size: 77, IfAbsent: true}); err != nil {
		e.Fatalf("Put if absent after a failed one: %v", err)
	}
	e.has(free, data)
}

func bodyOfWrongSize(e *env) {
	corrupt := func(err error) { e.Helper(); e.wantKind("Put of the wrong size", err, hbackup.KindCorrupt) }
	for _, n := range e.trialSizes() {
		for _, more := range []int64{1, 5000} {
			e.brokenPut(fmt.Sprintf("longer-%d", more), n, func() io.Reader { return stream(1, n+more) }, corrupt)
		}
		if n > 0 {
			e.brokenPut("shorter", n, func() io.Reader { return stream(1, n-1) }, corrupt)
			e.brokenPut("empty", n, func() io.Reader { return stream(1, 0) }, corrupt)
		}
	}
	_, err := e.s.Put(e.ctx, "negative", stream(1, 0), storage.PutOptions{Size: -1})
	e.wantKind("Put of a negative size", err, hbackup.KindUsage)
	e.absent("negative")
}

var errBody = errors.New("the body broke")

func bodyThatFails(e *env) {
	for _, n := range e.trialSizes() {
		if n == 0 {
			continue
		}
		at := []int64{0, n / 2, n - 1, n}
		slices.Sort(at)
		for _, at := range slices.Compact(at) {
			e.brokenPut(fmt.Sprintf("fails-%d", at), n, func() io.Reader {
				return io.MultiReader(stream(1, at), iotest.ErrReader(errBody))
			}, func(err error) {
				e.Helper()
				if !errors.Is(err, errBody) {
					e.Fatalf("Put of %d bytes whose body failed at %d gave %v; want the body's error", n, at, err)
				}
			})
		}
	}
	typed := hbackup.Errorf("read block", "hdfs://nn/f", hbackup.KindDenied, "no")
	_, err := e.s.Put(e.ctx, "typed", iotest.ErrReader(typed), storage.PutOptions{Size: 10})
	e.wantKind("Put whose body gave an error with a kind", err, hbackup.KindDenied)
	e.absent("typed")
}

func nothingVisibleDuringPut(e *env) {
	for _, n := range e.trialSizes() {
		if n < 2 {
			continue
		}
		key := storage.Key(fmt.Sprintf("during/%d", n))
		data := content(3, n)
		look := func() {
			if _, err := e.s.Stat(e.ctx, key); !hbackup.IsKind(err, hbackup.KindNotFound) {
				e.Errorf("Stat during the put: %v; want not found", err)
			}
			for obj, err := range e.s.List(e.ctx, "", storage.ListOptions{}) {
				if err != nil || obj.Key == key {
					e.Errorf("List during the put: %s, %v", obj.Key, err)
				}
			}
		}
		body := io.MultiReader(bytes.NewReader(data[:n/2]), doing(look), bytes.NewReader(data[n/2:]), doing(look))
		obj, err := e.s.Put(e.ctx, key, body, storage.PutOptions{Size: n})
		if err != nil {
			e.Fatalf("Put: %v", err)
		}
		e.checkPut(obj, key, data)
		e.has(key, data)
	}
}

// doing is an empty reader that calls f when it is reached.
type doing func()

func (f doing) Read([]byte) (int, error) { f(); return 0, io.EOF }
