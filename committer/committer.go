// Package committer makes the files of an image visible, all at once.
//
// The contract, in prose. An image is three layers of objects:
//
//  1. the store files, under keys that never name other bytes;
//  2. HBase's own snapshot files, data.manifest before .snapshotinfo, so that
//     HBase's tools never see a snapshot without its files;
//  3. hbackup's manifest of the image.
//
// A committer writes them in this order and never starts a layer before the one
// below is whole. The image exists from the moment its manifest exists, and the
// manifest is made by one create-if-absent: there is no moment at which half an
// image exists, and of several that try only one wins. Nothing is renamed, on
// any store. What no committed manifest names does not exist for any reader, so
// a run that died leaves nothing to be undone: running it again uses what is
// there.
package committer

import (
	"context"
	"fmt"
	"io"
	"sync"

	"hbackup"
	"hbackup/storage"
)

// Direct is the committer for every store: files go to their final keys, and
// only the manifest's creation counts.
type Direct struct {
	store storage.Store
}

// NewDirect gives the committer for a store.
func NewDirect(s storage.Store) *Direct { return &Direct{store: s} }

// Image is one image being written. Its methods follow the layers; going back
// is refused, as that would break the order above.
type Image struct {
	store storage.Store
	guard Guard

	mu     sync.Mutex
	layer  int                   // the highest layer that was started
	open   int                   // objects being written
	failed map[storage.Key]error // objects that could not be written and were not written since
}

// A Guard says whether the image is still this process's alone and not committed
// yet; its error says why not. It is asked before anything is taken away.
type Guard func(context.Context) error

// Begin starts an image. Nothing is written yet.
func (d *Direct) Begin(guard Guard) *Image { return &Image{store: d.store, guard: guard} }

const (
	layerFiles = iota
	layerSnapshot
	layerManifest
)

// PutFile writes one store file under its own key. A key that is taken is
// KindExists: the caller decides whether what is there is the same file. Calls
// may run at the same time.
func (im *Image) PutFile(ctx context.Context, key storage.Key, size int64, body io.Reader) (storage.Object, error) {
	if err := im.begin(layerFiles, key); err != nil {
		return storage.Object{}, err
	}
	o, err := im.store.Put(ctx, key, body, storage.PutOptions{Size: size, IfAbsent: true})
	im.end(key, err)
	if err != nil {
		return o, err
	}
	if o.Size != size {
		return o, hbackup.Errorf("write", im.path(key), hbackup.KindCorrupt, "the store says that it holds %d bytes of %d", o.Size, size)
	}
	return o, nil
}

// SnapshotFile is one of HBase's own files of the image.
type SnapshotFile struct {
	Key  storage.Key
	Data []byte
}

// PutSnapshotFiles writes HBase's own snapshot files in the given order. Those
// that are there already, with the same content, are used; others were left by an
// earlier attempt at this image and are replaced, if the guard allows it: no
// manifest may name them.
func (im *Image) PutSnapshotFiles(ctx context.Context, files ...SnapshotFile) error {
	if err := im.begin(layerSnapshot, ""); err != nil {
		return err
	}
	err := im.putSnapshotFiles(ctx, files)
	im.end("", err)
	return err
}

func (im *Image) putSnapshotFiles(ctx context.Context, files []SnapshotFile) error {
	// Nearly always nothing is there yet, and one request makes each of them.
	err := im.createAll(ctx, files)
	if !hbackup.IsKind(err, hbackup.KindExists) {
		return err
	}
	there, leftover, err := im.lookAt(ctx, files)
	if err != nil {
		return err
	}
	// The last file is the one that makes a snapshot visible, so it goes first.
	for i := len(files) - 1; leftover && i >= there; i-- {
		if err := im.guard(ctx); err != nil {
			return err
		}
		if err := im.store.Delete(ctx, files[i].Key); err != nil {
			return hbackup.E("remove leftover", im.path(files[i].Key), hbackup.KindOther, err)
		}
	}
	return im.createAll(ctx, files[there:])
}

// createAll writes files that are not there yet, and stops at the first that is,
// with KindExists when it is not as it should be.
func (im *Image) createAll(ctx context.Context, files []SnapshotFile) error {
	for _, f := range files {
		if err := im.putSnapshotFile(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// lookAt counts how many of the files, from the first on, are there as they should
// be; leftover says that something else is under the key of another. It looks at
// the last one first, in whose time those before it were there: what another
// process writes meanwhile is not taken for a leftover.
func (im *Image) lookAt(ctx context.Context, files []SnapshotFile) (there int, leftover bool, err error) {
	there = len(files)
	behind := false // something is behind the first that is not as it should be
	for i := len(files) - 1; i >= 0; i-- {
		got, err := im.readBack(ctx, files[i].Key, len(files[i].Data))
		if err != nil {
			return 0, false, err
		}
		if got == nil || string(got) != string(files[i].Data) {
			there, leftover = i, leftover || behind || got != nil
		}
		behind = behind || got != nil
	}
	return there, leftover, nil
}

// putSnapshotFile creates one file. One that is there by now with the same content
// was put by an earlier try whose answer was lost, or by another process that
// works on the image for a moment.
func (im *Image) putSnapshotFile(ctx context.Context, f SnapshotFile) error {
	_, err := storage.PutBytes(ctx, im.store, f.Key, f.Data, true)
	if err == nil {
		return nil
	}
	if got, rerr := im.readBack(ctx, f.Key, len(f.Data)); rerr == nil && got != nil && string(got) == string(f.Data) {
		return nil
	}
	return hbackup.E("write", im.path(f.Key), hbackup.KindOther, err)
}

// Commit creates the image's manifest, and with it the image. When the very
// same manifest is there already, because an answer was lost or the image was
// committed before, that is success; another one is KindConflict.
func (im *Image) Commit(ctx context.Context, key storage.Key, manifest []byte) error {
	if err := im.begin(layerManifest, key); err != nil {
		return err
	}
	_, err := storage.PutBytes(ctx, im.store, key, manifest, true)
	im.end(key, err)
	if err == nil {
		return nil
	}
	got, rerr := im.readBack(ctx, key, len(manifest))
	switch {
	case rerr != nil:
		return hbackup.E("commit image", im.path(key), hbackup.KindOther, err)
	case got == nil && !hbackup.IsKind(err, hbackup.KindExists):
		return hbackup.E("commit image", im.path(key), hbackup.KindOther, err)
	case string(got) == string(manifest):
		return nil
	}
	return hbackup.Errorf("commit image", im.path(key), hbackup.KindConflict, "another manifest is there")
}

// readBack reads a key that may be missing, which gives nil. One byte more than
// the wanted length is enough to see a difference.
func (im *Image) readBack(ctx context.Context, key storage.Key, want int) ([]byte, error) {
	o, err := im.store.Stat(ctx, key)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, hbackup.E("look for", im.path(key), hbackup.KindOther, err)
	}
	if o.Size != int64(want) {
		return []byte{}, nil
	}
	b, _, err := storage.ReadAll(ctx, im.store, key, int64(want)+1)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, hbackup.E("read back", im.path(key), hbackup.KindOther, err)
	}
	if b == nil {
		b = []byte{}
	}
	return b, nil
}

func (im *Image) begin(layer int, key storage.Key) error {
	im.mu.Lock()
	defer im.mu.Unlock()
	switch {
	case layer < im.layer:
		return hbackup.E("write", im.path(key), hbackup.KindRefused, fmt.Errorf("the layer above was started already"))
	case layer > im.layer && im.open > 0:
		return hbackup.E("write", im.path(key), hbackup.KindRefused, fmt.Errorf("%d files of the layer below are not finished", im.open))
	case layer > im.layer:
		for k, err := range im.failed {
			return hbackup.E("write", im.path(key), hbackup.KindRefused, fmt.Errorf("%s of the layer below was not written: %w", im.path(k), err))
		}
	}
	im.layer = layer
	im.open++
	return nil
}

func (im *Image) end(key storage.Key, err error) {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.open--
	if err == nil || hbackup.IsKind(err, hbackup.KindExists) {
		delete(im.failed, key)
		return
	}
	if im.failed == nil {
		im.failed = map[storage.Key]error{}
	}
	im.failed[key] = err
}

func (im *Image) path(key storage.Key) string {
	return string(im.store.Location()) + "/" + string(key)
}
