package restore

import (
	"context"
	"path"

	"hbackup"
	"hbackup/hbase/snapshot"
)

// putShared brings a MOB file to the place where HBase finds it, unless the
// cluster has it. The place is not ours alone: nothing there is ever removed or
// replaced, and nothing is seen there before it is whole. So the file is written
// aside, in the attempt's own place, and published under its name; of two restores
// that need the same file one publishes it and the other finds it.
func (r *run) putShared(ctx context.Context, t task, mayBeThere bool) (there bool, err error) {
	at := path.Join(r.target.Root, t.dir, t.name)
	if there, err := r.hasShared(ctx, t, at); there || err != nil {
		return there, err
	}
	aside := t
	aside.dir, aside.aside = t.aside, ""
	if there, err = r.putOnce(ctx, aside, mayBeThere); err != nil {
		return false, err
	}
	// HBase's cleaners remove empty folders, so this one may be gone since it was made.
	if err := r.target.FS.MkdirAll(ctx, path.Dir(at)); err != nil {
		return false, hbackup.E("make directory", r.target.FS.URI()+path.Dir(at), hbackup.KindOther, err)
	}
	from := path.Join(r.target.Root, aside.dir, t.name)
	const op = "publish MOB file"
	err = r.target.FS.Publish(ctx, from, at)
	switch {
	case err == nil:
		return there, nil
	case hbackup.IsKind(err, hbackup.KindNotFound):
		return false, hbackup.E(op, r.target.FS.URI()+at, hbackup.KindUnavailable, err) // they were faster
	case !hbackup.IsKind(err, hbackup.KindExists):
		return false, hbackup.E(op, r.target.FS.URI()+at, hbackup.KindOther, err)
	}
	there, herr := r.hasShared(ctx, t, at)
	switch {
	case herr != nil:
		return false, herr
	case !there:
		return false, hbackup.E(op, r.target.FS.URI()+at, hbackup.KindUnavailable, err)
	}
	if err := r.target.FS.Remove(ctx, from); err != nil {
		return true, hbackup.E("remove staged file", r.target.FS.URI()+from, hbackup.KindOther, err)
	}
	return true, nil
}

// hasShared reports whether the cluster has the MOB file, in use by its own table
// or in the archive, and reads it all to be sure. HBase looks at these places in
// this order and takes what it finds, so another file in either of them is
// KindConflict: the restored table would read it instead.
func (r *run) hasShared(ctx context.Context, t task, at string) (bool, error) {
	for _, place := range []string{snapshot.MOBPath(r.target.Root, t.target), at} {
		same, other, err := r.sameAs(ctx, t, place)
		switch {
		case same || err != nil:
			return same, err
		case other:
			return false, hbackup.Errorf("stage MOB file", r.target.FS.URI()+place, hbackup.KindConflict, "another file of that name is there, or one that cannot be read").
				WithHint("HBase would read it instead of the image's, which has %d bytes: compare the two, and move the damaged one away", t.from.Size)
		}
	}
	return false, nil
}
