package gcs

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hbackup/storage/gcs/gcstest"
)

// One server without credentials serves most tests; each has a prefix of its own.
const bucket = "backups"

var server *gcstest.Server

func TestMain(m *testing.M) {
	// What the machine has of credentials must not get into the tests.
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "GOOGLE_") || strings.HasPrefix(name, "STORAGE_EMULATOR") || strings.HasPrefix(name, "CLOUDSDK_") || strings.HasPrefix(name, "GCE_") {
			os.Unsetenv(name)
		}
	}
	if delay := os.Getenv(serveEnv); delay != "" {
		os.Exit(serve(delay))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if server, err = gcstest.Start("", gcstest.Options{Buckets: []string{bucket}}); err != nil {
		fmt.Fprintln(os.Stderr, "start the server:", err)
		return 1
	}
	defer server.Close()
	return m.Run()
}

var prefixes atomic.Int64

// configFor gives a configuration for a fresh prefix on the server.
func configFor(testing.TB) Config {
	return Config{
		Bucket: bucket, Prefix: fmt.Sprintf("t%d/hbase", prefixes.Add(1)), Endpoint: server.Endpoint(),
		ChunkSize: chunkQuantum,
		backoff:   time.Millisecond,
	}
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
