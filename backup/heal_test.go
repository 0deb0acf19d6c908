package backup_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/catalog"
	"hbackup/catalog/verify"
	"hbackup/e2e/servers"
	"hbackup/hbase/hbpb"
	"hbackup/hbase/snapshot"
	"hbackup/storage"
	"hbackup/storage/faulty"
	"hbackup/storage/file"
	"hbackup/storage/gcs"
	"hbackup/storage/gcs/gcstest"
	"hbackup/storage/mem"
	"hbackup/storage/prefixed"
	"hbackup/storage/s3"
)

// places gives one store of each kind that differs in how an object is replaced.
func places(t *testing.T) map[string]storage.Store {
	t.Helper()
	dir, err := file.Open(storage.Place{Scheme: storage.SchemeFile, Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	g, err := servers.StartS3(t.Context(), servers.S3Options{Buckets: []string{"backups"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Stop() })
	t.Setenv("HEAL_TEST_ACCESS", g.AccessKey)
	t.Setenv("HEAL_TEST_SECRET", g.SecretKey)
	bucket, err := s3.New(t.Context(), s3.Config{Bucket: "backups", Region: g.Region, Endpoint: g.Endpoint(), PathStyle: true,
		Credentials: s3.Credentials{AccessKey: "env:HEAL_TEST_ACCESS", SecretKey: "env:HEAL_TEST_SECRET"}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bucket.Close() })
	google, err := gcstest.Start("", gcstest.Options{Buckets: []string{"backups"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { google.Close() })
	gs, err := gcs.New(t.Context(), gcs.Config{Bucket: "backups", Endpoint: google.Endpoint()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { gs.Close() })
	return map[string]storage.Store{"mem": mem.New("backups"), "locked": mem.New("backups", mem.WithPermanence(storage.Locked)), "dir": dir, "s3": bucket, "gcs": gs}
}

// archive gives the key of a file of the table in the cluster's folder.
func (w *world) archive(name hbackup.TableName, n int) storage.Key {
	return storage.Key("archive/data/" + name.Path() + "/" + string(w.tables[name].region) + "/f/" + w.tables[name].files[n])
}

// source gives the bytes of a file of the cluster.
func (w *world) source(t *testing.T, name hbackup.TableName, n int) []byte {
	t.Helper()
	b, err := os.ReadFile(w.path(name, w.tables[name].files[n]))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func put(t *testing.T, s storage.Store, key storage.Key, data []byte) {
	t.Helper()
	if _, err := storage.PutBytes(context.Background(), s, key, data, false); err != nil {
		t.Fatal(err)
	}
}

// Objects that were deleted, shortened or lengthened behind our back come back from
// the cluster, and with them every image that names them is whole again.
func TestWhatWasDamagedInTheLocationIsPutInOrder(t *testing.T) {
	for name, s := range places(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.addFile(t, orders, "2.6-zstd_prefix.hfile")
			w.store = s
			for _, id := range []string{"first", "second"} {
				if _, err := w.run(id, s); err != nil {
					t.Fatal(err)
				}
			}
			put(t, w.folder(), w.archive(orders, 0), []byte("short"))
			put(t, w.folder(), w.archive(orders, 1), append(w.source(t, orders, 1), "more"...))
			if err := w.folder().Delete(context.Background(), w.archive(orders, 2)); err != nil {
				t.Fatal(err)
			}
			r, err := w.run("third", s)
			if err != nil || r.State != catalog.StateComplete {
				t.Fatalf("%+v, %v", r, err)
			}
			if l := r.Tables[0]; l.CopiedFiles != 3 || l.ReplacedFiles != 2 {
				t.Errorf("got %+v", l)
			}
			if n := len(w.images(t)); n != 3 {
				t.Errorf("%d images", n)
			}
			rec, err := catalog.ReadRun(t.Context(), w.folder(), r.ID)
			if err != nil || rec.Tables[0].ReplacedFiles != 2 {
				t.Errorf("the record says %+v, %v", rec.Tables, err)
			}
			if r, err := w.run("fourth", s); err != nil || r.Tables[0].CopiedFiles != 0 || r.Tables[0].ReplacedFiles != 0 {
				t.Errorf("once more: %+v, %v", r.Tables, err)
			}
		})
	}
}

// When it is the cluster's file that is not what the images say, nobody knows which
// one is right: the location is left as it is.
func TestNothingIsPutOverWhatImagesSay(t *testing.T) {
	other, err := os.ReadFile(filepath.Join("..", "hbase", "hfile", "testdata", "2.6-zstd_prefix.hfile"))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*testing.T, *world){
		"whole in the location":   func(*testing.T, *world) {},
		"missing in the location": func(t *testing.T, w *world) { w.mem().Delete(t.Context(), "prod/"+w.archive(orders, 0)) },
		"damaged in the location": func(t *testing.T, w *world) { put(t, w.folder(), w.archive(orders, 0), []byte("short")) },
		"named by an old image only": func(t *testing.T, w *world) {
			files := w.tables[orders].files
			w.tables[orders].files = files[1:]
			if _, err := w.run("between", w.store); err != nil {
				t.Fatal(err)
			}
			w.tables[orders].files = files
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if _, err := w.run("first", w.store); err != nil {
				t.Fatal(err)
			}
			change(t, w)
			if err := os.WriteFile(w.path(orders, w.tables[orders].files[0]), other, 0o644); err != nil {
				t.Fatal(err)
			}
			before := w.mem().Snapshot()["prod/"+w.archive(orders, 0)]
			_, err := w.run("second", w.store)
			if !hbackup.IsKind(err, hbackup.KindConflict) || hbackup.HintOf(err) == "" {
				t.Fatalf("got %v", err)
			}
			if now := w.mem().Snapshot()["prod/"+w.archive(orders, 0)]; !bytes.Equal(now, before) {
				t.Error("the location was changed")
			}
		})
	}
}

// leave has a run die when all files are in the location and no image is.
func leave(t *testing.T, w *world, s storage.Store) {
	t.Helper()
	bad, err := faulty.New(s, "put[data.manifest]#*:fail=denied")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.run("dead", bad); err == nil {
		t.Fatal("the run has not failed")
	}
	for i := range w.tables[orders].files {
		if _, err := w.folder().Stat(t.Context(), w.archive(orders, i)); err != nil {
			t.Fatal(err)
		}
	}
	w.advance(time.Hour)
}

// recorder remembers which objects were read, and how much of them.
type recorder struct {
	storage.Store
	foreign bool // no object bears the mark
	mu      sync.Mutex
	read    map[storage.Key]int64
}

func (r *recorder) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	o, err := r.Store.Stat(ctx, key)
	o.Ours = o.Ours && !r.foreign
	return o, err
}

func (r *recorder) Get(ctx context.Context, key storage.Key, rg storage.Range) (io.ReadCloser, storage.Object, error) {
	body, o, err := r.Store.Get(ctx, key, rg)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.read == nil {
			r.read = map[storage.Key]int64{}
		}
		_, length, _ := rg.Of(o.Size)
		r.read[key] += length
	}
	return body, o, err
}

// archived gives how much of the store files was read.
func (r *recorder) archived() (files int, bytes int64) {
	for key, n := range r.read {
		if strings.HasPrefix(string(key), "prod/archive/") {
			files++
			bytes += n
		}
	}
	return files, bytes
}

// What a run that died has put is proven by the store's digest and our mark where
// there are both, and read where there are not; either way it is not copied.
func TestWhatADeadRunHasLeftIsProven(t *testing.T) {
	at := places(t)
	const trailer = 4096
	for name, c := range map[string]struct {
		s       storage.Store
		foreign bool
		whole   bool
	}{
		"digest and mark": {at["mem"], false, false},
		"S3":              {at["s3"], false, false},
		"GCS":             {at["gcs"], false, false},
		"no mark":         {mem.New("backups"), true, true},
		"no digest":       {at["dir"], false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.store = c.s
			leave(t, w, c.s)
			rec := &recorder{Store: c.s, foreign: c.foreign}
			r, err := w.run("next", rec)
			if err != nil || r.Tables[0].CopiedFiles != 0 {
				t.Fatalf("%+v, %v", r.Tables, err)
			}
			w.images(t)
			var all int64
			for i := range w.tables[orders].files {
				all += int64(len(w.source(t, orders, i)))
			}
			want := all
			if !c.whole {
				want = 3 * trailer
			}
			if files, n := rec.archived(); files != 3 || n != want {
				t.Errorf("%d bytes of %d files were read, not %d", n, files, want)
			}
		})
	}
}

// An object that nobody names and that is not the file, though it has its size, is
// put in order, too, whoever has put it there.
func TestWhatIsNotTheFileIsReplaced(t *testing.T) {
	for name, spoil := range map[string]func(b []byte) []byte{
		"garbage":           func(b []byte) []byte { return bytes.Repeat([]byte("x"), len(b)) },
		"a flipped bit":     func(b []byte) []byte { b[len(b)/3] ^= 1; return b },
		"the end is zeroes": func(b []byte) []byte { clear(b[len(b)-100:]); return b },
	} {
		for _, foreign := range []bool{true, false} {
			if name == "a flipped bit" && !foreign {
				continue // our own put never makes it
			}
			t.Run(name, func(t *testing.T) {
				w := newWorld(t)
				leave(t, w, w.store)
				put(t, w.folder(), w.archive(orders, 1), spoil(w.source(t, orders, 1)))
				r, err := w.run("next", &recorder{Store: w.store, foreign: foreign})
				if err != nil || r.Tables[0].CopiedFiles != 1 || r.Tables[0].ReplacedFiles != 1 {
					t.Fatalf("%+v, %v", r.Tables, err)
				}
				w.images(t)
			})
		}
	}
}

// A table that is restored to an old snapshot has files again that its newest image
// does not name: an older one does.
func TestAFileOfAnOlderImageIsFoundAgain(t *testing.T) {
	dir, err := file.Open(storage.Place{Scheme: storage.SchemeFile, Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.store = dir // which keeps no digests
	files := w.tables[orders].files
	for i, now := range [][]string{files, files[2:], files[2:], files} {
		w.tables[orders].files = slices.Clone(now)
		w.advance(time.Hour)
		rec := &recorder{Store: dir}
		r, err := w.run([]string{"a", "b", "c", "d"}[i], rec)
		if err != nil || i > 0 && r.Tables[0].CopiedFiles > 0 {
			t.Fatalf("%+v, %v", r.Tables, err)
		}
		if n, _ := rec.archived(); n > 0 {
			t.Errorf("run %d has read %d store files", i, n)
		}
	}
}

// An image that cannot be read does not make the next backup read or copy what it
// names: the one before it says the same of most.
func TestAnUnreadableImageIsPassedOver(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"a", "b"} {
		if _, err := w.run(id, w.store); err != nil {
			t.Fatal(err)
		}
		w.advance(time.Hour)
	}
	refs, err := catalog.ImageRefs(t.Context(), w.folder(), orders)
	if err != nil || len(refs) != 2 {
		t.Fatal(refs, err)
	}
	w.mem().Tamper("prod/"+catalog.ImageKey(orders, refs[1].ID), func(b []byte) []byte { return b[:len(b)/2] })
	rec := &recorder{Store: w.store}
	r, err := w.run("c", rec)
	if n, _ := rec.archived(); err != nil || r.Tables[0].CopiedFiles != 0 || n != 0 {
		t.Errorf("%+v, %v, %d store files were read", r.Tables, err, n)
	}
}

// A clone reads the files of the table that it was made of: what that table's images
// name is neither read nor copied again.
func TestACloneUsesWhatItsOriginHas(t *testing.T) {
	w := newWorld(t)
	if _, err := w.run("origin", w.store); err != nil {
		t.Fatal(err)
	}
	clone := w.clone(t, orders, "copy")
	w.advance(time.Hour)
	rec := &recorder{Store: w.store}
	r, err := w.run("clone", rec, clone)
	if err != nil || r.Tables[0].CopiedFiles != 0 || r.Tables[0].Totals.Files != 3 {
		t.Fatalf("%+v, %v", r.Tables, err)
	}
	if n, _ := rec.archived(); n > 0 {
		t.Errorf("%d store files were read", n)
	}
	found := []catalog.Found{{Place: catalog.Place{Name: "main", Store: prefixed.New(w.store, "prod")}, Table: clone, ID: r.Tables[0].Image}}
	if rep, err := verify.Images(t.Context(), found, verify.Options{}); err != nil || len(rep.Faults) > 0 {
		t.Errorf("%+v, %v", rep, err)
	}
}

// HFiles of a MOB family name other files, which a clone's snapshot may lack: that
// the origin's image has them says nothing of the clone, so they are read for it.
func TestACloneOfAMOBTableIsReadClosely(t *testing.T) {
	w := newWorld(t)
	w.shape = func(m *snapshot.Manifest) {
		raw, err := proto.Marshal(&hbpb.TableSchema{
			TableName:      &hbpb.TableName{Namespace: []byte(m.Schema.Table.Namespace), Qualifier: []byte(m.Schema.Table.Qualifier)},
			ColumnFamilies: []*hbpb.ColumnFamilySchema{{Name: []byte("f"), Attributes: []*hbpb.BytesBytesPair{{First: []byte("IS_MOB"), Second: []byte("true")}}}}})
		if err != nil {
			t.Fatal(err)
		}
		m.Schema.Raw = raw
	}
	if _, err := w.run("origin", w.store); err != nil {
		t.Fatal(err)
	}
	clone := w.clone(t, orders, "copy")
	for i, want := range []int{3, 0} { // the second time its own image names them
		w.advance(time.Hour)
		rec := &recorder{Store: w.store}
		r, err := w.run([]string{"clone", "again"}[i], rec, clone)
		if n, _ := rec.archived(); err != nil || r.Tables[0].CopiedFiles != 0 || n != want {
			t.Errorf("%+v, %v, %d store files were read", r.Tables, err, n)
		}
	}
}
