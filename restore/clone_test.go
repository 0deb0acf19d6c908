package restore

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

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
