package s3

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"hbackup"
	"hbackup/storage"
)

// upload is the sending of the parts of one multipart upload.
type upload struct {
	*put
	id    string
	parts []*part        // by number, less one
	late  sync.WaitGroup // requests whose part has come by another one already
}

// part is one of them.
type part struct {
	number int32
	size   int64
	digest storage.Digest
	tag    *string // by which the completion names it

	mu       sync.Mutex
	landings int // how often the store may have stored it
	agreeing int // how many of these were answered with the same tag
}

// sendParts reads the body and uploads its parts. When it returns, no request is
// under way any more.
func (p *put) sendParts(ctx context.Context, id string) ([]types.CompletedPart, error) {
	size := partSizeFor(p.opts.Size, p.c.PartSize)
	count := max(1, (p.opts.Size+size-1)/size) // an empty object is one empty part
	u := &upload{put: p, id: id}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(p.c.Parallel)
	for i := range count {
		n := min(size, p.opts.Size-i*size)
		buf, err := p.buffers.get(gctx, n)
		if err != nil {
			break // gctx is over; Wait says why
		}
		before := p.body.Digest()
		if err := p.fill(buf, i == count-1); err != nil {
			p.buffers.put(buf)
			g.Go(func() error { return err })
			break
		}
		digest := combine(before, p.body.Digest(), n) // what has to follow before to give the sum
		part := &part{number: int32(i + 1), size: n, digest: digest}
		u.parts = append(u.parts, part)
		g.Go(func() error { return u.send(gctx, part, buf) })
	}
	err := g.Wait()
	u.late.Wait()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return u.completed(ctx)
}

// completed gives what the completion says of the parts.
func (u *upload) completed(ctx context.Context) ([]types.CompletedPart, error) {
	out := make([]types.CompletedPart, len(u.parts))
	for i, part := range u.parts {
		if part.landings > part.agreeing {
			if err := u.settleDoubt(ctx, part); err != nil {
				return nil, err
			}
		}
		out[i] = types.CompletedPart{PartNumber: &part.number, ETag: part.tag}
		if u.c.Checksum == ChecksumCRC64NVME {
			out[i].ChecksumCRC64NVME = aws.String(encodeDigest(part.digest))
		}
	}
	return out, nil
}

// partRounds is how often a part is begun anew after all attempts of its request
// have failed for a reason that may pass. An outage then costs the part that it
// met and none of those that are stored.
const partRounds = 3

// send uploads one part and takes over its buffer.
func (u *upload) send(ctx context.Context, part *part, buf []byte) error {
	lent := &shared{buf: buf, of: u.buffers}
	lent.borrow()
	defer lent.giveBack()
	for round := 1; ; round++ {
		tag, err := u.race(ctx, part, lent)
		if err != nil && ctx.Err() == nil && round < partRounds && hbackup.Retryable(u.fail(ctx, err)) {
			if tag = u.findStored(ctx, part, buf); tag == nil {
				continue
			}
			err = nil
		}
		if err != nil {
			return err
		}
		part.tag = tag
		return nil
	}
}

// race sends the part and, when that takes much longer than parts took lately, a
// second time. The first good answer is the part's; the other request is called
// off. One whose last byte has left lands nevertheless, and with the same bytes.
func (u *upload) race(ctx context.Context, part *part, lent *shared) (tag *string, err error) {
	answers := make(chan *sending, 2)
	first := u.start(ctx, part, lent, answers)
	after, stop := u.peers.timer(part.size)
	defer stop()
	select {
	case <-answers:
		u.note(part, first)
		return first.tag, first.err
	case <-after:
	}
	if u.gate.narrowed() {
		<-answers // the store has too much to do already
		u.note(part, first)
		return first.tag, first.err
	}
	second := u.start(ctx, part, lent, answers)
	winner := <-answers
	if winner.err != nil {
		winner = <-answers
		u.note(part, first, second)
		return winner.tag, winner.err
	}
	loser := first
	if loser == winner {
		loser = second
	}
	loser.cancel(errOvertaken)
	u.late.Go(func() {
		<-answers
		u.note(part, first, second)
	})
	return winner.tag, nil
}

// errOvertaken ends a request whose part has come by another one.
var errOvertaken = errors.New("the part was sent by another request")

// sending is one request that carries a part. Its fields are for the one who has
// heard of its end.
type sending struct {
	load   *payload
	cancel context.CancelCauseFunc
	tag    *string
	err    error
	began  time.Time
	took   time.Duration
}

// start begins to send the part.
func (u *upload) start(ctx context.Context, part *part, lent *shared, answers chan<- *sending) *sending {
	s := &sending{load: newPayload(lent.buf), began: time.Now()}
	ctx, s.cancel = context.WithCancelCause(ctx)
	lent.borrow()
	go func() {
		s.tag, s.err = u.sendOnce(ctx, part, s.load)
		s.took = time.Since(s.began)
		s.cancel(errReleased)
		s.load.release()
		lent.giveBack()
		answers <- s
	}()
	return s
}

// note draws the conclusions from the requests for a part, all of which are over:
// how long a part takes, and whether the store may have it under another tag than
// the one that was answered. With a key of a key service each sending has a tag of
// its own, and a completion must name the one that landed last.
func (u *upload) note(part *part, all ...*sending) {
	part.mu.Lock()
	defer part.mu.Unlock()
	var tag *string
	for _, s := range all {
		part.landings += s.load.landings()
		if s.err != nil {
			continue
		}
		if tag == nil || *tag == *s.tag {
			part.agreeing++
			tag = s.tag
		}
		if s.load.tries() == 1 {
			u.peers.note(part.size, s.took)
		}
	}
}

// settleDoubt asks the store for the tag of a part that may have landed more than
// once. No request for it is under way any more.
func (u *upload) settleDoubt(ctx context.Context, part *part) error {
	stored, err := u.stored(ctx, part.number)
	if err != nil {
		return err
	}
	crc, known := decodeDigest(stored.ChecksumCRC64NVME)
	if stored.ETag == nil || aws.ToInt64(stored.Size) != part.size || known && crc != part.digest {
		return hbackup.Errorf("put part", u.loc.At(u.key), hbackup.KindUnavailable, "the store does not show part %d as it was sent", part.number)
	}
	part.tag = stored.ETag
	return nil
}

// findStored looks whether the part has been stored although no answer said so,
// and gives its tag. Without a proof that its bytes are right there is none.
func (u *upload) findStored(ctx context.Context, part *part, buf []byte) *string {
	stored, err := u.stored(ctx, part.number)
	if err != nil || aws.ToInt64(stored.Size) != part.size || stored.ETag == nil {
		return nil
	}
	if crc, ok := decodeDigest(stored.ChecksumCRC64NVME); ok {
		if crc == part.digest {
			return stored.ETag
		}
		return nil
	}
	if u.c.Checksum == ChecksumMD5 && *stored.ETag == `"`+hexMD5(buf)+`"` {
		return stored.ETag
	}
	return nil
}

// stored gives what the store says of one part; no tag means that it has none.
func (u *upload) stored(ctx context.Context, number int32) (types.Part, error) {
	before := strconv.Itoa(int(number) - 1)
	out, err := u.client.ListParts(ctx, &s3.ListPartsInput{
		Bucket: &u.c.Bucket, Key: &u.name, UploadId: &u.id, PartNumberMarker: &before, MaxParts: aws.Int32(1),
	})
	if err != nil {
		return types.Part{}, err
	}
	for _, p := range out.Parts {
		if aws.ToInt32(p.PartNumber) == number {
			return p, nil
		}
	}
	return types.Part{}, nil
}

// sendOnce carries out one request for a part, its attempts included.
func (u *upload) sendOnce(ctx context.Context, part *part, load *payload) (*string, error) {
	in := &s3.UploadPartInput{
		Bucket: &u.c.Bucket, Key: &u.name, UploadId: &u.id, PartNumber: &part.number, Body: newReplaced(load.data),
	}
	in.ChecksumCRC64NVME, in.ContentMD5 = u.checksums(part.digest, load.data)
	// A part whose last byte has left lands whatever we do; its answer is awaited,
	// so that it does not land behind an abort or a completion.
	ctx, cancel := u.guard(ctx, load)
	defer cancel()
	out, err := u.ops.uploadPart.call(load.with(ctx), in)
	if err == nil && out.ETag == nil {
		err = errNoTag
	}
	if err != nil {
		return nil, err
	}
	if got, ok := decodeDigest(out.ChecksumCRC64NVME); ok && got != part.digest {
		return nil, hbackup.Errorf("put part", u.loc.At(u.key), hbackup.KindCorrupt,
			"the store has stored %s as part %d; %s was sent", got, part.number, part.digest)
	}
	return out.ETag, nil
}
