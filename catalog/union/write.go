package union

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"io"
	"slices"

	"hbackup"
	"hbackup/catalog"
	"hbackup/storage"
)

// writer writes a union, entry by entry in their order.
type writer struct {
	to    *bufio.Writer
	head  head
	at    int64
	files []catalog.File
	spans []byte
	last  catalog.File // that was counted
	any   bool
}

func newWriter(to io.Writer, t hbackup.TableName, images []image) (*writer, error) {
	w := &writer{to: bufio.NewWriterSize(to, 1<<20), head: head{Table: t, Images: images}}
	return w, w.write([]byte(firstLine))
}

func (w *writer) write(b []byte) error {
	n, err := w.to.Write(b)
	w.at += int64(n)
	return err
}

// add takes the next entry, with its spans in order and not touching each other.
func (w *writer) add(e *Entry) error {
	w.count(e)
	w.files = append(w.files, e.File)
	w.spans = binary.AppendUvarint(w.spans, uint64(len(e.spans)))
	last := uint32(0)
	for _, s := range e.spans {
		w.spans = binary.AppendUvarint(w.spans, uint64(s.from-last))
		w.spans = binary.AppendUvarint(w.spans, uint64(s.to-s.from))
		last = s.to
	}
	if len(w.files) == catalog.BlockFiles {
		return w.flush()
	}
	return nil
}

// count adds an entry to the totals. One file is counted once, also when images
// disagree about it.
func (w *writer) count(e *Entry) {
	if e.Table != w.head.Table && (len(w.head.Foreign) == 0 || w.head.Foreign[len(w.head.Foreign)-1] != e.Table) {
		w.head.Foreign = append(w.head.Foreign, e.Table)
	}
	if !e.inner() || w.any && catalog.CompareFiles(w.last, e.File) == 0 {
		return
	}
	w.last, w.any = e.File, true
	t := &w.head.Totals
	t.Files++
	t.Bytes += e.Size
	if e.images() > 1 {
		t.SharedFiles++
		t.SharedBytes += e.Size
	}
}

func (w *writer) flush() error {
	if len(w.files) == 0 {
		return nil
	}
	frame, err := catalog.PackFiles(w.files)
	if err != nil {
		return err
	}
	w.head.Blocks = append(w.head.Blocks, keyed{First: w.files[0].Key(), Files: len(w.files), At: w.at, Length: int64(len(frame)), Spans: int64(len(w.spans)),
		Digest: storage.AddDigest(storage.DigestOf(frame), w.spans)})
	if err := w.write(frame); err != nil {
		return err
	}
	if err := w.write(w.spans); err != nil {
		return err
	}
	w.files, w.spans = w.files[:0], w.spans[:0]
	return nil
}

// close writes the head and the end.
func (w *writer) close() error {
	if err := w.flush(); err != nil {
		return err
	}
	slices.SortFunc(w.head.Foreign, hbackup.TableName.Compare)
	w.head.Foreign = slices.Compact(w.head.Foreign)
	text, err := json.Marshal(w.head)
	if err != nil {
		return err
	}
	end := binary.BigEndian.AppendUint64(nil, uint64(w.at))
	end = binary.BigEndian.AppendUint64(end, uint64(len(text)))
	end = binary.BigEndian.AppendUint64(end, uint64(storage.DigestOf(text)))
	if err := w.write(append(text, end...)); err != nil {
		return err
	}
	return w.to.Flush()
}
