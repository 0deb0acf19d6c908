package backup

import (
	"context"
	"errors"
	"io"

	"hbackup"
	"hbackup/catalog"
	"hbackup/hbase/hfile"
	"hbackup/storage"
)

// prove takes over an object of which no image says what it must be. It is good when
// one of these says so:
//
//   - It has the size of the cluster's file, bears the mark of a put of hbackup, and
//     the store keeps the digest of what came, which it has checked then. Under the
//     name of a store file hbackup puts nothing but what it has read from the cluster
//     under that name, whole, and judged good before the last byte; so what the digest
//     stands for is the file. The end of the object is read all the same: it says how
//     many cells there are, and that this is an HFile of that length.
//   - It was read and judged as a file from the cluster is. Stores that keep no digest
//     leave only this, and so do files that must be read to know which MOB files they
//     name.
//
// The digest alone would prove nothing: it says that the store has what somebody has
// put there.
func (r *run) prove(ctx context.Context, mob *mobFiles, n need) (catalog.File, error) {
	if n.size < 0 || mob.concerns(n) {
		return r.recheck(ctx, mob, n)
	}
	f := n.file()
	o, err := r.store.Stat(ctx, n.key())
	if err != nil {
		return f, hbackup.E("look at what the location holds", r.store.Location().At(n.key()), hbackup.KindOther, err)
	}
	if !o.Ours || !o.HasDigest || o.Size != n.size {
		return r.recheck(ctx, mob, n)
	}
	t, err := hfile.ReadTrailer(&objectEnd{ctx: ctx, store: r.store, key: n.key()}, o.Size)
	if err != nil {
		return r.recheck(ctx, mob, n) // which says what is wrong with it
	}
	f.Size, f.Digest, f.Cells = o.Size, o.Digest, t.Entries
	return f, nil
}

// confirm takes over an object that was found in the location. If an earlier try of
// this run has put it there, and has it on record, that it has this size is enough,
// and this digest where the store keeps one. Else it is proven.
func (r *run) confirm(ctx context.Context, mob *mobFiles, k task) (catalog.File, error) {
	if k.said.Name == "" || mob.concerns(k.need) {
		return r.prove(ctx, mob, k.need)
	}
	o, err := r.store.Stat(ctx, k.key())
	if err != nil || o.Size != k.said.Size || o.HasDigest && o.Digest != k.said.Digest {
		return r.prove(ctx, mob, k.need)
	}
	return k.said, nil
}

// objectEnd reads parts of an object.
type objectEnd struct {
	ctx   context.Context
	store storage.Store
	key   storage.Key
}

func (e *objectEnd) ReadAt(b []byte, at int64) (n int, err error) {
	body, _, err := e.store.Get(e.ctx, e.key, storage.Range{Offset: at, Length: int64(len(b))})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	return io.ReadFull(body, b)
}

// damaged says that an object of the location is not what its name stands for.
type damaged struct{ error }

func (d damaged) Unwrap() error { return d.error }

// recheck reads a file that the location holds already and takes it over when it
// is a whole HFile of the right size. Stores never show half an object, so this
// is a check for damage, not for unfinished work.
func (r *run) recheck(ctx context.Context, mob *mobFiles, n need) (catalog.File, error) {
	f := n.file()
	path := r.store.Location().At(n.key())
	body, o, err := r.store.Get(ctx, n.key(), storage.Range{})
	if err != nil {
		return f, hbackup.E("read what the location holds", path, hbackup.KindOther, err)
	}
	defer body.Close() // only read from
	if n.size >= 0 && o.Size != n.size {
		return f, hbackup.Errorf("use what the location holds", path, hbackup.KindConflict, "it has %d bytes, the cluster's file has %d", o.Size, n.size)
	}
	checked := r.check(body, o.Size, path, mob.concerns(n))
	sum := storage.NewHash()
	if _, err := io.CopyBuffer(sum, onlyReader{checked}, make([]byte, 256<<10)); err != nil {
		err := hbackup.E("use what the location holds", path, hbackup.KindOther, err)
		if hbackup.IsKind(err, hbackup.KindCorrupt) {
			return f, damaged{err}
		}
		return f, err
	}
	cells, err := checked.cells()
	if err != nil {
		return f, err
	}
	mob.saw(n, checked.summary)
	f.Size, f.Digest, f.Cells = o.Size, storage.Digest(sum.Sum64()), cells
	return f, nil
}
