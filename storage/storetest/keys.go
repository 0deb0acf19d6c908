package storetest

import (
	"strings"

	"hbackup"
	"hbackup/storage"
)

func oddKeys(e *env) {
	keys := []storage.Key{
		"odd/with space", "odd/ leading", "odd/trailing ", "odd/plus+plus", "odd/100%", "odd/%41", "odd/%2F", "odd/a%20b", "odd/a=b", "odd/a?b=c",
		"odd/a#b", "odd/a&b", "odd/ä-ö-ü", "odd/日本語", "odd/😀", "odd/e\u0301", "odd/\u00e9", "odd/_", "odd/-", "odd/-leading", "odd/.hidden", "odd/...",
		"odd/a.b.c", "odd/~tilde", "odd/'quotes'", "odd/\"double\"", "odd/(paren)", "odd/[x]", "odd/{y}", "odd/a,b;c", "odd/@at",
		"odd/$HOME", "odd/!bang", "odd/*", "odd/a|b", "odd/a\\b", "odd/<tag>", "odd/^`", "odd/UPPER", "odd/upper",
		".hbase-snapshot/id/.snapshotinfo", "odd/hbk=job1=0123456789abcdef0123456789abcdef-f00",
		storage.Key("odd/" + strings.Repeat("n", 250)),
		storage.Key("odd/" + strings.Repeat("é", 125)),
		storage.Key(strings.Repeat(strings.Repeat("d", 99)+"/", 8)[:799] + "x"),
	}
	for i, key := range keys {
		data := content(uint64(i), int64(20+i))
		e.put(key, data)
	}
	for i, key := range keys {
		e.has(key, content(uint64(i), int64(20+i)))
	}
	e.lists("", storage.ListOptions{}, keys...)
	failures, err := e.s.DeleteBatch(e.ctx, keys[:len(keys)/2])
	if err != nil || len(failures) > 0 {
		e.Fatalf("DeleteBatch: %v, %v", failures, err)
	}
	for _, key := range keys[len(keys)/2:] {
		if err := e.s.Delete(e.ctx, key); err != nil {
			e.Fatalf("Delete %s: %v", short(key), err)
		}
	}
	e.lists("", storage.ListOptions{})
}

// invalidKeys checks that a key outside the limits is refused by every method
// before a byte of the body is read, and that nothing is reached through it.
func invalidKeys(e *env) {
	e.put("x/kept", content(1, 10))
	for _, key := range []storage.Key{
		"", ".", "..", "/", "../x", "x/../kept", "x/..", "x/./kept", "./x", "/x", "/x/kept", "x//kept", "x/", "x/kept/",
		"x/\x00", "x/a\nb", "x/a\tb", "x/a:b", "x/\x7f", "x/\xff\xfe", storage.Key("x/" + strings.Repeat("n", storage.MaxSegmentBytes+1)),
		storage.Key(strings.Repeat("d/", storage.MaxKeyBytes/2) + "xx"),
	} {
		body := &untouched{}
		_, err := e.s.Put(e.ctx, key, body, storage.PutOptions{Size: 10})
		e.wantKind("Put of an invalid key", err, hbackup.KindUsage)
		_, err = e.s.Put(e.ctx, key, body, storage.PutOptions{Size: 10, IfAbsent: true})
		e.wantKind("Put if absent of an invalid key", err, hbackup.KindUsage)
		if body.touched {
			e.Fatalf("Put of the invalid key %q read the body", key)
		}
		_, _, err = e.s.Get(e.ctx, key, storage.Range{})
		e.wantKind("Get of an invalid key", err, hbackup.KindUsage)
		_, err = e.s.Stat(e.ctx, key)
		e.wantKind("Stat of an invalid key", err, hbackup.KindUsage)
		e.wantKind("Delete of an invalid key", e.s.Delete(e.ctx, key), hbackup.KindUsage)
	}
	e.lists("", storage.ListOptions{}, "x/kept")
	e.has("x/kept", content(1, 10))
}

type untouched struct{ touched bool }

func (u *untouched) Read(p []byte) (int, error) {
	u.touched = true
	clear(p)
	return len(p), nil
}

func keyBelowKey(e *env) {
	e.put("n/a", content(1, 10))
	e.put("m/a/b", content(2, 10))
	below, belowErr := e.tryPut("n/a/b", content(3, 10))
	above, aboveErr := e.tryPut("m/a", content(4, 10))
	refused := hbackup.IsKind(belowErr, hbackup.KindConflict) && hbackup.IsKind(aboveErr, hbackup.KindConflict)
	if e.o.nesting == nestingRefused || e.o.nesting == nestingEither && refused {
		e.wantKind("Put below another key", belowErr, hbackup.KindConflict)
		e.wantKind("Put above another key", aboveErr, hbackup.KindConflict)
		e.absent("n/a/b")
		e.absent("m/a")
		e.lists("", storage.ListOptions{}, "n/a", "m/a/b")
		return
	}
	if belowErr != nil || aboveErr != nil {
		e.Fatalf("Put below another key: %v; above: %v", belowErr, aboveErr)
	}
	e.checkPut(below, "n/a/b", content(3, 10))
	e.checkPut(above, "m/a", content(4, 10))
	e.lists("", storage.ListOptions{}, "n/a", "n/a/b", "m/a", "m/a/b")
	if err := e.s.Delete(e.ctx, "n/a"); err != nil {
		e.Fatalf("Delete of a key with another one below it: %v", err)
	}
	e.absent("n/a")
	e.has("n/a/b", content(3, 10))
	e.has("m/a", content(4, 10))
}

func (e *env) tryPut(key storage.Key, data []byte) (storage.Object, error) {
	return e.s.Put(e.ctx, key, strings.NewReader(string(data)), storage.PutOptions{Size: int64(len(data))})
}

// folderIsNoObject looks at keys that a file system would take for a folder or
// for something below a file.
func folderIsNoObject(e *env) {
	e.put("f/g/h", content(1, 10))
	for _, key := range []storage.Key{"f", "f/g", "f/g/h/i", "f/g/h/i/j"} {
		e.absent(key)
		if err := e.s.Delete(e.ctx, key); err != nil {
			e.Fatalf("Delete %s: %v", key, err)
		}
		failures, err := e.s.DeleteBatch(e.ctx, []storage.Key{key})
		if err != nil || len(failures) > 0 {
			e.Fatalf("DeleteBatch %s: %v, %v", key, failures, err)
		}
	}
	e.has("f/g/h", content(1, 10))
	if err := e.s.Delete(e.ctx, "f/g/h"); err != nil {
		e.Fatalf("Delete: %v", err)
	}
	e.put("f/g", content(2, 20)) // the folder is gone with its last object
	e.has("f/g", content(2, 20))
}

func folderMarkers(e *env) {
	if e.o.folderMarker == nil {
		e.Skip("the store cannot hold folder markers")
	}
	e.put("m/key", content(1, 10))
	for _, name := range []string{"m/", "m/empty/", "m/z/", "other/"} {
		if err := e.o.folderMarker(e.ctx, e.s, name); err != nil {
			e.Fatalf("put the folder marker %s: %v", name, err)
		}
	}
	e.lists("", storage.ListOptions{}, "m/key")
	e.lists("m/", storage.ListOptions{}, "m/key")
	e.lists("", storage.ListOptions{Limit: 1}, "m/key")
	e.lists("other/", storage.ListOptions{})
	e.absent("m")
	e.absent("other")
}
