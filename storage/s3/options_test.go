package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"hbackup"
	"hbackup/storage"
)

// useAll asks a store for everything that a location is asked for.
func useAll(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	for _, size := range []int64{100, minPartSize + 1} {
		if _, err := s.Put(ctx, "a/key", io.LimitReader(zeros{}, size), storage.PutOptions{Size: size}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Stat(ctx, "a/key"); err != nil {
		t.Fatal(err)
	}
	body, _, err := s.Get(ctx, "a/key", storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	body.Close()
	if _, err := listKeys(t, s); err != nil {
		t.Fatal(err)
	}
	ticket, err := s.OpenUpload(ctx, "a/held", "a-stamp")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DropUpload(ctx, ticket); err != nil {
		t.Fatal(err)
	}
	if failures, err := s.DeleteBatch(ctx, []storage.Key{"a/key"}); err != nil || len(failures) > 0 {
		t.Fatal(failures, err)
	}
	if err := s.Delete(ctx, "a/key"); err != nil {
		t.Fatal(err)
	}
}

// TestHeadersOfOptions has a store that sees what is asked of it: each option is
// in every request that needs it, and in no other.
func TestHeadersOfOptions(t *testing.T) {
	key := bytes.Repeat([]byte{7}, 32)
	key64 := base64.StdEncoding.EncodeToString(key)
	sum := md5.Sum(key)
	t.Setenv("S3_TEST_CUSTOMER_KEY", key64)
	making := strings.Fields(making)
	for _, tc := range []struct {
		header, value string
		ops           []string // that carry it
		change        func(*Config)
	}{
		{"X-Amz-Storage-Class", "STANDARD_IA", making, func(c *Config) { c.StorageClass = "STANDARD_IA" }},
		{"X-Amz-Server-Side-Encryption", "AES256", making, func(c *Config) { c.Encryption = EncryptionSSES3 }},
		{"X-Amz-Server-Side-Encryption", "aws:kms", making, func(c *Config) { c.Encryption = EncryptionSSEKMS }},
		{"X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id", "alias/k", making, func(c *Config) { c.Encryption, c.KMSKey = EncryptionSSEKMS, "alias/k" }},
		{"X-Amz-Tagging", "env=a%26b&team=h+base", making, func(c *Config) { c.Tags = map[string]string{"team": "h base", "env": "a&b"} }},
		{"X-Amz-Request-Payer", "requester", strings.Fields(withPayer), func(c *Config) { c.RequesterPays = true }},
		{customerKeyHeader, key64, strings.Fields(withCustomerKey), nil},
		{customerKeyHeader + "-Md5", base64.StdEncoding.EncodeToString(sum[:]), strings.Fields(withCustomerKey), nil},
		{"X-Amz-Server-Side-Encryption-Customer-Algorithm", "AES256", strings.Fields(withCustomerKey), nil},
		{"Content-Md5", "", []string{"DeleteObjects"}, func(c *Config) { c.DeleteMD5 = true }},
		{"Content-Md5", "", []string{"PutObject", "UploadPart", "DeleteObjects"}, func(c *Config) { c.Checksum = ChecksumMD5 }},
		{"X-Amz-Checksum-Crc64nvme", "", []string{"PutObject", "UploadPart", "CompleteMultipartUpload"}, func(c *Config) {}},
		{"X-Amz-Checksum-Crc64nvme", "", nil, func(c *Config) { c.Checksum = ChecksumNone }},
	} {
		t.Run(tc.header, func(t *testing.T) {
			f, c := newFake(t, tc.change == nil)
			var log strings.Builder
			c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			if tc.change == nil {
				tc.change = func(c *Config) { c.Encryption, c.CustomerKey = EncryptionSSEC, "env:S3_TEST_CUSTOMER_KEY" }
			}
			tc.change(&c)
			useAll(t, open(t, c))
			for op, got := range f.headers(tc.header) {
				want := slices.Contains(tc.ops, op)
				if want != (got != "") || want && tc.value != "" && got != tc.value {
					t.Errorf("%s came with %q", op, got)
				}
			}
			if text := log.String() + fmt.Sprintf("%+v", c); strings.Contains(text, key64) {
				t.Errorf("the key is in %s", text)
			}
		})
	}
}

// TestAddressOfBucket has the bucket in the path or in the host's name, and the
// region in the signature.
func TestAddressOfBucket(t *testing.T) {
	for _, pathStyle := range []bool{true, false} {
		f, c := newFake(t, false)
		c.PathStyle, c.Region = pathStyle, "eu-central-9"
		if !pathStyle {
			c.Endpoint = strings.Replace(c.Endpoint, "127.0.0.1", "localhost", 1)
		}
		var host, path, signed string
		f.refuse = func(op string, w http.ResponseWriter, r *http.Request) bool {
			host, path, signed = r.Host, r.URL.Path, r.Header.Get("Authorization")
			return false
		}
		s := open(t, c)
		// Every name below localhost is this machine's, but not every resolver knows.
		s.transport.DialContext = lendingDial(toLoopback)
		if err := putBytes(t, s, "a/key", bytesFor(10), false); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(path, "/"+bucket+"/") != pathStyle || strings.HasPrefix(host, bucket+".") == pathStyle {
			t.Errorf("path style %v: sent to %s%s", pathStyle, host, path)
		}
		if !strings.Contains(signed, "/eu-central-9/s3/") {
			t.Errorf("signed as %s", signed)
		}
	}
}

// TestCustomerKeyRefused has keys that would not do, or would be seen by others.
func TestCustomerKeyRefused(t *testing.T) {
	good := base64.StdEncoding.EncodeToString(make([]byte, 32))
	t.Setenv("S3_TEST_CUSTOMER_KEY", good)
	t.Setenv("S3_TEST_SHORT_KEY", good[:40])
	for name, tc := range map[string]struct {
		kind   hbackup.Kind
		change func(*Config)
	}{
		"over http":      {hbackup.KindUsage, func(c *Config) { c.Endpoint = "http://localhost:1" }},
		"in the open":    {hbackup.KindUsage, func(c *Config) { c.CustomerKey = good }},
		"of no use":      {hbackup.KindUsage, func(c *Config) { c.Encryption = EncryptionDefault }},
		"missing":        {hbackup.KindUsage, func(c *Config) { c.CustomerKey = "" }},
		"too short":      {hbackup.KindUsage, func(c *Config) { c.CustomerKey = "env:S3_TEST_SHORT_KEY" }},
		"not there":      {hbackup.KindDenied, func(c *Config) { c.CustomerKey = "env:S3_TEST_NOT_SET" }},
		"file is absent": {hbackup.KindDenied, func(c *Config) { c.CustomerKey = "file:/no/such/file" }},
	} {
		c := configFor(t, gateway)
		c.Endpoint, c.Encryption, c.CustomerKey = "https://localhost:1", EncryptionSSEC, "env:S3_TEST_CUSTOMER_KEY"
		tc.change(&c)
		_, err := New(t.Context(), c)
		if !hbackup.IsKind(err, tc.kind) || strings.Contains(err.Error(), good[:40]) {
			t.Errorf("%s: kind %q: %v", name, hbackup.KindOf(err), err)
		}
	}
	// The endpoint may also come from where the SDK looks.
	f, c := newFake(t, false)
	c.Endpoint, c.Encryption, c.CustomerKey = "", EncryptionSSEC, "env:S3_TEST_CUSTOMER_KEY"
	t.Setenv("AWS_ENDPOINT_URL_S3", f.URL)
	err := putBytes(t, open(t, c), "a/key", bytesFor(10), false)
	checkKind(t, err, hbackup.KindUsage, true)
	if f.count("PutObject") > 0 {
		t.Error("the key was sent")
	}
}

// toLoopback dials this machine, whatever the name.
func toLoopback(ctx context.Context, network, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
}

func TestTagsRefused(t *testing.T) {
	many := map[string]string{}
	for i := range 11 {
		many[fmt.Sprint(i)] = "x"
	}
	for name, tags := range map[string]map[string]string{
		"too many": many, "no name": {"": "x"}, "of AWS": {"aws:x": "y"}, "long name": {strings.Repeat("n", 129): ""}, "long value": {"n": strings.Repeat("ä", 257)},
	} {
		c := configFor(t, gateway)
		c.Tags = tags
		if _, err := New(t.Context(), c); !hbackup.IsKind(err, hbackup.KindUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
