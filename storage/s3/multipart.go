package s3

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"hbackup"
)

// inParts puts the object as a multipart upload. The object becomes visible with
// the completion, which is sent only after the body has ended as promised.
func (p *put) inParts(ctx context.Context) (time.Time, error) {
	if p.opts.IfAbsent {
		// The condition counts at the completion; this only saves sending the
		// bytes when it cannot hold any more.
		if _, err := p.Stat(ctx, p.key); err == nil {
			return time.Time{}, p.exists(errTaken)
		} else if !hbackup.IsKind(err, hbackup.KindNotFound) {
			return time.Time{}, err
		}
	}
	id, _, err := p.create(ctx)
	if err != nil {
		return time.Time{}, p.fail(ctx, err)
	}
	parts, err := p.sendParts(ctx, id)
	if err != nil {
		p.abort(ctx, id)
		return time.Time{}, p.fail(ctx, err)
	}
	return p.complete(ctx, id, parts)
}

// create starts the upload. Again says that it was asked for more than once: an
// answer was lost, and with it perhaps an upload.
func (p *put) create(ctx context.Context) (id string, again bool, err error) {
	in := &s3.CreateMultipartUploadInput{
		Bucket: &p.c.Bucket, Key: &p.name,
		ContentType:  aws.String("application/octet-stream"),
		Metadata:     map[string]string{stampName: p.stamp},
		StorageClass: types.StorageClass(p.c.StorageClass),
	}
	if p.c.Checksum == ChecksumCRC64NVME {
		in.ChecksumAlgorithm = types.ChecksumAlgorithmCrc64nvme
		in.ChecksumType = types.ChecksumTypeFullObject
	}
	out, err := p.client.CreateMultipartUpload(ctx, in)
	if err != nil {
		return "", false, err
	}
	if out.UploadId == nil || *out.UploadId == "" {
		return "", false, hbackup.Errorf("start upload", p.loc.At(p.key), hbackup.KindUnsupported, "the store gave no upload id")
	}
	p.expires = aws.ToTime(out.AbortDate).UTC()
	tries, _ := retry.GetAttemptResults(out.ResultMetadata)
	return *out.UploadId, len(tries.Results) > 1, nil
}

// complete makes the object visible.
func (p *put) complete(ctx context.Context, id string, parts []types.CompletedPart) (time.Time, error) {
	in := &s3.CompleteMultipartUploadInput{
		Bucket: &p.c.Bucket, Key: &p.name, UploadId: &id,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	}
	if p.c.Checksum == ChecksumCRC64NVME {
		in.ChecksumCRC64NVME = aws.String(encodeDigest(p.body.Digest()))
		in.ChecksumType = types.ChecksumTypeFullObject
		in.MpuObjectSize = &p.opts.Size
	}
	if p.opts.IfAbsent {
		in.IfNoneMatch = aws.String("*")
	}
	rctx, cancel := p.guard(ctx, nil)
	defer cancel()
	out, err := p.client.CompleteMultipartUpload(rctx, in)
	if err == nil && out.ETag == nil {
		err = errNoTag
	}
	if err == nil {
		modified, _ := dateIn(out.ResultMetadata)
		return modified, p.checkStored(out.ChecksumCRC64NVME)
	}
	// A repetition of a completion that did succeed is answered with 404, 412 or
	// 200, as the store likes, and a 200 may carry an error: only the object
	// itself can tell. An upload that may have become an object is not aborted,
	// because there are stores that then destroy the object.
	switch found, modified := p.look(ctx); found {
	case foundOurs:
		return modified, nil
	case foundOther:
		p.abort(ctx, id)
		if p.opts.IfAbsent {
			return time.Time{}, p.exists(errTaken)
		}
	case foundNothing:
		p.abort(ctx, id)
	case foundUnknown:
		p.c.Logger.Warn("an upload was left open, because it is not known whether it has become an object",
			"object", p.loc.At(p.key), "upload", id, "error", err.Error())
	}
	return time.Time{}, p.fail(ctx, err)
}

// abort gives up the upload, also when the caller's context is over.
func (p *put) abort(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*p.c.settle)
	defer cancel()
	if err := p.abortUpload(ctx, p.name, id); err != nil {
		text := err.Error()
		if hbackup.KindOf(err) == hbackup.KindOther {
			text = p.judge(err).text
		}
		p.c.Logger.Warn("an upload could not be aborted; its parts take room in the bucket until it is",
			"object", p.loc.At(p.key), "upload", id, "error", text)
	}
}

var errPartsLeft = hbackup.Errorf("abort upload", "", hbackup.KindUnavailable, "parts keep coming in")

// abortUpload ends an upload. A part whose connection broke may land after the
// abort, so it looks whether any is left.
func (s *Store) abortUpload(ctx context.Context, name, id string) error {
	for range 3 {
		_, err := s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.c.Bucket, Key: &name, UploadId: &id})
		if err != nil && statusOf(err) != 404 {
			return err
		}
		left, err := s.client.ListParts(ctx, &s3.ListPartsInput{Bucket: &s.c.Bucket, Key: &name, UploadId: &id, MaxParts: aws.Int32(1)})
		switch {
		case err != nil && statusOf(err) == 404 || err == nil && len(left.Parts) == 0:
			return nil
		case err != nil:
			return err
		}
	}
	return errPartsLeft
}
