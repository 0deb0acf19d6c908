package rpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"hbackup/hbase/hbpb"
)

// connectionFailed is the call id of an answer that concerns the whole connection.
const connectionFailed = 0xFFFFFFFF

// errCorrupt marks bytes that are not what the protocol says they are.
var errCorrupt = errors.New("malformed bytes from the server")

func corruptf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errCorrupt, fmt.Sprintf(format, args...))
}

// requestFrame makes one request frame: int32 total, varint + header, varint +
// parameter, cell block. The total counts all that follows it.
func requestFrame(header *hbpb.RequestHeader, param proto.Message, cells []byte) ([]byte, error) {
	total := protowire.SizeBytes(proto.Size(header)) + protowire.SizeBytes(proto.Size(param)) + len(cells)
	if total > maxRequest {
		return nil, fmt.Errorf("the request is %d bytes long; servers accept %d", total, maxRequest)
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+total), uint32(total))
	frame, err := appendDelimited(frame, header)
	if err != nil {
		return nil, err
	}
	if frame, err = appendDelimited(frame, param); err != nil {
		return nil, err
	}
	return append(frame, cells...), nil
}

func appendDelimited(dst []byte, m proto.Message) ([]byte, error) {
	dst = protowire.AppendVarint(dst, uint64(proto.Size(m)))
	return proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(dst, m)
}

// readFrame reads one frame without its length. Memory grows with the bytes
// that really arrive, not with the length that was announced.
func readFrame(r io.Reader, max int) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n == 0 || uint64(n) > uint64(max) {
		return nil, corruptf("a frame of %d bytes (limit %d)", int32(n), max)
	}
	const trusted = 1 << 20
	if n <= trusted {
		frame := make([]byte, n)
		_, err := io.ReadFull(r, frame)
		return frame, noEOF(err)
	}
	var buf bytes.Buffer
	if _, err := io.CopyN(&buf, r, int64(n)); err != nil {
		return nil, noEOF(err)
	}
	return buf.Bytes(), nil
}

// noEOF turns the end of the stream inside a frame into what it is.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// response is one decoded frame; result and cells share the frame's memory.
type response struct {
	header *hbpb.ResponseHeader
	result []byte
	cells  []byte
}

// parseResponse takes a frame apart: varint + header, then, unless the header
// has an exception, varint + result and the cell block.
func parseResponse(frame []byte) (response, error) {
	head, rest, err := cutDelimited(frame)
	if err != nil {
		return response{}, corruptf("response header: %v", err)
	}
	r := response{header: &hbpb.ResponseHeader{}}
	if err := proto.Unmarshal(head, r.header); err != nil {
		return response{}, corruptf("response header: %v", err)
	}
	if r.header.CallId == nil {
		return response{}, corruptf("response header without a call id")
	}
	if r.header.Exception != nil || len(rest) == 0 {
		return r, nil
	}
	if r.result, rest, err = cutDelimited(rest); err != nil {
		return response{}, corruptf("result: %v", err)
	}
	if want := r.header.GetCellBlockMeta().GetLength(); uint64(want) != uint64(len(rest)) {
		return response{}, corruptf("cell block of %d bytes where the header says %d", len(rest), want)
	}
	r.cells = rest
	return r, nil
}

func cutDelimited(b []byte) (body, rest []byte, err error) {
	n, size := protowire.ConsumeVarint(b)
	if size < 0 {
		return nil, nil, protowire.ParseError(size)
	}
	b = b[size:]
	if n > uint64(len(b)) {
		return nil, nil, fmt.Errorf("length %d, but %d bytes follow", n, len(b))
	}
	return b[:n], b[n:], nil
}
