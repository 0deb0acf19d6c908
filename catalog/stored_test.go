package catalog

import (
	"context"
	"strings"
	"testing"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/mem"
	"hbackup/storage/metered"
)

func putImage(t *testing.T, s storage.Store, im *Image) []byte {
	t.Helper()
	b, err := im.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := storage.PutBytes(context.Background(), s, ImageKey(im.Table, im.ID), b, true); err != nil {
		t.Fatal(err)
	}
	return b
}

func openNewest(t *testing.T, s storage.Store, table hbackup.TableName) (*ImageReader, error) {
	t.Helper()
	refs, err := ImageRefs(t.Context(), s, table)
	if err != nil || len(refs) == 0 {
		t.Fatalf("%v, %v", refs, err)
	}
	return OpenStored(t.Context(), s, table, refs[len(refs)-1])
}

// A manifest in a location is read with one request when it is small, and window by
// window when it is large; the files are the same.
func TestAStoredImageIsReadInFewRequests(t *testing.T) {
	for _, n := range []int{10, 350_000} {
		s := metered.New(mem.New("images"))
		im := manyFiles(1+n/3, n)
		size := len(putImage(t, s, im))
		before := s.Counts().Get.Calls
		r, err := openNewest(t, s, im.Table)
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for f, err := range r.Files() {
			if err != nil || f != im.Files[i] {
				t.Fatalf("file %d: %+v, %v", i, f, err)
			}
			i++
		}
		windows := (size + windowBytes - 1) / windowBytes
		if got := s.Counts().Get.Calls - before; i != n || got > int64(windows)+1 || n == 10 && got != 1 || n > 10 && windows < 3 {
			t.Errorf("%d files of %d, %d requests for %d windows", i, n, got, windows)
		}
	}
}

// Damage is of the manifest's kind and names it; a store that does not answer is not
// damage.
func TestAStoredImageThatCannotBeRead(t *testing.T) {
	im := manyFiles(3, 3)
	for name, c := range map[string]struct {
		spoil func(s *mem.Store, key storage.Key)
		kind  hbackup.Kind
	}{
		"a flipped bit": {func(s *mem.Store, key storage.Key) {
			s.Tamper(key, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
		}, hbackup.KindCorrupt},
		"cut short": {func(s *mem.Store, key storage.Key) { s.Tamper(key, func(b []byte) []byte { return b[:len(b)-1] }) }, hbackup.KindCorrupt},
		"another's": {func(s *mem.Store, key storage.Key) {
			other := manyFiles(1, 1)
			other.Table.Qualifier = "other"
			b, _ := other.Encode()
			s.Tamper(key, func([]byte) []byte { return b })
		}, hbackup.KindCorrupt},
		"of a newer format": {func(s *mem.Store, key storage.Key) {
			s.Tamper(key, func(b []byte) []byte { return []byte(strings.Replace(string(b), "image 2", "image 9", 1)) })
		}, hbackup.KindUnsupported},
	} {
		s := mem.New("images")
		putImage(t, s, im)
		key := ImageKey(im.Table, im.ID)
		c.spoil(s, key)
		r, err := openNewest(t, s, im.Table)
		for _, ferr := range files(r) {
			if ferr != nil {
				err = ferr
			}
		}
		if !hbackup.IsKind(err, c.kind) || !strings.Contains(err.Error(), string(key)) || hbackup.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := mem.New("images")
	putImage(t, s, im)
	ctx, cancel := context.WithCancel(t.Context())
	refs, err := ImageRefs(ctx, s, im.Table)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := OpenStored(ctx, s, im.Table, refs[0]); !hbackup.IsKind(err, hbackup.KindInterrupted) {
		t.Errorf("interrupted: %v", err)
	}
	if err := s.Delete(t.Context(), ImageKey(im.Table, im.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenStored(t.Context(), s, im.Table, refs[0]); !hbackup.IsKind(err, hbackup.KindNotFound) {
		t.Errorf("gone: %v", err)
	}
}

// files walks what a reader gives; a nil one gives nothing.
func files(r *ImageReader) func(func(File, error) bool) {
	return func(yield func(File, error) bool) {
		if r != nil {
			r.Files()(yield)
		}
	}
}
