package s3

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/storage"
)

// calls are all the ways to ask a store for something.
func calls(s *Store) map[string]func(context.Context) error {
	body := func() *strings.Reader { return strings.NewReader("x") }
	return map[string]func(context.Context) error{
		"Put": func(ctx context.Context) error {
			_, err := s.Put(ctx, "a/key", body(), storage.PutOptions{Size: 1})
			return err
		},
		"Put if absent": func(ctx context.Context) error {
			_, err := s.Put(ctx, "a/key", body(), storage.PutOptions{Size: 1, IfAbsent: true})
			return err
		},
		"Put in parts": func(ctx context.Context) error {
			_, err := s.Put(ctx, "a/key", strings.NewReader(strings.Repeat("x", minPartSize+1)), storage.PutOptions{Size: minPartSize + 1})
			return err
		},
		"Get": func(ctx context.Context) error {
			_, _, err := s.Get(ctx, "a/key", storage.Range{})
			return err
		},
		"Get range": func(ctx context.Context) error {
			_, _, err := s.Get(ctx, "a/key", storage.Range{Offset: 1})
			return err
		},
		"Stat": func(ctx context.Context) error {
			_, err := s.Stat(ctx, "a/key")
			return err
		},
		"List": func(ctx context.Context) error {
			for _, err := range s.List(ctx, "a/", storage.ListOptions{}) {
				return err
			}
			return nil
		},
		"Delete": func(ctx context.Context) error { return s.Delete(ctx, "a/key") },
		"DeleteBatch": func(ctx context.Context) error {
			failures, err := s.DeleteBatch(ctx, []storage.Key{"a/key"})
			if err == nil && len(failures) > 0 {
				err = failures[0].Err
			}
			return err
		},
		"ServerTime": func(ctx context.Context) error {
			_, err := s.ServerTime(ctx)
			return err
		},
	}
}

// TestWrongConfiguration has settings that cannot work: each call says so in the
// right kind, with something to try next and without a secret.
func TestWrongConfiguration(t *testing.T) {
	t.Setenv("S3_TEST_WRONG", "qqqq-not-the-secret")
	t.Setenv("S3_TEST_UNKNOWN", "nobody")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for _, tc := range []struct {
		name   string
		kind   hbackup.Kind
		text   string // in the error or its hint
		change func(*Config)
	}{
		{"missing bucket", hbackup.KindUsage, "no-such-bucket", func(c *Config) { c.Bucket = "no-such-bucket" }},
		{"wrong secret", hbackup.KindDenied, "", func(c *Config) { c.Credentials.SecretKey = "env:S3_TEST_WRONG" }},
		{"unknown key", hbackup.KindDenied, "", func(c *Config) { c.Credentials.AccessKey = "env:S3_TEST_UNKNOWN" }},
		{"empty reference", hbackup.KindDenied, "env:S3_TEST_NOT_SET", func(c *Config) { c.Credentials.SecretKey = "env:S3_TEST_NOT_SET" }},
		{"missing file", hbackup.KindDenied, "/no/such/file", func(c *Config) { c.Credentials.SecretKey = "file:/no/such/file" }},
		{"no credentials", hbackup.KindDenied, "", func(c *Config) { c.Credentials = Credentials{} }},
		{"wrong region", hbackup.KindDenied, "region", func(c *Config) { c.Region = "eu-north-1" }},
		{"nobody listens", hbackup.KindUnavailable, closed.Addr().String(), func(c *Config) { c.Endpoint = "http://" + closed.Addr().String() }},
		{"no such host", hbackup.KindUnavailable, "s3.invalid", func(c *Config) { c.Endpoint = "http://s3.invalid:9000" }},
		{"https to http", hbackup.KindUsage, "TLS", func(c *Config) { c.Endpoint = strings.Replace(c.Endpoint, "http:", "https:", 1) }},
		{"unknown authority", hbackup.KindDenied, "certificate", func(c *Config) { c.Endpoint = gatewayTLS.Endpoint() }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := configFor(t, gateway)
			c.MaxAttempts = 2
			tc.change(&c)
			s := open(t, c)
			for name, call := range calls(s) {
				err := call(t.Context())
				if name == "ServerTime" && err == nil && tc.kind == hbackup.KindDenied {
					continue // a refusal has a date, too
				}
				if tc.name == "unknown key" && (name == "Stat" || name == "ServerTime") {
					// The gateway answers with 404, and HEAD brings no code.
					checkKind(t, err, hbackup.KindUsage, true)
					continue
				}
				if !hbackup.IsKind(err, tc.kind) {
					t.Errorf("%s: kind %q, want %q: %v", name, hbackup.KindOf(err), tc.kind, err)
					continue
				}
				hint := hbackup.HintOf(err)
				all := err.Error() + " " + hint
				if hint == "" || !strings.Contains(all, tc.text) || !strings.Contains(err.Error(), string(s.Location())) {
					t.Errorf("%s: %v (hint: %s); want it to speak of %q", name, err, hint, tc.text)
				}
				if strings.Contains(all, gateway.SecretKey) || strings.Contains(all, "qqqq") || strings.Contains(all, "\n") {
					t.Errorf("%s: a secret or a line break in %q", name, all)
				}
			}
			if text := fmt.Sprintf("%+v %v", c, s.Location()); strings.Contains(text, gateway.SecretKey) {
				t.Error("the configuration holds the secret")
			}
		})
	}
}

// TestAnswersOfStores has answers as stores give them, and what is made of them.
func TestAnswersOfStores(t *testing.T) {
	for _, tc := range []struct {
		status int
		code   string
		kind   hbackup.Kind
	}{
		{403, "AccessDenied", hbackup.KindDenied},
		{403, "InvalidAccessKeyId", hbackup.KindDenied},
		{403, "SignatureDoesNotMatch", hbackup.KindDenied},
		{403, "RequestTimeTooSkewed", hbackup.KindDenied},
		{400, "ExpiredToken", hbackup.KindDenied},
		{400, "InvalidToken", hbackup.KindDenied},
		{400, "AuthorizationHeaderMalformed", hbackup.KindDenied},
		{404, "NoSuchBucket", hbackup.KindUsage},
		{404, "XAdminUserNotFound", hbackup.KindDenied},
		{404, "SomethingElse", hbackup.KindOther},
		{301, "PermanentRedirect", hbackup.KindUsage},
		{503, "SlowDown", hbackup.KindThrottled},
		{429, "TooManyRequests", hbackup.KindThrottled},
		{503, "ServiceUnavailable", hbackup.KindUnavailable},
		{500, "InternalError", hbackup.KindUnavailable},
		{502, "", hbackup.KindUnavailable},
		{501, "NotImplemented", hbackup.KindUnsupported},
		{507, "InsufficientStorage", hbackup.KindNoSpace},
		{400, "XAmzContentSHA256Mismatch", hbackup.KindUnsupported},
		{418, "Unheard", hbackup.KindOther},
	} {
		s, _, p := behind(t, func(c *Config) { c.MaxAttempts = 2 })
		p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
			return refuse(w, r, tc.status, tc.code)
		})
		for name, call := range calls(s) {
			err := call(t.Context())
			if name == "Stat" || name == "ServerTime" || name == "Put in parts" && tc.code == "NoSuchBucket" {
				continue // HEAD brings no code
			}
			if !hbackup.IsKind(err, tc.kind) || err == nil {
				t.Errorf("%d %s: %s gave kind %q, want %q: %v", tc.status, tc.code, name, hbackup.KindOf(err), tc.kind, err)
			}
			if tc.code != "" && !strings.Contains(err.Error(), tc.code) {
				t.Errorf("%d %s: %s does not say so: %v", tc.status, tc.code, name, err)
			}
		}
	}
}

// TestRegionInHint has a store that names the region of the bucket.
func TestRegionInHint(t *testing.T) {
	s, _, p := behind(t, nil)
	p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("X-Amz-Bucket-Region", "ap-southeast-2")
		return refuse(w, r, 301, "PermanentRedirect")
	})
	for name, call := range calls(s) {
		err := call(t.Context())
		checkKind(t, err, hbackup.KindUsage, true)
		if !strings.Contains(hbackup.HintOf(err), "ap-southeast-2") {
			t.Errorf("%s: hint %q", name, hbackup.HintOf(err))
		}
	}
}

// TestClockSkew has a store whose clock is 20 minutes ahead. The client signs
// with the store's time from the second attempt on; where that does not help,
// both times are shown.
func TestClockSkew(t *testing.T) {
	s, _, p := behind(t, nil)
	ahead := time.Now().Add(20 * time.Minute).UTC()
	var signed []string
	p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		signed = append(signed, r.Header.Get("X-Amz-Date"))
		w.Header().Set("Date", ahead.Format(http.TimeFormat))
		return refuse(w, r, 403, "RequestTimeTooSkewed")
	})
	err := s.Delete(t.Context(), "a/key")
	checkKind(t, err, hbackup.KindDenied, true)
	if hint := hbackup.HintOf(err); !strings.Contains(hint, ahead.Format(time.RFC3339)) {
		t.Errorf("hint %q; want the store's time", hint)
	}
	if last, perr := time.Parse("20060102T150405Z", signed[len(signed)-1]); perr != nil || last.Before(ahead.Add(-time.Minute)) {
		t.Errorf("signed at %v; want the store's time in the end", signed)
	}
}

// TestFreshKeyAfterExpiry has a key that expires in mid-job and is replaced in
// its files.
func TestFreshKeyAfterExpiry(t *testing.T) {
	dir := t.TempDir()
	write := func(access, secret string) {
		for name, value := range map[string]string{"access": access, "secret": secret} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(value+"\n"), 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	write("an-old-one", "of old")
	s, _, p := behind(t, func(c *Config) {
		c.Credentials = Credentials{AccessKey: "file:" + filepath.Join(dir, "access"), SecretKey: "file:" + filepath.Join(dir, "secret")}
	})
	p.Set(func(op string, nth int, w http.ResponseWriter, r *http.Request) bool {
		if nth > 1 {
			return false
		}
		write(gateway.AccessKey, gateway.SecretKey)
		return refuse(w, r, 400, "ExpiredToken")
	})
	if err := putBytes(t, s, "a/key", bytesFor(100), true); err != nil {
		t.Fatal(err)
	}
}

func TestConfigRefused(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no bucket":             func(c *Config) { c.Bucket = "" },
		"bucket of two letters": func(c *Config) { c.Bucket = "ab" },
		"bucket with a slash":   func(c *Config) { c.Bucket = "abc/def" },
		"prefix with a slash":   func(c *Config) { c.Prefix = "a/" },
		"prefix that climbs":    func(c *Config) { c.Prefix = "a/../b" },
		"prefix too long":       func(c *Config) { c.Prefix = strings.Repeat("p", 200) },
		"endpoint of no scheme": func(c *Config) { c.Endpoint = "localhost:9000" },
		"endpoint with a key":   func(c *Config) { c.Endpoint = "https://user:hunter2@host" },
		"odd endpoint":          func(c *Config) { c.Endpoint = "https://user:hunter2@ho st%zz" },
		"key in the open":       func(c *Config) { c.Credentials.SecretKey = "hunter2" },
		"half a key":            func(c *Config) { c.Credentials.AccessKey = "" },
		"lonely session":        func(c *Config) { c.Credentials = Credentials{SessionToken: "env:X"} },
		"session of no role":    func(c *Config) { c.Credentials.ExternalID = "x" },
		"small parts":           func(c *Config) { c.PartSize = 1 << 20 },
		"huge parts":            func(c *Config) { c.PartSize = 6 << 30 },
		"little memory":         func(c *Config) { c.Memory = 1 << 20 },
		"no attempts":           func(c *Config) { c.MaxAttempts = -1 },
		"unknown checksum":      func(c *Config) { c.Checksum = "crc16" },
		"unknown encryption":    func(c *Config) { c.Encryption = "rot13" },
		"KMS key without KMS":   func(c *Config) { c.KMSKey = "k" },
		"missing CA file":       func(c *Config) { c.CAFile = "/no/such/ca" },
		"CA file of no use":     func(c *Config) { c.CAFile = os.DevNull },
		"unknown profile":       func(c *Config) { c.Credentials = Credentials{Profile: "nobody"} },
	} {
		c := configFor(t, gateway)
		change(&c)
		s, err := New(t.Context(), c)
		if err == nil {
			s.Close()
			t.Errorf("%s: accepted", name)
			continue
		}
		if !hbackup.IsKind(err, hbackup.KindUsage) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: kind %q, %v", name, hbackup.KindOf(err), err)
		}
	}
}
