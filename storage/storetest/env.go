package storetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"hbackup"
	"hbackup/storage"
)

// env is what one case works with.
type env struct {
	T
	ctx context.Context
	s   storage.Store
	o   options
}

// stream gives n bytes that depend on the seed only, without holding them.
func stream(seed uint64, n int64) io.Reader {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	return io.LimitReader(rand.NewChaCha8(key), n)
}

// content gives the bytes of stream.
func content(seed uint64, n int64) []byte {
	b := make([]byte, n)
	if _, err := io.ReadFull(stream(seed, n), b); err != nil {
		panic(err) // a generator has no reason to fail
	}
	return b
}

// put writes data and checks what Put says of it.
func (e *env) put(key storage.Key, data []byte) storage.Object {
	e.Helper()
	obj, err := e.s.Put(e.ctx, key, bytes.NewReader(data), storage.PutOptions{Size: int64(len(data))})
	if err != nil {
		e.Fatalf("Put %s, %d bytes: %v", short(key), len(data), err)
	}
	e.checkPut(obj, key, data)
	return obj
}

func (e *env) checkPut(obj storage.Object, key storage.Key, data []byte) {
	e.Helper()
	want := storage.DigestOf(data)
	if obj.Key != key || obj.Size != int64(len(data)) || !obj.HasDigest || obj.Digest != want {
		e.Fatalf("Put gave %+v; want key %s, size %d, digest %s", obj, short(key), len(data), want)
	}
}

// get reads a range to its end.
func (e *env) get(key storage.Key, r storage.Range) ([]byte, storage.Object, error) {
	body, obj, err := e.s.Get(e.ctx, key, r)
	if err != nil {
		return nil, obj, err
	}
	data, err := io.ReadAll(body)
	return data, obj, errors.Join(err, body.Close())
}

// has checks that key holds exactly data, by all the ways there are to see it.
func (e *env) has(key storage.Key, data []byte) {
	e.Helper()
	got, obj, err := e.get(key, storage.Range{})
	if err != nil {
		e.Fatalf("Get %s: %v", short(key), err)
	}
	if !bytes.Equal(got, data) {
		e.Fatalf("Get %s gave %d bytes with digest %s; want %d bytes with digest %s", short(key),
			len(got), storage.DigestOf(got), len(data), storage.DigestOf(data))
	}
	e.checkObject("Get", obj, key, data)
	obj, err = e.s.Stat(e.ctx, key)
	if err != nil {
		e.Fatalf("Stat %s: %v", short(key), err)
	}
	e.checkObject("Stat", obj, key, data)
	if e.s.Capabilities().StoredDigest && !obj.HasDigest {
		e.Fatalf("Stat %s gave no digest, but the store claims to keep them", short(key))
	}
	if e.s.Capabilities().StoredDigest && !obj.Ours {
		e.Fatalf("Stat %s does not know an object that was put by us", short(key))
	}
	listed := e.list(string(key), storage.ListOptions{})
	if len(listed) == 0 || listed[0].Key != key {
		e.Fatalf("List of %s gave %v", short(key), keysOf(listed))
	}
	e.checkObject("List", listed[0], key, data)
}

func (e *env) checkObject(what string, obj storage.Object, key storage.Key, data []byte) {
	e.Helper()
	if obj.Key != key || obj.Size != int64(len(data)) {
		e.Fatalf("%s gave key %s and size %d; want %s and %d", what, short(obj.Key), obj.Size, short(key), len(data))
	}
	if want := storage.DigestOf(data); obj.HasDigest && obj.Digest != want {
		e.Fatalf("%s gave digest %s; want %s", what, obj.Digest, want)
	}
	if obj.Modified.IsZero() {
		e.Fatalf("%s gave no time of the last write", what)
	}
}

// absent checks that nothing can be seen of key.
func (e *env) absent(key storage.Key) {
	e.Helper()
	_, err := e.s.Stat(e.ctx, key)
	e.wantKind("Stat", err, hbackup.KindNotFound)
	_, _, err = e.get(key, storage.Range{})
	e.wantKind("Get", err, hbackup.KindNotFound)
	for _, obj := range e.list(string(key), storage.ListOptions{}) {
		if obj.Key == key {
			e.Fatalf("List shows %s, which must not be there", short(key))
		}
	}
}

// list collects a listing and checks its order and its prefix.
func (e *env) list(prefix string, opts storage.ListOptions) []storage.Object {
	e.Helper()
	var got []storage.Object
	for obj, err := range e.s.List(e.ctx, prefix, opts) {
		if err != nil {
			e.Fatalf("List %q %+v: %v", prefix, opts, err)
		}
		if !strings.HasPrefix(string(obj.Key), prefix) {
			e.Fatalf("List %q gave %s", prefix, short(obj.Key))
		}
		if n := len(got); n > 0 && got[n-1].Key >= obj.Key {
			e.Fatalf("List %q gave %s after %s", prefix, short(obj.Key), short(got[n-1].Key))
		}
		got = append(got, obj)
	}
	return got
}

// lists checks which keys a listing gives. Want need not be in order.
func (e *env) lists(prefix string, opts storage.ListOptions, want ...storage.Key) {
	e.Helper()
	want = slices.Sorted(slices.Values(want))
	if got := keysOf(e.list(prefix, opts)); !slices.Equal(got, want) {
		e.Fatalf("List %q %+v gave\n%s\nwant\n%s", prefix, opts, few(got), few(want))
	}
}

// wantKind checks an error's kind, and that it is fit to be shown.
func (e *env) wantKind(op string, err error, kinds ...hbackup.Kind) {
	e.Helper()
	if err == nil {
		e.Fatalf("%s succeeded; want an error of kind %q", op, kinds)
	}
	if !hbackup.IsKind(err, kinds...) {
		e.Fatalf("%s gave an error of kind %q; want %q: %v", op, hbackup.KindOf(err), kinds, err)
	}
	var he *hbackup.Error
	if !errors.As(err, &he) || he.Op == "" || !strings.HasPrefix(he.Path, string(e.s.Location())) {
		e.Fatalf("%s: the error does not say in which place (%s): %v", op, e.s.Location(), err)
	}
}

func keysOf(objs []storage.Object) []storage.Key {
	keys := make([]storage.Key, len(objs))
	for i, obj := range objs {
		keys[i] = obj.Key
	}
	return keys
}

func short(key storage.Key) string {
	if len(key) > 60 {
		return string(key[:60]) + "…"
	}
	return string(key)
}

func few(keys []storage.Key) string {
	var b strings.Builder
	for i, k := range keys {
		if i == 20 {
			b.WriteString("…\n")
			break
		}
		b.WriteString("  " + short(k) + "\n")
	}
	return b.String()
}
