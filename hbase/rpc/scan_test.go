package rpc

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hbackup"
)

// TestScanUnderUnrest: every row exactly once, in order, whole, whatever the
// servers do meanwhile.
func TestScanUnderUnrest(t *testing.T) {
	noLeaks(t)
	m := newScanModel(t)
	c := connect(t, nil, m.servers[0])
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c,\x00\xff]{1,4}`), 0, 40, rapid.ID[string]).Draw(t, "rows")
		slices.Sort(keys)
		var rows []Row
		for _, k := range keys {
			row := Row{Key: []byte(k)}
			for i := range rapid.IntRange(1, 6).Draw(t, "cells") {
				row.Cells = append(row.Cells, Cell{Row: row.Key, Family: []byte("f"), Qualifier: fmt.Append(nil, i), Timestamp: 5, Type: CellPut, Value: []byte(k)})
			}
			rows = append(rows, row)
		}
		bounds := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c,]{1,2}`), 0, 4, rapid.ID[string]).Draw(t, "bounds")
		slices.Sort(bounds)
		m.reset(rows, bounds, rapid.Uint64().Draw(t, "seed"), rapid.SampledFrom([]int{0, 5, 25}).Draw(t, "unrest"))
		r := ScanRequest{Table: tbl, RowsPerCall: rapid.IntRange(0, 3).Draw(t, "rows per call")}
		if rapid.Bool().Draw(t, "bounded") {
			r.Start = []byte(rapid.StringMatching(`[a-c,]{0,2}`).Draw(t, "start"))
			r.Stop = []byte(rapid.StringMatching(`[a-c,]{0,2}`).Draw(t, "stop"))
		}
		var want []Row
		for _, row := range rows {
			if bytes.Compare(row.Key, r.Start) >= 0 && (len(r.Stop) == 0 || bytes.Compare(row.Key, r.Stop) < 0) {
				want = append(want, row)
			}
		}
		stopAt := math.MaxInt
		if rapid.Bool().Draw(t, "stops early") && len(want) > 0 {
			stopAt = rapid.IntRange(1, len(want)).Draw(t, "after")
			want = want[:stopAt]
		}
		var got []Row
		for row, err := range c.Scan(context.Background(), r) {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, row); len(got) == stopAt {
				break
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d rows instead of %d", len(got), len(want))
		}
		for i := range want {
			if !bytes.Equal(got[i].Key, want[i].Key) || !slices.EqualFunc(got[i].Cells, want[i].Cells, equalCells) {
				t.Fatalf("row %d: %+v instead of %+v", i, got[i], want[i])
			}
		}
	})
	for _, what := range []string{"split", "move", "hang", "expire", "queue", "opening"} {
		if m.lost[what] == 0 {
			t.Errorf("%q never happened", what)
		}
	}
}

func equalCells(a, b Cell) bool {
	return bytes.Equal(a.Row, b.Row) && bytes.Equal(a.Family, b.Family) && bytes.Equal(a.Qualifier, b.Qualifier) &&
		a.Timestamp == b.Timestamp && a.Type == b.Type && bytes.Equal(a.Value, b.Value) && bytes.Equal(a.Tags, b.Tags)
}

// Regions and Locate see the table's own regions only, the first one included,
// and no split parents.
func TestRegionsAndLocate(t *testing.T) {
	noLeaks(t)
	m := newScanModel(t)
	c := connect(t, nil, m.servers[0])
	rapid.Check(t, func(t *rapid.T) {
		bounds := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c,]{1,3}`), 0, 6, rapid.ID[string]).Draw(t, "bounds")
		slices.Sort(bounds)
		m.reset(nil, bounds, 1, 0)
		regions, err := c.Regions(context.Background(), tbl)
		if err != nil {
			t.Fatal(err)
		}
		var starts []string
		for i, r := range regions {
			starts = append(starts, string(r.StartKey))
			if i > 0 && !bytes.Equal(regions[i-1].EndKey, r.StartKey) || !bytes.Equal(r.Name(), r.RowKey) || r.State != "OPEN" || r.Server.StartCode != 1 {
				t.Fatalf("region %+v", r)
			}
		}
		if want := append([]string{""}, bounds...); !slices.Equal(starts, want) {
			t.Fatalf("start keys %q instead of %q", starts, want)
		}
		row := []byte(rapid.StringMatching(`[a-c,]{0,3}`).Draw(t, "row"))
		r, err := c.Locate(context.Background(), tbl, row)
		if err != nil || !r.Contains(row) || r.Split {
			t.Fatalf("row %q in %+v, %v", row, r, err)
		}
		again, err := c.FindRegion(context.Background(), r.RowKey)
		if err != nil || again.Encoded() != r.Encoded() {
			t.Fatalf("%+v, %v", again, err)
		}
	})
	_, err := c.Regions(t.Context(), mustTable("ns:none"))
	wantKind(t, err, hbackup.KindNotFound)
	_, err = c.FindRegion(t.Context(), []byte("ns:t,,99.00000000000000000000000000000000."))
	wantKind(t, err, hbackup.KindNotFound)
}

// A row that no region holds is in transition, not in the region before it.
func TestLocateInHole(t *testing.T) {
	noLeaks(t)
	m := newScanModel(t)
	c := connect(t, nil, m.servers[0])
	m.reset(nil, []string{"b", "c"}, 1, 0)
	m.mu.Lock()
	m.regions = slices.Delete(m.regions, 1, 2)
	m.mu.Unlock()
	_, err := c.Locate(t.Context(), tbl, []byte("bb"))
	wantKind(t, err, hbackup.KindUnavailable)
	if r, err := c.Locate(t.Context(), tbl, []byte("c")); err != nil || string(r.StartKey) != "c" {
		t.Fatalf("%+v, %v", r, err)
	}
}

// A region that never comes back ends the scan with an error, in bounded time.
func TestScanGivesUp(t *testing.T) {
	noLeaks(t)
	m := newScanModel(t)
	c := connect(t, func(cfg *Config) { cfg.RetryFor = 30 * time.Millisecond }, m.servers[0])
	m.reset([]Row{{Key: []byte("a"), Cells: []Cell{{Row: []byte("a")}}}}, nil, 1, 0)
	m.servers[1].on(ClientService, func(c *fakeCall) { c.fail("NotServingRegionException", "gone", false) })
	m.mu.Lock()
	m.regions[0].server = 1
	m.mu.Unlock()
	n := 0
	for _, err := range c.Scan(t.Context(), ScanRequest{Table: tbl}) {
		n++
		wantKind(t, err, hbackup.KindUnavailable)
	}
	if n != 1 {
		t.Fatalf("%d elements", n)
	}
}
