package rpc

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"

	"hbackup"
	"hbackup/hbase/rpc"
)

func testScan(t *testing.T, w *world) {
	ctx := t.Context()
	table := w.newTable(t, "r00100", "r00200")
	w.rows(t, table, 300, "v")
	all := w.read(t, rpc.ScanRequest{Table: table, RowsPerCall: 7})
	if len(all) != 300 || !slices.IsSorted(all) {
		t.Fatalf("%d rows", len(all))
	}
	part := w.read(t, rpc.ScanRequest{Table: table, Start: []byte("r00095"), Stop: []byte("r00205"), FirstCellOnly: true})
	if len(part) != 110 || part[0] != "r00095=v" {
		t.Fatalf("%d rows of a range", len(part))
	}
	if n := len(w.read(t, rpc.ScanRequest{Table: table, Start: []byte("r00100"), Stop: []byte("r00200")})); n != 100 {
		t.Fatalf("%d rows of one region", n)
	}
	// Stopping early, once per region, leaves nothing that disturbs a later scan.
	for range 3 {
		for range w.Scan(ctx, rpc.ScanRequest{Table: table, RowsPerCall: 1}) {
			break
		}
	}

	// Versions, delete markers and tags in a raw scan.
	tags := []byte{0, 9, 8, 0, 0, 0, 0, 0, 1, 0, 0} // one TTL tag: length, type 8, 8 bytes
	cell := func(ts int64, kind rpc.CellType, value string) rpc.Cell {
		return rpc.Cell{Row: []byte("x"), Family: []byte("g"), Qualifier: []byte("q"), Timestamp: ts, Type: kind, Value: []byte(value)}
	}
	tagged := cell(rpc.Now, rpc.CellPut, "tagged")
	tagged.Qualifier, tagged.Tags = []byte("t"), tags
	must(t, w.Put(ctx, table, []rpc.Cell{cell(5, rpc.CellPut, "five"), cell(6, rpc.CellPut, "six"), tagged}))
	must(t, w.Put(ctx, table, []rpc.Cell{cell(6, rpc.CellDelete, "")}))
	var raw []rpc.Cell
	for row, err := range w.Scan(ctx, rpc.ScanRequest{Table: table, Start: []byte("x"), Raw: true, Versions: rpc.AllVersions}) {
		must(t, err)
		raw = append(raw, row.Cells...)
	}
	if len(raw) != 4 {
		t.Fatalf("raw cells %+v", raw)
	}
	if raw[0].Type != rpc.CellDelete || string(raw[1].Value) != "six" || string(raw[2].Value) != "five" {
		t.Fatalf("raw cells %+v", raw)
	}
	got, err := w.Get(ctx, rpc.GetRequest{Table: table, Row: []byte("x"), Columns: []rpc.Column{{Family: "g", Qualifier: []byte("q")}}, Versions: 3})
	must(t, err)
	if len(got.Cells) != 0 {
		// Both versions are older than g's VERSIONS=1 allows beside the deleted one, or one is left.
		if string(got.Cells[0].Value) != "five" {
			t.Fatalf("get %+v", got)
		}
	}
	none, err := w.Get(ctx, rpc.GetRequest{Table: table, Row: []byte("no such row")})
	must(t, err)
	if len(none.Cells) != 0 {
		t.Fatalf("get %+v", none)
	}
}

func testRegions(t *testing.T, w *world) {
	ctx := t.Context()
	table := w.newTable(t, "b", "c,d", "e")
	regions, err := w.Regions(ctx, table)
	must(t, err)
	if len(regions) != 4 || len(regions[0].StartKey) != 0 || len(regions[3].EndKey) != 0 {
		t.Fatalf("regions %+v: the first one is missed when the scan starts at \"T,\"", regions)
	}
	for i, r := range regions {
		if i > 0 && !bytes.Equal(regions[i-1].EndKey, r.StartKey) {
			t.Fatalf("a hole before %q", r.RowKey)
		}
		if r.State != "OPEN" || r.Server.IsZero() || !bytes.Equal(r.Name(), r.RowKey) {
			t.Fatalf("region %+v, name %q", r, r.Name())
		}
		again, err := w.FindRegion(ctx, r.RowKey)
		must(t, err)
		if !bytes.Equal(again.RowKey, r.RowKey) {
			t.Fatalf("found %q", again.RowKey)
		}
	}
	for row, want := range map[string]int{"": 0, "a": 0, "b": 1, "c": 1, "c,d": 2, "d": 2, "e": 3, "z": 3} {
		r, err := w.Locate(ctx, table, []byte(row))
		must(t, err)
		if !bytes.Equal(r.RowKey, regions[want].RowKey) {
			t.Errorf("row %q in %q", row, r.RowKey)
		}
	}
}

// testScanFollowsMoves moves every region back and forth while a scan with tiny
// answers runs: each row comes exactly once.
func testScanFollowsMoves(t *testing.T, w *world) {
	table := w.newTable(t, "r00100", "r00200")
	w.rows(t, table, 300, "v")
	w.disturb(t, table, func(i int) {
		regions, err := w.Regions(t.Context(), table)
		must(t, err)
		s, err := w.ClusterStatus(t.Context())
		must(t, err)
		if len(s.Live) < 2 {
			t.Skip("one region server only")
		}
		r := regions[i%len(regions)]
		to := s.Live[0]
		if to.Addr() == r.Server.Addr() {
			to = s.Live[1]
		}
		must(t, w.MoveRegion(t.Context(), r.Encoded(), to))
	})
}

func testScanFollowsSplits(t *testing.T, w *world) {
	table := w.newTable(t)
	w.rows(t, table, 300, "v")
	must(t, w.FlushTable(t.Context(), table, rpc.Nonce{}))
	w.disturb(t, table, func(i int) {
		if i > 0 {
			return
		}
		r, err := w.Locate(t.Context(), table, nil)
		must(t, err)
		if _, err := w.cluster.Split(t.Context(), table.String(), string(r.Encoded()), []byte("r00150")); err != nil {
			t.Fatal(err)
		}
	})
	if regions, err := w.Regions(t.Context(), table); err != nil || len(regions) != 2 {
		t.Fatalf("%d regions, %v", len(regions), err)
	}
}

// disturb reads the 300 rows of a table and disturbs it after every 60.
func (w *world) disturb(t *testing.T, table hbackup.TableName, disturb func(i int)) {
	t.Helper()
	n := 0
	for row, err := range w.Scan(t.Context(), rpc.ScanRequest{Table: table, RowsPerCall: 10}) {
		must(t, err)
		if want := fmt.Sprintf("r%05d", n); string(row.Key) != want {
			t.Fatalf("row %s where %s should come", row.Key, want)
		}
		if n++; n%60 == 0 {
			disturb(n/60 - 1)
		}
	}
	if n != 300 {
		t.Fatalf("%d rows", n)
	}
}

// testBigRows: a row larger than an answer comes in pieces and is put together.
func testBigRows(t *testing.T, w *world) {
	table := w.newTable(t)
	value := bytes.Repeat([]byte("x"), 500<<10)
	for _, row := range []string{"a", "b", "c"} {
		for i := range 12 {
			must(t, w.Put(t.Context(), table, []rpc.Cell{{
				Row: []byte(row), Family: []byte("f"), Qualifier: fmt.Appendf(nil, "q%02d", i), Timestamp: 1, Type: rpc.CellPut, Value: value}}))
		}
	}
	rows := 0
	for row, err := range w.Scan(t.Context(), rpc.ScanRequest{Table: table}) {
		must(t, err)
		rows++
		if len(row.Cells) != 12 {
			t.Fatalf("row %s has %d cells", row.Key, len(row.Cells))
		}
		for i, c := range row.Cells {
			if string(c.Qualifier) != fmt.Sprintf("q%02d", i) || !bytes.Equal(c.Value, value) {
				t.Fatalf("row %s: cell %d is %s with %d bytes", row.Key, i, c.Qualifier, len(c.Value))
			}
		}
	}
	if rows != 3 {
		t.Fatalf("%d rows", rows)
	}
}

func testManyCalls(t *testing.T, w *world) {
	table := w.newTable(t)
	w.rows(t, table, 100, "v")
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := range 50 {
				row, err := w.Get(t.Context(), rpc.GetRequest{Table: table, Row: fmt.Appendf(nil, "r%05d", i)})
				if err != nil || len(row.Cells) != 1 || string(row.Cells[0].Row) != fmt.Sprintf("r%05d", i) {
					t.Errorf("row %d: %v, %v", i, row, err)
					return
				}
			}
		})
	}
	all.Wait()
}
