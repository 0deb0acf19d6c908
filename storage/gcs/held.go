package gcs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	gcs "cloud.google.com/go/storage"
	"golang.org/x/sync/errgroup"

	"hbackup"
	"hbackup/internal/crc"
	"hbackup/storage"
)

// A held upload is a multipart upload of the XML API to the key itself. Its
// completion takes no precondition and no checksum of the whole. So each part
// carries its own, what the receipt says of the whole is computed from those of
// the parts, and the key is looked at before: of two that finish at the same
// moment the later may replace the earlier one's object.

var (
	errNoUpload = errors.New("there is no such upload")
	digests     = sync.OnceValue(func() *crc.Combiner[uint64] { return crc.New[uint64](nvme) })
)

// nvme is the reflected polynomial of CRC-64/NVME.
const nvme = 0x9a6c9329ac4bc9b5

// OpenUpload begins a multipart upload.
func (s *Store) OpenUpload(ctx context.Context, key storage.Key, stamp string) (storage.Ticket, error) {
	if err := storage.CheckOpen(ctx, s.loc, key, stamp); err != nil {
		return storage.Ticket{}, err
	}
	u, again, err := s.beginUploadOrTwo(ctx, s.full(string(key)), map[string]string{stampName: stamp})
	switch {
	case err != nil && lacksUploads(err) && ctx.Err() == nil:
		// Large objects are sent in chunks then: what needs no held upload goes on.
		s.serial.Store(true)
		return storage.Ticket{}, hbackup.E("open upload", s.loc.At(key), hbackup.KindUnsupported, &cause{text: "multipart uploads are not to be had: " + s.judge(err).text, err: err}).
			WithHint("the right storage.multipartUploads.create is needed; the role Storage Object User has it")
	case err != nil:
		return storage.Ticket{}, s.fail(ctx, "open upload", key, err)
	}
	return storage.Ticket{Key: key, ID: u.id, Stamp: stamp, Doubtful: again}, nil
}

func (s *Store) upload(t storage.Ticket) upload {
	return upload{s: s, name: s.full(string(t.Key)), id: t.ID}
}

// FillUpload sends the parts, side by side.
func (s *Store) FillUpload(ctx context.Context, t storage.Ticket, body io.Reader, opts storage.PutOptions) (storage.Receipt, error) {
	if err := storage.CheckFill(ctx, s.loc, t, opts); err != nil {
		return storage.Receipt{}, err
	}
	p := &put{Store: s, key: t.Key, opts: opts, body: storage.NewBody(ctx, body, opts), stamp: t.Stamp}
	parts, err := p.holdParts(ctx, s.upload(t))
	switch {
	case err != nil && isMissing(err) && ctx.Err() == nil:
		return storage.Receipt{}, s.noUpload(ctx, "fill upload", t.Key)
	case err != nil:
		return storage.Receipt{}, s.fail(ctx, "fill upload", t.Key, err)
	}
	return storage.Receipt{Ticket: t, Size: opts.Size, Digest: p.body.Digest(), Check: encodeCRC(p.crc), Parts: parts}, nil
}

// noUpload says that the upload is gone, unless the bucket is.
func (s *Store) noUpload(ctx context.Context, op string, key storage.Key) error {
	if err := s.checkBucket(ctx); err != nil {
		return err
	}
	return hbackup.E(op, s.loc.At(key), hbackup.KindConflict, errNoUpload).
		WithHint("somebody aborted the upload, or a lifecycle rule of the bucket did; such a rule must wait longer than the longest job")
}

// holdParts reads the body and sends its parts. When it returns no request is
// under way any more.
func (p *put) holdParts(ctx context.Context, u upload) ([]storage.HeldPart, error) {
	size := max(p.c.ChunkSize, minPart, (p.opts.Size+maxParts-1)/maxParts)
	count := max(1, (p.opts.Size+size-1)/size) // an empty object is one empty part
	parts := make([]storage.HeldPart, count)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, p.c.Parallel))
	for i := range count {
		n := min(size, p.opts.Size-i*size)
		need := min(n, p.c.Memory)
		if p.memory.Acquire(gctx, need) != nil {
			break // gctx is over; Wait says why
		}
		data := make([]byte, n)
		crcBefore, before := p.crc, p.body.Digest()
		if err := p.fill(data, i == count-1); err != nil {
			p.memory.Release(need)
			g.Go(func() error { return err })
			break
		}
		sum := partSum{n, digests().Combine(uint64(before), uint64(p.body.Digest()), n), combiner().Combine(crcBefore, p.crc, n)}
		g.Go(func() error {
			defer p.memory.Release(need)
			sent, err := u.put(gctx, int(i)+1, data, sum.crc)
			parts[i] = storage.HeldPart{Tag: sent.Tag, Sum: sum.String()}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return parts, ctx.Err()
}

// partSum is what a receipt says of the bytes of a part.
type partSum struct {
	size   int64
	digest uint64
	crc    uint32
}

func (s partSum) String() string { return fmt.Sprintf("%d-%016x-%08x", s.size, s.digest, s.crc) }

// sumOf puts the sums of parts together.
func sumOf(parts []storage.HeldPart) (partSum, error) {
	var all partSum
	for i, p := range parts {
		var one partSum
		if _, err := fmt.Sscanf(p.Sum, "%d-%x-%x", &one.size, &one.digest, &one.crc); err != nil || one.size < 0 {
			return all, fmt.Errorf("the receipt says nothing of part %d", i+1)
		}
		all.digest = digests().Combine(all.digest, one.digest, one.size)
		all.crc = combiner().Combine(all.crc, one.crc, one.size)
		all.size += one.size
	}
	return all, nil
}

// FinishUpload completes the upload if the key is free.
func (s *Store) FinishUpload(ctx context.Context, r storage.Receipt) (storage.Object, error) {
	if err := storage.CheckFinish(ctx, s.loc, r); err != nil {
		return storage.Object{}, err
	}
	sum, err := sumOf(r.Parts)
	if err == nil && (sum.size != r.Size || sum.digest != uint64(r.Digest) || encodeCRC(sum.crc) != r.Check) {
		err = errors.New("the parts are not those of the receipt")
	}
	if err != nil {
		return storage.Object{}, hbackup.E("finish upload", s.loc.At(r.Key), hbackup.KindCorrupt, err)
	}
	attrs, err := s.object(r.Key).Attrs(ctx)
	switch {
	case err == nil:
		return s.finished(ctx, r, attrs)
	case !isMissing(err):
		return storage.Object{}, s.fail(ctx, "finish upload", r.Key, err)
	}
	parts := make([]part, len(r.Parts))
	for i, p := range r.Parts {
		parts[i] = part{Number: i + 1, Tag: p.Tag}
	}
	cerr := s.upload(r.Ticket).complete(ctx, parts)
	// The answer to a completion can be lost, and its repetition be refused: only
	// the object tells.
	lctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*s.c.settle)
	defer cancel()
	attrs, err = s.object(r.Key).Attrs(lctx)
	switch {
	case err == nil:
		return s.finished(lctx, r, attrs)
	case cerr != nil && isMissing(cerr) && ctx.Err() == nil:
		return storage.Object{}, s.noUpload(ctx, "finish upload", r.Key)
	case cerr != nil:
		return storage.Object{}, s.fail(ctx, "finish upload", r.Key, cerr)
	}
	return storage.Object{}, s.fail(ctx, "finish upload", r.Key, err)
}

// finished judges the object that is there.
func (s *Store) finished(ctx context.Context, r storage.Receipt, attrs *gcs.ObjectAttrs) (storage.Object, error) {
	same := attrs.Size == r.Size && encodeCRC(attrs.CRC32C) == r.Check
	if kept := attrs.Metadata[digestName]; kept != "" && kept != r.Digest.String() {
		same = false
	}
	ours := attrs.Metadata[stampName] == r.Stamp
	switch {
	case ours && !same:
		return storage.Object{}, hbackup.Errorf("finish upload", s.loc.At(r.Key), hbackup.KindCorrupt, "the object is there, with other bytes than the receipt says")
	case !same:
		return storage.Object{}, hbackup.E("finish upload", s.loc.At(r.Key), hbackup.KindExists, errTaken)
	case !ours:
		if err := s.DropUpload(ctx, r.Ticket); err != nil {
			return storage.Object{}, err
		}
	}
	return r.Object(attrs.Updated), nil
}

// DropUpload aborts the upload, unless it has become an object. A part that was
// still on its way may land behind the abort, so it looks whether any is left.
func (s *Store) DropUpload(ctx context.Context, t storage.Ticket) error {
	if err := storage.CheckTicket(ctx, "drop upload", s.loc, t); err != nil {
		return err
	}
	attrs, err := s.object(t.Key).Attrs(ctx)
	switch {
	case err == nil && t.Stamp != "" && attrs.Metadata[stampName] == t.Stamp:
		return nil
	case err != nil && !isMissing(err):
		return s.fail(ctx, "drop upload", t.Key, err)
	}
	u := s.upload(t)
	for range 3 {
		if err := u.abort(ctx); err != nil {
			return s.fail(ctx, "drop upload", t.Key, err)
		}
		left, err := u.parts(ctx)
		switch {
		case err != nil && isMissing(err) || err == nil && len(left) == 0:
			return nil
		case err != nil:
			return s.fail(ctx, "drop upload", t.Key, err)
		}
	}
	return hbackup.Errorf("drop upload", s.loc.At(t.Key), hbackup.KindUnavailable, "parts keep coming in")
}

// OpenUploads lists multipart uploads. Those of longer keys that begin alike are
// left out.
func (s *Store) OpenUploads(ctx context.Context, key storage.Key) ([]storage.Ticket, error) {
	if err := storage.Check(ctx, "list uploads of", s.loc, key); err != nil {
		return nil, err
	}
	name := s.full(string(key))
	all, err := s.uploads(ctx, name)
	if err != nil {
		return nil, s.fail(ctx, "list uploads of", key, err)
	}
	var open []storage.Ticket
	for _, u := range all {
		if u.Name == name {
			open = append(open, storage.Ticket{Key: key, ID: u.ID})
		}
	}
	return open, nil
}

var _ storage.Holder = (*Store)(nil)
