package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"hbackup/storage"
)

func listEmpty(e *env) {
	for _, prefix := range []string{"", "a", "a/", "a/b/c", "../", "/", "a//", "."} {
		e.lists(prefix, storage.ListOptions{})
		e.lists(prefix, storage.ListOptions{After: "a/a", Limit: 3})
	}
}

// listOrder has names whose order as whole keys is not the order of a walk
// through folders: '/' sorts behind '-' and '.', and before digits.
func listOrder(e *env) {
	keys := []storage.Key{
		"a-b", "a.b/c", "a/b", "a0", "a/b-c/d", "a/b.c", "a/b0", "a b", "a!/x", "A", "B/b", "_", "~", "é", "e", "日本", "z/z/z/z", "z/z-z/z", "z/z.z", "z-z/a",
		"\U0001F600", "\uFFFD", "\uE000x", // order is that of bytes, not of UTF-16
	}
	for _, key := range keys {
		e.put(key, []byte(key))
	}
	e.lists("", storage.ListOptions{}, keys...)
	sorted := slices.Sorted(slices.Values(keys))
	for i, key := range sorted {
		e.lists("", storage.ListOptions{After: key}, sorted[i+1:]...)
		e.lists("", storage.ListOptions{Limit: i + 1}, sorted[:i+1]...)
		e.lists("", storage.ListOptions{After: key, Limit: 2}, sorted[i+1:min(i+3, len(sorted))]...)
		e.lists(string(key), storage.ListOptions{}, startingWith(sorted, string(key), "")...)
		e.lists("", storage.ListOptions{After: key + "/"}, startingWith(sorted, "", key+"/")...)
		e.lists("", storage.ListOptions{After: key + "!"}, startingWith(sorted, "", key+"!")...)
		e.lists("z", storage.ListOptions{After: key}, startingWith(sorted, "z", key)...)
		e.lists("a/", storage.ListOptions{After: key}, startingWith(sorted, "a/", key)...)
	}
}

func startingWith(sorted []storage.Key, prefix string, after storage.Key) []storage.Key {
	var got []storage.Key
	for _, key := range sorted {
		if strings.HasPrefix(string(key), prefix) && key > after {
			got = append(got, key)
		}
	}
	return got
}

func listPrefixIsAString(e *env) {
	keys := []storage.Key{"x/1", "x/2", "x0/1", "dataset1/a", "dataset10/a", "dataset1-old/a", "dataset", "data/set1"}
	for _, key := range keys {
		e.put(key, content(1, 3))
	}
	e.lists("x/", storage.ListOptions{}, "x/1", "x/2")
	e.lists("x", storage.ListOptions{}, "x/1", "x/2", "x0/1")
	e.lists("x0", storage.ListOptions{}, "x0/1")
	e.lists("dataset1/", storage.ListOptions{}, "dataset1/a")
	e.lists("dataset1", storage.ListOptions{}, "dataset1/a", "dataset10/a", "dataset1-old/a")
	e.lists("dataset", storage.ListOptions{}, "dataset", "dataset1/a", "dataset10/a", "dataset1-old/a")
	e.lists("data", storage.ListOptions{}, "data/set1", "dataset", "dataset1/a", "dataset10/a", "dataset1-old/a")
	e.lists("dataset1/a", storage.ListOptions{}, "dataset1/a")
	e.lists("dataset1/a/", storage.ListOptions{})
	e.lists("ataset", storage.ListOptions{})
	e.lists("x//", storage.ListOptions{})
	e.lists("../", storage.ListOptions{})
	e.lists("/", storage.ListOptions{})
	e.lists("", storage.ListOptions{}, keys...)
	if failures, err := e.s.DeleteBatch(e.ctx, []storage.Key{"dataset1/a", "x/1"}); err != nil || len(failures) > 0 {
		e.Fatalf("DeleteBatch: %v, %v", failures, err)
	}
	e.lists("", storage.ListOptions{}, "x/2", "x0/1", "dataset10/a", "dataset1-old/a", "dataset", "data/set1")
}

// listMany has more objects than two pages of any store, looks at every edge
// of a page, and deletes them all as one batch.
func listMany(e *env) {
	keys := make([]storage.Key, e.o.keys)
	for i := range keys {
		keys[i] = storage.Key(fmt.Sprintf("many/%06d", i*7))
	}
	e.putAll(append([]storage.Key{"man", "many.before", "many0/behind", "z"}, keys...))
	n := len(keys)
	e.lists("many/", storage.ListOptions{}, keys...)
	for _, edge := range []int{1, 2, 999, 1000, 1001, 1999, 2000, 2001, n - 1, n} {
		if edge > n || edge < 1 {
			continue
		}
		e.lists("many/", storage.ListOptions{After: keys[edge-1]}, keys[edge:]...)
		e.lists("many/", storage.ListOptions{After: keys[edge-1] + "x", Limit: 5}, keys[edge:min(edge+5, n)]...)
		e.lists("many/", storage.ListOptions{Limit: edge}, keys[:edge]...)
	}
	e.lists("many/", storage.ListOptions{After: "many/"}, keys...)
	e.lists("many/", storage.ListOptions{After: "a"}, keys...)
	e.lists("many/", storage.ListOptions{After: "many0"})
	e.lists("many/", storage.ListOptions{Limit: n + 1}, keys...)
	failures, err := e.s.DeleteBatch(e.ctx, keys)
	if err != nil || len(failures) > 0 {
		e.Fatalf("DeleteBatch of %d keys: %v, %v", n, failures, err)
	}
	e.lists("", storage.ListOptions{}, "man", "many.before", "many0/behind", "z")
}

// putAll writes a byte or two under each key, many at a time.
func (e *env) putAll(keys []storage.Key) {
	e.Helper()
	work := make(chan storage.Key)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for key := range work {
				if _, err := e.tryPut(key, []byte("x")); err != nil {
					e.Errorf("Put %s: %v", key, err)
				}
			}
		})
	}
	for _, key := range keys {
		work <- key
	}
	close(work)
	wg.Wait()
	if e.Failed() {
		e.FailNow()
	}
}

func listStopsEarly(e *env) {
	for i := range 10 {
		e.put(storage.Key(fmt.Sprintf("s/%d", i)), nil)
	}
	list := e.s.List(e.ctx, "s/", storage.ListOptions{})
	for range 2 { // a listing can be walked again
		n := 0
		for _, err := range list {
			if err != nil {
				e.Fatalf("List: %v", err)
			}
			if n++; n == 3 {
				break
			}
		}
		if n != 3 {
			e.Fatalf("the listing ended after %d objects; want 3", n)
		}
	}
}

func listAfterChange(e *env) {
	for i := range 50 {
		key := storage.Key(fmt.Sprintf("c/%02d", i))
		e.put(key, content(1, int64(i)))
		if got := e.list("c/", storage.ListOptions{}); len(got) != i+1 || got[i].Key != key || got[i].Size != int64(i) {
			e.Fatalf("List after put number %d gave %d objects", i, len(got))
		}
	}
	for i := range 50 {
		if err := e.s.Delete(e.ctx, storage.Key(fmt.Sprintf("c/%02d", i))); err != nil {
			e.Fatalf("Delete: %v", err)
		}
		if got := e.list("c/", storage.ListOptions{}); len(got) != 49-i {
			e.Fatalf("List after delete number %d gave %d objects", i, len(got))
		}
	}
}
