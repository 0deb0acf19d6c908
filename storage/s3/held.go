package s3

import (
	"context"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"hbackup"
	"hbackup/storage"
)

// A held upload is a multipart upload that is not completed yet, also of an
// object that would fit into one request.

// OpenUpload creates a multipart upload.
func (s *Store) OpenUpload(ctx context.Context, key storage.Key, stamp string) (storage.Ticket, error) {
	if err := storage.CheckOpen(ctx, s.loc, key, stamp); err != nil {
		return storage.Ticket{}, err
	}
	p := &put{Store: s, key: key, name: s.full(string(key)), stamp: stamp}
	id, again, err := p.create(ctx)
	if err != nil {
		return storage.Ticket{}, s.fail(ctx, "open upload", key, err)
	}
	return storage.Ticket{Key: key, ID: id, Stamp: stamp, Doubtful: again, Expires: p.expires}, nil
}

// FillUpload sends the parts, side by side.
func (s *Store) FillUpload(ctx context.Context, t storage.Ticket, body io.Reader, opts storage.PutOptions) (storage.Receipt, error) {
	if err := storage.CheckFill(ctx, s.loc, t, opts); err != nil {
		return storage.Receipt{}, err
	}
	p := &put{Store: s, key: t.Key, name: s.full(string(t.Key)), opts: opts, body: storage.NewBody(ctx, body, opts), stamp: t.Stamp}
	parts, err := p.sendParts(ctx, t.ID)
	if err != nil {
		return storage.Receipt{}, s.fail(ctx, "fill upload", t.Key, err)
	}
	r := storage.Receipt{Ticket: t, Size: opts.Size, Digest: p.body.Digest()}
	for _, part := range parts {
		r.Parts = append(r.Parts, storage.HeldPart{Tag: aws.ToString(part.ETag), Sum: aws.ToString(part.ChecksumCRC64NVME)})
	}
	return r, nil
}

// FinishUpload completes the multipart upload, on condition that the key is free.
func (s *Store) FinishUpload(ctx context.Context, r storage.Receipt) (storage.Object, error) {
	if err := storage.CheckFinish(ctx, s.loc, r); err != nil {
		return storage.Object{}, err
	}
	rctx, cancel := s.guard(ctx, nil)
	defer cancel()
	out, err := s.client.CompleteMultipartUpload(rctx, s.completion(r))
	if err == nil && out.ETag == nil {
		err = errNoTag
	}
	if err == nil {
		modified, _ := dateIn(out.ResultMetadata)
		return r.Object(modified), s.checkStored(r.Key, out.ChecksumCRC64NVME, r.Digest)
	}
	return s.settleFinish(ctx, r, err)
}

func (s *Store) completion(r storage.Receipt) *s3.CompleteMultipartUploadInput {
	parts := make([]types.CompletedPart, len(r.Parts))
	for i, p := range r.Parts {
		parts[i] = types.CompletedPart{PartNumber: aws.Int32(int32(i + 1)), ETag: &p.Tag}
		if p.Sum != "" {
			parts[i].ChecksumCRC64NVME = &p.Sum
		}
	}
	name := s.full(string(r.Key))
	in := &s3.CompleteMultipartUploadInput{
		Bucket: &s.c.Bucket, Key: &name, UploadId: &r.ID, IfNoneMatch: aws.String("*"),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	}
	if s.c.Checksum == ChecksumCRC64NVME {
		in.ChecksumCRC64NVME = aws.String(encodeDigest(r.Digest))
		in.ChecksumType = types.ChecksumTypeFullObject
		in.MpuObjectSize = &r.Size
	}
	return in
}

// settleFinish finds out what became of a completion that ended with err: only
// the object can tell.
func (s *Store) settleFinish(ctx context.Context, r storage.Receipt, err error) (storage.Object, error) {
	lctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*s.c.settle)
	defer cancel()
	there, herr := s.head(lctx, r.Key)
	switch {
	case herr != nil && !isMissing(herr):
	case herr != nil: // nothing is there
		if isWrongBytes(err) {
			return storage.Object{}, hbackup.Errorf("finish upload", s.loc.At(r.Key), hbackup.KindCorrupt,
				"the store does not hold the bytes of the receipt: %s", s.judge(err).text)
		}
	case there.Metadata[stampName] == r.Stamp:
		if aws.ToInt64(there.ContentLength) == r.Size && s.checkStored(r.Key, there.ChecksumCRC64NVME, r.Digest) == nil {
			return r.Object(aws.ToTime(there.LastModified)), nil
		}
		return storage.Object{}, hbackup.Errorf("finish upload", s.loc.At(r.Key), hbackup.KindCorrupt, "the object is there, with other bytes than the receipt says")
	default:
		if d, ok := decodeDigest(there.ChecksumCRC64NVME); !ok || d != r.Digest || aws.ToInt64(there.ContentLength) != r.Size {
			return storage.Object{}, hbackup.E("finish upload", s.loc.At(r.Key), hbackup.KindExists, errTaken)
		}
		if err := s.DropUpload(lctx, r.Ticket); err != nil {
			return storage.Object{}, err
		}
		return r.Object(aws.ToTime(there.LastModified)), nil
	}
	return storage.Object{}, s.fail(ctx, "finish upload", r.Key, err)
}

// isWrongBytes reports an answer which says that the parts are not what the
// completion says of them.
func isWrongBytes(err error) bool {
	switch codeOf(err) {
	case "BadDigest", "InvalidPart", "InvalidRequest", "XAmzContentChecksumMismatch":
		return statusOf(err) == http.StatusBadRequest
	}
	return false
}

func (s *Store) head(ctx context.Context, key storage.Key) (*s3.HeadObjectOutput, error) {
	name := s.full(string(key))
	return s.ops.headObject.call(ctx, &s3.HeadObjectInput{Bucket: &s.c.Bucket, Key: &name, ChecksumMode: types.ChecksumModeEnabled})
}

// DropUpload aborts the multipart upload. One that has become an object is not
// aborted, because there are stores that then destroy the object.
func (s *Store) DropUpload(ctx context.Context, t storage.Ticket) error {
	if err := storage.CheckTicket(ctx, "drop upload", s.loc, t); err != nil {
		return err
	}
	switch there, err := s.head(ctx, t.Key); {
	case err != nil && !isMissing(err):
		return s.fail(ctx, "drop upload", t.Key, err)
	case err == nil && t.Stamp != "" && there.Metadata[stampName] == t.Stamp:
		return nil
	}
	err := s.fail(ctx, "drop upload", t.Key, s.abortUpload(ctx, s.full(string(t.Key)), t.ID))
	if hbackup.IsKind(err, hbackup.KindDenied) {
		return hbackup.E("", "", hbackup.KindDenied, err).
			WithHint("the rights %s and %s are needed to give an upload up; hbackup target validate names what is missing", rightAbort, rightListParts)
	}
	return err
}

// OpenUploads lists multipart uploads. Longer keys that begin alike come behind.
func (s *Store) OpenUploads(ctx context.Context, key storage.Key) ([]storage.Ticket, error) {
	if err := storage.Check(ctx, "list uploads of", s.loc, key); err != nil {
		return nil, err
	}
	name := s.full(string(key))
	out, err := s.client.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: &s.c.Bucket, Prefix: &name})
	if err != nil {
		return nil, s.failBucket(ctx, "list uploads of", err)
	}
	var open []storage.Ticket
	for _, u := range out.Uploads {
		if aws.ToString(u.Key) == name {
			open = append(open, storage.Ticket{Key: key, ID: aws.ToString(u.UploadId)})
		}
	}
	return open, nil
}

var _ interface {
	storage.Holder
	storage.Keeper
} = (*Store)(nil)
