package restore

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hbackup"
	"hbackup/hbase/rpc"
	"hbackup/hbase/snapshot"
)

// TestCompareRegions holds compareRegions against a model that asks for each row
// how many regions hold it.
func TestCompareRegions(t *testing.T) {
	const rows = 8
	key := func(i int) []byte {
		if i == 0 || i == rows {
			return nil
		}
		return []byte{byte('a' + i)}
	}
	rapid.Check(t, func(t *rapid.T) {
		born := uint64(1000)
		p := &plan{attempt: attempt{created: time.UnixMilli(int64(born))}}
		type span struct {
			from, to int
			id       uint64
		}
		planned := map[span]bool{}
		var got []span
		for from := 0; from < rows; {
			to := rapid.IntRange(from+1, rows).Draw(t, "to")
			s := span{from, to, uint64(rapid.IntRange(1, 3).Draw(t, "id"))}
			planned[s] = true
			got = append(got, s)
			p.regions = append(p.regions, snapshot.Region{ID: s.id, StartKey: key(from), EndKey: key(to)})
			from = to
		}
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			if len(got) == 0 {
				break
			}
			i := rapid.IntRange(0, len(got)-1).Draw(t, "which")
			id := uint64(rapid.SampledFrom([]int{1, 999, 1000, 1001, 2000}).Draw(t, "new id"))
			switch s := got[i]; rapid.SampledFrom([]string{"drop", "split", "id", "widen", "twice"}).Draw(t, "change") {
			case "drop":
				got = append(got[:i:i], got[i+1:]...)
			case "split":
				if s.to-s.from > 1 {
					got = append(got[:i:i], got[i+1:]...)
					got = append(got, span{s.from, s.from + 1, id}, span{s.from + 1, s.to, id})
				}
			case "id":
				got[i].id = id
			case "widen":
				got[i].to = min(s.to+1, rows)
			case "twice":
				got = append(got, s)
			}
		}
		want := true
		var held [rows]int
		var regions []rpc.Region
		for _, s := range got {
			for r := s.from; r < s.to; r++ {
				held[r]++
			}
			want = want && (planned[s] || s.id > born)
			regions = append(regions, rpc.Region{RegionInfo: rpc.RegionInfo{ID: int64(s.id), StartKey: key(s.from), EndKey: key(s.to)}})
		}
		for _, n := range held {
			want = want && n == 1
		}
		if err := compareRegions(p, regions); (err == nil) != want {
			t.Fatalf("planned %v, got %v: %v, should be right: %v", planned, got, err, want)
		}
	})
}

func TestIsAnswer(t *testing.T) {
	remote := func(class string) error { return &rpc.RemoteError{Class: class} }
	for err, want := range map[error]bool{
		&rpc.ProcedureError{Remote: &rpc.RemoteError{Class: "java.io.IOException"}}: true,
		&rpc.ProcedureUnknownError{ID: 3}:                                           false,
		&rpc.ProcedureRunningError{ID: 3}:                                           false,
		remote("java.io.IOException"):                                               true,
		fmt.Errorf("connection lost"):                                               false,
	} {
		if got := isAnswer(err); got != want {
			t.Errorf("%T %v: %v", err, err, got)
		}
	}
}

// Something deletes from the archive while HBase clones: the table has all its
// links and lacks the bytes behind one.
func TestACloneWhoseBytesAreGone(t *testing.T) {
	for i := range 7 {
		w := newWorld(t)
		gone := ""
		w.g.after = func(_ int, op string) error {
			if op != "clone" {
				return nil
			}
			n := 0
			return filepath.WalkDir(filepath.Join(w.c.root, "archive"), func(p string, d os.DirEntry, err error) error {
				if err != nil || d.IsDir() || strings.Contains(p, "/.links-") {
					return err
				}
				if n++; n != i+1 {
					return nil
				}
				gone = p
				return os.Remove(p)
			})
		}
		_, err := w.run()
		if !hbackup.IsKind(err, hbackup.KindIncomplete) || !strings.Contains(err.Error(), gone) || !strings.Contains(hbackup.HintOf(err), "drop it") {
			t.Fatalf("without %s: %v (%s)", gone, err, hbackup.HintOf(err))
		}
		// The table is dropped, as the hint says.
		w.g.after = nil
		delete(w.c.tables, restored)
		os.RemoveAll(filepath.Join(w.c.root, "data"))
		os.RemoveAll(filepath.Join(w.c.root, "mobdir"))
		w.c.clones = 0
		if _, err := w.run(); err != nil {
			t.Fatalf("without %s, again: %v (%s)", gone, err, hbackup.HintOf(err))
		}
		w.checkDone()
	}
}

// A compaction takes the links away, and the cleaners then the bytes: that is no loss.
func TestACloneThatWasCompactedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.g.after = func(_ int, op string) error {
		if op != "clone" {
			return nil
		}
		var links []string
		err := filepath.WalkDir(filepath.Join(w.c.root, "data", restored.Path()), func(p string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() && filepath.Base(filepath.Dir(p)) == "d" {
				links = append(links, p)
			}
			return err
		})
		if err != nil || len(links) == 0 {
			t.Errorf("%d links, %v", len(links), err)
		}
		for _, link := range links {
			n, err := snapshot.ParseFileName(filepath.Base(link))
			if err != nil {
				t.Error(err)
			}
			if err := os.Rename(link, filepath.Join(filepath.Dir(link), hexName(900+len(n.File)))); err != nil { // the compacted file
				t.Error(err)
			}
			if err := os.Remove(snapshot.ArchivePath(w.c.root, snapshot.Target{Table: n.Table, Region: n.Region, Family: "d", File: n.File})); err != nil {
				t.Error(err)
			}
		}
		return nil
	}
	res, err := w.run()
	if err != nil || !slices.ContainsFunc(res.Notes, func(n string) bool { return strings.Contains(n, "compacted") }) {
		t.Fatalf("%+v, %v", res, err)
	}
}
