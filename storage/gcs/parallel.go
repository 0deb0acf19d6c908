package gcs

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	gcs "cloud.google.com/go/storage"
	"golang.org/x/sync/errgroup"
	"google.golang.org/api/iterator"

	"hbackup"
	"hbackup/storage"
)

// A large object is sent in parts side by side. Of the two ways that the service
// has, multipart uploads were taken and not compose:
//
//   - components of compose are objects that everybody sees and that have to be
//     deleted again, each of which soft delete and the colder classes bill; of a
//     body that is a stream they can be 32 parts only, or composed over and over;
//   - parts of a multipart upload are never seen, and cost nothing once they are
//     put together. But its completion takes no precondition and replaces what has
//     the name.
//
// So the upload goes to a name of its own in tempDir, is compared with what was
// sent, and then moved to its key: atomically, under the precondition, and without
// the costs of a deletion.

// tempDir holds the objects of parallel uploads that are not moved to their keys
// yet. No key is in it.
const tempDir = ".hbackup-tmp"

// inParallel reports whether an object of that size is sent in parallel: large
// enough to be worth a billed request for each part, where a resumable upload is
// one in all.
func (s *Store) inParallel(size int64) bool {
	return s.c.Parallel > 1 && s.c.ChunkSize >= minPart && !s.serial.Load() &&
		size >= s.c.parallelFrom && size <= maxParts*s.c.ChunkSize
}

// inParts puts the object by parts that are sent side by side. Where the service
// does not offer that it is sent in chunks.
func (p *put) inParts(ctx context.Context) (time.Time, error) {
	if p.opts.IfAbsent {
		// The condition counts at the move; this only saves sending the bytes when it
		// cannot hold any more.
		if _, err := p.Stat(ctx, p.key); err == nil {
			return time.Time{}, hbackup.E("put", p.loc.At(p.key), hbackup.KindExists, errTaken)
		} else if !hbackup.IsKind(err, hbackup.KindNotFound) {
			return time.Time{}, err
		}
	}
	if !p.canStage(ctx) {
		return p.inChunks(ctx)
	}
	u, err := p.beginUpload(ctx, p.full(tempDir+"/"+p.stamp), p.metadata())
	switch {
	case err != nil && lacksUploads(err):
		p.serial.Store(true)
		return p.inChunks(ctx)
	case err != nil:
		return time.Time{}, p.fail(ctx, err)
	}
	staged, err := p.stage(ctx, u)
	if err != nil {
		p.unstage(ctx, u)
		return time.Time{}, p.fail(ctx, err)
	}
	return p.publish(ctx, staged)
}

// stage uploads the body and gives the object, under its temporary name, when it
// is what was sent.
func (p *put) stage(ctx context.Context, u upload) (*gcs.ObjectAttrs, error) {
	parts, err := p.sendParts(ctx, u)
	if err != nil {
		return nil, err
	}
	// The answer to a completion can be lost, and its repetition be refused: only
	// the object tells.
	cerr := u.complete(ctx, parts)
	attrs, err := p.staged(u).Attrs(ctx)
	switch {
	case err != nil && cerr != nil:
		return nil, cerr
	case err != nil:
		return nil, err
	}
	if err := p.check(attrs); err != nil {
		return nil, err
	}
	return p.keepDigest(ctx, u.name, attrs), nil
}

func (p *put) staged(u upload) *gcs.ObjectHandle { return p.client.Bucket(p.c.Bucket).Object(u.name) }

// sendParts reads the body and sends its parts. When it returns no request is
// under way any more.
func (p *put) sendParts(ctx context.Context, u upload) ([]part, error) {
	parts := make([]part, (p.opts.Size+p.c.ChunkSize-1)/p.c.ChunkSize)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(p.c.Parallel)
	for i := range parts {
		n := min(p.c.ChunkSize, p.opts.Size-int64(i)*p.c.ChunkSize)
		if p.memory.Acquire(gctx, p.c.ChunkSize) != nil {
			break // gctx is over; Wait says why
		}
		buf := p.chunk()
		release := func() {
			p.chunks.Put(buf)
			p.memory.Release(p.c.ChunkSize)
		}
		data := (*buf)[:n]
		before := p.crc
		if err := p.fill(data, i == len(parts)-1); err != nil {
			release()
			g.Go(func() error { return err })
			break
		}
		crc := combiner().Combine(before, p.crc, n) // what has to follow before
		g.Go(func() error {
			defer release()
			var err error
			parts[i], err = u.put(gctx, i+1, data, crc)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return parts, ctx.Err()
}

// publish moves the object to its key.
func (p *put) publish(ctx context.Context, staged *gcs.ObjectAttrs) (time.Time, error) {
	const rounds = 3
	for round := 1; ; round++ {
		modified, again, err := p.move(ctx, staged)
		if err == nil || !again || round == rounds {
			if err != nil {
				p.forget(ctx, staged.Name)
			}
			return modified, err
		}
	}
}

// move tries it. Again says that the key was taken by somebody else and has
// become free since.
func (p *put) move(ctx context.Context, staged *gcs.ObjectAttrs) (modified time.Time, again bool, err error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, false, p.fail(ctx, err)
	}
	p.last.Store(true)
	mctx, cancel := p.guard(ctx)
	defer cancel()
	to := gcs.MoveObjectDestination{Object: p.full(string(p.key))}
	if p.opts.IfAbsent {
		to.Conditions = &gcs.Conditions{DoesNotExist: true}
	}
	source := p.client.Bucket(p.c.Bucket).Object(staged.Name).If(gcs.Conditions{GenerationMatch: staged.Generation})
	attrs, err := source.Move(mctx, to)
	if err == nil {
		return attrs.Updated, false, p.check(attrs)
	}
	if status := statusOf(err); status == http.StatusForbidden {
		p.serial.Store(true) // the next ones go another way
	}
	return p.settle(ctx, err)
}

// unstage takes away what is there of an upload that is given up, also when the
// caller's context is over. A part whose connection broke may land after the
// abort, so it looks whether any is left. What cannot be taken away is swept
// later.
func (p *put) unstage(ctx context.Context, u upload) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*p.c.settle)
	defer cancel()
	for range 3 {
		if u.abort(ctx) != nil {
			break
		}
		if left, err := u.parts(ctx); isMissing(err) || err == nil && len(left) == 0 {
			break
		}
	}
	p.forget(ctx, u.name)
}

// forget deletes the object with the temporary name, if there is one.
func (p *put) forget(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*p.c.settle)
	defer cancel()
	p.client.Bucket(p.c.Bucket).Object(name).Delete(ctx) // what stays is swept later
}

// abandonedAfter is the age at which a temporary object, or an upload to one,
// counts as left behind by a dead process. Should its writer live and be very
// slow, its Put fails.
const abandonedAfter = 48 * time.Hour

// canStage reports whether objects can be moved here without a trace, which a
// retention policy, holds and versions prevent. When it is asked for the first
// time it sweeps what dead processes have left.
func (s *Store) canStage(ctx context.Context) bool {
	s.staging.Do(func() {
		p, _, err := s.Permanence(ctx)
		if err != nil || p == storage.PermanenceUnknown && s.showsRetention(ctx) || p == storage.Locked || p == storage.Versioned {
			s.serial.Store(true)
			return
		}
		s.sweep(ctx)
	})
	return !s.serial.Load()
}

// showsRetention looks at an object of the location where the bucket itself may
// not be asked: its retention policy shows on all of them.
func (s *Store) showsRetention(ctx context.Context) bool {
	q := &gcs.Query{Prefix: s.full("")}
	if err := q.SetAttrSelection([]string{"Name", "RetentionExpirationTime", "EventBasedHold"}); err != nil {
		return true
	}
	it := s.client.Bucket(s.c.Bucket).Objects(ctx, q)
	it.PageInfo().MaxSize = 1
	attrs, err := it.Next()
	if err != nil {
		return !errors.Is(err, iterator.Done)
	}
	return !attrs.RetentionExpirationTime.IsZero() || attrs.EventBasedHold
}

// sweep removes what dead processes left in tempDir, as well as it can. Ages are
// measured by the store's clock.
func (s *Store) sweep(ctx context.Context) {
	now, err := s.ServerTime(ctx)
	if err != nil {
		return
	}
	dir := s.full(tempDir + "/")
	open, err := s.uploads(ctx, dir)
	for _, u := range open {
		if err == nil && !u.Began.IsZero() && now.Sub(u.Began) > abandonedAfter {
			err = upload{s: s, name: u.Name, id: u.ID}.abort(ctx)
		}
	}
	it := s.client.Bucket(s.c.Bucket).Objects(ctx, &gcs.Query{Prefix: dir})
	for {
		attrs, err := it.Next()
		if err != nil {
			return
		}
		if !attrs.Updated.IsZero() && now.Sub(attrs.Updated) > abandonedAfter {
			s.client.Bucket(s.c.Bucket).Object(attrs.Name).If(gcs.Conditions{GenerationMatch: attrs.Generation}).Delete(ctx)
		}
	}
}

// chunk gives memory for one chunk.
func (s *Store) chunk() *[]byte {
	if buf, ok := s.chunks.Get().(*[]byte); ok {
		return buf
	}
	buf := make([]byte, s.c.ChunkSize)
	return &buf
}

// inTempDir reports whether a key, or the start of one, lies where no keys are.
func inTempDir(key storage.Key) bool {
	return key == tempDir || strings.HasPrefix(string(key), tempDir+"/")
}
