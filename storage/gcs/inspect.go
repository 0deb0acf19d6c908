package gcs

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"strings"
	"time"

	gcs "cloud.google.com/go/storage"
	"google.golang.org/api/iterator"

	"hbackup"
	"hbackup/storage"
)

// Rights names the permissions of Google Cloud's IAM.
func (s *Store) Rights() storage.Rights {
	return storage.Rights{List: "storage.objects.list", Get: "storage.objects.get", Put: "storage.objects.create", Delete: "storage.objects.delete"}
}

// Inspect looks at the bucket's settings and tries out what the contract has no
// method for.
func (s *Store) Inspect(ctx context.Context, prefix string, terms storage.Terms) []storage.Finding {
	var all []storage.Finding
	if terms.Writable {
		all = append(all, s.inspectChecksum(ctx, prefix), s.inspectReplace(ctx, prefix), s.inspectMove(ctx, prefix))
		all = append(all, s.inspectUploads(ctx, prefix)...)
	}
	attrs, err := s.client.Bucket(s.c.Bucket).Attrs(ctx)
	switch {
	case statusOf(err) == http.StatusForbidden:
		return append(all, storage.Finding{Name: "bucket settings", Verdict: storage.Caution, Detail: "they may not be read; the right is storage.buckets.get",
			Hint: "make sure that no lifecycle rule of the bucket deletes what lies below " + string(s.loc)})
	case err != nil:
		said := s.judge(err)
		return append(all, storage.Finding{Name: "bucket settings", Verdict: storage.Caution, Detail: "they cannot be read: " + said.text, Hint: said.hint})
	}
	return append(all, judgeBucket(attrs, s.full(""), s.c.StorageClass, terms)...)
}

// inspectChecksum sends bytes with the CRC32C of others.
func (s *Store) inspectChecksum(ctx context.Context, prefix string) storage.Finding {
	f := storage.Finding{Name: "checksums", Verdict: storage.Caution, Hint: "bytes that are damaged on their way are found by hbackup verify, not before; use https"}
	w := s.object(storage.Key(prefix + "checksum")).Retryer(gcs.WithPolicy(gcs.RetryNever)).NewWriter(ctx)
	w.ChunkSize, w.SendCRC32C, w.CRC32C = 0, true, crc32.Checksum([]byte("other bytes"), castagnoli)
	_, err := w.Write([]byte("these bytes"))
	switch err = errors.Join(err, w.Close()); {
	case err == nil:
		f.Detail = "the store takes bytes that have not the CRC32C they were sent with"
	case statusOf(err) == http.StatusBadRequest:
		return storage.Finding{Name: f.Name, Verdict: storage.Fine, Detail: "a wrong CRC32C is refused by the server"}
	default:
		f.Detail = "it cannot be told whether a wrong CRC32C is refused: " + s.judge(err).text
	}
	return f
}

// inspectReplace replaces an object on condition that it is another one than it is.
func (s *Store) inspectReplace(ctx context.Context, prefix string) storage.Finding {
	f := storage.Finding{Name: "conditional replace", Verdict: storage.Without}
	h := s.object(storage.Key(prefix + "replace"))
	put := func(h *gcs.ObjectHandle) error {
		w := h.NewWriter(ctx)
		w.ChunkSize = 0
		_, err := w.Write([]byte("x"))
		return errors.Join(err, w.Close())
	}
	if err := put(h); err != nil {
		f.Detail = "it cannot be tried: " + s.judge(err).text
		return f
	}
	switch err := put(h.If(gcs.Conditions{GenerationMatch: 1})); {
	case err == nil:
		f.Detail = "the store ignores ifGenerationMatch; hbackup never replaces on a condition"
	case statusOf(err) == http.StatusPreconditionFailed:
		f.Verdict, f.Detail = storage.Fine, "ifGenerationMatch is honoured"
	default:
		f.Detail = "the store refuses ifGenerationMatch; hbackup never replaces on a condition: " + s.judge(err).text
	}
	return f
}

// rightMove is needed to send large files in parts.
const rightMove = "storage.objects.move"

// inspectMove moves an object.
func (s *Store) inspectMove(ctx context.Context, prefix string) storage.Finding {
	w := s.object(storage.Key(prefix + "move")).NewWriter(ctx)
	w.ChunkSize = 0
	err := w.Close()
	if err == nil {
		_, err = s.object(storage.Key(prefix+"move")).Move(ctx, gcs.MoveObjectDestination{Object: s.full(prefix + "moved")})
	}
	return s.offered("move", rightMove, err)
}

// offered tells of what large files are sent by when it is to be had, and in one
// stream when it is not.
func (s *Store) offered(name, right string, err error) storage.Finding {
	switch {
	case err == nil:
		return storage.Finding{Name: name, Verdict: storage.Fine, Detail: right}
	case statusOf(err) == http.StatusForbidden:
		return storage.Finding{Name: "right " + right, Verdict: storage.Caution, Detail: s.judge(err).text, Err: hbackup.E("try out", string(s.loc), hbackup.KindDenied, err),
			Hint: "give it to the account: without it large files are sent in one stream each, which is slower"}
	}
	return storage.Finding{Name: name, Verdict: storage.Without, Detail: "the service does not offer it; large files are sent in one stream each: " + s.judge(err).text}
}

// inspectUploads makes a multipart upload, looks at it and gives it up, each step
// being a right of its own.
func (s *Store) inspectUploads(ctx context.Context, prefix string) []storage.Finding {
	const right = "storage.multipartUploads."
	name := s.full(prefix + "upload")
	u, err := s.beginUpload(ctx, name, nil)
	if err != nil {
		return []storage.Finding{s.offered("uploads in parts", right+"create", err)}
	}
	_, listErr := s.uploads(ctx, name)
	_, partsErr := u.parts(ctx)
	abortErr := u.abort(ctx)
	var all []storage.Finding
	for _, r := range []struct {
		right string
		err   error
	}{{"list", listErr}, {"listParts", partsErr}, {"abort", abortErr}} {
		if r.err != nil {
			all = append(all, s.offered("uploads in parts", right+r.right, r.err))
		}
	}
	if len(all) == 0 {
		all = append(all, s.offered("uploads in parts", right+"create, .list, .listParts, .abort", nil))
	}
	return all
}

// judgeBucket says what the bucket's settings mean for objects whose names begin
// with the prefix.
func judgeBucket(b *gcs.BucketAttrs, prefix, class string, terms storage.Terms) []storage.Finding {
	var all []storage.Finding
	add := func(name string, v storage.Verdict, detail, hint string) {
		all = append(all, storage.Finding{Name: name, Verdict: v, Detail: detail, Hint: hint})
	}
	if b.VersioningEnabled {
		add("versioning", storage.Caution, "on: deleted backups stay as older versions and are billed", "give the bucket a lifecycle rule that deletes noncurrent versions, or switch versioning off")
	} else {
		add("versioning", storage.Fine, "off", "")
	}
	switch r := b.RetentionPolicy; {
	case b.DefaultEventBasedHold:
		add("object lock", storage.Caution, "every new object gets an event-based hold", "what a failed backup leaves cannot be deleted before the hold is released")
	case r != nil && r.RetentionPeriod > 0:
		add("object lock", storage.Caution, "a retention policy keeps every object for "+days(r.RetentionPeriod), "what a failed backup leaves cannot be deleted before; retention longer than that is not concerned")
	default:
		add("object lock", storage.Fine, "none by default", "")
	}
	if d := b.SoftDeletePolicy; d != nil && d.RetentionDuration > 0 {
		add("soft delete", storage.Caution, "deleted objects are kept, and billed, for "+days(d.RetentionDuration), "switch it off (gcloud storage buckets update --clear-soft-delete), or know that it costs")
	} else {
		add("soft delete", storage.Fine, "off", "")
	}
	if class == "" {
		class = b.StorageClass
	}
	if least := earlyDelete[class]; least > 0 {
		add("storage class", storage.Caution, fmt.Sprintf("an object of the class %s that is deleted early is billed for %d days", class, least), "take it only for backups that are kept that long")
	}
	return append(all, judgeRules(b.Lifecycle.Rules, prefix, terms)...)
}

// earlyDelete are the days for which an object is billed at least.
var earlyDelete = map[string]int{"NEARLINE": 30, "COLDLINE": 90, "ARCHIVE": 365}

const lifecycle = "lifecycle rules"

// safeDays is from how many days on the aborting of uploads is no matter.
const safeDays = 7

// judgeRules names what lifecycle rules would do.
func judgeRules(rules []gcs.LifecycleRule, prefix string, terms storage.Terms) []storage.Finding {
	var all []storage.Finding
	for i, r := range rules {
		if !concerns(r.Condition, prefix) {
			continue
		}
		f := storage.Finding{Name: lifecycle}
		rule, age := fmt.Sprintf("rule %d", i+1), r.Condition.AgeInDays
		switch r.Action.Type {
		case gcs.DeleteAction:
			f.Verdict, f.Detail = storage.Harmful, rule+" deletes objects"
			if age > 0 {
				f.Detail += fmt.Sprintf(" after %d days", age)
			}
			f.Hint = "take the location out of the rule: only hbackup knows which files newer backups still need"
		case gcs.AbortIncompleteMPUAction:
			f.Verdict, f.Detail = storage.Caution, fmt.Sprintf("%s aborts uploads %d days after they began", rule, age)
			f.Hint = fmt.Sprintf("let it wait longer than the longest backup; %d days are good", safeDays)
			if time.Duration(age)*24*time.Hour <= terms.LongestJob {
				f.Verdict = storage.Harmful
			} else if age >= safeDays {
				continue
			}
		default:
			continue // another storage class can be read at once, too
		}
		all = append(all, f)
	}
	if len(all) == 0 {
		all = append(all, storage.Finding{Name: lifecycle, Verdict: storage.Fine, Detail: "none hurts backups"})
	}
	return all
}

// concerns reports whether a rule may be about live objects of ours. Conditions
// that narrow it further, such as age, are not looked at.
func concerns(c gcs.LifecycleCondition, prefix string) bool {
	if c.Liveness == gcs.Archived || c.DaysSinceNoncurrentTime > 0 || c.NumNewerVersions > 0 || !c.NoncurrentTimeBefore.IsZero() {
		return false
	}
	if len(c.MatchesPrefix) == 0 {
		return true
	}
	for _, p := range c.MatchesPrefix {
		if strings.HasPrefix(p, prefix) || strings.HasPrefix(prefix, p) {
			return true
		}
	}
	return false
}

// Sweep aborts the uploads and removes the versions below the prefix. What soft
// delete keeps goes by itself.
func (s *Store) Sweep(ctx context.Context, prefix string) error {
	full := s.full(prefix)
	var errs []error
	open, err := s.uploads(ctx, full)
	if err != nil && !lacksUploads(err) {
		errs = append(errs, s.fail(ctx, "list uploads in", "", err))
	}
	for _, u := range open {
		if err := (upload{s: s, name: u.Name, id: u.ID}).abort(ctx); err != nil {
			errs = append(errs, s.fail(ctx, "abort upload in", "", err))
		}
	}
	if p, _, err := s.Permanence(ctx); err != nil || p != storage.Versioned && p != storage.Locked {
		return errors.Join(errs...) // or it has been said
	}
	it := s.client.Bucket(s.c.Bucket).Objects(ctx, &gcs.Query{Prefix: full, Versions: true})
	kept, first := 0, error(nil)
	for {
		attrs, err := it.Next()
		if errors.Is(err, iterator.Done) {
			break
		}
		if err != nil {
			return errors.Join(append(errs, s.fail(ctx, "list versions in", "", err))...)
		}
		if err := s.client.Bucket(s.c.Bucket).Object(attrs.Name).Generation(attrs.Generation).Delete(ctx); err != nil && !isMissing(err) {
			if kept++; first == nil {
				first = s.fail(ctx, "delete version", storage.Key(prefix), err)
			}
		}
	}
	if first != nil {
		errs = append(errs, hbackup.E(fmt.Sprintf("%d versions stay; one of them:", kept), "", hbackup.KindOther, first))
	}
	return errors.Join(errs...)
}
