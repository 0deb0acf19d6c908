package hdfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// packets hands on what a data node answers to a read, packet by packet, each
// only after its checksums were found right.
//
// The library checks them too, but where a read of many chunks meets a bad one,
// or is cut off inside one, it returns the bytes as if nothing had happened and
// goes on with another replica. So nothing unverified may reach it.
//
// The answer (Hadoop's DataTransferProtocol): a BlockOpResponseProto behind its
// length as a varint, then packets of int32 length (of itself, the checksums and
// the data), int16 length of the header, PacketHeaderProto, checksums, data.
type packets struct {
	receive func([]byte) (int, error)

	buf         []byte
	start, end  int // bytes that came and were not handed on
	verified    int // those before it may be handed on
	gotResponse bool

	table    *crc32.Table // nil: the block has no checksums
	perChunk int          // bytes of data under one checksum
	err      error        // of receive
}

const (
	// packetBuffer holds several packets of the usual 64 KiB.
	packetBuffer = 256 << 10
	// maxPacket is Hadoop's own bound.
	maxPacket = 16 << 20
	// maxResponse is generous: it holds two numbers, or a message.
	maxResponse = 64 << 10
)

var errBadChecksum = errors.New("a checksum does not fit the data")

// Read gives verified bytes.
func (p *packets) Read(b []byte) (int, error) {
	for p.start == p.verified {
		n, err := p.verify(p.buf[p.start:p.end])
		if err != nil {
			return 0, err
		}
		if n > 0 {
			p.verified = p.start + n
			break
		}
		if p.err != nil {
			return 0, p.err
		}
		p.more()
	}
	n := copy(b, p.buf[p.start:p.verified])
	p.start += n
	return n, nil
}

// more receives into the buffer, which grows when one packet fills it.
func (p *packets) more() {
	if p.start > 0 {
		p.end = copy(p.buf, p.buf[p.start:p.end])
		p.start, p.verified = 0, 0
	}
	if p.end == len(p.buf) {
		bigger := make([]byte, 2*len(p.buf)+4096)
		copy(bigger, p.buf)
		p.buf = bigger
	}
	n, err := p.receive(p.buf[p.end:])
	p.end += n
	p.err = err
}

// verify gives the length of the unit at the start of b, 0 when it is not whole.
func (p *packets) verify(b []byte) (int, error) {
	if !p.gotResponse {
		return p.response(b)
	}
	if len(b) < 6 {
		return 0, nil
	}
	payload, head := int64(binary.BigEndian.Uint32(b))-4, int64(binary.BigEndian.Uint16(b[4:]))
	if payload < 0 || payload > maxPacket {
		return 0, fmt.Errorf("the data node announces a packet of %d bytes", payload)
	}
	if int64(len(b)) < 6+head+payload {
		return 0, nil
	}
	size, ok := packetDataLength(b[6 : 6+head])
	if !ok || size < 0 || size > payload {
		return 0, fmt.Errorf("the header of the data node's packet is wrong")
	}
	body := b[6+head : 6+head+payload]
	if p.table != nil {
		sums, data := body[:payload-size], body[payload-size:]
		chunks := (len(data) + p.perChunk - 1) / p.perChunk
		if len(sums) != 4*chunks {
			return 0, fmt.Errorf("the data node's packet has %d bytes of checksums for %d bytes", len(sums), len(data))
		}
		for ; len(data) > 0; sums = sums[4:] {
			chunk := data[:min(len(data), p.perChunk)]
			if crc32.Checksum(chunk, p.table) != binary.BigEndian.Uint32(sums) {
				return 0, errBadChecksum
			}
			data = data[len(chunk):]
		}
	} else if payload != size {
		return 0, fmt.Errorf("the data node's packet has checksums of no kind")
	}
	return int(6 + head + payload), nil
}

// response reads the BlockOpResponseProto: readOpChecksumInfo(4){checksum(1){type(1), bytesPerChecksum(2)}}.
func (p *packets) response(b []byte) (int, error) {
	size, used := binary.Uvarint(b)
	switch {
	case used < 0 || size > maxResponse:
		return 0, fmt.Errorf("the data node's answer is no answer to a read")
	case used == 0 || uint64(len(b)-used) < size:
		return 0, nil
	}
	info, _ := bytesField(b[used:used+int(size)], 4)
	checksum, announced := bytesField(info, 1)
	kind, perChunk := varintField(checksum, 1), varintField(checksum, 2)
	switch {
	case !announced: // a refusal: no packets follow
	case kind == 0:
	case kind == 1:
		p.table = crc32.IEEETable
	case kind == 2:
		p.table = castagnoli
	default:
		return 0, fmt.Errorf("the data node uses checksums of kind %d", kind)
	}
	if p.table != nil && (perChunk == 0 || perChunk > maxPacket) {
		return 0, fmt.Errorf("the data node announces %d bytes per checksum", perChunk)
	}
	p.perChunk = int(perChunk)
	p.gotResponse = true
	return used + int(size), nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// packetDataLength reads PacketHeaderProto.dataLen, an sfixed32 of number 4.
func packetDataLength(header []byte) (n int64, ok bool) {
	eachFixed32(header, 4, func(v uint32) { n, ok = int64(int32(v)), true })
	return n, ok
}

// isReadRequest recognises the request to read a block: version 28, operation 81.
func isReadRequest(b []byte) bool {
	return len(b) > 3 && b[0] == 0 && b[1] == 28 && b[2] == 81
}
