package rpc

import (
	"bytes"
	"context"
	"iter"
	"time"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// Row is the cells of one row, in HBase's order. It shares memory with other
// rows of the same answer.
type Row struct {
	Key   []byte
	Cells []Cell
}

// Column selects a family, or one column of it when Qualifier is not nil.
type Column struct {
	Family    hbackup.Family
	Qualifier []byte
}

// ScanRequest selects what to read of a table. The zero value, with a table,
// reads the newest version of everything.
type ScanRequest struct {
	Table    hbackup.TableName
	Start    []byte // first row; empty: the table's begin
	Stop     []byte // row before which to stop; empty: the table's end
	Columns  []Column
	From, To time.Time // versions of [From, To), milliseconds; zero: unbounded
	Versions int       // per column; 0: 1. AllVersions for all
	Raw      bool      // deleted cells and the delete markers too, until a compaction drops them

	FirstCellOnly bool // one cell of each row: for counting
	RowsPerCall   int  // default 1000
}

// AllVersions asks for every version that is kept.
const AllVersions = 1<<31 - 1

// scanBytes is about what one answer of a scan may hold; a larger row comes in pieces.
const scanBytes = 2 << 20

// Scan reads rows in key order, over all regions. Regions that move, split or
// merge meanwhile are followed: no row is left out or given twice. It ends with
// an error when servers are away for longer than Config.RetryFor, and the
// sequence holds that error as its last element.
func (c *Client) Scan(ctx context.Context, r ScanRequest) iter.Seq2[Row, error] {
	const op = "scan table"
	return func(yield func(Row, error) bool) {
		if err := checkTable(op, r.Table); err != nil {
			yield(Row{}, err)
			return
		}
		rows := r.RowsPerCall
		if rows <= 0 {
			rows = 1000
		}
		for row, err := range c.scan(ctx, c.locateIn(r.Table), r.message(), uint32(rows)) {
			if !yield(row, c.fail(op, r.Table.String(), err)) {
				return
			}
		}
	}
}

func (r ScanRequest) message() *hbpb.Scan {
	s := &hbpb.Scan{
		StartRow:      r.Start,
		StopRow:       r.Stop,
		MaxVersions:   proto.Uint32(uint32(max(r.Versions, 1))),
		MaxResultSize: proto.Uint64(scanBytes),
		CacheBlocks:   proto.Bool(false), // reading a whole table must not push out what others read
		TimeRange:     timeRange(r.From, r.To),
		Column:        columns(r.Columns),
	}
	if r.Raw {
		s.Attribute = append(s.Attribute, &hbpb.NameBytesPair{Name: proto.String("_raw_"), Value: []byte{0xFF}})
	}
	if r.FirstCellOnly {
		s.Filter = &hbpb.Filter{Name: proto.String("org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter")}
	}
	return s
}

func timeRange(from, to time.Time) *hbpb.TimeRange {
	if from.IsZero() && to.IsZero() {
		return nil
	}
	tr := &hbpb.TimeRange{}
	if !from.IsZero() {
		tr.From = proto.Uint64(uint64(from.UnixMilli()))
	}
	if !to.IsZero() {
		tr.To = proto.Uint64(uint64(to.UnixMilli()))
	}
	return tr
}

func columns(in []Column) []*hbpb.Column {
	var out []*hbpb.Column
	for _, c := range in {
		p := &hbpb.Column{Family: []byte(c.Family)}
		if c.Qualifier != nil {
			p.Qualifier = [][]byte{c.Qualifier}
		}
		out = append(out, p)
	}
	return out
}

// location is where the region of a row can be read.
type location struct {
	server ServerName
	region []byte // full name
	end    []byte // its end key; empty: the last region
	forget func() // called when the server turned out not to have it
}

func (c *Client) locateIn(t hbackup.TableName) func(context.Context, []byte) (location, error) {
	return func(ctx context.Context, row []byte) (location, error) {
		r, err := c.locateRow(ctx, t, row)
		return location{server: r.Server, region: r.RowKey, end: r.EndKey, forget: func() {}}, err
	}
}

// scan reads region after region. What was read last is kept, so that a
// scanner that got lost is opened again right behind it.
func (c *Client) scan(ctx context.Context, locate func(context.Context, []byte) (location, error), spec *hbpb.Scan, rows uint32) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		spec := proto.Clone(spec).(*hbpb.Scan)
		progress, failures := time.Now(), 0
		for {
			at, err := locate(ctx, spec.StartRow)
			if err == nil {
				s := regionScanner{c: c, at: at, spec: spec, rows: rows}
				err = s.read(ctx, func(row Row) bool {
					progress, failures = time.Now(), 0
					spec.StartRow, spec.IncludeStartRow = row.Key, proto.Bool(false)
					return yield(row, nil)
				})
				if s.stopped {
					return
				}
			}
			if err == nil {
				if len(at.end) == 0 || len(spec.StopRow) > 0 && bytes.Compare(at.end, spec.StopRow) >= 0 {
					return
				}
				spec.StartRow, spec.IncludeStartRow = at.end, proto.Bool(true)
				progress, failures = time.Now(), 0
				continue
			}
			pause := c.wait.pause(failures)
			failures++
			switch {
			case ctx.Err() != nil:
				err = interrupted(ctx, err)
			case !reopens(err), time.Since(progress)+pause > c.cfg.RetryFor:
			default:
				if at.forget != nil {
					at.forget()
				}
				c.cfg.Log.Debug("scanner opened again", "pause", pause, "error", err)
				if sleepErr := sleep(ctx, pause); sleepErr == nil {
					continue
				}
				err = interrupted(ctx, err)
			}
			yield(Row{}, err)
			return
		}
	}
}

// reopens reports whether a failed scanner may be opened again elsewhere.
func reopens(err error) bool {
	if isRemote(err, "UnknownScannerException", "ScannerResetException", "OutOfOrderScannerNextException") {
		return true // flagged do-not-retry, which means this scanner only
	}
	return retryOf(err, true) != retryNever
}
