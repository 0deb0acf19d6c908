package gcs

import (
	"context"
	"crypto/rand"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	gcs "cloud.google.com/go/storage"

	"hbackup"
	"hbackup/storage"
)

// User metadata of the objects that are put here.
const (
	stampName  = "hbackup-put"       // tells the objects of one put from those of any other
	digestName = "hbackup-crc64nvme" // the digest
)

// Put writes one object: in one request up to the chunk size, in chunks above it,
// and in parts side by side when it is large.
func (s *Store) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	if err := storage.CheckPut(ctx, s.loc, key, opts); err != nil {
		return storage.Object{}, err
	}
	if err := s.check(ctx, "put", key); err != nil {
		return storage.Object{}, err
	}
	p := &put{Store: s, key: key, opts: opts, body: storage.NewBody(ctx, body, opts), stamp: rand.Text()}
	run := p.whole
	switch {
	case s.inParallel(opts.Size):
		run = p.inParts
	case opts.Size > s.c.ChunkSize:
		run = p.inChunks
	}
	modified, err := run(ctx)
	if err != nil {
		return storage.Object{}, err
	}
	s.sawBucket()
	return storage.Object{Key: key, Size: opts.Size, Digest: p.body.Digest(), HasDigest: true, Modified: modified}, nil
}

// put is one call of Put.
type put struct {
	*Store
	key   storage.Key
	opts  storage.PutOptions
	body  *storage.Body
	stamp string
	crc   uint32 // CRC32C of what was read of the body

	// last is set before the last byte leaves: from then on the object may be
	// visible.
	last atomic.Bool
}

func (p *put) fail(ctx context.Context, err error) error { return p.Store.fail(ctx, "put", p.key, err) }

// readAtOnce bounds a single read of a body, so that its digests are computed
// while the bytes are still in the processor's cache.
const readAtOnce = 256 << 10

// read gives the next bytes of the body and adds them to the CRC32C.
func (p *put) read(buf []byte) (int, error) {
	n, err := p.body.Read(buf[:min(readAtOnce, len(buf))])
	p.crc = crc32.Update(p.crc, castagnoli, buf[:n])
	return n, err
}

// fill reads the next bytes of the body into buf; with last it also reads its end.
func (p *put) fill(buf []byte, last bool) error {
	var extra [1]byte // to read the end, and nothing else
	for n := 0; last || n < len(buf); {
		to := buf[n:]
		if len(to) == 0 {
			to = extra[:]
		}
		m, err := p.read(to)
		n += m
		switch {
		case err == io.EOF && n == len(buf) && last:
			return nil
		case err != nil:
			return noEOF(err)
		}
	}
	return nil
}

// writer opens the library's writer with all that is known of the object.
func (p *put) writer(ctx context.Context, chunk int64, again func(error) bool) *gcs.Writer {
	h := p.object(p.key).Retryer(gcs.WithErrorFunc(again))
	if p.opts.IfAbsent {
		h = h.If(gcs.Conditions{DoesNotExist: true})
	}
	w := h.NewWriter(ctx)
	w.ChunkSize = int(chunk)
	w.ChunkRetryDeadline = 10 * p.c.RetryFor // again decides
	w.ContentType = "application/octet-stream"
	w.StorageClass = p.c.StorageClass
	w.Metadata = p.metadata()
	return w
}

// check compares what the store says it has with what was sent.
func (p *put) check(attrs *gcs.ObjectAttrs) error {
	switch {
	case attrs == nil || attrs.Generation == 0:
		return hbackup.E("put", p.loc.At(p.key), hbackup.KindUnsupported, errNoGeneration)
	case attrs.Size != p.opts.Size || attrs.CRC32C != p.crc:
		return hbackup.Errorf("put", p.loc.At(p.key), hbackup.KindCorrupt,
			"the store has stored %d bytes with CRC32C %08x; %d with %08x were sent", attrs.Size, attrs.CRC32C, p.opts.Size, p.crc)
	}
	return nil
}

// whole puts the object with one request.
func (p *put) whole(ctx context.Context) (time.Time, error) {
	if err := p.memory.Acquire(ctx, p.opts.Size); err != nil {
		return time.Time{}, p.fail(ctx, err)
	}
	defer p.memory.Release(p.opts.Size)
	buf := make([]byte, p.opts.Size)
	if err := p.fill(buf, true); err != nil {
		return time.Time{}, p.fail(ctx, err)
	}
	const rounds = 3
	for round := 1; ; round++ {
		modified, again, err := p.putOnce(ctx, buf)
		if err == nil || !again || round == rounds {
			return modified, err
		}
	}
}

// damageTries is how many attempts are made when the store finds other bytes than
// were sent.
const damageTries = 3

// putOnce sends the object until there is an answer that says something. Again
// says that the key was taken by somebody else and has become free since.
func (p *put) putOnce(ctx context.Context, buf []byte) (modified time.Time, again bool, err error) {
	p.last.Store(false)
	began := time.Now()
	for try := 1; ; try++ {
		attrs, err := p.send(ctx, buf)
		if err == nil {
			return attrs.Updated, false, p.check(attrs)
		}
		again := mayPass(err) || isDamage(err) && try < damageTries
		if try == 1 && !again && isRefusal(err) {
			return time.Time{}, false, p.fail(ctx, err)
		}
		if ctx.Err() == nil && again && time.Since(began) < p.c.RetryFor && sleep(ctx, pause(p.c.backoff, try)) == nil {
			continue
		}
		return p.settle(ctx, err)
	}
}

// send makes one attempt. All but the last byte go first, so that it is known of
// a cancelled attempt whether the store can have the whole.
func (p *put) send(ctx context.Context, buf []byte) (*gcs.ObjectAttrs, error) {
	wctx, cancel := p.guard(ctx)
	defer cancel()
	w := p.writer(wctx, 0, mayPass) // without chunks the library does not repeat it
	w.SendCRC32C, w.CRC32C = true, p.crc
	w.Metadata[digestName] = p.body.Digest().String()
	edge := max(len(buf)-1, 0)
	_, err := w.Write(buf[:edge])
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err == nil {
		p.last.Store(true)
		_, err = w.Write(buf[edge:])
	}
	return p.close(w, cancel, err)
}

// close ends the library's writer, in a way that makes nothing visible if there
// was an error before.
func (p *put) close(w *gcs.Writer, cancel context.CancelFunc, err error) (*gcs.ObjectAttrs, error) {
	if err != nil {
		cancel()
		w.CloseWithError(err)
	}
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	return w.Attrs(), nil
}

// inChunks puts the object by a resumable upload. The library repeats chunks, and
// sends the CRC32C of the whole with the last one.
func (p *put) inChunks(ctx context.Context) (time.Time, error) {
	if err := p.memory.Acquire(ctx, p.c.ChunkSize); err != nil {
		return time.Time{}, p.fail(ctx, err)
	}
	defer p.memory.Release(p.c.ChunkSize)
	wctx, cancel := p.guard(ctx)
	defer cancel()
	var moved atomic.Int64 // when the store last took a chunk
	moved.Store(time.Now().UnixNano())
	w := p.writer(wctx, p.c.ChunkSize, func(err error) bool {
		return mayPass(err) && time.Since(time.Unix(0, moved.Load())) < p.c.RetryFor
	})
	w.ProgressFunc = func(int64) { moved.Store(time.Now().UnixNano()) }
	err := p.copy(w, func() { moved.Store(time.Now().UnixNano()) })
	if berr := p.body.Err(); berr != nil {
		err = berr // it tells more than what the writer made of it
	}
	attrs, err := p.close(w, cancel, err)
	switch {
	case err == nil:
		if err := p.check(attrs); err != nil {
			return time.Time{}, err
		}
		return p.keepDigest(ctx, attrs.Name, attrs).Updated, nil
	case !p.last.Load() && statusOf(err) != http.StatusPreconditionFailed:
		return time.Time{}, p.fail(ctx, err)
	}
	modified, _, err := p.settle(ctx, err)
	return modified, err
}

// copy gives the body to the writer. When it gives nil the writer has all of it.
func (p *put) copy(w io.Writer, read func()) error {
	buf := make([]byte, readAtOnce)
	for {
		n, err := p.read(buf)
		read()
		if err == io.EOF {
			p.last.Store(true)
		}
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				return werr
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return noEOF(err)
		}
	}
}

// isRefusal reports an answer that means that nothing was done.
func isRefusal(err error) bool {
	status := statusOf(err)
	return status >= 400 && status < 500 && status != http.StatusPreconditionFailed && status != http.StatusConflict
}

var errTaken = errors.New("the key is taken")
