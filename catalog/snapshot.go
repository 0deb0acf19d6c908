package catalog

import (
	"context"
	"iter"
	"slices"

	"hbackup"
	"hbackup/hbase/snapshot"
	"hbackup/storage"
)

// ReadSnapshot reads HBase's own manifest of an image, byte for byte as the
// image's says. Both must speak of the same table. Errors: KindIncomplete for
// what is missing, KindCorrupt for what disagrees, else those of the store.
func ReadSnapshot(ctx context.Context, s storage.Store, im *Image) (*snapshot.Manifest, error) {
	m, err := snapshot.ReadFrom(func(name string) ([]byte, error) { return snapshotFile(ctx, s, im, name) })
	if err != nil {
		return nil, hbackup.E("read image", string(im.ID), hbackup.KindOther, err)
	}
	if m.Schema.Table != im.Table {
		return nil, hbackup.Errorf("read image", s.Location().At(SnapshotKey(im.ID, DataManifestFile)), hbackup.KindCorrupt,
			"it is the snapshot of table %s, not of %s", m.Schema.Table, im.Table)
	}
	return m, nil
}

// snapshotFile reads one of HBase's own files and holds it against the size and
// digest in the image's manifest.
func snapshotFile(ctx context.Context, s storage.Store, im *Image, name string) ([]byte, error) {
	const op = "read snapshot file of image"
	path := s.Location().At(SnapshotKey(im.ID, name))
	i := slices.IndexFunc(im.Snapshot, func(f SnapshotFile) bool { return f.Name == name })
	if i < 0 {
		return nil, hbackup.Errorf(op, path, hbackup.KindCorrupt, "the image does not name it")
	}
	want := im.Snapshot[i]
	data, obj, err := storage.ReadAll(ctx, s, SnapshotKey(im.ID, name), min(want.Size, snapshot.MaxManifestBytes))
	switch {
	case hbackup.IsKind(err, hbackup.KindNotFound):
		return nil, hbackup.E(op, path, hbackup.KindIncomplete, err).WithHint("hbackup verify shows what else is missing")
	case err != nil:
		return nil, hbackup.E(op, path, hbackup.KindOther, err)
	case obj.Size != want.Size || storage.DigestOf(data) != want.Digest:
		return nil, hbackup.Errorf(op, path, hbackup.KindCorrupt, "it has %d bytes with digest %s; the image says %d and %s", obj.Size, storage.DigestOf(data), want.Size, want.Digest).
			WithHint("hbackup verify shows what else is damaged")
	}
	return data, nil
}

// Lack is a file that the snapshot of an image needs and that the image does not
// have, or not with its size.
type Lack struct {
	Key storage.Key // where it should be
	Err error       // KindIncomplete or KindCorrupt
}

// Lacks holds HBase's manifest of an image against the image's own and gives
// every file that disagrees, in the order of mention. An image that lacks any
// cannot be restored. The error is for a manifest that makes no sense.
func (im *Image) Lacks(m *snapshot.Manifest) (iter.Seq[Lack], error) {
	targets, err := snapshot.Targets(m)
	if err != nil {
		return nil, err
	}
	return func(yield func(Lack) bool) {
		for t, size := range targets {
			if _, err := im.File(t, size); err != nil && !yield(Lack{fileOf(t).Key(), err}) {
				return
			}
		}
	}, nil
}

// File gives the image's entry of a file that its snapshot needs; size is what
// HBase says of it, -1 when it says nothing.
func (im *Image) File(t snapshot.Target, size int64) (*File, error) {
	i, ok := slices.BinarySearchFunc(im.Files, fileOf(t), CompareFiles)
	if !ok {
		return nil, hbackup.Errorf("check image", string(im.ID), hbackup.KindIncomplete, "the snapshot needs the file %s, which the image does not have", t).
			WithHint("the image cannot be restored; hbackup verify shows what else is missing")
	}
	f := &im.Files[i]
	if size >= 0 && f.Size != size {
		return nil, hbackup.Errorf("check image", string(im.ID), hbackup.KindCorrupt, "the file %s has %d bytes by the snapshot and %d by the image", t, size, f.Size)
	}
	return f, nil
}

func fileOf(t snapshot.Target) File {
	return File{Table: t.Table, Region: t.Region, Family: t.Family, Name: t.File}
}
