package bench_test

import (
	"bytes"
	"strings"
	"testing"

	"hbackup"
	"hbackup/bench"
	"hbackup/bench/benchtest"
	"hbackup/storage"
	"hbackup/storage/mem"
)

type counts = benchtest.Counts

// What the protocols ask for by themselves, before a file system makes more of it.
func TestProtocols(t *testing.T) {
	s := mem.New("protocols")
	benchtest.Run(t, benchtest.Suite{
		Formulas: map[bench.Protocol]benchtest.Formula{
			bench.V1: func(n, tasks int64) (counts, counts) {
				return counts{"stat": 3 * tasks, "copy": n, "delete": n},
					counts{"list": 1 + tasks, "stat": tasks + n, "copy": n, "delete": n + 1, "put": 1}
			},
			bench.V2: func(n, tasks int64) (counts, counts) {
				return counts{"stat": 3*tasks + n, "list": tasks, "copy": n, "delete": n}, counts{"delete": 1, "put": 1}
			},
			bench.Magic: func(n, tasks int64) (counts, counts) {
				return counts{"list": tasks, "get": n, "put": tasks, "delete": tasks},
					counts{"list": 1, "get": tasks, "complete": n, "put": 1, "list uploads": 1, "delete": 2}
			},
			bench.Manifest: func(n, tasks int64) (counts, counts) {
				return counts{"list": tasks, "delete": 2 * tasks, "put": tasks, "stat": 2 * tasks, "copy": tasks},
					counts{"list": 2, "get": tasks, "copy": n + 1, "delete": n + 3, "put": 1, "stat": 3}
			},
			bench.Hbackup: func(n, tasks int64) (counts, counts) { return nil, counts{"put": 3} },
		},
		Outside: func(*testing.T) storage.Store { return s },
		Open:    func(_ *testing.T, folder string) bench.Target { return benchtest.NewMem(s, folder) },
	})
}

// A directory in memory is gone with its last file, which v1 and v2 look at before.
func options(p bench.Protocol) bench.Options {
	return bench.Options{Protocols: []bench.Protocol{p}, Files: 6, Size: 100, Tasks: 2, Parallel: 1, Pool: 1}
}

// An outcome that is not what was written is never given as a result.
func TestAWrongOutcomeIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		protocols []bench.Protocol
		spoil     func(*benchtest.Mem)
		kind      hbackup.Kind
	}{
		"other bytes": {[]bench.Protocol{bench.V1, bench.V2, bench.Magic, bench.Manifest}, func(m *benchtest.Mem) {
			m.Spoil = func(path string, data []byte) []byte {
				if strings.HasSuffix(path, "/part-00003") && !strings.Contains(path, "_temporary") {
					data[50] ^= 1
				}
				return data
			}
		}, hbackup.KindCorrupt},
		"bytes missing": {[]bench.Protocol{bench.V1, bench.V2, bench.Magic, bench.Manifest}, func(m *benchtest.Mem) {
			m.Spoil = func(path string, data []byte) []byte {
				if strings.HasSuffix(path, "/part-00005") {
					data = data[:99]
				}
				return data
			}
		}, hbackup.KindCorrupt},
		"left over":         {[]bench.Protocol{bench.Magic, bench.Manifest}, func(m *benchtest.Mem) { m.Keep = true }, hbackup.KindCorrupt},
		"uploads left open": {[]bench.Protocol{bench.Magic}, func(m *benchtest.Mem) { m.Hold = true }, hbackup.KindCorrupt},
	} {
		for _, p := range c.protocols {
			s := mem.New("spoilt")
			target := benchtest.NewMem(s, "folder")
			c.spoil(target)
			results, err := bench.Run(t.Context(), target, options(p), nil)
			if !hbackup.IsKind(err, c.kind) || len(results) > 0 {
				t.Errorf("%s with %s: %v, %v", p, name, results, err)
			}
		}
	}
}

// Ours moves no byte of a file after the last one was written: what is sent are
// the three objects of the commit, byte for byte.
func TestOursMovesNoData(t *testing.T) {
	const size = 1 << 20
	s := mem.New("ours")
	o := options(bench.Hbackup)
	o.Size = size
	results, err := bench.Run(t.Context(), benchtest.NewMem(s, "folder"), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := results[0].Commit().Traffic
	if c.Total() != 3 || c.Copied != 0 || c.Down != 0 || c.Up == 0 || c.Up >= size {
		t.Errorf("%+v", c)
	}
	if w := results[0].Write.Traffic; w.Up != int64(o.Files)*size {
		t.Errorf("written: %+v", w)
	}
}

func TestFoldersDiffer(t *testing.T) {
	a, b := bench.NewFolder(), bench.NewFolder()
	if a == b || !bytes.HasPrefix([]byte(a), []byte(bench.FolderPrefix)) {
		t.Errorf("%s, %s", a, b)
	}
}
