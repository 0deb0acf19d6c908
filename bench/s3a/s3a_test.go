package s3a_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"hbackup/bench"
	"hbackup/bench/benchtest"
	"hbackup/bench/s3a"
	"hbackup/e2e/servers"
	"hbackup/storage"
	"hbackup/storage/s3"
)

const bucket = "backups"

var gateway *servers.S3

func TestMain(m *testing.M) {
	// Keys of the machine must not get into the tests.
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "AWS_") {
			os.Unsetenv(name)
		}
	}
	os.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var err error
	if gateway, err = servers.StartS3(ctx, servers.S3Options{Buckets: []string{bucket}}); err != nil {
		fmt.Fprintln(os.Stderr, "start the S3 gateway:", err)
		return 1
	}
	defer gateway.Stop()
	os.Setenv("S3_TEST_ACCESS", gateway.AccessKey)
	os.Setenv("S3_TEST_SECRET", gateway.SecretKey)
	return m.Run()
}

func config() s3.Config {
	return s3.Config{Bucket: bucket, Prefix: "of/mine", Region: gateway.Region, Endpoint: gateway.Endpoint(), PathStyle: true,
		Credentials: s3.Credentials{AccessKey: "env:S3_TEST_ACCESS", SecretKey: "env:S3_TEST_SECRET"}}
}

func TestProtocols(t *testing.T) {
	benchtest.Run(t, benchtest.Suite{Formulas: formulas, Outside: func(t *testing.T) storage.Store {
		s, err := s3.New(t.Context(), config())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}, Open: func(t *testing.T, folder string) bench.Target {
		target, err := s3a.Open(t.Context(), config(), folder, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { target.Close() })
		return target
	}})
}

type counts = benchtest.Counts

// formulas are the requests of S3A. With all pools of one, what happens when the
// last file leaves a directory is always the same: its marker is written.
var formulas = map[bench.Protocol]benchtest.Formula{
	// A file is 10 requests in the job's commit; a task's directory 14 and two of
	// each file.
	bench.V1: func(n, tasks int64) (counts, counts) {
		return counts{"head": 6*tasks + n, "list": 7 * tasks, "copy": n, "batch delete": tasks, "put": 1},
			counts{"list": 1 + 2*tasks + 3*n + 3 + 1, "head": tasks + 5*n + 1, "copy": n, "delete": n, "put": tasks + 1, "batch delete": 1}
	},
	bench.V2: func(n, tasks int64) (counts, counts) {
		return counts{"head": 3*tasks + 5*n, "list": 4*tasks + 3*n, "copy": n, "delete": n, "put": tasks},
			counts{"head": 1, "list": 3 + 1, "batch delete": 1, "put": 1}
	},
	// Create and part, marker and record were written before; a task reads each
	// record with a HEAD and a GET, and the job completes.
	bench.Magic: func(n, tasks int64) (counts, counts) {
		job := counts{"list": 1 + 3 + 1, "get": tasks, "complete": n, "put": 1, "list uploads": 1, "head": 1 + 1, "batch delete": 1, "delete": 1}
		if tasks == 1 { // its list is all that there is to delete
			job["batch delete"], job["delete"] = 0, 2
		}
		return counts{"list": 3 * tasks, "head": n + tasks, "get": n, "put": tasks, "batch delete": tasks, "delete": tasks}, job
	},
	// A rename is 8 requests; a list is written aside and renamed in 13.
	bench.Manifest: func(n, tasks int64) (counts, counts) {
		job := counts{"list": 1 + 2*n + 5 + 1 + 1 + 2*tasks + 3, "get": tasks, "head": 4*n + 7 + 1 + tasks + 1, "copy": n + 1, "delete": n + 1 + tasks,
			"put": 1 + 1, "batch delete": 2}
		if tasks == 1 {
			job["batch delete"]--
			job["delete"]++
		}
		return counts{"list": 5 * tasks, "head": 6 * tasks, "put": tasks, "copy": tasks, "delete": tasks}, job
	},
	bench.Hbackup: func(n, tasks int64) (counts, counts) { return nil, counts{"put": 3} },
}
