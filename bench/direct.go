package bench

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/catalog"
	"hbackup/catalog/verify"
	"hbackup/committer"
	"hbackup/hbase/hbpb"
	"hbackup/hbase/snapshot"
	"hbackup/storage"
	"hbackup/storage/prefixed"
)

// direct is our own committer, as a backup uses it: the files go to their final
// keys as store files of a table, and its commit writes HBase's two snapshot files
// and the manifest that makes the image.
type direct struct {
	*job
	target Target
	store  storage.Store
	dir    string
	id     hbackup.BackupID

	image *committer.Image
	files []catalog.File // by number, as they were written
}

var benchTable = hbackup.TableName{Namespace: "bench", Qualifier: "committer"}

const (
	benchFamily    = "f"
	filesPerRegion = 20
)

func newDirect(j *job, t Target, dir string) *direct {
	return &direct{job: j, target: t, store: prefixed.New(t.Store(), dir), dir: dir,
		id: hbackup.NewBackupID(time.Now()), files: make([]catalog.File, j.Files)}
}

func (p *direct) setup(context.Context) error {
	p.image = committer.NewDirect(p.store).Begin(func(context.Context) error { return nil })
	return nil
}

// startKey is where a region begins; they follow one another.
func startKey(region int) []byte {
	if region == 0 {
		return nil
	}
	return fmt.Appendf(nil, "%08d", region)
}

func (p *direct) region(file int) int { return file / filesPerRegion }

func (p *direct) write(ctx context.Context, task int) error {
	for _, i := range p.filesOf(task) {
		data := p.data(i)
		f := catalog.File{
			Table: benchTable, Region: snapshot.EncodeRegionName(benchTable, startKey(p.region(i)), 1, 0), Family: benchFamily,
			Name: fmt.Sprintf("%032x", i), Size: int64(len(data)), Cells: 1,
		}
		o, err := p.image.PutFile(ctx, f.Key(), f.Size, bytes.NewReader(data))
		if err != nil {
			return err
		}
		f.Digest = o.Digest
		p.files[i] = f
	}
	return nil
}

func (p *direct) commitTask(context.Context, int) error { return nil }

func (p *direct) commitJob(ctx context.Context) error {
	im, manifest, info, err := p.describe()
	if err != nil {
		return err
	}
	err = p.image.PutSnapshotFiles(ctx,
		committer.SnapshotFile{Key: catalog.SnapshotKey(im.ID, catalog.DataManifestFile), Data: manifest},
		committer.SnapshotFile{Key: catalog.SnapshotKey(im.ID, catalog.SnapshotInfoFile), Data: info})
	if err != nil {
		return err
	}
	encoded, err := im.Encode()
	if err != nil {
		return err
	}
	return p.image.Commit(ctx, catalog.ImageKey(im.Table, im.ID), encoded)
}

// describe gives the image with the content of HBase's two files.
func (p *direct) describe() (im *catalog.Image, manifest, info []byte, err error) {
	raw, err := proto.Marshal(&hbpb.TableSchema{
		TableName:      &hbpb.TableName{Namespace: []byte(benchTable.Namespace), Qualifier: []byte(benchTable.Qualifier)},
		ColumnFamilies: []*hbpb.ColumnFamilySchema{{Name: []byte(benchFamily)}},
	})
	if err != nil {
		return nil, nil, nil, err
	}
	m := &snapshot.Manifest{Description: snapshot.Description{Name: string(p.id.Image(0)), Table: benchTable, Type: snapshot.TypeFlush}}
	if m.Schema, err = snapshot.DecodeSchema(raw); err != nil {
		return nil, nil, nil, err
	}
	last := p.region(p.Files - 1)
	for n := range last + 1 {
		start, end := startKey(n), startKey(n+1)
		if n == last {
			end = nil
		}
		r := snapshot.Region{Encoded: snapshot.EncodeRegionName(benchTable, start, 1, 0), ID: 1, Table: benchTable, StartKey: start, EndKey: end,
			RawInfo: snapshot.EncodeRegionInfo(benchTable, start, end, 1)}
		family := snapshot.FamilyFiles{Family: benchFamily}
		for _, f := range p.files[n*filesPerRegion : min((n+1)*filesPerRegion, p.Files)] {
			family.Files = append(family.Files, snapshot.StoreFile{Name: f.Name, Size: f.Size})
		}
		r.Families = []snapshot.FamilyFiles{family}
		m.Regions = append(m.Regions, r)
	}
	if manifest, err = snapshot.EncodeManifest(m); err != nil {
		return nil, nil, nil, err
	}
	if info, err = m.Description.Encode(); err != nil {
		return nil, nil, nil, err
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	im = &catalog.Image{Files: p.files, Header: catalog.Header{ID: p.id.Image(0), Backup: p.id, Cluster: "bench", Table: benchTable,
		SnapshotStarted: now, SnapshotFinished: now, Totals: catalog.Totals{Regions: last + 1, Files: p.Files, Bytes: int64(p.Files) * p.Size, Cells: int64(p.Files)}}}
	im.Snapshot = []catalog.SnapshotFile{
		{Name: catalog.DataManifestFile, Size: int64(len(manifest)), Digest: storage.DigestOf(manifest)},
		{Name: catalog.SnapshotInfoFile, Size: int64(len(info)), Digest: storage.DigestOf(info)},
	}
	return im, manifest, info, nil
}

// verify finds the image as everybody would, reads the manifest and every file
// that it names, and compares them with what the job wrote.
func (p *direct) verify(ctx context.Context) error {
	found, err := catalog.ImagesOf(ctx, catalog.Place{Name: "bench", Store: p.store}, p.id)
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return hbackup.Errorf("verify", string(p.store.Location()), hbackup.KindIncomplete, "there are %d images", len(found))
	}
	report, err := verify.Images(ctx, found, verify.Options{Concurrency: verifyPool})
	if err != nil {
		return err
	}
	if len(report.Faults) > 0 {
		f := report.Faults[0]
		return hbackup.Errorf("verify", f.Path, f.Kind, "%s", f.What)
	}
	im, err := catalog.ReadImage(ctx, p.store, benchTable, p.id.Image(0))
	if err != nil {
		return err
	}
	digests := map[string]storage.Digest{}
	for _, f := range im.Files {
		digests[f.Name] = f.Digest
	}
	want := []string{p.dir + "/" + string(catalog.ImageKey(im.Table, im.ID))}
	for _, s := range im.Snapshot {
		want = append(want, p.dir+"/"+string(catalog.SnapshotKey(im.ID, s.Name)))
	}
	for i, f := range p.files {
		if d, there := digests[f.Name]; !there || d != storage.DigestOf(p.data(i)) {
			return hbackup.Errorf("verify", string(im.ID), hbackup.KindCorrupt, "the manifest does not have the bytes of %s", f.Name)
		}
		want = append(want, p.dir+"/"+string(f.Key()))
	}
	return verifyNames(ctx, p.target, p.dir, want)
}
