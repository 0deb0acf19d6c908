package catalog

import (
	"context"
	"errors"
	"io"

	"hbackup"
	"hbackup/storage"
)

// ImageRef is a committed image as a listing shows it.
type ImageRef struct {
	ID   hbackup.ImageID
	Size int64 // of the manifest, bytes
}

// ImageRefs lists the committed images of a table, the oldest first.
func ImageRefs(ctx context.Context, s storage.Store, t hbackup.TableName) ([]ImageRef, error) {
	var refs []ImageRef
	for o, err := range s.List(ctx, imagesPrefix+t.Path()+"/", storage.ListOptions{}) {
		if err != nil {
			return nil, hbackup.E("list images in", string(s.Location()), hbackup.KindOther, err)
		}
		if table, id, err := parseImageKey(o.Key); err == nil && table == t {
			refs = append(refs, ImageRef{id, o.Size}) // ids ascend with time
		}
	}
	return refs, nil
}

// OpenStored opens the manifest of a committed image, to read parts of it. A small
// one is read at once, with one request; of a large one only a window or two are in
// memory. The context is that of all reading.
func OpenStored(ctx context.Context, s storage.Store, t hbackup.TableName, ref ImageRef) (*ImageReader, error) {
	key := ImageKey(t, ref.ID)
	path := s.Location().At(key)
	r, err := OpenImage(&windows{ctx: ctx, store: s, key: key, size: ref.Size}, ref.Size)
	if err != nil {
		return nil, imageError(path, err)
	}
	if h := r.Header(); h.ID != ref.ID || h.Table != t {
		return nil, hbackup.Errorf("read image", path, hbackup.KindCorrupt, "it is the manifest of image %s of table %s", h.ID, h.Table).
			WithHint("hbackup verify shows what else is damaged")
	}
	r.path = path
	return r, nil
}

// ReadHeader reads the head of a committed image, whatever the number of its files.
func ReadHeader(ctx context.Context, s storage.Store, t hbackup.TableName, id hbackup.ImageID) (Header, error) {
	key := ImageKey(t, id)
	o, err := s.Stat(ctx, key)
	if err != nil {
		return Header{}, hbackup.E("read image", s.Location().At(key), hbackup.KindOther, err)
	}
	r, err := OpenStored(ctx, s, t, ImageRef{id, o.Size})
	if err != nil {
		return Header{}, err
	}
	return r.Header(), nil
}

// imageError says of which manifest the error is. What does not come from the store
// is damage, but for a newer format.
func imageError(path string, err error) error {
	if !hbackup.IsKind(err, hbackup.KindOther, hbackup.KindUsage, hbackup.KindCorrupt) {
		return hbackup.E("read image", path, hbackup.KindOther, err)
	}
	return hbackup.E("read image", path, hbackup.KindCorrupt, err).WithHint("hbackup verify shows what else is damaged")
}

// windowBytes is how much of a manifest is read with one request.
const windowBytes = 4 << 20

// windows reads an object window by window, and keeps the last two: one for the
// part that is being read, one for the index.
type windows struct {
	ctx   context.Context
	store storage.Store
	key   storage.Key
	size  int64
	kept  [2]window // the one used last comes first
}

type window struct {
	at   int64
	data []byte // nil: none
}

func (w *windows) ReadAt(b []byte, at int64) (n int, err error) {
	for n < len(b) && at < w.size {
		win, err := w.window(at - at%windowBytes)
		if err != nil {
			return n, err
		}
		m := copy(b[n:], win.data[at-win.at:])
		n += m
		at += int64(m)
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (w *windows) window(at int64) (window, error) {
	if w.kept[1].data != nil && w.kept[1].at == at {
		w.kept[0], w.kept[1] = w.kept[1], w.kept[0]
	}
	if w.kept[0].data != nil && w.kept[0].at == at {
		return w.kept[0], nil
	}
	data, err := w.read(at, min(windowBytes, w.size-at))
	if err != nil {
		return window{}, err
	}
	w.kept[1], w.kept[0] = w.kept[0], window{at, data}
	return w.kept[0], nil
}

func (w *windows) read(at, length int64) (data []byte, err error) {
	body, o, err := w.store.Get(w.ctx, w.key, storage.Range{Offset: at, Length: length})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	if o.Size != w.size {
		return nil, hbackup.Errorf("read", w.store.Location().At(w.key), hbackup.KindCorrupt, "it has %d bytes; a listing has just shown %d", o.Size, w.size)
	}
	data = make([]byte, length)
	if _, err := io.ReadFull(body, data); err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err = hbackup.E("read", w.store.Location().At(w.key), hbackup.KindIncomplete, io.ErrUnexpectedEOF)
		}
		return nil, err
	}
	return data, nil
}
