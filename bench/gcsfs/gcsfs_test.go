package gcsfs_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"hbackup/bench"
	"hbackup/bench/benchtest"
	"hbackup/bench/gcsfs"
	"hbackup/storage"
	"hbackup/storage/gcs"
	"hbackup/storage/gcs/gcstest"
)

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

func config() gcs.Config {
	return gcs.Config{Bucket: bucket, Prefix: "of/mine", Endpoint: server.Endpoint()}
}

func TestProtocols(t *testing.T) {
	benchtest.Run(t, benchtest.Suite{Formulas: formulas, Outside: func(t *testing.T) storage.Store {
		s, err := gcs.New(t.Context(), config())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}, Open: func(t *testing.T, folder string) bench.Target {
		target, err := gcsfs.Open(t.Context(), config(), folder, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { target.Close() })
		return target
	}})
}

type counts = benchtest.Counts

// formulas are the requests of the connector.
var formulas = map[bench.Protocol]benchtest.Formula{
	// A file that is merged is 9 requests.
	bench.V1: func(n, tasks int64) (counts, counts) {
		return counts{"get metadata": 6 * tasks, "list": 7 * tasks, "insert": 1, "rewrite": n, "delete": n},
			counts{"get metadata": 4*n + 2*tasks + 4, "list": 3*n + 2*tasks + 3, "rewrite": n, "delete": n + tasks + 3, "insert": tasks + 2}
	},
	bench.V2: func(n, tasks int64) (counts, counts) {
		return counts{"get metadata": 4*n + 4*tasks, "list": 3*n + 4*tasks, "rewrite": n, "delete": n, "insert": tasks},
			counts{"get metadata": 3, "list": 2, "delete": tasks + 2, "insert": 2}
	},
	bench.Magic: func(n, tasks int64) (counts, counts) {
		return counts{"get metadata": n + 2*tasks, "get": n, "list": 3 * tasks, "insert": 2 * tasks, "delete": 2*n + tasks},
			counts{"list": 4, "get": tasks, "complete": n, "list uploads": 1, "get metadata": 3, "insert": 2, "delete": 2*tasks + 2}
	},
	// A file that is moved is 6 requests.
	bench.Manifest: func(n, tasks int64) (counts, counts) {
		return counts{"get metadata": 8 * tasks, "list": 5 * tasks, "insert": tasks, "move": tasks},
			counts{"get metadata": 3*n + 2*tasks + 12, "list": 2*n + 2*tasks + 9, "get": tasks, "move": n + 1, "insert": 3, "delete": 2*tasks + 4}
	},
	bench.Hbackup: func(n, tasks int64) (counts, counts) { return nil, counts{"insert": 3} },
}
