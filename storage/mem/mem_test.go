package mem

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storage.Store { return New("test") }, storetest.HeapLimit(-1))
}

// TestListIsSortedKeys does a random walk of puts and deletes, and compares
// listings with a plain set of keys.
func TestListIsSortedKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New("test")
		model := map[storage.Key]bool{}
		keys := rapid.StringMatching(`[abc]{1,2}(/[ab.]c?)?`)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := storage.Key(keys.Draw(t, "key"))
			if key.Validate() != nil {
				continue
			}
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				if _, err := storage.PutBytes(t.Context(), s, key, nil, false); err != nil {
					t.Fatal(err)
				}
				model[key] = true
			case 2:
				if err := s.Delete(t.Context(), key); err != nil {
					t.Fatal(err)
				}
				delete(model, key)
			case 3:
				var want, got []storage.Key
				for k := range model {
					if strings.HasPrefix(string(k), string(key[:1])) && k > key {
						want = append(want, k)
					}
				}
				slices.Sort(want)
				for obj, err := range s.List(t.Context(), string(key[:1]), storage.ListOptions{After: key}) {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, obj.Key)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("List gave %q; want %q", got, want)
				}
			}
		}
	})
}

func TestCloneIsIndependent(t *testing.T) {
	s := New("test")
	put := func(s *Store, key storage.Key) {
		t.Helper()
		if _, err := storage.PutBytes(t.Context(), s, key, []byte(key), true); err != nil {
			t.Fatal(err)
		}
	}
	put(s, "both")
	c := s.Clone()
	put(s, "old")
	put(c, "new")
	if err := c.Delete(t.Context(), "both"); err != nil {
		t.Fatal(err)
	}
	if got := s.Snapshot(); len(got) != 2 || got["both"] == nil || got["old"] == nil {
		t.Errorf("the old store has %q", got)
	}
	if got := c.Snapshot(); len(got) != 1 || got["new"] == nil {
		t.Errorf("the clone has %q", got)
	}
	if !s.Tamper("both", func(b []byte) []byte { b[0] = 'B'; return b }) || s.Tamper("missing", nil) {
		t.Error("Tamper does not know what is there")
	}
	if _, _, err := storage.ReadAll(t.Context(), s, "both", 10); !hbackup.IsKind(err, hbackup.KindCorrupt) {
		t.Errorf("an object that was tampered with gave %v", err)
	}
}

func TestOpenSharesByLocation(t *testing.T) {
	place, err := storage.ParseLocation("mem://shared-by-location")
	if err != nil {
		t.Fatal(err)
	}
	if Open(place) != Open(place) || Open(place).Location() != "mem://shared-by-location" {
		t.Error("the same location gives two stores")
	}
	if other := Open(storage.Place{Scheme: storage.SchemeMem, Host: "other"}); other == Open(place) {
		t.Error("two locations give the same store")
	}
}

func TestHolder(t *testing.T) {
	storetest.RunHolder(t, func(*testing.T) storage.Store { return New("held") }, nil)
}
