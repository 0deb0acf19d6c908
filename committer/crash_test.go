package committer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"hbackup"
	"hbackup/committer"
	"hbackup/storage"
	"hbackup/storage/crash"
	"hbackup/storage/mem"
)

// makeDirect is makeImage for the committer that puts files at once.
func makeDirect(s storage.Store, files map[storage.Key]string) error {
	ctx := context.Background()
	im := committer.NewDirect(s).Begin(alone)
	for _, key := range keysOf(files) {
		_, err := im.PutFile(ctx, key, int64(len(files[key])), strings.NewReader(files[key]))
		if hbackup.IsKind(err, hbackup.KindExists) { // left by a try before: read, as a backup does
			var got []byte
			if got, _, err = storage.ReadAll(ctx, s, key, 1<<20); err == nil && string(got) != files[key] {
				err = fmt.Errorf("%s holds %q", key, got)
			}
		}
		if err != nil {
			return err
		}
	}
	if err := im.PutSnapshotFiles(ctx, snapshotFiles("data", "info")...); err != nil {
		return err
	}
	if err := im.Commit(ctx, manifestKey, []byte("manifest")); err != nil {
		return err
	}
	return im.End(ctx)
}

// half reports what may never be seen: an object that is not whole, or one of a
// layer while something of the layer below is missing.
func half(s *mem.Store, files map[storage.Key]string) error {
	want := map[storage.Key]string{dataKey: "data", infoKey: "info", manifestKey: "manifest"}
	got := s.Snapshot()
	for _, key := range keysOf(files) {
		want[key] = files[key]
		if _, there := got[key]; !there && (got[dataKey] != nil || got[infoKey] != nil || got[manifestKey] != nil) {
			return fmt.Errorf("%s is missing below what needs it", key)
		}
	}
	if got[infoKey] != nil && got[dataKey] == nil || got[manifestKey] != nil && got[infoKey] == nil {
		return errors.New("the snapshot's files are not there in their order")
	}
	for key, data := range got {
		if w, ours := want[key]; ours && !bytes.Equal(data, []byte(w)) {
			return fmt.Errorf("%s holds %q", key, data)
		}
	}
	return nil
}

// The process dies in each call to the store, in each way, and another one makes
// the same image: it comes to be, once and whole, and half of it is never seen.
// What was on its way arrives while the other is at work.
func TestDyingInEachCallToTheStore(t *testing.T) {
	files := fileSet(3)
	for protocol, image := range map[committer.Protocol]func(storage.Store) error{
		committer.ProtocolDirect:   func(s storage.Store) error { return makeDirect(s, files) },
		committer.ProtocolDeferred: func(s storage.Store) error { return makeImage(s, files, true) },
	} {
		clean := crash.New(mem.New("clean"), crash.Plan{})
		if err := image(clean); err != nil {
			t.Fatal(err)
		}
		steps, died := clean.Steps(), 0
		for step := 1; step <= steps; step++ {
			for _, p := range plans(step, steps) {
				s := crash.New(mem.New("crash"), p)
				s.OnChange(func(place *mem.Store) {
					if err := half(place, files); err != nil {
						t.Errorf("%s, %+v: %v", protocol, p, err)
					}
				})
				err := image(s)
				if s.Dead() {
					died++
				}
				if s.Dead() != (err != nil) {
					t.Errorf("%s, %+v: dead %v, and got %v", protocol, p, s.Dead(), err)
				}
				next := s.Reopen(crash.Plan{})
				for range 3 { // what comes late may get in the way of one try
					if err = image(next); err == nil {
						break
					}
				}
				place := next.Place()
				if err := errors.Join(err, half(place, files)); err != nil || place.Snapshot()[manifestKey] == nil {
					t.Errorf("%s, %+v: the next process: %v", protocol, p, err)
				}
				if left := place.Uploads(); len(left) > 0 && p.Fate != crash.Late {
					t.Errorf("%s, %+v: uploads are left: %q", protocol, p, left)
				}
			}
		}
		if min := steps * 3; died < min {
			t.Errorf("%s: only %d deaths in %d steps", protocol, died, steps)
		}
	}
}

// plans gives every way to die at a step. Late calls land at the start, in the
// middle and towards the end of the next process.
func plans(step, steps int) []crash.Plan {
	all := []crash.Plan{{Step: step, Fate: crash.Undone}, {Step: step, Fate: crash.Torn}, {Step: step, Fate: crash.Done}}
	for lands := 1; lands <= steps; lands += max(steps/4, 1) {
		all = append(all, crash.Plan{Step: step, Fate: crash.Late, Lands: lands})
	}
	return all
}
