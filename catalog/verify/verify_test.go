package verify_test

import (
	"context"
	"fmt"
	"testing"

	"hbackup"
	"hbackup/catalog"
	"hbackup/catalog/verify"
	"hbackup/storage"
	"hbackup/storage/mem"
)

// library is a store with one image of three files.
func library(t *testing.T) (*mem.Store, []catalog.Found, *catalog.Image) {
	t.Helper()
	ctx, s := context.Background(), mem.New("library")
	table := hbackup.TableName{Namespace: "ns", Qualifier: "orders"}
	id := hbackup.BackupID("20261130T230501.123Z-7f3k2m9q4x")
	im := &catalog.Image{Header: catalog.Header{ID: id.Image(0), Backup: id, Cluster: "prod", Table: table}}
	for i := range 3 {
		data := fmt.Appendf(nil, "the bytes of file %d", i)
		f := catalog.File{Table: table, Region: "0123456789abcdef0123456789abcdef", Family: "f",
			Name: fmt.Sprintf("%032x", i), Size: int64(len(data)), Digest: storage.DigestOf(data), Cells: 1}
		im.Files = append(im.Files, f)
		im.Totals.Files++
		im.Totals.Bytes += f.Size
		put(t, s, f.Key(), data)
	}
	for _, name := range []string{catalog.DataManifestFile, catalog.SnapshotInfoFile} {
		data := []byte("HBase's " + name)
		im.Snapshot = append(im.Snapshot, catalog.SnapshotFile{Name: name, Size: int64(len(data)), Digest: storage.DigestOf(data)})
		put(t, s, catalog.SnapshotKey(im.ID, name), data)
	}
	b, err := im.Encode()
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, catalog.ImageKey(table, im.ID), b)
	found, err := catalog.ImagesOf(ctx, catalog.Place{Name: "here", Store: s}, id)
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	return s, found, im
}

func put(t *testing.T, s storage.Store, key storage.Key, data []byte) {
	t.Helper()
	if _, err := storage.PutBytes(context.Background(), s, key, data, false); err != nil {
		t.Fatal(err)
	}
}

func TestAWholeImageHasNoFault(t *testing.T) {
	for _, sizesOnly := range []bool{false, true} {
		_, found, im := library(t)
		r, err := verify.Images(context.Background(), found, verify.Options{SizesOnly: sizesOnly, Concurrency: 4})
		if err != nil || len(r.Faults) != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		if r.Images != 1 || r.Files != 5 || r.Bytes <= im.Totals.Bytes {
			t.Errorf("looked at %+v", r)
		}
	}
}

// Every object that the manifest names is damaged in turn, in each way, and it is
// that object, and only that, which is reported.
func TestEveryDamageIsFoundByName(t *testing.T) {
	ctx := context.Background()
	ways := []struct {
		name   string
		kind   hbackup.Kind
		sizes  bool // found without reading
		damage func(*testing.T, storage.Store, storage.Key, []byte)
	}{
		{"flipped bit", hbackup.KindCorrupt, false, func(t *testing.T, s storage.Store, k storage.Key, b []byte) { b[len(b)/2] ^= 1; put(t, s, k, b) }},
		{"cut short", hbackup.KindCorrupt, true, func(t *testing.T, s storage.Store, k storage.Key, b []byte) { put(t, s, k, b[:len(b)-1]) }},
		{"emptied", hbackup.KindCorrupt, true, func(t *testing.T, s storage.Store, k storage.Key, b []byte) { put(t, s, k, nil) }},
		{"removed", hbackup.KindIncomplete, true, func(t *testing.T, s storage.Store, k storage.Key, b []byte) {
			if err := s.Delete(ctx, k); err != nil {
				t.Fatal(err)
			}
		}},
	}
	_, _, im := library(t)
	keys := []storage.Key{catalog.ImageKey(im.Table, im.ID), catalog.SnapshotKey(im.ID, catalog.DataManifestFile), catalog.SnapshotKey(im.ID, catalog.SnapshotInfoFile)}
	files := map[storage.Key]bool{}
	for _, f := range im.Files {
		keys = append(keys, f.Key())
		files[f.Key()] = true
	}
	for _, way := range ways {
		for _, key := range keys {
			for _, sizesOnly := range []bool{false, true} {
				if sizesOnly && files[key] && !way.sizes {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%v", way.name, key, sizesOnly), func(t *testing.T) {
					s, found, _ := library(t)
					b, _, err := storage.ReadAll(ctx, s, key, 1<<20)
					if err != nil {
						t.Fatal(err)
					}
					way.damage(t, s, key, b)
					r, err := verify.Images(ctx, found, verify.Options{SizesOnly: sizesOnly, Concurrency: 4})
					if err != nil {
						t.Fatal(err)
					}
					if len(r.Faults) != 1 || r.Faults[0].Path != s.Location().At(key) || r.Faults[0].Kind != way.kind || !r.Faults[0].Damage() {
						t.Errorf("got %+v", r.Faults)
					}
				})
			}
		}
	}
}

func TestAnInterruptedVerificationIsNoVerdict(t *testing.T) {
	_, found, _ := library(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r, err := verify.Images(ctx, found, verify.Options{})
	if err == nil {
		t.Fatalf("a cancelled verification reports %+v and no error", r)
	}
}
