package rpc

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"hbackup/hbase/hbpb"
)

func TestRequestFrame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		header := &hbpb.RequestHeader{CallId: proto.Uint32(rapid.Uint32().Draw(t, "id")), MethodName: proto.String("Scan"), RequestParam: proto.Bool(true)}
		param := &hbpb.ScanRequest{ScannerId: proto.Uint64(rapid.Uint64().Draw(t, "scanner"))}
		if rapid.Bool().Draw(t, "empty") {
			param = &hbpb.ScanRequest{}
		}
		cells := rapid.SliceOf(rapid.Byte()).Draw(t, "cells")
		frame, err := requestFrame(header, param, cells)
		if err != nil {
			t.Fatal(err)
		}
		body, err := readFrame(bytes.NewReader(frame), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		head, rest, err := cutDelimited(body)
		if err != nil {
			t.Fatal(err)
		}
		p, rest, err := cutDelimited(rest)
		var h2 hbpb.RequestHeader
		var p2 hbpb.ScanRequest
		if err != nil || proto.Unmarshal(head, &h2) != nil || proto.Unmarshal(p, &p2) != nil ||
			!proto.Equal(&h2, header) || !proto.Equal(&p2, param) || !bytes.Equal(rest, cells) {
			t.Fatalf("%v %v %v %v", err, &h2, &p2, rest)
		}
	})
}

// A length that lies costs no memory: what is read grows with what arrives.
func TestReadFrameBounds(t *testing.T) {
	for name, b := range map[string][]byte{
		"zero":     {0, 0, 0, 0},
		"over":     {0x10, 0, 0, 1, 1},
		"negative": {0xFF, 0xFF, 0xFF, 0xFF},
	} {
		if _, err := readFrame(bytes.NewReader(b), 256<<20); !errors.Is(err, errCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	before := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := readFrame(bytes.NewReader([]byte{0x0F, 0, 0, 0, 1}), 256<<20); !errors.Is(err, io.ErrUnexpectedEOF) {
				b.Fatal(err)
			}
		}
	})
	if n := before.AllocedBytesPerOp(); n > 1<<20 {
		t.Errorf("%d bytes for a frame of one", n)
	}
}

func FuzzResponse(f *testing.F) {
	ok, err := appendDelimited(nil, &hbpb.ResponseHeader{CallId: proto.Uint32(1), CellBlockMeta: &hbpb.CellBlockMeta{Length: proto.Uint32(2)}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append(ok, 0, 1, 2))
	failed, err := appendDelimited(nil, &hbpb.ResponseHeader{CallId: proto.Uint32(connectionFailed), Exception: &hbpb.ExceptionResponse{
		ExceptionClassName: proto.String("a.B"), StackTrace: proto.String("a.B: text\n\tat x")}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(failed)
	f.Add([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1})
	f.Fuzz(func(t *testing.T, frame []byte) {
		r, err := parseResponse(frame)
		if err != nil {
			if !errors.Is(err, errCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if len(r.result)+len(r.cells) > len(frame) {
			t.Fatal("more than arrived")
		}
		if e := r.header.Exception; e != nil {
			text := remoteError("m", Peer{}, e).Error()
			if bytes.ContainsAny([]byte(text), "\n\r\t") || len(text) > 1000 {
				t.Fatalf("%q", text)
			}
		}
		var s hbpb.ScanResponse
		if proto.Unmarshal(r.result, &s) == nil {
			rs := regionScanner{c: &Client{cfg: Config{MaxFrame: 1 << 20}}}
			_ = rs.take(&s, r.cells, func(Row) bool { return true })
		}
	})
}
