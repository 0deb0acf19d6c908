package s3a

import (
	"bytes"
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"hbackup/bench"
)

// uploads are S3's multipart uploads, one part each.
type uploads Target

func (u *uploads) t() *Target { return (*Target)(u) }

// Begin creates an upload.
func (u *uploads) Begin(ctx context.Context, path string) (string, error) {
	key := u.root + path
	out, err := u.client.CreateMultipartUpload(ctx, &sdk.CreateMultipartUploadInput{Bucket: &u.bucket, Key: &key})
	if err != nil {
		return "", u.t().fail("start upload of", key, err)
	}
	return aws.ToString(out.UploadId), nil
}

// Part sends its one part.
func (u *uploads) Part(ctx context.Context, path, id string, data []byte) (string, error) {
	key := u.root + path
	out, err := u.client.UploadPart(ctx, &sdk.UploadPartInput{Bucket: &u.bucket, Key: &key, UploadId: &id, PartNumber: aws.Int32(1), Body: bytes.NewReader(data)})
	if err != nil {
		return "", u.t().fail("put part of", key, err)
	}
	return aws.ToString(out.ETag), nil
}

// Complete makes the object visible.
func (u *uploads) Complete(ctx context.Context, path, id, tag string) error {
	key := u.root + path
	_, err := u.client.CompleteMultipartUpload(ctx, &sdk.CompleteMultipartUploadInput{Bucket: &u.bucket, Key: &key, UploadId: &id,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{PartNumber: aws.Int32(1), ETag: &tag}}}})
	if err != nil {
		return u.t().fail("complete", key, err)
	}
	return nil
}

// Abort ends an upload; one that is gone is no error.
func (u *uploads) Abort(ctx context.Context, path, id string) error {
	key := u.root + path
	_, err := u.client.AbortMultipartUpload(ctx, &sdk.AbortMultipartUploadInput{Bucket: &u.bucket, Key: &key, UploadId: &id})
	if err != nil && !isMissing(err) {
		return u.t().fail("abort upload of", key, err)
	}
	return nil
}

// Open gives the first page of the open uploads below a directory.
func (u *uploads) Open(ctx context.Context, dir string) ([]bench.Upload, error) {
	prefix := u.root
	if dir != "" {
		prefix += dir + "/"
	}
	out, err := u.client.ListMultipartUploads(ctx, &sdk.ListMultipartUploadsInput{Bucket: &u.bucket, Prefix: &prefix})
	if err != nil {
		return nil, u.t().fail("list uploads of", prefix, err)
	}
	var all []bench.Upload
	for _, m := range out.Uploads {
		if key := aws.ToString(m.Key); strings.HasPrefix(key, prefix) {
			all = append(all, bench.Upload{Path: strings.TrimPrefix(key, u.root), ID: aws.ToString(m.UploadId)})
		}
	}
	return all, nil
}
