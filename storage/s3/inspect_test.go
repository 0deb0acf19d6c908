package s3

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"hbackup"
	"hbackup/catalog"
	"hbackup/check"
	"hbackup/storage"
	"hbackup/storage/storetest/proxy"
)

var _ check.Inspector = (*Store)(nil)

// validate tries the store out as hbackup target validate does and gives the
// items by name.
func validate(t *testing.T, s *Store, change func(*check.TargetOptions)) (map[string]check.Item, check.TargetReport) {
	t.Helper()
	o := check.TargetOptions{PartSize: minPartSize}
	if change != nil {
		change(&o)
	}
	r, err := check.Target(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	items := map[string]check.Item{}
	for _, i := range r.Items {
		if _, twice := items[i.Name]; twice {
			t.Errorf("%s is there twice", i.Name)
		}
		items[i.Name] = i
	}
	return items, r
}

func settingsOnly(o *check.TargetOptions) { o.NoSuite = true }

func wantItem(t *testing.T, items map[string]check.Item, name string, status check.Status, says string) {
	t.Helper()
	i, there := items[name]
	if !there || i.Status != status || !strings.Contains(i.Detail+" "+i.Hint, says) {
		t.Errorf("%q is %+v; want %s, %q", name, i, status, says)
	}
}

// names gives what there is below the store's place: objects and open uploads.
func names(t *testing.T, s *Store) []string {
	t.Helper()
	all := openUploads(t, s)
	for o, err := range s.List(context.WithoutCancel(t.Context()), "", storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(o.Key))
	}
	return all
}

func TestValidateTheGateway(t *testing.T) {
	s := open(t, configFor(t, gateway))
	items, r := validate(t, s, nil)
	for _, i := range items {
		if i.Status == check.Failed || i.Status == check.Warning {
			t.Errorf("%+v", i)
		}
	}
	wantItem(t, items, "checksums", check.OK, "refused by the server")
	wantItem(t, items, "conditional replace", check.OK, "If-Match is honoured")
	wantItem(t, items, "batch delete", check.OK, "1000")
	wantItem(t, items, "versioning", check.OK, "off")
	wantItem(t, items, "lifecycle rules", check.OK, "")
	wantItem(t, items, "held uploads", check.OK, "cases")
	wantItem(t, items, "uploads in parts", check.OK, "s3:AbortMultipartUpload")
	wantItem(t, items, "rights", check.OK, "s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject")
	if r.Left != "" || len(names(t, s)) > 0 {
		t.Errorf("left: %q, %q", r.Left, names(t, s))
	}
}

// A place in a bucket that may be somebody else's is left alone, unless the
// operator wants it.
func TestAPlaceThatIsNotOurs(t *testing.T) {
	s := open(t, configFor(t, gateway))
	if _, err := storage.PutBytes(t.Context(), s, "photos/cat.jpg", []byte("x"), true); err != nil {
		t.Fatal(err)
	}
	if _, err := check.Target(t.Context(), s, check.TargetOptions{NoSuite: true}); !hbackup.IsKind(err, hbackup.KindRefused) {
		t.Errorf("it was tried: %v", err)
	}
	if _, err := catalog.EnsureMarker(t.Context(), s, "test", false); !hbackup.IsKind(err, hbackup.KindRefused) {
		t.Errorf("it was taken: %v", err)
	}
	place, _, err := catalog.ForReading(t.Context(), s, "prod", "main")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := storage.PutBytes(t.Context(), place.Store, "x", []byte("x"), true); !hbackup.IsKind(err, hbackup.KindReadOnly) {
		t.Errorf("it was written to: %v", err)
	}
	if there := names(t, s); len(there) != 1 {
		t.Errorf("there is %q", there)
	}
	if _, r := validate(t, s, func(o *check.TargetOptions) { o.NoSuite, o.Init = true, true }); r.Left != "" {
		t.Errorf("left: %s", r.Left)
	}
	if m, err := catalog.Examine(t.Context(), s); err != nil || m == nil || len(names(t, s)) != 2 {
		t.Errorf("with --init it is not ours: %+v, %v, %q", m, err, names(t, s))
	}
}

// The missing right to give an upload up is named by the store, for whatever verb.
func TestNoRightToAbort(t *testing.T) {
	s := user(t, "no-abort", without("s3:AbortMultipartUpload")...)
	ticket, err := s.OpenUpload(t.Context(), "probe/x", "S")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DropUpload(t.Context(), ticket); !hbackup.IsKind(err, hbackup.KindDenied) || !strings.Contains(hbackup.HintOf(err), "s3:AbortMultipartUpload") {
		t.Errorf("%v (%s)", err, hbackup.HintOf(err))
	}
}

// user makes a user of a bucket of its own, who may do those actions.
func user(t *testing.T, name string, actions ...string) *Store {
	t.Helper()
	root := configFor(t, gatewayVersions)
	root.Bucket = name
	c := root
	root.Prefix = ""
	admin := open(t, root)
	if _, err := admin.client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
		t.Fatal(err)
	}
	if err := gatewayVersions.AddUser(t.Context(), name, "secret-of-"+name); err != nil {
		t.Fatal(err)
	}
	allow(t, admin, name, actions...)
	access, secret := "S3_TEST_ACCESS_"+name, "S3_TEST_SECRET_"+name
	t.Setenv(access, name)
	t.Setenv(secret, "secret-of-"+name)
	c.Credentials = Credentials{AccessKey: "env:" + access, SecretKey: "env:" + secret}
	c.MaxAttempts = 2
	return open(t, c)
}

// allow lets the bucket's user do those actions and nothing else.
func allow(t *testing.T, admin *Store, user string, actions ...string) {
	t.Helper()
	if len(actions) == 0 {
		return
	}
	policy := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":[%q]},"Action":["%s"],"Resource":["arn:aws:s3:::%s","arn:aws:s3:::%[3]s/*"]}]}`,
		user, strings.Join(actions, `","`), admin.c.Bucket)
	if _, err := admin.client.PutBucketPolicy(t.Context(), &s3.PutBucketPolicyInput{Bucket: &admin.c.Bucket, Policy: &policy}); err != nil {
		t.Fatal(err)
	}
}

// least is what the documentation says that a user needs.
var least = []string{"s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts", "s3:ListBucketMultipartUploads",
	"s3:GetBucketVersioning", "s3:GetBucketObjectLockConfiguration", "s3:GetLifecycleConfiguration"}

func without(right string) []string {
	var out []string
	for _, a := range least {
		if a != right {
			out = append(out, a)
		}
	}
	return out
}

// The rights that the documentation names are enough, and every one that is
// missing is named.
func TestValidateNamesMissingRights(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, right := range least {
		if !strings.Contains(string(text), right) {
			t.Errorf("docs/configuration.md does not name %s", right)
		}
	}
	items, r := validate(t, user(t, "rights-all", least...), settingsOnly)
	for _, i := range items {
		if i.Status == check.Failed || i.Status == check.Warning {
			t.Errorf("%+v", i)
		}
	}
	if r.Left != "" {
		t.Errorf("left: %s", r.Left)
	}
	for right, want := range map[string]struct {
		item   string
		status check.Status
	}{
		"s3:PutObject":                  {"right s3:PutObject", check.Failed},
		"s3:DeleteObject":               {"right s3:DeleteObject", check.Failed},
		"s3:AbortMultipartUpload":       {"right s3:AbortMultipartUpload", check.Failed},
		"s3:ListMultipartUploadParts":   {"right s3:ListMultipartUploadParts", check.Warning},
		"s3:ListBucketMultipartUploads": {"right s3:ListBucketMultipartUploads", check.Warning},
		"s3:GetBucketVersioning":        {"versioning", check.Warning},
	} {
		t.Run(right, func(t *testing.T) {
			items, _ := validate(t, user(t, "no-"+strings.ToLower(strings.TrimPrefix(right, "s3:")), without(right)...), settingsOnly)
			wantItem(t, items, want.item, want.status, "")
			if i := items[want.item]; want.status == check.Failed && !hbackup.IsKind(i.Err, hbackup.KindDenied) {
				t.Errorf("%+v", i)
			}
			for name, i := range items {
				if i.Status == check.Failed && name != want.item {
					t.Errorf("%+v", i)
				}
			}
		})
	}
}

// Without the rights to look nothing is tried, as it cannot be known whose the
// place is.
func TestValidateABucketOfAnotherAccount(t *testing.T) {
	for name, actions := range map[string][]string{"another-account": nil, "no-listbucket": without("s3:ListBucket")} {
		s := user(t, name, actions...)
		_, err := check.Target(t.Context(), s, check.TargetOptions{})
		if !hbackup.IsKind(err, hbackup.KindDenied) || !strings.Contains(hbackup.HintOf(err), "s3:ListBucket") {
			t.Errorf("%s: %v (%s)", name, err, hbackup.HintOf(err))
		}
		if _, err := catalog.EnsureMarker(t.Context(), s, "test", true); !hbackup.IsKind(err, hbackup.KindDenied) {
			t.Errorf("%s: a backup would begin with %v", name, err)
		}
	}
}

// Held by a lock, what the trial has written stays, and that is said; little is
// tried there.
func TestValidateBucketsThatKeep(t *testing.T) {
	for _, c := range []struct {
		name   string
		locked bool
	}{{"keeps-versions", false}, {"keeps-locked", true}} {
		t.Run(c.name, func(t *testing.T) {
			conf := configFor(t, gatewayVersions)
			conf.Bucket = c.name
			s := open(t, conf)
			in := &s3.CreateBucketInput{Bucket: &conf.Bucket}
			if c.locked {
				in.ObjectLockEnabledForBucket = aws.Bool(true)
			}
			if _, err := s.client.CreateBucket(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			if c.locked {
				_, err := s.client.PutObjectLockConfiguration(t.Context(), &s3.PutObjectLockConfigurationInput{Bucket: &conf.Bucket,
					ObjectLockConfiguration: &types.ObjectLockConfiguration{ObjectLockEnabled: types.ObjectLockEnabledEnabled,
						Rule: &types.ObjectLockRule{DefaultRetention: &types.DefaultRetention{Days: aws.Int32(1), Mode: types.ObjectLockRetentionModeCompliance}}}})
				if err != nil {
					t.Fatal(err)
				}
			} else if _, err := s.client.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{Bucket: &conf.Bucket,
				VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled}}); err != nil {
				t.Fatal(err)
			}
			items, r := validate(t, s, settingsOnly)
			for _, i := range items {
				if i.Status == check.Failed {
					t.Errorf("%+v", i)
				}
			}
			wantItem(t, items, "versioning", check.Warning, "NoncurrentVersionExpiration")
			out, err := s.client.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: &conf.Bucket})
			if err != nil {
				t.Fatal(err)
			}
			left := len(out.Versions) + len(out.DeleteMarkers)
			if c.locked {
				wantItem(t, items, "object lock", check.Warning, "1 days (COMPLIANCE)")
				if r.Left == "" || left == 0 || left > 60 {
					t.Errorf("%d versions and markers are left, and it says %q", left, r.Left)
				}
			} else if r.Left != "" || left > 0 {
				t.Errorf("%d versions and markers are left, and it says %q", left, r.Left)
			}
			if len(openUploads(t, s)) > 0 {
				t.Errorf("uploads are left: %v", openUploads(t, s))
			}
		})
	}
}

// rules answers the question for the lifecycle rules.
func rules(text string) proxy.Fault {
	return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		if !r.URL.Query().Has("lifecycle") {
			return false
		}
		if !strings.HasPrefix(text, "<") {
			return refuse(w, r, map[string]int{"NoSuchLifecycleConfiguration": 404, "AccessDenied": 403, "NotImplemented": 501}[text], text)
		}
		w.Header().Set("Content-Type", "application/xml")
		io.WriteString(w, "<LifecycleConfiguration>"+text+"</LifecycleConfiguration>")
		return true
	}
}

func TestLifecycleRules(t *testing.T) {
	s, _, p := behind(t, nil)
	rule := func(where, what string) string {
		return "<Rule><ID>R</ID><Status>Enabled</Status>" + where + what + "</Rule>"
	}
	all, mine := "<Filter><Prefix></Prefix></Filter>", "<Filter><Prefix>"+s.c.Prefix+"/prod/arch</Prefix></Filter>"
	expire, abort := "<Expiration><Days>30</Days></Expiration>", func(days int) string {
		return fmt.Sprintf("<AbortIncompleteMultipartUpload><DaysAfterInitiation>%d</DaysAfterInitiation></AbortIncompleteMultipartUpload>", days)
	}
	for name, c := range map[string]struct {
		rules   string
		verdict storage.Verdict
		says    string
	}{
		"none":                    {"NoSuchLifecycleConfiguration", storage.Fine, "none"},
		"not known":               {"NotImplemented", storage.Fine, "none"},
		"not allowed":             {"AccessDenied", storage.Caution, "s3:GetLifecycleConfiguration"},
		"deletes all":             {rule(all, expire), storage.Harmful, `"R" deletes objects after 30 days`},
		"deletes all, old form":   {rule("<Prefix></Prefix>", expire), storage.Harmful, "deletes"},
		"deletes on a day":        {rule(all, "<Expiration><Date>2030-01-01T00:00:00Z</Date></Expiration>"), storage.Harmful, "2030-01-01T00:00:00"},
		"deletes some of ours":    {rule(mine, expire), storage.Harmful, "deletes"},
		"deletes tagged ones":     {rule("<Filter><And><Prefix>"+s.c.Prefix+"</Prefix><Tag><Key>a</Key><Value>b</Value></Tag></And></Filter>", expire), storage.Harmful, "deletes"},
		"deletes others'":         {rule("<Filter><Prefix>logs/</Prefix></Filter>", expire), storage.Fine, "none hurts"},
		"deletes neighbours'":     {rule("<Filter><Prefix>"+s.c.Prefix+"0</Prefix></Filter>", expire), storage.Fine, "none hurts"},
		"is switched off":         {strings.Replace(rule(all, expire), "Enabled", "Disabled", 1), storage.Fine, "none hurts"},
		"delete markers":          {rule(all, "<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>"), storage.Fine, "none hurts"},
		"older versions":          {rule(all, "<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration>"), storage.Fine, "none hurts"},
		"to an archive":           {rule(all, "<Transition><Days>90</Days><StorageClass>DEEP_ARCHIVE</StorageClass></Transition>"), storage.Harmful, "DEEP_ARCHIVE after 90 days"},
		"to a colder class":       {rule(all, "<Transition><Days>30</Days><StorageClass>STANDARD_IA</StorageClass></Transition>"), storage.Fine, "none hurts"},
		"aborts after a day":      {rule(all, abort(1)), storage.Harmful, "1 days after they began"},
		"aborts after three days": {rule(all, abort(3)), storage.Caution, "3 days after they began"},
		"aborts after a week":     {rule(all, abort(7)), storage.Fine, "none hurts"},
		"garbage":                 {"<Rule><ID>R</ID><Status>Enabled</Status></Rule>", storage.Harmful, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "garbage" { // a rule about everything that does nothing
				c.verdict, c.says = storage.Fine, "none hurts"
			}
			p.Set(rules(c.rules))
			got := s.inspectLifecycle(t.Context(), storage.Terms{LongestJob: 24 * time.Hour})
			if len(got) != 1 || got[0].Verdict != c.verdict || !strings.Contains(got[0].Detail, c.says) || c.verdict != storage.Fine && got[0].Hint == "" {
				t.Errorf("%+v; want %s, %q", got, c.verdict, c.says)
			}
		})
	}
	// What the longest backup is decides.
	p.Set(rules(rule(all, abort(3))))
	if got := s.inspectLifecycle(t.Context(), storage.Terms{LongestJob: 80 * time.Hour}); len(got) != 1 || got[0].Verdict != storage.Harmful {
		t.Errorf("%+v", got)
	}
}

// A store that does less than S3 is found out, and what it does not need to do is
// no fault.
func TestValidateWeakStores(t *testing.T) {
	for name, c := range map[string]struct {
		fault  func(p *proxy.Proxy) proxy.Fault
		item   string
		status check.Status
		says   string
	}{
		"checksums are ignored": {func(p *proxy.Proxy) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				if op == "PutObject" && strings.HasSuffix(r.URL.Path, "/checksum") {
					w.Header().Set("ETag", `"1"`)
					return true
				}
				return false
			}
		}, "checksums", check.Warning, "hbackup verify"},
		"If-Match is ignored": {func(p *proxy.Proxy) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				if op == "PutObject" && r.Header.Get("If-Match") != "" {
					w.Header().Set("ETag", `"1"`)
					return true
				}
				return false
			}
		}, "conditional replace", check.Absent, "ignores If-Match"},
		"no batch delete": {func(p *proxy.Proxy) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				return op == "DeleteObjects" && refuse(w, r, 501, "NotImplemented")
			}
		}, "batch delete", check.Absent, "one by one"},
		"an upload is aborted tomorrow": {func(p *proxy.Proxy) proxy.Fault {
			return func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				if op == "CreateMultipartUpload" && strings.HasSuffix(r.URL.Path, "/upload") {
					w.Header().Set("x-amz-abort-date", time.Now().Add(30*time.Hour).UTC().Format(http.TimeFormat))
					w.Header().Set("x-amz-abort-rule-id", "tidy")
				}
				return false
			}
		}, "lifecycle rules", check.Failed, `"tidy"`},
	} {
		t.Run(name, func(t *testing.T) {
			s, direct, p := behind(t, func(c *Config) { c.MaxAttempts = 2 })
			p.Set(c.fault(p))
			r, err := check.Target(t.Context(), s, check.TargetOptions{NoSuite: true})
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, i := range r.Items {
				found = found || i.Name == c.item && i.Status == c.status && strings.Contains(i.Detail+i.Hint, c.says)
			}
			if !found {
				t.Errorf("no item %s with %s, %q in %+v", c.item, c.status, c.says, r.Items)
			}
			if left := names(t, direct); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}
