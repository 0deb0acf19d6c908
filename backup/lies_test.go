package backup_test

import (
	"fmt"
	"testing"
	"time"

	"hbackup/catalog"
	"hbackup/storage/faulty"
)

// A store that lies in a listing, or whose clock is off, may make a run fail, but
// nothing wrong is committed, and what was committed before is as it was.
func TestAStoreThatLies(t *testing.T) {
	scripts := []string{"time#*:skew=20m", "time#*:skew=-20m", "time#2+:skew=-20m", "time#3+:skew=20m", "time#4+:skew=-20m", "time#%2:skew=-20m"}
	lies := []string{"drop", "truncate=0", "truncate=1", "cut", "repeat"}
	if testing.Short() {
		lies = lies[:2]
	}
	for n := 1; n <= 12; n++ {
		for _, lie := range lies {
			scripts = append(scripts, fmt.Sprintf("list#%d:%s", n, lie))
		}
	}
	for _, lie := range []string{"drop=1", "cut", "repeat"} {
		scripts = append(scripts, "list#*:"+lie)
	}
	hits := 0
	for _, script := range scripts {
		w := newWorld(t)
		if _, err := w.run("before", w.store); err != nil {
			t.Fatal(err)
		}
		w.advance(time.Hour)
		bad, err := faulty.New(w.store, script)
		if err != nil {
			t.Fatal(err)
		}
		r, err := w.run("r", bad)
		if n := len(w.images(t)); err == nil && (r.State != catalog.StateComplete || n != 2) || n > 2 {
			t.Errorf("%s: success with %+v and %d images", script, r, n)
		}
		hits += bad.Hits()
		w.advance(time.Hour) // also over a lease of a clock that was ahead
		if again, err := w.run("r", w.store); err != nil || again.State != catalog.StateComplete {
			t.Errorf("%s, then again: %+v, %v", script, again, err)
		}
		if n := len(w.images(t)); n != 2 {
			t.Errorf("%s: %d images after the same request twice", script, n)
		}
	}
	if hits < 10 {
		t.Errorf("only %d lies were told", hits)
	}
}
