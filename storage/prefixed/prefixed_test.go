package prefixed

import (
	"slices"
	"testing"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/mem"
	"hbackup/storage/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storage.Store { return New(mem.New("test"), "part/of it") }, storetest.HeapLimit(-1))
}

// The neighbours of a part are neither seen nor touched.
func TestNeighbours(t *testing.T) {
	inner := mem.New("test")
	neighbours := []storage.Key{"par", "part", "part-2/a", "part0/a", "other/a"}
	for _, key := range neighbours {
		if _, err := storage.PutBytes(t.Context(), inner, key, []byte("x"), true); err != nil {
			t.Fatal(err)
		}
	}
	s := New(inner, "part")
	if got := s.Location(); got != "mem://test/part" {
		t.Errorf("the location is %s", got)
	}
	if _, err := storage.PutBytes(t.Context(), s, "a", []byte("y"), true); err != nil {
		t.Fatal(err)
	}
	var got []storage.Key
	for obj, err := range s.List(t.Context(), "", storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, obj.Key)
		if err := s.Delete(t.Context(), obj.Key); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, []storage.Key{"a"}) {
		t.Errorf("List gave %q", got)
	}
	if n := len(inner.Snapshot()); n != len(neighbours) {
		t.Errorf("%d objects are left; want %d", n, len(neighbours))
	}
	if _, err := s.Stat(t.Context(), "../part0/a"); !hbackup.IsKind(err, hbackup.KindUsage) {
		t.Errorf("Stat of a key that climbs gave %v", err)
	}
}

func TestBadPrefix(t *testing.T) {
	for _, prefix := range []string{"", "/", "a/", "/a", "a//b", ".."} {
		if _, err := storage.PutBytes(t.Context(), New(mem.New("test"), prefix), "a", nil, true); !hbackup.IsKind(err, hbackup.KindUsage) {
			t.Errorf("Put below the prefix %q gave %v; want usage", prefix, err)
		}
	}
}

func TestHolder(t *testing.T) {
	storetest.RunHolder(t, func(*testing.T) storage.Store { return New(mem.New("test"), "part/of it") }, nil)
}
