package verify_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/catalog"
	"hbackup/catalog/verify"
	"hbackup/hbase/hbpb"
	"hbackup/hbase/snapshot"
	"hbackup/storage"
	"hbackup/storage/mem"
)

var orders = hbackup.TableName{Namespace: "ns", Qualifier: "orders"}

// library is a store with one image of three files.
func library(t *testing.T) (*mem.Store, []catalog.Found, *catalog.Image) {
	t.Helper()
	return libraryOf(t, func(*catalog.Image, *snapshot.Manifest) {})
}

// libraryOf is library with an image that is spoiled before it is committed.
func libraryOf(t *testing.T, spoil func(*catalog.Image, *snapshot.Manifest)) (*mem.Store, []catalog.Found, *catalog.Image) {
	t.Helper()
	ctx, s := context.Background(), mem.New("library")
	id := hbackup.BackupID("20261130T230501.123Z-7f3k2m9q4x")
	im := &catalog.Image{Header: catalog.Header{ID: id.Image(0), Backup: id, Cluster: "prod", Table: orders}}
	region := snapshot.Region{Encoded: snapshot.EncodeRegionName(orders, nil, 1, 0), ID: 1, Table: orders,
		Families: []snapshot.FamilyFiles{{Family: "f"}}, RawInfo: snapshot.EncodeRegionInfo(orders, nil, nil, 1)}
	for i := range 3 {
		data := fmt.Appendf(nil, "the bytes of file %d", i)
		f := catalog.File{Table: orders, Region: region.Encoded, Family: "f",
			Name: fmt.Sprintf("%032x", i), Size: int64(len(data)), Digest: storage.DigestOf(data), Cells: 1}
		im.Files = append(im.Files, f)
		region.Families[0].Files = append(region.Families[0].Files, snapshot.StoreFile{Name: f.Name, Size: f.Size})
		put(t, s, f.Key(), data)
	}
	m := &snapshot.Manifest{Schema: schema(t), Regions: []snapshot.Region{region},
		Description: snapshot.Description{Name: string(im.ID), Table: orders, Type: snapshot.TypeFlush}}
	spoil(im, m)
	manifest, err := snapshot.EncodeManifest(m)
	if err != nil {
		t.Fatal(err)
	}
	info, err := m.Description.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if im.Snapshot == nil {
		im.Snapshot = []catalog.SnapshotFile{
			{Name: catalog.DataManifestFile, Size: int64(len(manifest)), Digest: storage.DigestOf(manifest)},
			{Name: catalog.SnapshotInfoFile, Size: int64(len(info)), Digest: storage.DigestOf(info)}}
	}
	put(t, s, catalog.SnapshotKey(im.ID, catalog.DataManifestFile), manifest)
	put(t, s, catalog.SnapshotKey(im.ID, catalog.SnapshotInfoFile), info)
	im.Totals = catalog.Totals{Regions: 1, Files: len(im.Files)}
	for _, f := range im.Files {
		im.Totals.Bytes += f.Size
	}
	b, err := im.Encode()
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, catalog.ImageKey(im.Table, im.ID), b)
	found, err := catalog.ImagesOf(ctx, catalog.Place{Name: "here", Store: s}, id)
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	return s, found, im
}

func schema(t *testing.T) snapshot.Schema {
	t.Helper()
	raw, err := proto.Marshal(&hbpb.TableSchema{
		TableName:      &hbpb.TableName{Namespace: []byte(orders.Namespace), Qualifier: []byte(orders.Qualifier)},
		ColumnFamilies: []*hbpb.ColumnFamilySchema{{Name: []byte("f")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.DecodeSchema(raw)
	if err != nil {
		t.Fatal(err)
	}
	return s
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

// An image may be whole by its own account and yet not be what its snapshot needs.
// Each of these committed with every digest right.
func TestAnImageThatItsSnapshotDoesNotFit(t *testing.T) {
	ctx := context.Background()
	lacking := func(im *catalog.Image) storage.Key { return im.Files[1].Key() }
	for _, c := range []struct {
		name  string
		spoil func(*catalog.Image, *snapshot.Manifest)
		at    func(good *catalog.Image) storage.Key
		kind  hbackup.Kind
		what  string
	}{
		{"a file is not in the image", func(im *catalog.Image, m *snapshot.Manifest) { im.Files = slices.Delete(im.Files, 1, 2) },
			lacking, hbackup.KindIncomplete, "which the image does not have"},
		{"a file has another size", func(im *catalog.Image, m *snapshot.Manifest) { m.Regions[0].Families[0].Files[1].Size++ },
			lacking, hbackup.KindCorrupt, "by the snapshot"},
		{"no data.manifest is named", func(im *catalog.Image, m *snapshot.Manifest) {
			im.Snapshot = []catalog.SnapshotFile{}
		}, func(im *catalog.Image) storage.Key { return catalog.SnapshotKey(im.ID, catalog.DataManifestFile) }, hbackup.KindCorrupt, "does not name it"},
		{"another table's snapshot", func(im *catalog.Image, m *snapshot.Manifest) { im.Table.Qualifier = "customers" },
			func(im *catalog.Image) storage.Key { return catalog.SnapshotKey(im.ID, catalog.DataManifestFile) }, hbackup.KindCorrupt, "is the snapshot of table ns:orders"},
	} {
		for _, sizesOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", c.name, sizesOnly), func(t *testing.T) {
				_, _, good := library(t)
				s, found, _ := libraryOf(t, c.spoil)
				r, err := verify.Images(ctx, found, verify.Options{SizesOnly: sizesOnly, Concurrency: 4})
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Faults) != 1 {
					t.Fatalf("got %+v", r.Faults)
				}
				if f := r.Faults[0]; f.Path != s.Location().At(c.at(good)) || f.Kind != c.kind || !f.Damage() || !strings.Contains(f.What, c.what) {
					t.Errorf("got %+v", f)
				}
			})
		}
	}
}

// The image is whole, but a restore would refuse it: that is no damage, and not
// all good either.
func TestAnImageThatCannotBeRestored(t *testing.T) {
	s, found, im := libraryOf(t, func(_ *catalog.Image, m *snapshot.Manifest) {
		r := &m.Regions[0] // the same region by name, which ends too early
		r.EndKey, r.RawInfo = []byte("b"), snapshot.EncodeRegionInfo(orders, nil, []byte("b"), 1)
	})
	r, err := verify.Images(context.Background(), found, verify.Options{})
	if err != nil || len(r.Faults) != 1 {
		t.Fatalf("%+v, %v", r.Faults, err)
	}
	if f := r.Faults[0]; f.Kind != hbackup.KindUnsupported || f.Damage() || f.Path != s.Location().At(catalog.SnapshotKey(im.ID, catalog.DataManifestFile)) || !strings.Contains(f.What, "no region holds the rows from") {
		t.Errorf("got %+v", f)
	}
}

func TestEveryFileThatAnImageLacksIsNamed(t *testing.T) {
	_, found, _ := libraryOf(t, func(im *catalog.Image, _ *snapshot.Manifest) { im.Files = im.Files[2:] })
	r, err := verify.Images(context.Background(), found, verify.Options{})
	if err != nil || len(r.Faults) != 2 {
		t.Fatalf("%+v, %v", r.Faults, err)
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
