package s3

import (
	"context"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"hbackup"
	"hbackup/storage"
)

// Permanence asks for the bucket's versioning and, as only a versioned bucket can
// have one, for its object lock. Where versioning is suspended new objects can be
// deleted.
func (s *Store) Permanence(ctx context.Context) (storage.Permanence, string, error) {
	versioning, err := s.client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &s.c.Bucket})
	switch {
	case err != nil:
		return s.doesNotSay(ctx, "s3:GetBucketVersioning", "versioning", err)
	case versioning.Status != types.BucketVersioningStatusEnabled:
		return storage.Deletable, "", nil
	}
	lock, err := s.client.GetObjectLockConfiguration(ctx, &s3.GetObjectLockConfigurationInput{Bucket: &s.c.Bucket})
	if err != nil && ctx.Err() != nil {
		return "", "", s.failBucket(ctx, "ask for the object lock", err)
	}
	if err == nil {
		if rule := retention(lock.ObjectLockConfiguration); rule != "" {
			return storage.Locked, "object lock is enabled on the bucket: " + rule, nil
		}
	}
	return storage.Versioned, "versioning is enabled on the bucket", nil
}

// retention says for how long a new object is kept, "" when nothing keeps it.
func retention(c *types.ObjectLockConfiguration) string {
	if c == nil || c.ObjectLockEnabled != types.ObjectLockEnabledEnabled || c.Rule == nil || c.Rule.DefaultRetention == nil {
		return ""
	}
	r := c.Rule.DefaultRetention
	if years := aws.ToInt32(r.Years); years > 0 {
		return fmt.Sprintf("every object is kept for %d years (%s)", years, r.Mode)
	}
	return fmt.Sprintf("every object is kept for %d days (%s)", aws.ToInt32(r.Days), r.Mode)
}

// doesNotSay is for answers that are no answer to the question.
func (s *Store) doesNotSay(ctx context.Context, right, what string, err error) (storage.Permanence, string, error) {
	err = s.failBucket(ctx, "ask for the "+what, err)
	switch {
	case hbackup.IsKind(err, hbackup.KindDenied) && statusOf(err) == http.StatusForbidden:
		return storage.PermanenceUnknown, "the credentials may not ask for the bucket's " + what + "; the right is " + right, nil
	case hbackup.IsKind(err, hbackup.KindUnsupported):
		return storage.Deletable, "", nil // the store has no such thing
	case ctx.Err() != nil || hbackup.Retryable(err) || hbackup.IsKind(err, hbackup.KindUsage):
		return "", "", err
	}
	return storage.PermanenceUnknown, "the store does not say whether the bucket has " + what + ": " + err.Error(), nil
}
