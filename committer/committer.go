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
// below is whole and visible. The image exists from the moment its manifest
// exists, and the manifest is made by one create-if-absent: there is no moment at
// which half an image exists, and of several that try only one wins. Nothing is
// renamed, on any store. What no committed manifest names does not exist for any
// reader, so a run that died leaves nothing to be undone: running it again uses
// what is there.
//
// There are two committers, which differ in how the store files get there:
//
//   - Direct puts each file under its final key at once. A run that dies leaves
//     objects that no manifest names. They do no harm, are used by the next run
//     that needs them, and can be deleted.
//   - Deferred is for places where they could not be deleted: buckets that are
//     versioned or locked. The store holds each file as an upload that no reader
//     sees, and the uploads are finished when all else that can fail is done. A
//     run that dies leaves uploads and a job record that names them: the same
//     request goes on with them, or a later run drops them (Tidy).
//
// What Deferred keeps to:
//
//   - An upload's key is on record before the upload is made, and its ticket
//     before its first byte is sent.
//   - A file's receipt goes on record when the file has been judged good, and all
//     receipts are on record before the first upload is finished, so that a commit
//     that was cut short can be taken up by anybody who holds the run's lease.
//   - Finishing checks the digest of the whole, never replaces an object, and may
//     be repeated.
//   - Uploads are dropped by their tickets. Only for a key whose ticket never came
//     on record is the store asked for the uploads of exactly that key, and then
//     only while no other run is at work. A finished upload is an object and is
//     never dropped; uploads of other keys are never looked at, however alike
//     they begin.
//   - A record is closed when nothing is left of its attempt.
package committer

import (
	"context"
	"fmt"
	"io"
	"sync"

	"hbackup"
	"hbackup/internal/failpoint"
	"hbackup/storage"
)

// Committer begins images.
type Committer interface {
	Protocol() Protocol
	// Begin starts an image. Nothing is written yet.
	Begin(guard Guard) *Image
}

// files are the store files of one image: what the committers differ in.
type files interface {
	// expect says which files will be put, in order. It may be called with none.
	expect(keys []storage.Key)
	put(ctx context.Context, key storage.Key, size int64, body io.Reader) (storage.Object, error)
	passed(ctx context.Context, key storage.Key, cells int64)
	takeOver(ctx context.Context, settled Accounted) (map[storage.Key]Filled, error)
	adopt(key storage.Key)
	publish(ctx context.Context) error
	end(ctx context.Context) error
}

// Image is one image being written. Its methods follow the layers; going back
// is refused, as that would break the order above.
type Image struct {
	store storage.Store
	guard Guard
	files files

	mu        sync.Mutex
	layer     int                   // the highest layer that was started
	open      int                   // objects being written
	failed    map[storage.Key]error // objects that could not be written and were not written since
	published bool
}

// A Guard says whether the image is still this process's alone and not committed
// yet; its error says why not. It is asked before anything is taken away.
type Guard func(context.Context) error

const (
	layerFiles = iota
	layerPublished
	layerSnapshot
	layerManifest
)

// Expect says which files PutFile will be called for, in this order. That is no
// promise, and files that were not expected may be put; it saves requests.
func (im *Image) Expect(keys []storage.Key) { im.files.expect(keys) }

// TakeOver gives the files that earlier attempts at this image have left to be
// finished, and that can be used by Adopt. It says nothing of those that are
// objects already. What Tidy has accounted for is settled.
func (im *Image) TakeOver(ctx context.Context, settled Accounted) (map[storage.Key]Filled, error) {
	return im.files.takeOver(ctx, settled)
}

// Adopt makes a file that TakeOver gave a part of the image.
func (im *Image) Adopt(key storage.Key) { im.files.adopt(key) }

// PutFile writes one store file under its own key. A key that is taken is
// KindExists, unless the committer learns of it only by Publish: the caller
// decides whether what is there is the same file. Calls may run at the same time.
func (im *Image) PutFile(ctx context.Context, key storage.Key, size int64, body io.Reader) (storage.Object, error) {
	if err := im.begin(layerFiles, key); err != nil {
		return storage.Object{}, err
	}
	o, err := im.files.put(ctx, key, size, body)
	im.end(key, err)
	if err != nil {
		return o, err
	}
	if o.Size != size {
		return o, hbackup.Errorf("write", im.path(key), hbackup.KindCorrupt, "the store says that it holds %d bytes of %d", o.Size, size)
	}
	return o, nil
}

// Replace writes a store file over an object that is damaged. Unlike all else it is
// visible at once, with every committer: what is there is named by images already,
// or is of no use to anybody. The guard is asked before.
func (im *Image) Replace(ctx context.Context, key storage.Key, size int64, body io.Reader) (storage.Object, error) {
	if err := im.begin(layerFiles, key); err != nil {
		return storage.Object{}, err
	}
	var o storage.Object
	err := im.guard(ctx)
	if err == nil {
		o, err = im.store.Put(ctx, key, body, storage.PutOptions{Size: size})
	}
	im.end(key, err)
	if err == nil && o.Size != size {
		err = hbackup.Errorf("write", im.path(key), hbackup.KindCorrupt, "the store says that it holds %d bytes of %d", o.Size, size)
	}
	return o, err
}

// Passed says that a file that was put was found good, and how many entries it has.
// Soon after that another process may take it over if this one dies.
func (im *Image) Passed(ctx context.Context, key storage.Key, cells int64) {
	im.files.passed(ctx, key, cells)
}

// Publish makes the files visible that were put and adopted. It may be repeated.
// From here on the image's files cannot be taken back everywhere, so all that can
// fail for another reason than the store's comes before.
func (im *Image) Publish(ctx context.Context) error {
	if err := im.begin(layerPublished, ""); err != nil {
		return err
	}
	err := im.files.publish(ctx)
	im.end("", err)
	if err != nil {
		return hbackup.E("publish files of image", string(im.store.Location()), hbackup.KindOther, err)
	}
	im.mu.Lock()
	defer im.mu.Unlock()
	im.published = true
	return nil
}

// End gives up what was written and not made visible. It comes last, whether the
// image was committed or has failed; when it is left out, the next try of the
// image goes on with what is there.
func (im *Image) End(ctx context.Context) error { return im.files.end(ctx) }

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
	if err := im.visible(ctx); err != nil {
		return err
	}
	if err := im.begin(layerSnapshot, ""); err != nil {
		return err
	}
	err := im.putSnapshotFiles(ctx, files)
	im.end("", err)
	return err
}

// visible publishes the files unless that was done.
func (im *Image) visible(ctx context.Context) error {
	im.mu.Lock()
	done := im.published
	im.mu.Unlock()
	if done {
		return nil
	}
	return im.Publish(ctx)
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
		failpoint.Hit(StepSnapshotFileWritten)
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
	if !hbackup.IsKind(err, hbackup.KindExists) {
		err = storage.SettleCreate(ctx, im.store, f.Key, f.Data, err)
	} else if got, rerr := im.readBack(ctx, f.Key, len(f.Data)); rerr == nil && got != nil && string(got) == string(f.Data) {
		return nil
	}
	if err != nil {
		return hbackup.E("write", im.path(f.Key), hbackup.KindOther, err)
	}
	return nil
}

// Commit creates the image's manifest, and with it the image. When the very
// same manifest is there already, because an answer was lost or the image was
// committed before, that is success; another one is KindConflict.
func (im *Image) Commit(ctx context.Context, key storage.Key, manifest []byte) error {
	if err := im.visible(ctx); err != nil {
		return err
	}
	if err := im.begin(layerManifest, key); err != nil {
		return err
	}
	_, err := storage.PutBytes(ctx, im.store, key, manifest, true)
	failpoint.Hit(StepManifestWritten)
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
	case string(got) == string(manifest) && !hbackup.IsKind(err, hbackup.KindExists):
		if err := storage.SettleCreate(ctx, im.store, key, manifest, err); err != nil {
			return hbackup.E("commit image", im.path(key), hbackup.KindOther, err)
		}
		return nil
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
