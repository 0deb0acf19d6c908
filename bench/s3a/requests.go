package s3a

import (
	"bytes"
	"context"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"hbackup"
)

func (f *fileSystem) head(ctx context.Context, key string) (int64, error) {
	out, err := f.client.HeadObject(ctx, &sdk.HeadObjectInput{Bucket: &f.bucket, Key: &key})
	if err != nil {
		return 0, f.t().fail("look at", key, err)
	}
	return aws.ToInt64(out.ContentLength), nil
}

// isDir asks for the first names below a path. A directory that has but its marker
// is empty.
func (f *fileSystem) isDir(ctx context.Context, path string) (bool, error) {
	there, _, err := f.probe(ctx, path)
	return there, err
}

func (f *fileSystem) probe(ctx context.Context, path string) (there, empty bool, err error) {
	prefix := f.root + path + "/"
	out, err := f.client.ListObjectsV2(ctx, &sdk.ListObjectsV2Input{Bucket: &f.bucket, Prefix: &prefix, Delimiter: aws.String("/"), MaxKeys: aws.Int32(2)})
	if err != nil {
		return false, false, f.t().fail("list", prefix, err)
	}
	n := len(out.Contents) + len(out.CommonPrefixes)
	return n > 0, n == 1 && len(out.Contents) == 1 && aws.ToString(out.Contents[0].Key) == prefix, nil
}

// Put writes an object.
func (f *fileSystem) Put(ctx context.Context, path string, data []byte) error {
	key := f.root + path
	_, err := f.client.PutObject(ctx, &sdk.PutObjectInput{Bucket: &f.bucket, Key: &key, Body: bytes.NewReader(data)})
	if err != nil {
		return f.t().fail("put", key, err)
	}
	return nil
}

// copy is copyFile of S3A.
func (f *fileSystem) copy(ctx context.Context, from, to string) error {
	size, err := f.head(ctx, f.root+from)
	if err != nil {
		return err
	}
	key, source := f.root+to, url.PathEscape(f.bucket+"/"+f.root+from)
	if _, err := f.client.CopyObject(ctx, &sdk.CopyObjectInput{Bucket: &f.bucket, Key: &key, CopySource: &source}); err != nil {
		return f.t().fail("copy to", key, err)
	}
	f.meter.Copied(size)
	return nil
}

func (f *fileSystem) deleteOne(ctx context.Context, path string) error {
	key := f.root + path
	if _, err := f.client.DeleteObject(ctx, &sdk.DeleteObjectInput{Bucket: &f.bucket, Key: &key}); err != nil {
		return f.t().fail("delete", key, err)
	}
	return nil
}

// deleteMany removes up to bulkDelete objects. A single one has a request of its
// own kind.
func (f *fileSystem) deleteMany(ctx context.Context, keys []string) error {
	switch len(keys) {
	case 0:
		return nil
	case 1:
		return f.deleteOne(ctx, strings.TrimPrefix(keys[0], f.root))
	}
	in := &sdk.DeleteObjectsInput{Bucket: &f.bucket, Delete: &types.Delete{Quiet: aws.Bool(true)}}
	for _, key := range keys {
		in.Delete.Objects = append(in.Delete.Objects, types.ObjectIdentifier{Key: &key})
	}
	out, err := f.client.DeleteObjects(ctx, in)
	switch {
	case err != nil:
		return f.t().fail("delete", keys[0], err)
	case len(out.Errors) > 0:
		return hbackup.Errorf("delete", "s3://"+f.bucket+"/"+aws.ToString(out.Errors[0].Key), hbackup.KindOther, "%s", aws.ToString(out.Errors[0].Message))
	}
	return nil
}
