package hdfs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	lib "github.com/colinmarc/hdfs/v2"

	"hbackup"
	"hbackup/internal/files"
)

// Create makes the file at its final path, exclusively on the name node, with
// the replication and block size of the Config or the name node. The context rules the Writer
// until its end.
//
// A fail-over of the name nodes holds the file up and no more. The library has no
// recovery of the write pipeline, though: a data node that goes away fails the file,
// and the caller writes it again.
func (h *FS) Create(ctx context.Context, path string) (*Writer, error) {
	const op = "create"
	if err := h.check(ctx, op, path); err != nil {
		return nil, err
	}
	if err := files.CheckNotRoot(op, h.uri(path), path); err != nil {
		return nil, err
	}
	var f *lib.FileWriter
	created, inode := false, uint64(0)
	s, err := h.callKeep(ctx, op, path, once, func(s *session) error {
		s.startWriting()
		defaults, err := s.client.ServerDefaults()
		if err != nil {
			return err
		}
		replication, blockSize := defaults.Replication, defaults.BlockSize
		if h.cfg.Replication > 0 {
			replication = h.cfg.Replication
		}
		if h.cfg.BlockSize > 0 {
			blockSize = h.cfg.BlockSize
		}
		if f, err = s.client.CreateFile(path, replication, blockSize, h.cfg.FileMode); err != nil {
			return err
		}
		created = true
		s.hold()
		inode, err = h.checkCreated(s, op, path)
		return err
	})
	if err != nil {
		if created {
			h.removeOwn(ctx, path, inode)
		}
		return nil, err
	}
	return &Writer{fs: h, ctx: ctx, path: path, inode: inode, s: s, f: f}, nil
}

// checkCreated refuses a new file whose directory makes it encrypted or
// erasure-coded: the library would write plain, replicated bytes into it, and
// nobody could read them. It gives the file's inode number, 0 when nobody says it.
func (h *FS) checkCreated(s *session, op, path string) (inode uint64, err error) {
	if a := s.lastFileState(); a.method == "create" && a.file.known && a.file.inode != 0 {
		return a.file.inode, refuse(op, h.uri(path), a.file.encrypted, a.file.erasure)
	}
	fi, err := s.client.Stat(path)
	if err != nil {
		return 0, err
	}
	return infoOf(path, fi).ID, statusRefusal(op, h.uri(path), fi.Sys())
}

func (s *session) startWriting() {
	s.mu.Lock()
	s.writing = true
	s.mu.Unlock()
}

// Writer is a file being written. Exactly one of Close and Abort ends it.
type Writer struct {
	fs   *FS
	ctx  context.Context
	path string

	inode   uint64 // 0: not known
	s       *session
	f       *lib.FileWriter
	written int64
	info    files.Info
	err     error // the first failure, or files.ErrEnded
}

// writeStep bounds what the library buffers at a time.
const writeStep = 1 << 20

// Write adds to the file. After its first error it gives that one again.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.fs.explain(w.ctx, "write", w.path, nil, w.err)
	}
	done := 0
	for done < len(p) {
		part := p[done:min(len(p), done+writeStep)]
		var n int
		err := w.s.do(func(*session) (err error) { n, err = w.f.Write(part); return err })
		if failure := w.s.dataFailure(); failure != nil {
			err = failure // the cause, where the library has only its consequence
		}
		done += n
		w.written += int64(n)
		if err != nil {
			w.err = w.fs.explain(w.ctx, "write", w.path, w.s, err)
			return done, w.err
		}
	}
	return done, nil
}

// completePause is how long data nodes are given to tell the name node of the last
// block before it is asked for the first time, and before it is asked again; then
// twice as long each time. Asked at once it knows of nothing nine times of ten.
const completePause = 4 * time.Millisecond

const complete = "complete"

// completing is told of each request to complete a file before it leaves. Before the
// first one, which says what the last block is, it waits; an empty file has none.
func (s *session) completing(packet []byte) {
	last, _ := bytesField(requestBody(packet), lastBlockField)
	s.mu.Lock()
	ctx, first := s.ctx, len(last) > 0 && s.last == nil
	if first {
		s.last = slices.Clone(last)
	}
	s.mu.Unlock()
	if !first || ctx == nil {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(completePause):
	}
}

// completeFor is how long Close waits for the name node to hear of the last
// block from its data nodes.
const completeFor = 2 * time.Minute

// Close makes the content durable and the file whole. After an error the file is
// removed.
func (w *Writer) Close() error {
	const op = "close"
	if w.err == files.ErrEnded {
		return hbackup.E(op, w.fs.uri(w.path), hbackup.KindOther, files.ErrEnded)
	}
	err := w.err
	if err == nil {
		err = w.complete()
	}
	if err == nil {
		err = w.verify()
	}
	if err != nil {
		typed := w.fs.explain(w.ctx, op, w.path, w.s, err)
		w.discard(typed)
		return typed
	}
	w.err = files.ErrEnded
	w.fs.release(w.s)
	return nil
}

// Info describes the file as it was after Close.
func (w *Writer) Info() files.Info { return w.info }

// complete finishes the last block and the file. Only ErrReplicating may be
// tried again: after any other failure the library takes the block for finished.
func (w *Writer) complete() error {
	giveUp := time.Now().Add(completeFor)
	for pause := completePause; ; pause = min(2*pause, time.Second) {
		err := w.s.do(func(*session) error { return w.f.Close() })
		if !lib.IsErrReplicating(err) || time.Now().Add(pause).After(giveUp) {
			if err != nil && w.completed() {
				return nil
			}
			return err
		}
		select {
		case <-w.ctx.Done():
			return context.Cause(w.ctx)
		case <-time.After(pause):
		}
	}
}

// completed reports whether the name node, which knows of no such file that is open,
// has completed it before: the answer was lost, and the call repeated. It knows a
// repeated call by the last block, which an empty file does not have.
func (w *Writer) completed() bool {
	if !strings.HasSuffix(w.s.lastAnswer().exception, ".LeaseExpiredException") || w.inode == 0 {
		return false
	}
	r, info, err := w.fs.Open(w.ctx, w.path, 0) // which refuses a file that is open for writing
	if err != nil {
		return false
	}
	r.Close() // nothing was read
	return info.ID == w.inode && info.Size == w.written
}

// verify asks the name node what the file has become, by another connection if
// need be: the file is closed.
func (w *Writer) verify() error {
	info, err := w.fs.Stat(w.ctx, w.path)
	if err != nil {
		return err
	}
	w.info = info
	if info.Size != w.written {
		return hbackup.Errorf("close", w.fs.uri(w.path), hbackup.KindCorrupt, "%d bytes written but the file holds %d", w.written, info.Size)
	}
	return nil
}

// Abort gives up and removes what was written.
func (w *Writer) Abort() error {
	if w.err == files.ErrEnded {
		return hbackup.E("abort", w.fs.uri(w.path), hbackup.KindOther, files.ErrEnded)
	}
	return w.discard(errors.New("the writer was aborted"))
}

// discard ends the library's goroutines and removes the file. The session is
// killed first, so that closing the library's writer cannot complete the file.
func (w *Writer) discard(reason error) error {
	w.err = files.ErrEnded
	w.s.kill(reason)
	w.s.do(func(*session) error { return w.f.Close() }) // fails, as it must
	w.fs.release(w.s)
	return w.fs.removeOwn(w.ctx, w.path, w.inode)
}

// The clearing away after a failure is bounded, the more so when somebody wants to
// stop.
const (
	removeFor        = 30 * time.Second
	removeForStopped = 5 * time.Second
)

// removeOwn removes a file of ours even when the context has ended. A writer that
// was held up for long may find that somebody took its file for abandoned and has
// written another under the name: that one stays.
func (h *FS) removeOwn(ctx context.Context, path string, inode uint64) error {
	limit := removeFor
	if ctx.Err() != nil {
		limit = removeForStopped
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	there, err := h.Stat(ctx, path)
	switch {
	case hbackup.IsKind(err, hbackup.KindNotFound):
		return nil
	case err != nil:
		return err
	case inode != 0 && there.ID != 0 && there.ID != inode:
		return nil
	}
	return h.Remove(ctx, path)
}
