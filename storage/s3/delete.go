package s3

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"hbackup"
	"hbackup/storage"
)

// maxDelete is the number of keys that S3 takes in one delete request.
const maxDelete = 1000

// Delete removes one object.
func (s *Store) Delete(ctx context.Context, key storage.Key) error {
	if err := storage.Check(ctx, "delete", s.loc, key); err != nil {
		return err
	}
	name := s.full(string(key))
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.c.Bucket, Key: &name})
	if err != nil && isMissing(err) {
		return s.checkBucket(ctx)
	}
	return s.fail(ctx, "delete", key, err)
}

// DeleteBatch removes many objects, a thousand with each request. Keys that the
// store says it could not remove for a passing reason are tried again.
func (s *Store) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	if err := ctx.Err(); err != nil {
		return nil, s.fail(ctx, "delete", "", err)
	}
	var failures []storage.DeleteFailure
	valid := make([]storage.Key, 0, len(keys))
	seen := make(map[storage.Key]bool, len(keys))
	for _, key := range keys {
		if err := key.Validate(); err != nil {
			failures = append(failures, storage.DeleteFailure{Key: key, Err: hbackup.E("delete", s.loc.At(key), hbackup.KindUsage, err)})
		} else if !seen[key] {
			seen[key] = true
			valid = append(valid, key)
		}
	}
	known := false // whether anything is known of any key
	var whole error
	for len(valid) > 0 {
		n := min(maxDelete, len(valid))
		failed, err := s.deleteSome(ctx, valid[:n])
		if err != nil {
			whole = err
			for _, key := range valid[:n] {
				failed = append(failed, storage.DeleteFailure{Key: key, Err: err})
			}
		} else {
			known = true
		}
		failures = append(failures, failed...)
		valid = valid[n:]
	}
	if whole != nil && !known {
		return nil, whole
	}
	return failures, nil
}

// deleteSome removes up to a thousand objects.
func (s *Store) deleteSome(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	const rounds = 4
	var failures []storage.DeleteFailure
	for round := 1; ; round++ {
		refused, err := s.deleteRequest(ctx, keys)
		if err != nil {
			if err := s.fail(ctx, "delete", "", err); !hbackup.IsKind(err, hbackup.KindUnsupported) {
				return nil, err
			}
			return s.deleteEach(ctx, keys), nil
		}
		keys = keys[:0:0]
		for _, e := range refused {
			key, err := e.key, s.fail(ctx, "delete", e.key, e)
			switch {
			case hbackup.Retryable(err) && round < rounds:
				keys = append(keys, key)
			default:
				failures = append(failures, storage.DeleteFailure{Key: key, Err: err})
			}
		}
		if len(keys) == 0 {
			return failures, nil
		}
		if err := sleep(ctx, pause(s.c.backoff, round, nil)); err != nil {
			for _, key := range keys {
				failures = append(failures, storage.DeleteFailure{Key: key, Err: s.fail(ctx, "delete", key, err)})
			}
			return failures, nil
		}
	}
}

// deleteEach is for stores without batch delete.
func (s *Store) deleteEach(ctx context.Context, keys []storage.Key) []storage.DeleteFailure {
	var failures []storage.DeleteFailure
	for _, key := range keys {
		if err := s.Delete(ctx, key); err != nil {
			failures = append(failures, storage.DeleteFailure{Key: key, Err: err})
		}
	}
	return failures
}

// refusal is what the store says of one key of a batch.
type refusal struct {
	key storage.Key
	smithy.GenericAPIError
}

func (s *Store) deleteRequest(ctx context.Context, keys []storage.Key) ([]*refusal, error) {
	ids := make([]types.ObjectIdentifier, len(keys))
	byName := make(map[string]storage.Key, len(keys))
	for i, key := range keys {
		name := s.full(string(key))
		ids[i].Key, byName[name] = &name, key
	}
	var opts []option
	if s.c.DeleteMD5 || s.c.Checksum == ChecksumMD5 {
		opts = append(opts, s3.WithAPIOptions(contentMD5))
	}
	out, err := s.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: &s.c.Bucket,
		Delete: &types.Delete{Objects: ids, Quiet: aws.Bool(true)},
	}, opts...)
	if err != nil {
		return nil, err
	}
	s.sawBucket()
	var refused []*refusal
	for _, e := range out.Errors {
		key, ours := byName[aws.ToString(e.Key)]
		switch code := aws.ToString(e.Code); {
		case !ours:
			return nil, fmt.Errorf("the store reports on %q, which was not to be deleted", aws.ToString(e.Key))
		case code == "NoSuchKey" || code == "NotFound":
		default:
			refused = append(refused, &refusal{key, smithy.GenericAPIError{Code: code, Message: aws.ToString(e.Message)}})
		}
	}
	return refused, nil
}
