package restore

import (
	"context"
	"slices"
	"strings"

	"hbackup"
	"hbackup/catalog"
	"hbackup/hbase/snapshot"
	"hbackup/storage"
)

// loadImage reads an image and HBase's own manifest of it, and checks that they
// belong together and that the image is whole by its own account.
func loadImage(ctx context.Context, found catalog.Found) (*catalog.Image, *snapshot.Manifest, error) {
	s := found.Place.Store
	im, err := catalog.ReadImage(ctx, s, found.Table, found.ID)
	if err != nil {
		return nil, nil, err
	}
	m, err := snapshot.ReadFrom(func(name string) ([]byte, error) { return snapshotFile(ctx, s, im, name) })
	if err != nil {
		return nil, nil, hbackup.E("read image", string(im.ID), hbackup.KindOther, err)
	}
	if m.Schema.Table != im.Table {
		return nil, nil, hbackup.Errorf("read image", s.Location().At(catalog.SnapshotKey(im.ID, catalog.DataManifestFile)), hbackup.KindCorrupt,
			"it is the snapshot of table %s, not of %s", m.Schema.Table, im.Table)
	}
	return im, m, checkComplete(im, m)
}

// snapshotFile reads one of HBase's own files and holds it against the size and
// digest in the image's manifest.
func snapshotFile(ctx context.Context, s storage.Store, im *catalog.Image, name string) ([]byte, error) {
	const op = "read snapshot file of image"
	path := s.Location().At(catalog.SnapshotKey(im.ID, name))
	i := slices.IndexFunc(im.Snapshot, func(f catalog.SnapshotFile) bool { return f.Name == name })
	if i < 0 {
		return nil, hbackup.Errorf(op, path, hbackup.KindCorrupt, "the image does not name it")
	}
	want := im.Snapshot[i]
	data, obj, err := storage.ReadAll(ctx, s, catalog.SnapshotKey(im.ID, name), min(want.Size, snapshot.MaxManifestBytes))
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

// checkComplete holds HBase's manifest against the image: every file that the
// snapshot needs must be listed with its size and digest.
func checkComplete(im *catalog.Image, m *snapshot.Manifest) error {
	targets, err := snapshot.Targets(m)
	if err != nil {
		return err
	}
	for t, size := range targets {
		if _, err := lookUp(im, t, size); err != nil {
			return err
		}
	}
	return nil
}

// lookUp gives the image's entry of a file; size is what HBase says of it, -1
// when it says nothing.
func lookUp(im *catalog.Image, t snapshot.Target, size int64) (*catalog.File, error) {
	i, ok := find(im.Files, catalog.File{Table: t.Table, Region: t.Region, Family: t.Family, Name: t.File})
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

// find looks a file up in an image's list.
func find(files []catalog.File, f catalog.File) (int, bool) {
	return slices.BinarySearchFunc(files, f, catalog.CompareFiles)
}

// checkStored lists the location and reports the first file of the image that is
// not there with its size, so that a restore that cannot end is not begun.
func checkStored(ctx context.Context, s storage.Store, im *catalog.Image) error {
	const op = "look for the image's files in"
	there := make([]bool, len(im.Files))
	for _, t := range tablesOf(im.Files) {
		prefix := catalog.ArchivePrefix(t)
		for o, err := range s.List(ctx, prefix, storage.ListOptions{}) {
			if err != nil {
				return hbackup.E(op, string(s.Location()), hbackup.KindOther, err)
			}
			i, ok := find(im.Files, fileAt(t, strings.TrimPrefix(string(o.Key), prefix)))
			if !ok {
				continue // another image's
			}
			if want := im.Files[i].Size; o.Size != want {
				return hbackup.Errorf(op, s.Location().At(o.Key), hbackup.KindCorrupt, "it has %d bytes, the image says %d", o.Size, want).
					WithHint("hbackup verify shows what else is damaged")
			}
			there[i] = true
		}
	}
	first := slices.Index(there, false)
	if first < 0 {
		return nil
	}
	missing := 0
	for _, ok := range there {
		if !ok {
			missing++
		}
	}
	return hbackup.Errorf(op, s.Location().At(im.Files[first].Key()), hbackup.KindIncomplete, "it is missing (%d of the image's %d files are)", missing, len(im.Files)).
		WithHint("the image cannot be restored; hbackup verify names every file that is missing")
}

// fileAt reads "<region>/<family>/<file>"; what is not of that form gives a file
// that no image has.
func fileAt(t hbackup.TableName, rest string) catalog.File {
	region, rest, _ := strings.Cut(rest, "/")
	family, name, _ := strings.Cut(rest, "/")
	return catalog.File{Table: t, Region: hbackup.EncodedRegion(region), Family: hbackup.Family(family), Name: name}
}

// tablesOf names the tables whose folders hold the files, which are in order.
func tablesOf(files []catalog.File) []hbackup.TableName {
	var out []hbackup.TableName
	for i := range files {
		if len(out) == 0 || out[len(out)-1] != files[i].Table {
			out = append(out, files[i].Table)
		}
	}
	return out
}
