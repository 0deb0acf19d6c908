package hdfs

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	lib "github.com/colinmarc/hdfs/v2"
	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/internal/files"
)

// Open costs two calls to the name node, the file's status and its blocks; both
// are looked at before a byte is given out. From then on the bytes come from
// blocks that belong to this very file, whatever happens to its path; only a
// reader that has to open anew compares the inode again.
func (h *FS) Open(ctx context.Context, path string, offset int64) (io.ReadCloser, files.Info, error) {
	const op = "open"
	if err := h.check(ctx, op, path); err != nil {
		return nil, files.Info{}, err
	}
	r := &reader{fs: h, ctx: ctx, path: path, pos: offset}
	if err := r.open(op); err != nil {
		return nil, files.Info{}, err
	}
	return r, r.info, nil
}

// readBuffer is how much is asked for at a time, several packets of a data node.
const readBuffer = 256 << 10

var readBuffers = sync.Pool{New: func() any { b := make([]byte, readBuffer); return &b }}

// maxCorrupt is how often the same bytes may come wrong before they count as
// corrupt: a bit may have flipped on the way.
const maxCorrupt = 3

// reader reads a file once, forwards. When no data node gives a block any
// more (they went away, the block's token expired) it opens the file again at
// the place where it stands.
type reader struct {
	fs   *FS
	ctx  context.Context
	path string
	info files.Info // of the first opening

	s   *session
	f   *lib.FileReader
	pos int64 // of the next byte to be given out

	buf        *[]byte // bytes that were read but not given out: (*buf)[start:end]
	start, end int
	err        error // final
	fails      int   // since the last progress
	failing    time.Time
	sealed     bool // the library seals the connections to data nodes
}

// open gets a session, the file and its first bytes.
func (r *reader) open(op string) error {
	s, err := r.fs.callKeep(r.ctx, op, r.path, repeatable, func(s *session) error { return r.openWith(s, op) })
	r.s = s
	return err
}

func (r *reader) openWith(s *session, op string) error {
	uri := r.fs.uri(r.path)
	f, err := s.client.Open(r.path)
	if err != nil {
		return err
	}
	info := infoOf(r.path, f.Stat())
	if r.info.Path != "" && (info.ID != r.info.ID || info.Size != r.info.Size) {
		return hbackup.E("read", uri, hbackup.KindConflict, files.ErrReplaced)
	}
	if err := files.CheckReadable(op, uri, info, r.pos); err != nil {
		return err
	}
	if err := statusRefusal(op, uri, f.Stat().Sys()); err != nil {
		return err
	}
	// The blocks are asked for by the first read, or, when there is nothing to
	// read, by Checksum.
	r.start, r.end = 0, 0
	switch {
	case info.Size == 0:
		if _, err := f.Checksum(); err != nil {
			// The first block of a file that is open may be on no data node yet.
			if refusal := blocksRefusal(op, uri, s.lastFileState(), info); errors.Is(refusal, ErrOpenForWriting) {
				return refusal
			}
			return err
		}
	case r.pos == info.Size:
		if _, err := f.Seek(r.pos-1, io.SeekStart); err != nil {
			return err
		}
		var last [1]byte
		if _, err := io.ReadFull(f, last[:]); err != nil {
			return err
		}
	default:
		if _, err := f.Seek(r.pos, io.SeekStart); err != nil {
			return err
		}
		if r.buf == nil {
			r.buf = readBuffers.Get().(*[]byte)
		}
		// When only the data cannot be had, Read will try again and count.
		n, err := r.readFrom(s, f, *r.buf)
		if err != nil && s.lastFileState().method == "" {
			f.Close()
			return err
		}
		r.end = n
	}
	if err := blocksRefusal(op, uri, s.lastFileState(), info); err != nil {
		f.Close()
		return err
	}
	r.info, r.f = info, f
	return nil
}

// smallRead is less than any number of bytes under one checksum: then the library
// itself gives out nothing that it has not verified.
const smallRead = 256

// readFrom reads verified bytes. Where they come sealed, only the library can
// verify them, and does so rightly only in small reads.
func (r *reader) readFrom(s *session, f *lib.FileReader, p []byte) (int, error) {
	if r.sealed {
		return f.Read(p[:min(len(p), smallRead)])
	}
	n, err := f.Read(p)
	if n > 0 && !s.verifiesData() {
		// The bytes cannot be trusted; start again in small reads.
		r.sealed = true
		if _, err := f.Seek(-int64(n), io.SeekCurrent); err != nil {
			return 0, err
		}
		return f.Read(p[:min(len(p), smallRead)])
	}
	return n, err
}

// statusRefusal judges a file by its status. Older name nodes set no flags, so
// the presence of the two messages counts as well.
func statusRefusal(op, uri string, sys any) error {
	status, ok := sys.(interface{ GetFlags() uint32 })
	if !ok {
		return hbackup.Errorf(op, uri, hbackup.KindUnsupported, "the HDFS client gives no file status (%T)", sys)
	}
	var encrypted, erasure bool
	if m, ok := sys.(proto.Message); ok {
		fields := m.ProtoReflect().Descriptor().Fields()
		if fd := fields.ByName("fileEncryptionInfo"); fd != nil {
			encrypted = m.ProtoReflect().Has(fd)
		}
		if fd := fields.ByName("ecPolicy"); fd != nil {
			erasure = m.ProtoReflect().Has(fd)
		}
	}
	flags := status.GetFlags()
	return refuse(op, uri, encrypted || flags&flagEncrypted != 0, erasure || flags&flagErasure != 0)
}

func refuse(op, uri string, encrypted, erasure bool) error {
	switch {
	case encrypted:
		return refuseEncrypted(op, uri)
	case erasure:
		return hbackup.E(op, uri, hbackup.KindUnsupported, ErrErasureCoded).
			WithHint("the native HDFS client knows only replicated files; set the replication policy on HBase's root (hdfs ec -setPolicy -replicate) and compact")
	}
	return nil
}

func refuseEncrypted(op, uri string) *hbackup.Error {
	return hbackup.E(op, uri, hbackup.KindUnsupported, ErrEncrypted).
		WithHint("the native HDFS client would see the ciphertext; move HBase's root out of the encryption zone")
}

// blocksRefusal judges a file by the answer that named its blocks.
func blocksRefusal(op, uri string, a answer, info files.Info) error {
	switch {
	case a.sealed:
		return hbackup.E(op, uri, hbackup.KindUnsupported, errCannotTell)
	case a.method != "getBlockLocations" || !a.file.known:
		return hbackup.Errorf(op, uri, hbackup.KindUnsupported, "the name node's answer to %s could not be read", a.method)
	}
	if err := refuse(op, uri, a.file.encrypted, a.file.erasure); err != nil {
		return err
	}
	if a.file.open {
		return hbackup.E(op, uri, hbackup.KindUnsupported, ErrOpenForWriting).
			WithHint("its end is not known before it is closed; a file left open by a dead writer is closed by hdfs debug recoverLease -path")
	}
	if int64(a.file.length) != info.Size {
		return hbackup.E(op, uri, hbackup.KindConflict, files.ErrReplaced)
	}
	return nil
}

func (r *reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(p) >= readBuffer && r.empty() {
		if n := r.step(p); n > 0 {
			r.pos += int64(n)
			return n, nil
		}
	}
	if !r.fill() {
		return 0, r.err
	}
	n := copy(p, (*r.buf)[r.start:r.end])
	r.start += n
	r.pos += int64(n)
	return n, nil
}

// WriteTo lets io.Copy use the reader's own buffer.
func (r *reader) WriteTo(w io.Writer) (total int64, err error) {
	for r.fill() {
		n, err := w.Write((*r.buf)[r.start:r.end])
		r.start += n
		r.pos += int64(n)
		total += int64(n)
		if err == nil && r.start < r.end {
			err = io.ErrShortWrite
		}
		if err != nil {
			return total, err
		}
	}
	if r.err == io.EOF {
		return total, nil
	}
	return total, r.err
}

func (r *reader) empty() bool { return r.start == r.end }

// fill makes the buffer hold at least a byte, or leaves it empty with r.err set.
func (r *reader) fill() bool {
	for r.empty() && r.err == nil {
		if r.pos == r.info.Size {
			r.err = io.EOF
			break
		}
		n := r.step(*r.buf)
		if n > 0 {
			r.start, r.end = 0, n
		}
	}
	return !r.empty()
}

// step reads the next bytes of the file into p. It gives 0 when that failed:
// then r.err is set, or the file was opened again and the buffer holds its next
// bytes, or neither and it is to be called again. The buffer must be empty.
func (r *reader) step(p []byte) int {
	if r.err != nil || r.pos == r.info.Size {
		return 0
	}
	if r.ctx.Err() != nil { // the session hears of it a moment later
		r.err = r.fs.explain(r.ctx, "read", r.path, nil, context.Cause(r.ctx))
		return 0
	}
	var n int
	err := r.s.do(func(s *session) (err error) { n, err = r.readFrom(s, r.f, p); return err })
	if n > 0 {
		r.fails = 0
		return n
	}
	switch {
	case err == nil:
		err = io.ErrNoProgress
	case err == io.EOF:
		err = errShort
	}
	r.reopen(err)
	return 0
}

// reopen opens the file again after a failed read, or gives up: after RetryFor
// without a new byte, or when the bytes were wrong maxCorrupt times.
func (r *reader) reopen(cause error) {
	typed := r.fs.explain(r.ctx, "read", r.path, nil, cause)
	r.drop()
	if r.fails++; r.fails == 1 {
		r.failing = time.Now()
	}
	pause := min(100*time.Millisecond<<(r.fails-1), 5*time.Second)
	switch {
	case r.ctx.Err() != nil:
		r.err = typed
	case typed.Kind == hbackup.KindCorrupt && r.fails >= maxCorrupt,
		time.Since(r.failing)+pause > r.fs.waiter.RetryFor:
		r.err = typed
		if cause == errShort {
			r.err = hbackup.Errorf("read", r.fs.uri(r.path), hbackup.KindIncomplete, "the file ends at byte %d of %d", r.pos, r.info.Size)
		}
	}
	if r.err != nil {
		return
	}
	select {
	case <-r.ctx.Done():
		r.err = r.fs.explain(r.ctx, "read", r.path, nil, context.Cause(r.ctx))
		return
	case <-time.After(pause):
	}
	if err := r.open("read"); err != nil {
		r.err = err
		if hbackup.Retryable(err) {
			r.err = typed // why it began is worth more than how it went on
		}
	}
}

// drop lets the session go, whose data connections are not to be used again.
func (r *reader) drop() {
	if r.s == nil {
		return
	}
	if r.f != nil {
		r.f.Close()
		r.f = nil
	}
	r.fs.release(r.s)
	r.s = nil
}

func (r *reader) Close() error {
	r.drop()
	if r.buf != nil {
		readBuffers.Put(r.buf)
		r.buf = nil
	}
	r.start, r.end = 0, 0
	r.err = errReaderClosed
	return nil
}

var (
	errReaderClosed = errors.New("the reader is closed")
	errShort        = errors.New("the file ends early")
)
