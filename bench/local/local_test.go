package local_test

import (
	"path/filepath"
	"testing"

	"hbackup/bench"
	"hbackup/bench/benchtest"
	"hbackup/bench/local"
	"hbackup/storage"
	"hbackup/storage/file"
)

func TestProtocols(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "backups")
	place := storage.Place{Scheme: storage.SchemeFile, Path: dir}
	benchtest.Run(t, benchtest.Suite{Formulas: map[bench.Protocol]benchtest.Formula{
		bench.V1: func(n, tasks int64) (benchtest.Counts, benchtest.Counts) {
			return benchtest.Counts{"stat": 3 * tasks, "rename": tasks},
				benchtest.Counts{"list": 1 + tasks, "stat": tasks + n, "rename": n, "delete": 1, "create": 1}
		},
		bench.V2: func(n, tasks int64) (benchtest.Counts, benchtest.Counts) {
			return benchtest.Counts{"stat": 3*tasks + n, "list": tasks, "rename": n}, benchtest.Counts{"delete": 1, "create": 1}
		},
		bench.Manifest: func(n, tasks int64) (benchtest.Counts, benchtest.Counts) {
			return benchtest.Counts{"list": tasks, "stat": 2 * tasks, "create": tasks, "delete": tasks, "rename": tasks},
				benchtest.Counts{"list": 2, "stat": 3, "open": tasks, "rename": n + 1, "create": 1, "delete": 1 + tasks + 1}
		},
		bench.Hbackup: func(n, tasks int64) (benchtest.Counts, benchtest.Counts) {
			return nil, benchtest.Counts{"put": 3}
		},
	}, Outside: func(t *testing.T) storage.Store {
		s, err := file.Open(place)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}, Open: func(t *testing.T, folder string) bench.Target {
		target, err := local.Open(place, folder)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { target.Close() })
		return target
	}})
}
