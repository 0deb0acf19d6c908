package restore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/catalog"
	"hbackup/hbase/hbpb"
	"hbackup/hbase/snapshot"
	"hbackup/storage"
	"hbackup/storage/mem"
)

const imageID = hbackup.ImageID("20261130T230501.123Z-7f3k2m9q4x.0003")

var (
	ordersTable = hbackup.TableName{Namespace: "shop", Qualifier: "orders"}
	oldTable    = hbackup.TableName{Namespace: "shop", Qualifier: "orders_2025"}
)

// builder makes an image in a store in memory: regions, files and their bytes.
type builder struct {
	t        *testing.T
	table    hbackup.TableName
	families []hbackup.Family
	schema   *hbpb.TableSchema
	manifest snapshot.Manifest
	image    catalog.Image
	bytes    map[storage.Key][]byte
	rng      *rand.Rand
}

func newBuilder(t *testing.T, table hbackup.TableName, families ...hbackup.Family) *builder {
	b := &builder{t: t, table: table, families: families, bytes: map[storage.Key][]byte{}, rng: rand.New(rand.NewPCG(1, 2))}
	b.schema = &hbpb.TableSchema{TableName: &hbpb.TableName{Namespace: []byte(table.Namespace), Qualifier: []byte(table.Qualifier)}}
	for _, f := range families {
		b.schema.ColumnFamilies = append(b.schema.ColumnFamilies, &hbpb.ColumnFamilySchema{Name: []byte(f)})
	}
	return b
}

func (b *builder) attribute(key, value string) {
	b.schema.Attributes = append(b.schema.Attributes, &hbpb.BytesBytesPair{First: []byte(key), Second: []byte(value)})
}

func (b *builder) region(start, end string, id uint64) *snapshot.Region {
	r := snapshot.Region{Encoded: snapshot.EncodeRegionName(b.table, []byte(start), id, 0), ID: id, Table: b.table,
		StartKey: []byte(start), EndKey: []byte(end), RawInfo: snapshot.EncodeRegionInfo(b.table, []byte(start), []byte(end), id)}
	b.manifest.Regions = append(b.manifest.Regions, r)
	return &b.manifest.Regions[len(b.manifest.Regions)-1]
}

// add lists a file of the region; its bytes are made up.
func (b *builder) add(r *snapshot.Region, family hbackup.Family, name string, size int) {
	i := 0
	for i < len(r.Families) && r.Families[i].Family != family {
		i++
	}
	if i == len(r.Families) {
		r.Families = append(r.Families, snapshot.FamilyFiles{Family: family})
	}
	sf := snapshot.StoreFile{Name: name, Size: int64(size)}
	r.Families[i].Files = append(r.Families[i].Files, sf)
	target, err := snapshot.Resolve(r, family, sf)
	if err != nil {
		b.t.Fatal(err)
	}
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(b.rng.Uint32())
	}
	f := catalog.File{Table: target.Table, Region: target.Region, Family: target.Family, Name: target.File,
		Size: int64(size), Digest: storage.DigestOf(data), Cells: -1}
	if _, dup := b.bytes[f.Key()]; dup {
		return
	}
	b.bytes[f.Key()] = data
	b.image.Files = append(b.image.Files, f)
}

// store writes the image the way a backup does.
func (b *builder) store(s storage.Store) catalog.Found {
	b.t.Helper()
	ctx := context.Background()
	must := func(err error) {
		b.t.Helper()
		if err != nil {
			b.t.Fatal(err)
		}
	}
	raw, err := proto.Marshal(b.schema)
	must(err)
	b.manifest.Schema, err = snapshot.DecodeSchema(raw)
	must(err)
	b.manifest.Description = snapshot.Description{Name: string(imageID), Table: b.table, Created: time.UnixMilli(1796000000000), Type: snapshot.TypeFlush, Owner: "hbase"}
	manifest, err := snapshot.EncodeManifest(&b.manifest)
	must(err)
	info, err := b.manifest.Description.Encode()
	must(err)
	for k, data := range b.bytes {
		_, err := storage.PutBytes(ctx, s, k, data, true)
		must(err)
	}
	for name, data := range map[string][]byte{catalog.DataManifestFile: manifest, catalog.SnapshotInfoFile: info} {
		_, err := storage.PutBytes(ctx, s, catalog.SnapshotKey(imageID, name), data, true)
		must(err)
		b.image.Snapshot = append(b.image.Snapshot, catalog.SnapshotFile{Name: name, Size: int64(len(data)), Digest: storage.DigestOf(data)})
	}
	backup, err := imageID.Backup()
	must(err)
	im := &b.image
	im.ID, im.Backup, im.Cluster, im.Table, im.HBaseVersion = imageID, backup, "prod", b.table, "2.6.4-hadoop3"
	im.Namespace = map[string]string{"hbase.namespace.quota.maxtables": "5"}
	im.Totals = catalog.Totals{Regions: len(b.manifest.Regions), Files: len(im.Files)}
	for _, f := range im.Files {
		im.Totals.Bytes += f.Size
	}
	data, err := im.Encode()
	must(err)
	_, err = storage.PutBytes(ctx, s, catalog.ImageKey(b.table, imageID), data, true)
	must(err)
	return catalog.Found{Place: catalog.Place{Name: "main", Store: s}, Table: b.table, ID: imageID}
}

func hexName(n int) string { return fmt.Sprintf("%032x", 0xabc000+n) }

// ordersImage is a table with all that a restore treats in its own way: several
// regions and families, an empty region, a bulk-loaded file, a link to another
// table's file, a file without bytes, MOB files.
func ordersImage(t *testing.T) *builder {
	b := newBuilder(t, ordersTable, "d", "big", "meta-x")
	for _, f := range b.schema.ColumnFamilies {
		if string(f.Name) == "big" {
			f.Attributes = append(f.Attributes, &hbpb.BytesBytesPair{First: []byte("IS_MOB"), Second: []byte("true")})
		}
	}
	b.manifest.Regions = make([]snapshot.Region, 0, 8) // regions are handed out by pointer
	r := b.region("", "g", 1700000000001)
	b.add(r, "d", hexName(1), 3000)
	b.add(r, "d", hexName(2)+"_SeqId_17_", 500)
	b.add(r, "meta-x", hexName(3), 10)
	r = b.region("g", "p", 1700000000001)
	b.add(r, "d", snapshot.LinkName(oldTable, snapshot.EncodeRegionName(oldTable, []byte("g"), 5, 0), hexName(4)), 300000)
	b.region("p", "t", 1700000000009)
	r = b.region("t", "", 1700000000009)
	b.add(r, "big", hexName(5), 1)
	b.add(r, "meta-x", hexName(6), 0)
	mob := snapshot.MOBRegion(ordersTable)
	r = b.region(".mob", "", 0)
	b.add(r, "big", "d41d8cd98f00b204e9800998ecf8427e"+"20261130"+hexName(7)+"_"+string(mob), 900)
	return b
}

func newStore(t *testing.T, now func() time.Time) *mem.Store {
	return mem.New(t.Name(), mem.WithClock(now))
}
