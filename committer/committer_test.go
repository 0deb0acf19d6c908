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
	"hbackup/storage/mem"
)

const (
	fileKey     = storage.Key("archive/data/ns/t/r/f/one")
	manifestKey = storage.Key("images/ns/t/1.image")
	dataKey     = storage.Key(".hbase-snapshot/1/data.manifest")
	infoKey     = storage.Key(".hbase-snapshot/1/.snapshotinfo")
)

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
	im := committer.NewDirect(s).Begin()
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

func TestLayersCannotBeTurnedRound(t *testing.T) {
	s, ctx := mem.New("layers"), context.Background()
	im := committer.NewDirect(s).Begin()
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
	im := committer.NewDirect(s).Begin()
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
	im := committer.NewDirect(s).Begin()
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
	first := committer.NewDirect(s).Begin()
	if err := first.PutSnapshotFiles(ctx, snapshotFiles("old data", "old info")...); err != nil {
		t.Fatal(err)
	}
	second := committer.NewDirect(s).Begin()
	if err := second.PutSnapshotFiles(ctx, snapshotFiles("data", "info")...); err != nil {
		t.Fatal(err)
	}
	if d, i := content(t, s, dataKey), content(t, s, infoKey); d != "data" || i != "info" {
		t.Errorf("the location holds %q and %q", d, i)
	}
}

func TestCommitTwice(t *testing.T) {
	s, ctx := mem.New("twice"), context.Background()
	for range 2 {
		if err := committer.NewDirect(s).Begin().Commit(ctx, manifestKey, []byte("same")); err != nil {
			t.Fatal(err)
		}
	}
	err := committer.NewDirect(s).Begin().Commit(ctx, manifestKey, []byte("other"))
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
			errs[i] = committer.NewDirect(s).Begin().Commit(ctx, manifestKey, bytes.Repeat([]byte{byte('A' + i)}, 100))
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
