package hdfsstore

import (
	"testing"

	"hbackup/bench"
	"hbackup/bench/benchtest"
	"hbackup/bench/hdfsfs"
	"hbackup/storage"
	"hbackup/storage/hdfs"
)

type counts = benchtest.Counts

// TestCommitters runs the benchmark's protocols with the calls that they make to
// the name node.
func TestCommitters(t *testing.T) {
	place, err := storage.ParseLocation(directory(t))
	if err != nil {
		t.Fatal(err)
	}
	// A file with bytes in it, and the library's calls for it.
	written := func(n int64, more counts) counts {
		for _, call := range []string{"create", "addBlock", "writeBlock", "complete"} {
			more[call] += n
		}
		return more
	}
	benchtest.Run(t, benchtest.Suite{Repeated: "complete", Formulas: map[bench.Protocol]benchtest.Formula{
		bench.V1: func(n, tasks int64) (counts, counts) {
			return counts{"getFileInfo": 3 * tasks, "rename2": tasks},
				counts{"getListing": 1 + tasks, "getFileInfo": n + 2*tasks + 3, "rename2": n, "delete": 1, "create": 1, "complete": 1}
		},
		bench.V2: func(n, tasks int64) (counts, counts) {
			return counts{"getFileInfo": n + 4*tasks, "getListing": tasks, "rename2": n},
				counts{"getFileInfo": 2, "delete": 1, "create": 1, "complete": 1}
		},
		bench.Manifest: func(n, tasks int64) (counts, counts) {
			return written(tasks, counts{"getListing": tasks, "getFileInfo": 5 * tasks, "rename2": tasks}),
				written(1, counts{"getListing": 2, "getBlockLocations": tasks, "readBlock": tasks, "getFileInfo": 2*tasks + 8, "rename2": n + 1, "delete": tasks + 1})
		},
		bench.Hbackup: func(n, tasks int64) (counts, counts) {
			return nil, written(3, counts{"getFileInfo": 3, "mkdirs": 2, "rename2": 3})
		},
	}, Outside: func(t *testing.T) storage.Store {
		s, err := hdfs.Open(place, hdfs.Config{User: cluster.User()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}, Open: func(t *testing.T, folder string) bench.Target {
		target, err := hdfsfs.Open(place, hdfs.Config{User: cluster.User()}, folder, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { target.Close() })
		return target
	}})
}
