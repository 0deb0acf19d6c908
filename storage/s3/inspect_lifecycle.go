package s3

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"hbackup"
	"hbackup/storage"
)

const lifecycle = "lifecycle rules"

// inspectLifecycle reads the bucket's rules and names those that would hurt.
func (s *Store) inspectLifecycle(ctx context.Context, terms storage.Terms) []storage.Finding {
	out, err := s.client.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: &s.c.Bucket})
	switch {
	case err == nil:
	case codeOf(err) == "NoSuchLifecycleConfiguration":
		return []storage.Finding{{Name: lifecycle, Verdict: storage.Fine, Detail: "the bucket has none"}}
	case hbackup.IsKind(s.fail(ctx, "", "", err), hbackup.KindUnsupported):
		return []storage.Finding{{Name: lifecycle, Verdict: storage.Fine, Detail: "the store knows none"}}
	case statusOf(err) == http.StatusForbidden:
		return []storage.Finding{{Name: lifecycle, Verdict: storage.Caution, Detail: "they may not be read; the right is s3:GetLifecycleConfiguration",
			Hint: "make sure that no rule of the bucket deletes or archives what lies below " + string(s.loc)}}
	default:
		return []storage.Finding{{Name: lifecycle, Verdict: storage.Caution, Detail: "they cannot be read: " + s.judge(err).text, Hint: s.judge(err).hint}}
	}
	all := judgeRules(out.Rules, s.full(""), terms)
	if len(all) == 0 {
		all = append(all, storage.Finding{Name: lifecycle, Verdict: storage.Fine, Detail: "none hurts backups"})
	}
	return all
}

// judgeRules names what the rules would do to the objects and the uploads whose
// names begin with the prefix.
func judgeRules(rules []types.LifecycleRule, prefix string, terms storage.Terms) []storage.Finding {
	var all []storage.Finding
	for _, r := range rules {
		if r.Status != types.ExpirationStatusEnabled || !overlap(prefixOf(r), prefix) {
			continue
		}
		rule := fmt.Sprintf("the rule %q", aws.ToString(r.ID))
		if e := r.Expiration; e != nil && (aws.ToInt32(e.Days) > 0 || e.Date != nil) {
			all = append(all, storage.Finding{Name: lifecycle, Verdict: storage.Harmful, Detail: rule + " deletes objects " + when(e.Days, e.Date),
				Hint: "take the location out of the rule: only hbackup knows which files newer backups still need"})
		}
		for _, t := range r.Transitions {
			if isArchive(string(t.StorageClass)) {
				all = append(all, storage.Finding{Name: lifecycle, Verdict: storage.Harmful, Detail: fmt.Sprintf("%s moves objects to %s %s, from where they cannot be read at once", rule, t.StorageClass, when(t.Days, t.Date)),
					Hint: "take the location out of the rule, or let it move objects to STANDARD_IA or GLACIER_IR"})
			}
		}
		if a := r.AbortIncompleteMultipartUpload; a != nil {
			if f, hurts := judgeAbort(rule, aws.ToInt32(a.DaysAfterInitiation), terms); hurts {
				all = append(all, f)
			}
		}
	}
	return all
}

// safeDays is from how many days on the aborting of uploads is no matter.
const safeDays = 7

func judgeAbort(rule string, days int32, terms storage.Terms) (storage.Finding, bool) {
	f := storage.Finding{Name: lifecycle, Verdict: storage.Caution, Detail: fmt.Sprintf("%s aborts uploads %d days after they began", rule, days),
		Hint: fmt.Sprintf("let it wait longer than the longest backup; %d days are good", safeDays)}
	if time.Duration(days)*24*time.Hour <= terms.LongestJob {
		f.Verdict = storage.Harmful
		f.Detail += fmt.Sprintf("; the longest backup is reckoned to take %s", hbackup.FormatDuration(terms.LongestJob))
	}
	return f, f.Verdict == storage.Harmful || days < safeDays
}

func when(days *int32, date *time.Time) string {
	if date != nil {
		return "at " + hbackup.FormatTime(*date)
	}
	return fmt.Sprintf("after %d days", aws.ToInt32(days))
}

// prefixOf gives the names that a rule is about. Tags and sizes narrow a rule
// further; as nobody here can know who sets tags, they are not looked at.
func prefixOf(r types.LifecycleRule) string {
	switch {
	case r.Filter != nil && r.Filter.Prefix != nil:
		return *r.Filter.Prefix
	case r.Filter != nil && r.Filter.And != nil:
		return aws.ToString(r.Filter.And.Prefix)
	}
	return aws.ToString(r.Prefix)
}

// overlap reports whether there can be names that begin with both.
func overlap(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }
