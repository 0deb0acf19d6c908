package s3

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"hbackup"
	"hbackup/storage"
)

// The actions of policies that uploads in parts take beyond s3:PutObject.
const (
	rightAbort       = "s3:AbortMultipartUpload"
	rightListParts   = "s3:ListMultipartUploadParts"
	rightListUploads = "s3:ListBucketMultipartUploads"
)

// inspectUploads makes an upload, looks at it and gives it up, each step being a
// right of its own. The answer to its making tells of a rule of the bucket that
// would abort it.
func (s *Store) inspectUploads(ctx context.Context, prefix string, terms storage.Terms) []storage.Finding {
	name := s.full(prefix + "upload")
	out, err := s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &s.c.Bucket, Key: &name})
	if err != nil {
		return []storage.Finding{s.lacks("uploads in parts", storage.Harmful, err)}
	}
	var all []storage.Finding
	if at := out.AbortDate; at != nil && time.Until(*at) <= terms.LongestJob+24*time.Hour { // it is rounded up to the next day
		all = append(all, abortsSoon(*at, aws.ToString(out.AbortRuleId)))
	}
	soft := storage.Caution
	if terms.Held {
		soft = storage.Harmful
	}
	id := aws.ToString(out.UploadId)
	for _, r := range []struct {
		right   string
		verdict storage.Verdict
		try     func() error
	}{
		{rightListUploads, soft, func() error {
			_, err := s.client.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: &s.c.Bucket, Prefix: &name})
			return err
		}},
		{rightListParts, soft, func() error {
			_, err := s.client.ListParts(ctx, &s3.ListPartsInput{Bucket: &s.c.Bucket, Key: &name, UploadId: &id})
			return err
		}},
		{rightAbort, storage.Harmful, func() error {
			_, err := s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.c.Bucket, Key: &name, UploadId: &id})
			return err
		}},
	} {
		if err := r.try(); err != nil {
			all = append(all, s.lacks("right "+r.right, r.verdict, err))
		}
	}
	if len(all) == 0 {
		all = append(all, storage.Finding{Name: "uploads in parts", Verdict: storage.Fine, Detail: rightListUploads + ", " + rightListParts + ", " + rightAbort})
	}
	return all
}

func (s *Store) lacks(name string, v storage.Verdict, err error) storage.Finding {
	said := s.judge(err)
	f := storage.Finding{Name: name, Verdict: v, Detail: said.text, Hint: said.hint, Err: hbackup.E("try out", string(s.loc), said.kind, err)}
	if said.kind == hbackup.KindDenied {
		f.Hint = "give it to the user that backups are written as; without it uploads that are given up stay, unseen and billed"
	}
	return f
}

func abortsSoon(at time.Time, rule string) storage.Finding {
	return storage.Finding{Name: "lifecycle rules", Verdict: storage.Harmful,
		Detail: fmt.Sprintf("the rule %q aborts an upload that begins now at %s", rule, hbackup.FormatTime(at)),
		Hint:   "let it wait longer than the longest backup (AbortIncompleteMultipartUpload, a week is good)"}
}
