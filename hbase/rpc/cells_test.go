package rpc

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"hbackup/hbase/hbpb"
)

func cellGen() *rapid.Generator[Cell] {
	return rapid.Custom(func(t *rapid.T) Cell {
		blob := func(name string, least, most int) []byte {
			return rapid.SliceOfN(rapid.Byte(), least, most).Draw(t, name)
		}
		return Cell{
			Row: blob("row", 1, 40), Family: blob("family", 0, 20), Qualifier: blob("qualifier", 0, 40),
			Timestamp: rapid.Int64().Draw(t, "timestamp"), Type: CellType(rapid.Byte().Draw(t, "type")),
			Value: blob("value", 0, 60), Tags: blob("tags", 0, 30),
		}
	})
}

func TestCellBlockRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.SliceOf(cellGen()).Draw(t, "cells")
		var block []byte
		var err error
		for _, c := range cells {
			if block, err = appendCell(block, c); err != nil {
				t.Fatal(err)
			}
		}
		got, rest, err := takeCells(append(block, 1, 2), len(cells))
		if err != nil || !bytes.Equal(rest, []byte{1, 2}) {
			t.Fatal(err, rest)
		}
		for i := range cells {
			if !equalCells(cells[i], got[i]) {
				t.Fatalf("%+v instead of %+v", got[i], cells[i])
			}
		}
		// Cut anywhere: an error, never a panic or a wrong cell.
		if len(block) > 0 {
			cut := rapid.IntRange(0, len(block)-1).Draw(t, "cut")
			if _, _, err := takeCells(block[:cut], len(cells)); !errors.Is(err, errCorrupt) {
				t.Fatalf("cut at %d of %d: %v", cut, len(block), err)
			}
		}
	})
}

// The bytes as a real server sends them.
func TestCellBlockBytes(t *testing.T) {
	want := []byte{
		0, 0, 0, 31, 0, 0, 0, 16, 0, 0, 0, 2,
		0, 1, 'r', 1, 'f', 'q', 'q', 0, 0, 0, 0, 0, 0, 0, 5, 4,
		'v', 'v', 0, 3, 9, 8, 7,
	}
	cell := Cell{Row: []byte("r"), Family: []byte("f"), Qualifier: []byte("qq"), Timestamp: 5, Type: CellPut, Value: []byte("vv"), Tags: []byte{9, 8, 7}}
	got, err := appendCell(nil, cell)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%v, %v", got, err)
	}
}

func TestCellLimits(t *testing.T) {
	for name, c := range map[string]Cell{
		"no row":      {},
		"long row":    {Row: make([]byte, math.MaxInt16+1)},
		"long family": {Row: []byte("r"), Family: make([]byte, 128)},
		"long tags":   {Row: []byte("r"), Tags: make([]byte, 1<<16)},
		"long value":  {Row: []byte("r"), Value: make([]byte, maxRequest)},
	} {
		if _, err := appendCell(nil, c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, _, err := takeCells(make([]byte, 100), math.MaxInt32); !errors.Is(err, errCorrupt) {
		t.Errorf("two thousand million cells in 100 bytes: %v", err)
	}
}

// Cells inside the message, as servers send them to clients without a codec.
func TestResultCells(t *testing.T) {
	pb := &hbpb.Result{Cell: []*hbpb.Cell{{
		Row: []byte("r"), Family: []byte("f"), Qualifier: []byte("q"), Timestamp: proto.Uint64(7), CellType: hbpb.CellType_PUT.Enum(), Value: []byte("v"), Tags: []byte{1},
	}}}
	want := Cell{Row: []byte("r"), Family: []byte("f"), Qualifier: []byte("q"), Timestamp: 7, Type: CellPut, Value: []byte("v"), Tags: []byte{1}}
	got, _, err := resultCells(pb, nil)
	if err != nil || len(got) != 1 || !equalCells(got[0], want) {
		t.Fatalf("%+v, %v", got, err)
	}
	block, err := appendCell(nil, want)
	if err != nil {
		t.Fatal(err)
	}
	got, rest, err := resultCells(&hbpb.Result{AssociatedCellCount: proto.Int32(1)}, block)
	if err != nil || len(got) != 1 || len(rest) != 0 || !equalCells(got[0], want) {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, _, err := resultCells(&hbpb.Result{AssociatedCellCount: proto.Int32(-1)}, block); !errors.Is(err, errCorrupt) {
		t.Fatal(err)
	}
}

func FuzzCellBlock(f *testing.F) {
	cell, err := appendCell(nil, Cell{Row: []byte("row"), Family: []byte("f"), Qualifier: []byte("q"), Timestamp: 1, Type: CellDelete, Value: []byte("v"), Tags: []byte{0, 1, 65}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(cell, 1)
	f.Add(append(cell, cell...), 2)
	f.Add(cell[:20], 1)
	f.Add([]byte{0xFF, 0xFF, 0xFF, 0xFF}, -1)
	f.Fuzz(func(t *testing.T, block []byte, n int) {
		cells, rest, err := takeCells(block, n)
		if err != nil {
			if !errors.Is(err, errCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if len(cells) != n || len(rest) > len(block) {
			t.Fatal(len(cells), n, len(rest))
		}
		// What was read and can be written reads the same again.
		for _, c := range cells {
			b, err := appendCell(nil, c)
			if err != nil {
				continue
			}
			again, _, err := nextCell(b)
			if err != nil || !equalCells(c, again) {
				t.Fatalf("%+v becomes %+v, %v", c, again, err)
			}
		}
	})
}
