package restore

import (
	"context"
	"maps"
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
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return nil, nil, hbackup.E("read image", string(found.ID), hbackup.KindIncomplete, err).
			WithHint("a backup's record names it, and it is not there: hbackup verify shows what else is missing; other backups are not concerned")
	}
	if err != nil {
		return nil, nil, err
	}
	m, err := catalog.ReadSnapshot(ctx, s, im)
	if err != nil {
		return nil, nil, err
	}
	lacks, err := im.Lacks(m)
	if err != nil {
		return nil, nil, err
	}
	for l := range lacks {
		return nil, nil, l.Err
	}
	return im, m, nil
}

// find looks a file up in an image's list.
func find(files []catalog.File, f catalog.File) (int, bool) {
	return slices.BinarySearchFunc(files, f, catalog.CompareFiles)
}

// checkStored lists the locations that the image's files lie in and reports the first
// file that is not there with its size, so that a restore that cannot end is not
// begun.
func checkStored(ctx context.Context, stores catalog.Stores, im *catalog.Image) error {
	there := make([]bool, len(im.Files))
	for _, id := range slices.Sorted(maps.Keys(stores)) {
		if err := checkPlace(ctx, stores[id], id, im, there); err != nil {
			return err
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
	f := &im.Files[first]
	return hbackup.Errorf(opStored, stores.Of(f).Location().At(f.Key()), hbackup.KindIncomplete, "it is missing (%d of the image's %d files are)", missing, len(im.Files)).
		WithHint("the image cannot be restored; hbackup verify names every file that is missing")
}

const opStored = "look for the image's files in"

// checkPlace marks the files that one location holds.
func checkPlace(ctx context.Context, s storage.Store, location string, im *catalog.Image, there []bool) error {
	const op = opStored
	for _, t := range tablesOf(im.Files, location) {
		prefix := catalog.ArchivePrefix(t)
		for o, err := range s.List(ctx, prefix, storage.ListOptions{}) {
			if err != nil {
				return hbackup.E(op, string(s.Location()), hbackup.KindOther, err)
			}
			i, ok := find(im.Files, fileAt(t, strings.TrimPrefix(string(o.Key), prefix)))
			if !ok || im.Files[i].Location != location {
				continue // another image's, or it lies elsewhere
			}
			if want := im.Files[i].Size; o.Size != want {
				return hbackup.Errorf(op, s.Location().At(o.Key), hbackup.KindCorrupt, "it has %d bytes, the image says %d", o.Size, want).
					WithHint("hbackup verify shows what else is damaged")
			}
			there[i] = true
		}
	}
	return nil
}

// fileAt reads "<region>/<family>/<file>"; what is not of that form gives a file
// that no image has.
func fileAt(t hbackup.TableName, rest string) catalog.File {
	region, rest, _ := strings.Cut(rest, "/")
	family, name, _ := strings.Cut(rest, "/")
	return catalog.File{Table: t, Region: hbackup.EncodedRegion(region), Family: hbackup.Family(family), Name: name}
}

// tablesOf names the tables whose folders in the location hold the files, which are
// in order.
func tablesOf(files []catalog.File, location string) []hbackup.TableName {
	var out []hbackup.TableName
	for i := range files {
		if f := &files[i]; f.Location == location && (len(out) == 0 || out[len(out)-1] != f.Table) {
			out = append(out, f.Table)
		}
	}
	return out
}
