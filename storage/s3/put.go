package s3

import (
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"hbackup"
	"hbackup/storage"
)

// stampName is the user metadata that tells the objects of one put from those of
// any other.
const stampName = "hbackup-put"

// Put writes one object: in one request up to the part size, in parts above it.
func (s *Store) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	if err := storage.CheckPut(ctx, s.loc, key, opts); err != nil {
		return storage.Object{}, err
	}
	p := &put{
		Store: s, key: key, name: s.full(string(key)), opts: opts,
		body: storage.NewBody(ctx, body, opts), stamp: rand.Text(),
	}
	run := p.whole
	if opts.Size > s.c.PartSize {
		run = p.inParts
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
	name  string // of the object in the bucket
	opts  storage.PutOptions
	body  *storage.Body
	stamp string

	expires time.Time // when a rule of the bucket will abort the upload; zero: no rule
}

func (p *put) fail(ctx context.Context, err error) error { return p.Store.fail(ctx, "put", p.key, err) }

func (p *put) exists(cause error) error {
	return hbackup.E("put", p.loc.At(p.key), hbackup.KindExists, cause)
}

var (
	errTaken = errors.New("the key is taken")
	errNoTag = hbackup.Errorf("read answer", "", hbackup.KindUnsupported, "it gives no entity tag; something that is not S3 has answered")
)

// readAtOnce bounds a single read of a body, so that its digest is computed while
// the bytes are still in the processor's cache.
const readAtOnce = 256 << 10

// fill reads the next bytes of the body; with last it also reads its end.
func (p *put) fill(buf []byte, last bool) error {
	for n := 0; n < len(buf); {
		m, err := p.body.Read(buf[n:min(n+readAtOnce, len(buf))])
		n += m
		switch {
		case err == io.EOF && n == len(buf) && last:
			return nil
		case err != nil:
			return err
		}
	}
	if !last {
		return nil
	}
	for { // an empty object
		switch _, err := p.body.Read(make([]byte, 1)); err {
		case io.EOF:
			return nil
		case nil:
		default:
			return err
		}
	}
}

// whole puts the object with one request.
func (p *put) whole(ctx context.Context) (time.Time, error) {
	buf, err := p.buffers.get(ctx, p.opts.Size)
	if err != nil {
		return time.Time{}, p.fail(ctx, err)
	}
	defer p.buffers.put(buf)
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

// putOnce sends the object. Again says that the key was taken by somebody else
// and has become free since.
func (p *put) putOnce(ctx context.Context, buf []byte) (modified time.Time, again bool, err error) {
	load := newPayload(buf)
	defer load.release()
	rctx, cancel := p.guard(ctx, load)
	defer cancel()
	out, err := p.ops.putObject.call(load.with(rctx), p.putInput(buf))
	if err == nil && out.ETag == nil {
		err = errNoTag
	}
	if err == nil {
		modified, _ = dateIn(out.ResultMetadata)
		return modified, false, p.checkStored(out.ChecksumCRC64NVME)
	}
	if !load.maybeVisible() || load.tries() <= 1 && isRefusal(err) {
		return time.Time{}, false, p.fail(ctx, err)
	}
	switch found, modified := p.look(ctx); {
	case found == foundOurs:
		return modified, false, nil
	case found == foundOther && p.opts.IfAbsent:
		return time.Time{}, false, p.exists(errTaken)
	case found == foundNothing && statusOf(err) == 412:
		return time.Time{}, true, p.exists(errTaken)
	}
	return time.Time{}, false, p.fail(ctx, err)
}

func (p *put) putInput(buf []byte) *s3.PutObjectInput {
	in := &s3.PutObjectInput{
		Bucket: &p.c.Bucket, Key: &p.name,
		Body:         newReplaced(buf),
		ContentType:  aws.String("application/octet-stream"),
		Metadata:     map[string]string{stampName: p.stamp},
		StorageClass: types.StorageClass(p.c.StorageClass),
	}
	if p.opts.IfAbsent {
		in.IfNoneMatch = aws.String("*")
	}
	in.ChecksumCRC64NVME, in.ContentMD5 = p.checksums(p.body.Digest(), buf)
	return in
}

// checksums gives the headers that tell the store what the bytes must be.
func (s *Store) checksums(d storage.Digest, buf []byte) (crc, sum *string) {
	switch s.c.Checksum {
	case ChecksumCRC64NVME:
		crc = aws.String(encodeDigest(d))
	case ChecksumMD5:
		h := md5.Sum(buf)
		sum = aws.String(base64.StdEncoding.EncodeToString(h[:]))
	}
	return crc, sum
}

func (p *put) checkStored(crc *string) error { return p.Store.checkStored(p.key, crc, p.body.Digest()) }

func hexMD5(b []byte) string {
	sum := md5.Sum(b)
	return hex.EncodeToString(sum[:])
}

// checkStored compares what the store says it has with what was sent.
func (s *Store) checkStored(key storage.Key, crc *string, sent storage.Digest) error {
	if d, ok := decodeDigest(crc); ok && d != sent {
		return hbackup.Errorf("put", s.loc.At(key), hbackup.KindCorrupt, "the store has stored %s; %s was sent", d, sent)
	}
	return nil
}

// encodeDigest gives S3's form of a CRC: base64 of its big-endian bytes.
func encodeDigest(d storage.Digest) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(d)))
}

// decodeDigest reads what encodeDigest gives. Of a composite checksum, which has
// a "-" and the number of parts behind it, nothing can be said.
func decodeDigest(s *string) (storage.Digest, bool) {
	if s == nil || strings.Contains(*s, "-") {
		return 0, false
	}
	b, err := base64.StdEncoding.DecodeString(*s)
	if err != nil || len(b) != 8 {
		return 0, false
	}
	return storage.Digest(binary.BigEndian.Uint64(b)), true
}
