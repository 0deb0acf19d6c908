package backup_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"hbackup/catalog"
	"hbackup/storage"
	"hbackup/storage/faulty"
	"hbackup/storage/mem"
)

// Every call to the store fails once while damage is put in order, by either
// committer: nothing that does not verify is committed, and the same request
// afterwards makes all images whole.
func TestEveryStoreCallFailsOnceWhileDamageIsPutInOrder(t *testing.T) {
	for _, p := range []storage.Permanence{storage.Deletable, storage.Locked} {
		damagedWorld := func(t *testing.T) *world {
			w := newWorld(t, mem.WithPermanence(p))
			if _, err := w.run("before", w.store); err != nil {
				t.Fatal(err)
			}
			put(t, w.folder(), w.archive(orders, 0), []byte("short"))
			if err := w.folder().Delete(context.Background(), w.archive(orders, 1)); err != nil {
				t.Fatal(err)
			}
			w.advance(time.Hour)
			return w
		}
		w := damagedWorld(t)
		counted, err := faulty.New(w.store, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.run("r", counted); err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= counted.Calls()["any"]; n++ {
			for _, fault := range []string{"fail=denied", "lost"} {
				t.Run(fmt.Sprintf("%s %d %s", p, n, fault), func(t *testing.T) {
					t.Parallel()
					w := damagedWorld(t)
					bad, err := faulty.New(w.store, fmt.Sprintf("any#%d:%s", n, fault))
					if err != nil {
						t.Skip("the fault has no meaning for every operation")
					}
					if r, err := w.run("r", bad); err == nil && (r.State != catalog.StateComplete || len(w.images(t)) != 2) {
						t.Fatalf("success with %+v", r)
					}
					w.advance(2 * time.Minute)
					if r, err := w.run("r", w.store); err != nil || r.State != catalog.StateComplete {
						t.Fatalf("again: %+v, %v", r, err)
					}
					if n := len(w.images(t)); n != 2 {
						t.Errorf("%d images", n)
					}
				})
			}
		}
	}
}
