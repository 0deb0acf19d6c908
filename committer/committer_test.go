package committer_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"hbackup"
	"hbackup/committer"
	"hbackup/storage"
	"hbackup/storage/faulty"
	"hbackup/storage/mem"
	"hbackup/storage/metered"
)

const (
	fileKey     = storage.Key("archive/data/ns/t/r/f/one")
	manifestKey = storage.Key("images/ns/t/1.image")
	dataKey     = storage.Key(".hbase-snapshot/1/data.manifest")
	infoKey     = storage.Key(".hbase-snapshot/1/.snapshotinfo")
)

// alone is the guard of one that has no rival.
func alone(context.Context) error { return nil }

func put(t *testing.T, im *committer.Image, key storage.Key, data string) error {
	t.Helper()
	_, err := im.PutFile(context.Background(), key, int64(len(data)), strings.NewReader(data))
	return err
}

func content(t *testing.T, s storage.Store, key storage.Key) string {
	t.Helper()
	b, _, err := storage.ReadAll(context.Background(), s, key, 1<<20)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return "<none>"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func snapshotFiles(data, info string) []committer.SnapshotFile {
	return []committer.SnapshotFile{{Key: dataKey, Data: []byte(data)}, {Key: infoKey, Data: []byte(info)}}
}

func TestAnImageIsThereWithItsManifestAndNotBefore(t *testing.T) {
	s, ctx := mem.New("committer"), context.Background()
	im := committer.NewDirect(s).Begin(alone)
	if err := put(t, im, fileKey, "bytes"); err != nil {
		t.Fatal(err)
	}
	if err := im.PutSnapshotFiles(ctx, snapshotFiles("data", "info")...); err != nil {
		t.Fatal(err)
	}
	if got := content(t, s, manifestKey); got != "<none>" {
		t.Fatalf("the manifest is there before the commit: %q", got)
	}
	if err := im.Commit(ctx, manifestKey, []byte("manifest")); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[storage.Key]string{fileKey: "bytes", dataKey: "data", infoKey: "info", manifestKey: "manifest"} {
		if got := content(t, s, key); got != want {
			t.Errorf("%s holds %q, want %q", key, got, want)
		}
	}
}

// What a commit costs does not grow with the files: one request for each of the
// three objects that it makes.
func TestACommitIsThreeRequests(t *testing.T) {
	s, ctx := metered.New(mem.New("requests")), context.Background()
	im := committer.NewDirect(s).Begin(alone)
	if err := put(t, im, fileKey, "bytes"); err != nil {
		t.Fatal(err)
	}
	before := s.Counts()
	if err := im.PutSnapshotFiles(ctx, snapshotFiles("data", "info")...); err != nil {
		t.Fatal(err)
	}
	if err := im.Commit(ctx, manifestKey, []byte("manifest")); err != nil {
		t.Fatal(err)
	}
	if did := s.Counts().Sub(before); did.Put.Calls != 3 || did.Calls() != 3 {
		t.Errorf("it took %s", did)
	}
}

func TestLayersCannotBeTurnedRound(t *testing.T) {
	s, ctx := mem.New("layers"), context.Background()
	im := committer.NewDirect(s).Begin(alone)
	if err := im.PutSnapshotFiles(ctx, snapshotFiles("data", "info")...); err != nil {
		t.Fatal(err)
	}
	if err := put(t, im, fileKey, "late"); !hbackup.IsKind(err, hbackup.KindRefused) {
		t.Errorf("a file after the snapshot files: %v", err)
	}
	if got := content(t, s, fileKey); got != "<none>" {
		t.Errorf("the late file was written: %q", got)
	}
}

func TestNoCommitOverAFileThatFailed(t *testing.T) {
	s, ctx := mem.New("failed"), context.Background()
	im := committer.NewDirect(s).Begin(alone)
	broken := io.MultiReader(strings.NewReader("by"), errReader{errors.New("disk")})
	if _, err := im.PutFile(ctx, fileKey, 5, broken); err == nil {
		t.Fatal("a body that broke off was written")
	}
	if err := im.Commit(ctx, manifestKey, []byte("m")); !hbackup.IsKind(err, hbackup.KindRefused) {
		t.Fatalf("commit over a failed file: %v", err)
	}
	if got := content(t, s, manifestKey); got != "<none>" {
		t.Fatalf("the manifest was written: %q", got)
	}
	// The same file again, whole, clears it.
	if err := put(t, im, fileKey, "bytes"); err != nil {
		t.Fatal(err)
	}
	if err := im.Commit(ctx, manifestKey, []byte("m")); err != nil {
		t.Fatal(err)
	}
}

func TestNoCommitWhileAFileIsOnItsWay(t *testing.T) {
	s, ctx := mem.New("open"), context.Background()
	im := committer.NewDirect(s).Begin(alone)
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := im.PutFile(ctx, fileKey, 2, r)
		done <- err
	}()
	if _, err := w.Write([]byte("b")); err != nil { // returns once the put is reading
		t.Fatal(err)
	}
	if err := im.Commit(ctx, manifestKey, []byte("m")); !hbackup.IsKind(err, hbackup.KindRefused) {
		t.Errorf("commit over an open file: %v", err)
	}
	w.Write([]byte("c"))
	w.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestALeftoverOfAnEarlierTryIsReplaced(t *testing.T) {
	s, ctx := mem.New("leftover"), context.Background()
	first := committer.NewDirect(s).Begin(alone)
	if err := first.PutSnapshotFiles(ctx, snapshotFiles("old data", "old info")...); err != nil {
		t.Fatal(err)
	}
	second := committer.NewDirect(s).Begin(alone)
	if err := second.PutSnapshotFiles(ctx, snapshotFiles("data", "info")...); err != nil {
		t.Fatal(err)
	}
	if d, i := content(t, s, dataKey), content(t, s, infoKey); d != "data" || i != "info" {
		t.Errorf("the location holds %q and %q", d, i)
	}
}

// Two processes may work on one image for a moment: one that was taken for dead,
// and the one that took over, with the same snapshot. Whatever the other has
// written is used and nothing of it taken away, as the other may commit any time.
func TestTheSameFilesOfAnotherAreNeverTakenAway(t *testing.T) {
	for name, there := range map[string][]committer.SnapshotFile{
		"all": snapshotFiles("data", "info"), "the first": snapshotFiles("data", "info")[:1], "none": nil,
	} {
		for _, between := range []bool{false, true} { // all of them between this one's looks
			s, ctx := mem.New("rival"), context.Background()
			rival := func() {
				for _, f := range snapshotFiles("data", "info") {
					if _, err := storage.PutBytes(ctx, s, f.Key, f.Data, true); err != nil && !hbackup.IsKind(err, hbackup.KindExists) {
						t.Error(err)
					}
				}
			}
			for _, f := range there {
				if _, err := storage.PutBytes(ctx, s, f.Key, f.Data, true); err != nil {
					t.Fatal(err)
				}
			}
			watched := &keeping{Store: s}
			if between {
				watched.afterLook = rival
			}
			if err := committer.NewDirect(watched).Begin(alone).PutSnapshotFiles(ctx, snapshotFiles("data", "info")...); err != nil {
				t.Errorf("%s, %v: %v", name, between, err)
			}
			if watched.deleted != nil {
				t.Errorf("%s, %v: deleted %v", name, between, watched.deleted)
			}
			if d, i := content(t, s, dataKey), content(t, s, infoKey); d != "data" || i != "info" {
				t.Errorf("%s, %v: the location holds %q and %q", name, between, d, i)
			}
		}
	}
}

// keeping notes what is deleted, and lets something happen after the first look
// at a key.
type keeping struct {
	storage.Store
	afterLook func()
	deleted   []storage.Key
}

func (k *keeping) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	o, err := k.Store.Stat(ctx, key)
	if after := k.afterLook; after != nil {
		k.afterLook = nil
		after()
	}
	return o, err
}

func (k *keeping) Delete(ctx context.Context, key storage.Key) error {
	k.deleted = append(k.deleted, key)
	return k.Store.Delete(ctx, key)
}

func TestALeftoverStaysWhenTheGuardSaysNo(t *testing.T) {
	s, ctx := mem.New("guarded"), context.Background()
	if err := committer.NewDirect(s).Begin(alone).PutSnapshotFiles(ctx, snapshotFiles("committed data", "info")...); err != nil {
		t.Fatal(err)
	}
	lost := errors.New("the lease is lost")
	late := committer.NewDirect(s).Begin(func(context.Context) error { return lost })
	if err := late.PutSnapshotFiles(ctx, snapshotFiles("data", "info")...); !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
	if d, i := content(t, s, dataKey), content(t, s, infoKey); d != "committed data" || i != "info" {
		t.Errorf("the location holds %q and %q", d, i)
	}
	if err := late.Commit(ctx, manifestKey, []byte("m")); !hbackup.IsKind(err, hbackup.KindRefused) {
		t.Errorf("commit over snapshot files that were not written: %v", err)
	}
}

func TestALostAnswerToASnapshotFileIsSettled(t *testing.T) {
	for _, script := range []string{"put#1:lost", "put#2:lost", "put#1:lost=exists", "put#2:lost=exists"} {
		s, err := faulty.New(mem.New("lost"), script)
		if err != nil {
			t.Fatal(err)
		}
		if err := committer.NewDirect(s).Begin(alone).PutSnapshotFiles(context.Background(), snapshotFiles("data", "info")...); err != nil {
			t.Errorf("%s: %v", script, err)
		}
		if d, i := content(t, s, dataKey), content(t, s, infoKey); d != "data" || i != "info" {
			t.Errorf("%s: the location holds %q and %q", script, d, i)
		}
	}
}

func TestCommitTwice(t *testing.T) {
	s, ctx := mem.New("twice"), context.Background()
	for range 2 {
		if err := committer.NewDirect(s).Begin(alone).Commit(ctx, manifestKey, []byte("same")); err != nil {
			t.Fatal(err)
		}
	}
	err := committer.NewDirect(s).Begin(alone).Commit(ctx, manifestKey, []byte("other"))
	if !hbackup.IsKind(err, hbackup.KindConflict) {
		t.Fatalf("another manifest: %v", err)
	}
	if got := content(t, s, manifestKey); got != "same" {
		t.Fatalf("the committed manifest was changed to %q", got)
	}
}

func TestOfManyCommitsOneWins(t *testing.T) {
	s, ctx := mem.New("race"), context.Background()
	var wg sync.WaitGroup
	errs := make([]error, 50)
	for i := range errs {
		wg.Go(func() {
			errs[i] = committer.NewDirect(s).Begin(alone).Commit(ctx, manifestKey, bytes.Repeat([]byte{byte('A' + i)}, 100))
		})
	}
	wg.Wait()
	got := content(t, s, manifestKey)
	for i, err := range errs {
		won := got == strings.Repeat(string(rune('A'+i)), 100)
		if won != (err == nil) || !won && !hbackup.IsKind(err, hbackup.KindConflict) {
			t.Errorf("committer %d: stored %v, error %v", i, won, err)
		}
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// A manifest that can be read back is not enough: a store that fails again and
// again, such as a disk that cannot be synced, may have it in memory alone. What
// counts is that the store says in the end that it exists.
func TestAManifestThatTheStoreNeverOwnsUpToIsNotCommitted(t *testing.T) {
	for script, committed := range map[string]bool{"put[images/]#1:lost": true, "put[images/]#*:lost": false, "put[.snapshotinfo]#*:lost": false, "put[.snapshotinfo]#1:lost": true} {
		s, ctx := mem.New("committer"), context.Background()
		bad, err := faulty.New(s, script)
		if err != nil {
			t.Fatal(err)
		}
		im := committer.NewDirect(bad).Begin(alone)
		if err := put(t, im, fileKey, "bytes"); err != nil {
			t.Fatal(err)
		}
		err = im.PutSnapshotFiles(ctx, snapshotFiles("data", "info")...)
		if err == nil {
			err = im.Commit(ctx, manifestKey, []byte("manifest"))
		}
		if (err == nil) != committed {
			t.Errorf("%s: %v", script, err)
		}
	}
}
