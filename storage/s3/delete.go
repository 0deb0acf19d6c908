package s3

import (
	"context"

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
		answer, err := s.deleteRequest(ctx, keys)
		if err != nil {
			if err := s.fail(ctx, "delete", "", err); !hbackup.IsKind(err, hbackup.KindUnsupported) {
				return nil, err
			}
			return s.deleteEach(ctx, keys), nil
		}
		failures = append(failures, s.deleteEach(ctx, answer.unsaid)...)
		keys = keys[:0:0]
		for _, r := range answer.refused {
			if err := s.fail(ctx, "delete", r.key, r); hbackup.Retryable(err) && round < rounds {
				keys = append(keys, r.key)
			} else {
				failures = append(failures, storage.DeleteFailure{Key: r.key, Err: err})
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

// deleteEach is for stores without batch delete, and for keys on which the answer
// to a batch says nothing.
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

// deleteAnswer is what the store says of a batch, but for the keys that are gone.
type deleteAnswer struct {
	refused []*refusal
	unsaid  []storage.Key
}

// batchOptions are those of a batch delete.
func (s *Store) batchOptions() []option {
	if s.c.DeleteMD5 || s.c.Checksum == ChecksumMD5 {
		return []option{s3.WithAPIOptions(contentMD5)}
	}
	return nil
}

// deleteRequest asks for one batch. It wants every key reported, not only those
// that failed: an answer that is none would else pass for complete success.
func (s *Store) deleteRequest(ctx context.Context, keys []storage.Key) (deleteAnswer, error) {
	ids := make([]types.ObjectIdentifier, len(keys))
	open := make(map[string]storage.Key, len(keys)) // by name
	for i, key := range keys {
		name := s.full(string(key))
		ids[i].Key, open[name] = &name, key
	}
	out, err := s.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: &s.c.Bucket,
		Delete: &types.Delete{Objects: ids, Quiet: aws.Bool(false)},
	}, s.batchOptions()...)
	if err != nil {
		return deleteAnswer{}, err
	}
	s.sawBucket()
	var answer deleteAnswer
	for _, e := range out.Errors {
		name, code := aws.ToString(e.Key), aws.ToString(e.Code)
		key, ours := open[name]
		if !ours {
			continue
		}
		delete(open, name)
		if code != "NoSuchKey" && code != "NotFound" {
			answer.refused = append(answer.refused, &refusal{key, smithy.GenericAPIError{Code: code, Message: aws.ToString(e.Message)}})
		}
	}
	for _, d := range out.Deleted {
		delete(open, aws.ToString(d.Key))
	}
	for _, key := range keys {
		if _, unsaid := open[s.full(string(key))]; unsaid {
			answer.unsaid = append(answer.unsaid, key)
		}
	}
	return answer, nil
}
