package hdfs

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hbackup"
	"hbackup/internal/files"
	"hbackup/storage"
)

// TestListingMatchesKeys: whatever names there are, a listing gives what a store
// of keys would give.
func TestListingMatchesKeys(t *testing.T) {
	segment := rapid.StringOfN(rapid.SampledFrom([]rune("aab-.0zäΩ日 ~!")), 1, 4, -1).
		Filter(func(s string) bool { return s != "." && s != ".." })
	rapid.Check(t, func(rt *rapid.T) {
		f := newFake()
		s := openFake(t, f)
		var keys []storage.Key
		for _, segments := range rapid.SliceOfN(rapid.SliceOfN(segment, 1, 3), 0, 25).Draw(rt, "keys") {
			key := storage.Join(segments...)
			switch _, err := storage.PutBytes(t.Context(), s, key, nil, true); {
			case err == nil:
				keys = append(keys, key)
			case !hbackup.IsKind(err, hbackup.KindExists, hbackup.KindConflict):
				rt.Fatal(err)
			}
		}
		slices.Sort(keys)
		prefix := rapid.OneOf(rapid.Just(""), segment).Draw(rt, "prefix")
		opts := storage.ListOptions{Limit: rapid.IntRange(0, 6).Draw(rt, "limit"), Folders: rapid.Bool().Draw(rt, "folders")}
		if len(keys) > 0 && rapid.Bool().Draw(rt, "from within") {
			opts.After = rapid.SampledFrom(keys).Draw(rt, "after")
		}
		var want, got []storage.Key
		for _, key := range keys {
			if opts.Folders && strings.HasPrefix(string(key), prefix) && storage.FolderOf(key, prefix) != "" {
				if key = storage.FolderOf(key, prefix); slices.Contains(want, key) {
					continue
				}
			}
			if len(key) >= len(prefix) && string(key[:len(prefix)]) == prefix && key > opts.After && (opts.Limit == 0 || len(want) < opts.Limit) {
				want = append(want, key)
			}
		}
		for obj, err := range s.List(t.Context(), prefix, opts) {
			if err != nil {
				rt.Fatal(err)
			}
			got = append(got, obj.Key)
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("got %q\nwant %q", got, want)
		}
	})
}

// TestHeldStaysSmall: of names of ASCII nothing is held but directories whose
// name begins others.
func TestHeldStaysSmall(t *testing.T) {
	var h held
	most, given := 0, 0
	visit := func(entry) error { given++; return nil }
	for c := range 26 * 26 {
		name := string([]byte{'a' + byte(c/26), 'a' + byte(c%26)})
		if err := h.before(name, visit); err != nil {
			t.Fatal(err)
		}
		h.hold(entry{name: name})
		most = max(most, len(h.entries))
	}
	if most > 1 || given != 26*26-1 {
		t.Errorf("%d were held at once, %d given", most, given)
	}
}

// disordered gives the first entry of a directory last.
type disordered struct{ *fake }

func (d disordered) ReadDirPage(ctx context.Context, p, after string) ([]files.Info, error) {
	page, err := d.fake.ReadDirPage(ctx, p, after)
	return append(page[1:], page[0]), err
}

// TestDisorderIsNoticed: a listing in the wrong order is an error, not one that
// lacks names.
func TestDisorderIsNoticed(t *testing.T) {
	f := newFake()
	s := openFake(t, f)
	for _, key := range []storage.Key{"d/a", "d/b", "d/c"} {
		put(t, s, key, "")
	}
	var last error
	for _, last = range open(disordered{f}, storage.Place{Scheme: "hdfs", Host: "nn:8020", Path: "/l"}).List(t.Context(), "", storage.ListOptions{}) {
	}
	if !hbackup.IsKind(last, hbackup.KindCorrupt) {
		t.Errorf("%v", last)
	}
}
