package s3

import (
	"context"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"hbackup"
	"hbackup/storage"
)

// Stat describes one object.
func (s *Store) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	if err := storage.Check(ctx, "stat", s.loc, key); err != nil {
		return storage.Object{}, err
	}
	name := s.full(string(key))
	in := &s3.HeadObjectInput{Bucket: &s.c.Bucket, Key: &name}
	if s.c.Checksum == ChecksumCRC64NVME {
		in.ChecksumMode = types.ChecksumModeEnabled
	}
	out, err := s.ops.headObject.call(ctx, in)
	if err != nil {
		if isMissing(err) {
			if err := s.checkBucket(ctx); err != nil {
				return storage.Object{}, err
			}
		}
		return storage.Object{}, s.fail(ctx, "stat", key, err)
	}
	s.sawBucket()
	if out.ContentLength == nil || out.ETag == nil && out.LastModified == nil {
		return storage.Object{}, hbackup.Errorf("stat", s.loc.At(key), hbackup.KindUnsupported, "the answer does not describe an object; something that is not S3 has answered")
	}
	obj := describe(key, *out.ContentLength, out.ChecksumCRC64NVME, out.LastModified)
	obj.Ours = out.Metadata[stampName] != ""
	return obj, nil
}

// Get opens the bytes of the range.
func (s *Store) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	if err := storage.Check(ctx, "get", s.loc, key); err != nil {
		return nil, storage.Object{}, err
	}
	if _, _, err := (storage.Range{Offset: min(r.Offset, 0), Length: r.Length}).Of(0); err != nil {
		return nil, storage.Object{}, hbackup.E("get", s.loc.At(key), hbackup.KindUsage, err)
	}
	rd := &reader{s: s, ctx: ctx, key: key, name: s.full(string(key))}
	obj, err := rd.first(r)
	if err != nil {
		return nil, storage.Object{}, err
	}
	return rd, obj, nil
}

func describe(key storage.Key, size int64, crc *string, modified *time.Time) storage.Object {
	obj := storage.Object{Key: key, Size: size}
	obj.Digest, obj.HasDigest = decodeDigest(crc)
	if modified != nil {
		obj.Modified = *modified
	}
	return obj
}
