package gcs

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"hbackup/storage"
)

// Permanence asks for the bucket's attributes. Soft delete keeps what was deleted
// for some days, and then it is gone: such objects count as deletable.
func (s *Store) Permanence(ctx context.Context) (storage.Permanence, string, error) {
	attrs, err := s.client.Bucket(s.c.Bucket).Attrs(ctx)
	switch {
	case err != nil && ctx.Err() == nil && statusOf(err) == http.StatusForbidden:
		return storage.PermanenceUnknown, "the account may not ask for the bucket's attributes; the right is storage.buckets.get", nil
	case err != nil:
		return "", "", s.fail(ctx, "ask for the bucket's attributes", "", err)
	case attrs.RetentionPolicy != nil && attrs.RetentionPolicy.RetentionPeriod > 0:
		return storage.Locked, "a retention policy keeps every object of the bucket for " + days(attrs.RetentionPolicy.RetentionPeriod), nil
	case attrs.DefaultEventBasedHold:
		return storage.Locked, "every new object of the bucket gets an event-based hold", nil
	case attrs.VersioningEnabled:
		return storage.Versioned, "versioning is enabled on the bucket", nil
	case attrs.SoftDeletePolicy != nil && attrs.SoftDeletePolicy.RetentionDuration > 0:
		return storage.Deletable, "soft delete keeps deleted objects, and bills them, for " + days(attrs.SoftDeletePolicy.RetentionDuration), nil
	}
	return storage.Deletable, "", nil
}

// days gives a duration in days, or as it is when it is not that long.
func days(d time.Duration) string {
	switch n := int(d / (24 * time.Hour)); {
	case n == 1:
		return "a day"
	case n > 1:
		return strconv.Itoa(n) + " days"
	}
	return d.String()
}

var _ storage.Keeper = (*Store)(nil)
