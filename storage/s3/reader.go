package s3

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"hbackup"
	"hbackup/storage"
)

// reader gives the bytes of a range. When the connection breaks it goes on at
// the same byte with a new request that names the entity tag of the object, so
// bytes of two contents never mix. It ends in io.EOF only after all bytes, and
// after the whole of an object only if they have the digest that the store keeps.
type reader struct {
	s    *Store
	ctx  context.Context
	key  storage.Key
	name string

	size    int64 // of the whole object
	etag    string
	at, end int64 // the next byte, and the one behind the last
	body    io.ReadCloser
	broken  int   // failures since the last byte came
	err     error // the last word

	verify bool // all bytes from 0 to size are read, and want is known
	sum    storage.Digest
	want   storage.Digest
}

// first opens the range, of which the end is not known yet.
func (r *reader) first(want storage.Range) (storage.Object, error) {
	// The object may be replaced by a smaller or larger one between the answer
	// that a range cannot be and the look at its size.
	for range 3 {
		obj, err := r.request(want)
		if err == nil || statusOf(err) != 416 {
			return obj, r.fail(err)
		}
		obj, err = r.s.Stat(r.ctx, r.key)
		if err != nil {
			return storage.Object{}, err
		}
		_, n, err := want.Of(obj.Size)
		if err != nil {
			return storage.Object{}, r.fail(err)
		}
		if n == 0 {
			r.size, r.at, r.end = obj.Size, want.Offset, want.Offset
			return obj, nil
		}
	}
	return storage.Object{}, r.fail(hbackup.Errorf("get range", "", hbackup.KindUnavailable, "the object keeps changing"))
}

// request sends the first request and takes from its answer what the object is.
func (r *reader) request(want storage.Range) (storage.Object, error) {
	out, err := r.ask(want)
	if err != nil {
		return storage.Object{}, err
	}
	got, err := spanOf(out)
	if err == nil {
		var n int64
		if _, n, err = want.Of(got.total); err == nil && (got.from != want.Offset || got.to != want.Offset+n) {
			err = hbackup.Errorf("get range", "", hbackup.KindUnsupported,
				"the store gave the bytes from %d up to %d of %d, which were not asked for", got.from, got.to, got.total)
		}
	}
	if err != nil {
		out.Body.Close()
		return storage.Object{}, err
	}
	r.s.sawBucket()
	obj := describe(r.key, got.total, out.ChecksumCRC64NVME, out.LastModified)
	r.body, r.size, r.at, r.end, r.etag = out.Body, got.total, got.from, got.to, aws.ToString(out.ETag)
	if got.from == 0 && got.to == got.total {
		r.verify, r.want = obj.HasDigest, obj.Digest
	} else {
		// Some stores send the checksum of the part with a range that happens to
		// be a part.
		obj.HasDigest, obj.Digest = false, 0
	}
	return obj, nil
}

func (r *reader) ask(want storage.Range) (*s3.GetObjectOutput, error) {
	in := &s3.GetObjectInput{Bucket: &r.s.c.Bucket, Key: &r.name}
	if want != (storage.Range{}) {
		in.Range = aws.String(formatRange(want))
	}
	if r.etag != "" {
		in.IfMatch = &r.etag
	}
	return r.s.ops.getObject.call(r.ctx, in)
}

// Read gives the next bytes.
func (r *reader) Read(p []byte) (int, error) {
	for {
		switch {
		case r.err != nil:
			return 0, r.err
		case r.at == r.end:
			r.err = r.finish()
			return 0, r.err
		case len(p) == 0:
			return 0, nil
		case r.ctx.Err() != nil:
			r.err = r.fail(r.ctx.Err())
			return 0, r.err
		}
		if r.body == nil {
			if err := r.resume(); err != nil {
				r.err = err
				return 0, err
			}
		}
		n, err := r.body.Read(p[:min(int64(len(p)), r.end-r.at)])
		r.at += int64(n)
		if r.verify {
			r.sum = storage.AddDigest(r.sum, p[:n])
		}
		if n > 0 {
			r.broken = 0
		}
		if err != nil && r.at < r.end {
			r.breakOff(err)
		}
		if n > 0 {
			return n, nil
		}
	}
}

// breakOff drops the connection and decides whether there will be another.
func (r *reader) breakOff(err error) {
	r.body.Close()
	r.body = nil
	if r.broken++; r.broken < r.s.c.MaxAttempts && r.ctx.Err() == nil {
		return
	}
	kind := hbackup.KindIncomplete
	if r.ctx.Err() != nil {
		kind, err = hbackup.KindOther, r.ctx.Err()
	}
	r.err = hbackup.E("read", r.s.loc.At(r.key), kind,
		fmt.Errorf("it broke off after %d of %d bytes: %w", r.at, r.size, noEOF(err)))
}

// noEOF keeps an early end from being taken for the end.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the store sent fewer bytes than it announced")
	}
	return err
}

// resume asks for the rest.
func (r *reader) resume() error {
	incomplete := func(cause error) error {
		return hbackup.E("read", r.s.loc.At(r.key), hbackup.KindIncomplete, fmt.Errorf("after %d of %d bytes: %w", r.at, r.size, cause))
	}
	if r.etag == "" {
		return incomplete(errors.New("the connection broke, and the store gave no entity tag with which to go on"))
	}
	if err := sleep(r.ctx, pause(r.s.c.backoff, r.broken, nil)); err != nil {
		return r.fail(err)
	}
	out, err := r.ask(storage.Range{Offset: r.at, Length: r.end - r.at})
	switch {
	case err != nil && (statusOf(err) == 412 || statusOf(err) == 416):
		return incomplete(errors.New("the object was replaced while it was read"))
	case err != nil && isMissing(err):
		return incomplete(errors.New("the object was deleted while it was read"))
	case err != nil:
		return r.fail(err)
	}
	if got, err := spanOf(out); err != nil || got != (span{r.at, r.end, r.size}) || aws.ToString(out.ETag) != r.etag {
		out.Body.Close()
		return incomplete(errors.New("the store went on with other bytes than were asked for"))
	}
	r.body = out.Body
	return nil
}

func (r *reader) finish() error {
	if r.verify && r.sum != r.want {
		return hbackup.Errorf("read", r.s.loc.At(r.key), hbackup.KindCorrupt, "its digest is %s; the store keeps %s", r.sum, r.want)
	}
	return io.EOF
}

var errClosed = errors.New("the reader is closed")

func (r *reader) fail(err error) error { return r.s.fail(r.ctx, "get", r.key, err) }

// Close releases the connection.
func (r *reader) Close() error {
	if r.err == nil || r.err == io.EOF {
		r.err = errClosed
	}
	if r.body == nil {
		return nil
	}
	r.body.Close() // of an answer; there is nothing in its error
	r.body = nil
	return nil
}
