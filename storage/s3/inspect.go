package s3

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"hbackup"
	"hbackup/storage"
)

// Rights names the actions of policies.
func (s *Store) Rights() storage.Rights {
	return storage.Rights{List: "s3:ListBucket", Get: "s3:GetObject", Put: "s3:PutObject", Delete: "s3:DeleteObject"}
}

// Inspect looks at the bucket's settings and tries out what the contract has no
// method for.
func (s *Store) Inspect(ctx context.Context, prefix string, terms storage.Terms) []storage.Finding {
	var all []storage.Finding
	if terms.Writable {
		all = append(all, s.inspectUploads(ctx, prefix, terms)...)
		all = append(all, s.inspectChecksum(ctx, prefix), s.inspectReplace(ctx, prefix), s.inspectBatch(ctx, prefix))
	}
	all = append(all, s.inspectKeeping(ctx, terms)...)
	all = append(all, s.inspectLifecycle(ctx, terms)...)
	if f := s.inspectClass(); f.Name != "" {
		all = append(all, f)
	}
	return all
}

// inspectChecksum sends bytes with the checksum of others.
func (s *Store) inspectChecksum(ctx context.Context, prefix string) storage.Finding {
	f := storage.Finding{Name: "checksums"}
	if s.c.Checksum == ChecksumNone {
		f.Verdict, f.Detail = storage.Caution, "none are sent, as the configuration says"
		f.Hint = "bytes that are damaged on their way are found by hbackup verify, not before"
		return f
	}
	buf := []byte("these bytes")
	name := s.full(prefix + "checksum")
	in := &s3.PutObjectInput{Bucket: &s.c.Bucket, Key: &name, Body: newReplaced(buf)}
	in.ChecksumCRC64NVME, in.ContentMD5 = s.checksums(storage.DigestOf([]byte("other bytes")), []byte("other bytes"))
	load := newPayload(buf)
	defer load.release()
	_, err := s.client.PutObject(load.with(ctx), in, s.unsigned(), func(o *s3.Options) { o.RetryMaxAttempts = 1 })
	switch {
	case err == nil:
		f.Verdict, f.Detail = storage.Caution, fmt.Sprintf("the store takes bytes that have not the checksum (%s) they were sent with", s.c.Checksum)
		f.Hint = "bytes that are damaged on their way are found by hbackup verify, not before; use https"
	case statusOf(err) == 400:
		f.Verdict, f.Detail = storage.Fine, fmt.Sprintf("a wrong one (%s) is refused by the server", s.c.Checksum)
	default:
		f.Verdict, f.Detail, f.Hint = storage.Caution, "it cannot be told whether a wrong one is refused: "+s.judge(err).text, s.judge(err).hint
	}
	return f
}

// inspectReplace replaces an object on condition that it is another one than it is.
func (s *Store) inspectReplace(ctx context.Context, prefix string) storage.Finding {
	f := storage.Finding{Name: "conditional replace"}
	name := s.full(prefix + "replace")
	put := func(text, match string) error {
		buf := []byte(text)
		load := newPayload(buf)
		defer load.release()
		in := &s3.PutObjectInput{Bucket: &s.c.Bucket, Key: &name, Body: newReplaced(buf)}
		if match != "" {
			in.IfMatch = &match
		}
		_, err := s.client.PutObject(load.with(ctx), in, s.unsigned())
		return err
	}
	const none = `"00000000000000000000000000000000"`
	if err := put("first", ""); err != nil {
		f.Verdict, f.Detail = storage.Without, "it cannot be tried: "+s.judge(err).text
		return f
	}
	switch err := put("second", none); {
	case err == nil:
		f.Verdict, f.Detail = storage.Without, "the store ignores If-Match; hbackup never replaces on a condition"
	case statusOf(err) == 412:
		f.Verdict, f.Detail = storage.Fine, "If-Match is honoured"
	default:
		f.Verdict, f.Detail = storage.Without, "the store refuses If-Match; hbackup never replaces on a condition: "+s.judge(err).text
	}
	return f
}

// inspectBatch deletes two objects that are not there with one request.
func (s *Store) inspectBatch(ctx context.Context, prefix string) storage.Finding {
	f := storage.Finding{Name: "batch delete"}
	answer, err := s.deleteRequest(ctx, []storage.Key{storage.Key(prefix + "batch1"), storage.Key(prefix + "batch2")})
	switch {
	case err != nil && hbackup.IsKind(s.fail(ctx, "delete", "", err), hbackup.KindUnsupported):
		f.Verdict, f.Detail = storage.Without, "the store knows none; objects are deleted one by one"
	case err != nil:
		v := s.judge(err)
		f.Verdict, f.Detail, f.Hint, f.Err = storage.Harmful, v.text, v.hint, s.fail(ctx, "delete", "", err)
	case len(answer.refused) > 0:
		err := s.fail(ctx, "delete", answer.refused[0].key, answer.refused[0])
		f.Verdict, f.Detail, f.Hint, f.Err = storage.Harmful, err.Error(), hbackup.HintOf(err), err
	default:
		f.Verdict, f.Detail = storage.Fine, fmt.Sprintf("up to %d objects with one request", maxDelete)
	}
	return f
}

// inspectKeeping tells whether deleted objects are gone.
func (s *Store) inspectKeeping(ctx context.Context, terms storage.Terms) []storage.Finding {
	versioning, lock := storage.Finding{Name: "versioning"}, storage.Finding{Name: "object lock"}
	p, why, err := s.Permanence(ctx)
	switch {
	case err != nil:
		versioning.Verdict, versioning.Detail, versioning.Hint = storage.Caution, "it cannot be told: "+err.Error(), hbackup.HintOf(err)
	case p == storage.PermanenceUnknown:
		versioning.Verdict, versioning.Detail = storage.Caution, "it cannot be told: "+why
		versioning.Hint = "in a versioned bucket deleted backups stay, and are billed, until a rule removes their versions"
	case p == storage.Deletable:
		versioning.Detail, lock.Detail = "off", "none"
	default:
		versioning.Verdict, versioning.Detail = storage.Caution, "on: deleted backups stay as older versions and are billed"
		versioning.Hint = "give the bucket a lifecycle rule with NoncurrentVersionExpiration and ExpiredObjectDeleteMarker"
		lock.Detail = "none by default"
		if p == storage.Locked {
			lock.Verdict, lock.Detail = storage.Caution, why
			lock.Hint = "backups cannot be deleted before that, by nobody; retention longer than that is not concerned"
		}
	}
	if versioning.Verdict == "" {
		versioning.Verdict = storage.Fine
	}
	if lock.Detail == "" {
		return []storage.Finding{versioning}
	}
	if lock.Verdict == "" {
		lock.Verdict = storage.Fine
	}
	return []storage.Finding{versioning, lock}
}

// inspectClass looks at the storage class that the configuration asks for.
func (s *Store) inspectClass() storage.Finding {
	if !isArchive(s.c.StorageClass) {
		return storage.Finding{}
	}
	return storage.Finding{Name: "storage class", Verdict: storage.Harmful,
		Detail: fmt.Sprintf("objects of the class %s cannot be read before they are thawed, which takes hours", s.c.StorageClass),
		Hint:   "choose STANDARD_IA or GLACIER_IR"}
}

// isArchive reports a class whose objects cannot be read at once.
func isArchive(class string) bool {
	switch types.StorageClass(class) {
	case types.StorageClassGlacier, types.StorageClassDeepArchive:
		return true
	}
	return false
}

// Sweep aborts the uploads and removes the versions below the prefix.
func (s *Store) Sweep(ctx context.Context, prefix string) error {
	return errors.Join(s.sweepUploads(ctx, prefix), s.sweepVersions(ctx, prefix))
}

func (s *Store) sweepUploads(ctx context.Context, prefix string) error {
	full := s.full(prefix)
	in := &s3.ListMultipartUploadsInput{Bucket: &s.c.Bucket, Prefix: &full}
	var errs []error
	for {
		out, err := s.client.ListMultipartUploads(ctx, in)
		if err != nil {
			return errors.Join(append(errs, s.failBucket(ctx, "list uploads in", err))...)
		}
		for _, u := range out.Uploads {
			if err := s.abortUpload(ctx, aws.ToString(u.Key), aws.ToString(u.UploadId)); err != nil {
				errs = append(errs, s.fail(ctx, "abort upload", storage.Key(prefix), err))
			}
		}
		if !aws.ToBool(out.IsTruncated) || len(out.Uploads) == 0 {
			return errors.Join(errs...)
		}
		in.KeyMarker, in.UploadIdMarker = out.NextKeyMarker, out.NextUploadIdMarker
	}
}

// sweepVersions removes every version and delete marker below the prefix, where
// the bucket has or had versions.
func (s *Store) sweepVersions(ctx context.Context, prefix string) error {
	state, err := s.client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &s.c.Bucket})
	if err != nil || state.Status == "" {
		return nil // versioning has never been on; or it cannot be asked, which has been said
	}
	full := s.full(prefix)
	for { // from the start each time, as what was listed is gone then
		out, err := s.client.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &s.c.Bucket, Prefix: &full})
		if err != nil {
			return s.failBucket(ctx, "list versions (s3:ListBucketVersions) in", err)
		}
		var ids []types.ObjectIdentifier
		for _, v := range out.Versions {
			ids = append(ids, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
		}
		for _, m := range out.DeleteMarkers {
			ids = append(ids, types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId})
		}
		if len(ids) == 0 {
			return nil
		}
		if err := s.deleteVersions(ctx, prefix, ids); err != nil {
			return err
		}
	}
}

func (s *Store) deleteVersions(ctx context.Context, prefix string, ids []types.ObjectIdentifier) error {
	const op = "delete version (s3:DeleteObjectVersion)"
	kept, first := 0, error(nil)
	for len(ids) > 0 {
		n := min(maxDelete, len(ids))
		out, err := s.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &s.c.Bucket, Delete: &types.Delete{Objects: ids[:n]}}, s.batchOptions()...)
		if err != nil {
			return s.fail(ctx, op, storage.Key(prefix), err)
		}
		for _, e := range out.Errors {
			if kept++; first == nil {
				first = s.fail(ctx, op, storage.Key(prefix), &smithy.GenericAPIError{Code: aws.ToString(e.Code), Message: aws.ToString(e.Message)})
			}
		}
		ids = ids[n:]
	}
	if first != nil {
		return hbackup.E(fmt.Sprintf("%d versions and delete markers stay; one of them: delete", kept), "", hbackup.KindOther, first)
	}
	return nil
}
