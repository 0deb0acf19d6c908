package storetest

import (
	"bytes"
	"io"

	"hbackup"
	"hbackup/storage"
)

func ranges(e *env) {
	sizes := []int64{1000}
	if e.o.partSize > 0 {
		sizes = append(sizes, 2*e.o.partSize+10)
	}
	for _, n := range sizes {
		data := content(4, n)
		e.put("r/key", data)
		for _, r := range []storage.Range{
			{}, {Offset: 1}, {Offset: n - 1}, {Offset: n}, {Length: 1}, {Length: n}, {Length: n + 1},
			{Offset: 10, Length: 1}, {Offset: 10, Length: 500}, {Offset: n / 2, Length: n}, {Offset: n - 1, Length: 1},
			{Offset: n - 1, Length: 2}, {Offset: n, Length: 1}, {Offset: n, Length: n}, {Offset: 1, Length: n - 1},
			{Offset: 1, Length: 1<<63 - 1}, {Length: 1<<63 - 1},
		} {
			want := data[r.Offset:]
			if r.Length > 0 && r.Length < int64(len(want)) {
				want = want[:r.Length]
			}
			got, obj, err := e.get("r/key", r)
			if err != nil {
				e.Fatalf("Get %+v of %d bytes: %v", r, n, err)
			}
			if !bytes.Equal(got, want) {
				e.Fatalf("Get %+v of %d bytes gave %d bytes; want %d", r, n, len(got), len(want))
			}
			if obj.Size != n || obj.Key != "r/key" {
				e.Fatalf("Get %+v gave key %s and size %d; want that of the whole object, %d", r, obj.Key, obj.Size, n)
			}
		}
	}
	e.put("r/empty", nil)
	for _, r := range []storage.Range{{}, {Length: 1}, {Length: 100}} {
		if got, obj, err := e.get("r/empty", r); err != nil || len(got) != 0 || obj.Size != 0 {
			e.Fatalf("Get %+v of an empty object gave %d bytes, size %d, %v", r, len(got), obj.Size, err)
		}
	}
}

func rangesThatCannotBe(e *env) {
	e.put("r/key", content(4, 1000))
	e.put("r/empty", nil)
	for _, r := range []storage.Range{{Offset: 1001}, {Offset: 1001, Length: 1}, {Offset: 1 << 40}, {Offset: -1}, {Length: -1}, {Offset: -1, Length: 5}} {
		_, _, err := e.get("r/key", r)
		e.wantKind("Get of an impossible range", err, hbackup.KindUsage)
	}
	_, _, err := e.get("r/empty", storage.Range{Offset: 1})
	e.wantKind("Get beyond the end of an empty object", err, hbackup.KindUsage)
}

func closeEarly(e *env) {
	data := content(5, 3<<20)
	e.put("early/key", data)
	for i := range 20 {
		body, _, err := e.s.Get(e.ctx, "early/key", storage.Range{})
		if err != nil {
			e.Fatalf("Get: %v", err)
		}
		head := make([]byte, i*1000)
		if _, err := io.ReadFull(body, head); err != nil {
			e.Fatalf("read: %v", err)
		}
		if !bytes.Equal(head, data[:len(head)]) {
			e.Fatalf("the first %d bytes are wrong", len(head))
		}
		if err := body.Close(); err != nil {
			e.Fatalf("Close of a reader that is not at its end: %v", err)
		}
	}
	e.has("early/key", data)
}

// deleteWhileRead deletes an object under its reader: the reader may go on or
// fail, but must not end early as if all were well.
func deleteWhileRead(e *env) {
	data := content(6, 8<<20)
	e.put("gone/key", data)
	body, _, err := e.s.Get(e.ctx, "gone/key", storage.Range{})
	if err != nil {
		e.Fatalf("Get: %v", err)
	}
	defer body.Close()
	head := make([]byte, 1000)
	if _, err := io.ReadFull(body, head); err != nil {
		e.Fatalf("read: %v", err)
	}
	if err := e.s.Delete(e.ctx, "gone/key"); err != nil {
		e.Fatalf("Delete: %v", err)
	}
	rest, err := io.ReadAll(body)
	if got := append(head, rest...); err == nil && !bytes.Equal(got, data) {
		e.Fatalf("the reader ended without an error after %d of %d bytes", len(got), len(data))
	}
	e.absent("gone/key")
}

func notFound(e *env) {
	e.put("there/is", content(1, 10))
	for _, key := range []storage.Key{"missing", "there/missing", "there/is-not", "there/i", "no/such/folder/key", "THERE/is", "there/IS"} {
		e.absent(key)
		_, _, err := e.s.Get(e.ctx, key, storage.Range{Offset: 5, Length: 3})
		e.wantKind("Get of a range of a missing object", err, hbackup.KindNotFound)
	}
}
