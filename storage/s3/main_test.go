package s3

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"hbackup/e2e/servers"
)

// One gateway over http and one over TLS serve all tests; each test has a prefix
// of its own. The third one's buckets can be versioned and locked.
const bucket = "backups"

var gateway, gatewayTLS, gatewayVersions *servers.S3

func TestMain(m *testing.M) {
	// Keys of the machine must not get into the tests.
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "AWS_") {
			os.Unsetenv(name)
		}
	}
	os.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	os.Setenv("AWS_CONFIG_FILE", os.DevNull)
	os.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
	if keys := os.Getenv(listServerEnv); keys != "" {
		serveListing(keys)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	for _, g := range []struct {
		to **servers.S3
		o  servers.S3Options
	}{{&gateway, servers.S3Options{}}, {&gatewayTLS, servers.S3Options{TLS: true}}, {&gatewayVersions, servers.S3Options{Versions: true, Users: true}}} {
		g.o.Buckets = []string{bucket}
		s, err := servers.StartS3(ctx, g.o)
		if err != nil {
			fmt.Fprintln(os.Stderr, "start the S3 gateway:", err)
			return 1
		}
		defer s.Stop()
		*g.to = s
	}
	os.Setenv("S3_TEST_ACCESS", gateway.AccessKey)
	os.Setenv("S3_TEST_SECRET", gateway.SecretKey)
	return m.Run()
}

var (
	prefixMu sync.Mutex
	prefixes int
)

// configFor gives a configuration for a fresh prefix on the gateway.
func configFor(t testing.TB, g *servers.S3) Config {
	prefixMu.Lock()
	prefixes++
	n := prefixes
	prefixMu.Unlock()
	c := Config{
		Bucket: bucket, Prefix: fmt.Sprintf("t%d/hbase", n), Region: g.Region, Endpoint: g.Endpoint(), PathStyle: true,
		Credentials: Credentials{AccessKey: "env:S3_TEST_ACCESS", SecretKey: "env:S3_TEST_SECRET"},
		PartSize:    minPartSize,
		Logger:      slog.New(slog.DiscardHandler),
		backoff:     2 * time.Millisecond,
	}
	if g == gatewayTLS {
		c.CAFile = g.CAFile()
	}
	return c
}

func open(t testing.TB, c Config) *Store {
	t.Helper()
	s, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// openUploads gives the keys of the uploads below the store's prefix that were
// neither completed nor aborted.
func openUploads(t testing.TB, s *Store) []string {
	t.Helper()
	prefix := s.full("")
	out, err := s.client.ListMultipartUploads(context.WithoutCancel(t.Context()), &s3.ListMultipartUploadsInput{Bucket: &s.c.Bucket, Prefix: &prefix})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, u := range out.Uploads {
		keys = append(keys, *u.Key)
	}
	return keys
}
