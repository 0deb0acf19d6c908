package s3

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"hbackup"
	"hbackup/storage"
)

// heldOf fills an upload of the key.
func heldOf(t testing.TB, s *Store, key storage.Key, stamp string, data []byte) storage.Receipt {
	t.Helper()
	ticket, err := s.OpenUpload(t.Context(), key, stamp)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.FillUpload(t.Context(), ticket, bytes.NewReader(data), storage.PutOptions{Size: int64(len(data))})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A completion whose answer does not come is repeated, and what the store then
// says of the repetition decides nothing: the object does.
func TestFinishWhoseAnswerIsLost(t *testing.T) {
	data := bytesFor(10_000)
	for name, repetition := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"200": func(http.ResponseWriter, *http.Request) bool { return false },
		"404": func(w http.ResponseWriter, r *http.Request) bool { return refuse(w, r, 404, "NoSuchUpload") },
		"412": func(w http.ResponseWriter, r *http.Request) bool { return refuse(w, r, 412, "PreconditionFailed") },
		"503": func(w http.ResponseWriter, r *http.Request) bool { return refuse(w, r, 503, "SlowDown") },
	} {
		t.Run(name, func(t *testing.T) {
			s, direct, p := behind(t, func(c *Config) { c.MaxAttempts = 3 })
			r := heldOf(t, s, "k", "S1", data)
			p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
				switch {
				case op != "CompleteMultipartUpload":
					return false
				case nth == 1:
					return p.LoseAnswer(t, w, r)
				}
				return repetition(w, r)
			})
			obj, err := s.FinishUpload(t.Context(), r)
			if err != nil || obj.Digest != storage.DigestOf(data) || p.Requests("CompleteMultipartUpload") < 2 {
				t.Errorf("FinishUpload gave %+v, %v after %d requests", obj, err, p.Requests("CompleteMultipartUpload"))
			}
			checkHas(t, direct, "k", data)
			checkNoUploads(t, direct)
		})
	}
}

// Refused by a store in trouble, a finish changes nothing and can be repeated.
func TestFinishThatFails(t *testing.T) {
	data := bytesFor(10_000)
	s, direct, p := behind(t, func(c *Config) { c.MaxAttempts = 2 })
	r := heldOf(t, s, "k", "S1", data)
	for _, status := range []int{403, 500, 503} {
		p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
			return op == "CompleteMultipartUpload" && refuse(w, r, status, map[int]string{403: "AccessDenied", 500: "InternalError", 503: "SlowDown"}[status])
		})
		if _, err := s.FinishUpload(t.Context(), r); err == nil {
			t.Errorf("with %d it succeeded", status)
		}
		checkAbsent(t, direct, "k")
	}
	p.Set(nil)
	if _, err := s.FinishUpload(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	checkHas(t, direct, "k", data)
}

// An upload whose creation was answered into the void is found by its key.
func TestOpenWhoseAnswerIsLost(t *testing.T) {
	s, direct, p := behind(t, nil)
	p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		return op == "CreateMultipartUpload" && nth == 1 && p.LoseAnswer(t, w, r)
	})
	ticket, err := s.OpenUpload(t.Context(), "k", "S1")
	if err != nil || !ticket.Doubtful {
		t.Fatalf("OpenUpload gave %+v, %v; want a doubtful ticket", ticket, err)
	}
	open, err := direct.OpenUploads(t.Context(), "k")
	if err != nil || len(open) != 2 {
		t.Fatalf("OpenUploads gave %v, %v; want two", open, err)
	}
	for _, u := range open {
		if err := direct.DropUpload(t.Context(), u); err != nil {
			t.Error(err)
		}
	}
	checkNoUploads(t, direct)
}

// Parts may land behind an abort: a drop is done when the store has none of them.
func TestDropIsRepeatedUntilNothingIsLeft(t *testing.T) {
	s, direct, p := behind(t, nil)
	r := heldOf(t, s, "k", "S1", bytesFor(10_000))
	p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		if op != "AbortMultipartUpload" || nth > 2 {
			return false
		}
		w.WriteHeader(http.StatusNoContent) // it was done, and then a part came
		return true
	})
	if err := s.DropUpload(t.Context(), r.Ticket); err != nil {
		t.Error(err)
	}
	if n := p.Requests("AbortMultipartUpload"); n != 3 {
		t.Errorf("%d aborts; want 3", n)
	}
	checkNoUploads(t, direct)

	r = heldOf(t, s, "k", "S2", bytesFor(10_000))
	p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		if op == "AbortMultipartUpload" {
			w.WriteHeader(http.StatusNoContent)
			return true
		}
		return false
	})
	if err := s.DropUpload(t.Context(), r.Ticket); !hbackup.IsKind(err, hbackup.KindUnavailable) {
		t.Errorf("with parts that stay DropUpload gave %v", err)
	}
	p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		return op == "AbortMultipartUpload" && refuse(w, r, 403, "AccessDenied")
	})
	if err := s.DropUpload(t.Context(), r.Ticket); !hbackup.IsKind(err, hbackup.KindDenied) {
		t.Errorf("without the right to abort DropUpload gave %v", err)
	}
	p.Set(nil)
	if err := s.DropUpload(t.Context(), r.Ticket); err != nil {
		t.Error(err)
	}
	checkNoUploads(t, direct)
}

// An upload that was finished is an object, and no business of a drop.
func TestDropLeavesTheObject(t *testing.T) {
	data := bytesFor(10_000)
	s, _, p := behind(t, nil)
	r := heldOf(t, s, "k", "S1", data)
	if _, err := s.FinishUpload(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	p.Set(nil)
	if err := s.DropUpload(t.Context(), r.Ticket); err != nil || p.Requests("AbortMultipartUpload") != 0 {
		t.Errorf("DropUpload gave %v and made %d aborts; there are stores where an abort then destroys the object", err, p.Requests("AbortMultipartUpload"))
	}
	checkHas(t, s, "k", data)
}

// TestPermanence asks a real versioned and a real locked bucket, and stores that
// do not say.
func TestPermanence(t *testing.T) {
	s := open(t, configFor(t, gatewayVersions))
	want := func(s *Store, p storage.Permanence, reason bool) {
		t.Helper()
		got, why, err := s.Permanence(t.Context())
		if err != nil || got != p || (why != "") != reason {
			t.Errorf("Permanence gave %q, %q, %v; want %q", got, why, err, p)
		}
	}
	want(open(t, configFor(t, gateway)), storage.Deletable, false)
	want(s, storage.Deletable, false)
	set := func(status types.BucketVersioningStatus) {
		t.Helper()
		_, err := s.client.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{Bucket: aws.String(bucket),
			VersioningConfiguration: &types.VersioningConfiguration{Status: status}})
		if err != nil {
			t.Fatal(err)
		}
	}
	set(types.BucketVersioningStatusEnabled)
	want(s, storage.Versioned, true)
	set(types.BucketVersioningStatusSuspended)
	want(s, storage.Deletable, false)

	c := configFor(t, gatewayVersions)
	c.Bucket = "locked"
	locked := open(t, c)
	if _, err := s.client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &c.Bucket, ObjectLockEnabledForBucket: aws.Bool(true)}); err != nil {
		t.Fatal(err)
	}
	want(locked, storage.Versioned, true)
	_, err := s.client.PutObjectLockConfiguration(t.Context(), &s3.PutObjectLockConfigurationInput{Bucket: &c.Bucket,
		ObjectLockConfiguration: &types.ObjectLockConfiguration{ObjectLockEnabled: types.ObjectLockEnabledEnabled,
			Rule: &types.ObjectLockRule{DefaultRetention: &types.DefaultRetention{Days: aws.Int32(30), Mode: types.ObjectLockRetentionModeCompliance}}}})
	if err != nil {
		t.Fatal(err)
	}
	want(locked, storage.Locked, true)

	behind, _, p := behind(t, func(c *Config) { c.MaxAttempts = 2 })
	for _, c := range []struct {
		status int
		code   string
		want   storage.Permanence
		kind   hbackup.Kind
	}{
		{403, "AccessDenied", storage.PermanenceUnknown, ""}, {501, "NotImplemented", storage.Deletable, ""}, {400, "Strange", storage.PermanenceUnknown, ""},
		{404, "NoSuchBucket", "", hbackup.KindUsage}, {503, "SlowDown", "", hbackup.KindThrottled},
	} {
		p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
			return r.URL.Query().Has("versioning") && refuse(w, r, c.status, c.code)
		})
		got, why, err := behind.Permanence(t.Context())
		if got != c.want || (err != nil) != (c.kind != "") || c.kind != "" && !hbackup.IsKind(err, c.kind) || got == storage.PermanenceUnknown && why == "" {
			t.Errorf("%d %s: Permanence gave %q, %q, %v", c.status, c.code, got, why, err)
		}
	}
	p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.URL.Query().Has("versioning"):
			io.WriteString(w, `<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>`)
			return true
		case r.URL.Query().Has("object-lock"):
			return refuse(w, r, 403, "AccessDenied")
		}
		return false
	})
	want(behind, storage.Versioned, true)
}

// In a versioned bucket a held upload leaves one version, and a dropped one none.
func TestHeldUploadsLeaveNoVersions(t *testing.T) {
	c := configFor(t, gatewayVersions)
	c.Bucket = "versioned"
	s := open(t, c)
	if _, err := s.client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &c.Bucket}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{Bucket: &c.Bucket,
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled}}); err != nil {
		t.Fatal(err)
	}
	data := bytesFor(10_000)
	for i := range 3 {
		if err := s.DropUpload(t.Context(), heldOf(t, s, "dropped", fmt.Sprint("D", i), data).Ticket); err != nil {
			t.Fatal(err)
		}
	}
	first, second := heldOf(t, s, "kept", "K1", data), heldOf(t, s, "kept", "K2", data)
	for range 2 {
		for _, r := range []storage.Receipt{first, second} {
			if _, err := s.FinishUpload(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
	}
	versions, err := s.client.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: &c.Bucket})
	if err != nil {
		t.Fatal(err)
	}
	if len(versions.Versions) != 1 || len(versions.DeleteMarkers) != 0 || aws.ToString(versions.Versions[0].Key) != s.full("kept") {
		t.Errorf("%d versions and %d markers; want one version", len(versions.Versions), len(versions.DeleteMarkers))
	}
	checkNoUploads(t, s)
}
