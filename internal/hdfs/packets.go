package hdfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"google.golang.org/protobuf/encoding/protowire"
)

// packets hands on what a data node answers to a read, packet by packet, the data
// of each only after its checksums were found right.
//
// The library checks them too, but where a read of many chunks meets a bad one,
// or is cut off inside one, it returns the bytes as if nothing had happened and
// goes on with another replica. So nothing unverified may reach it. And since
// nothing does, it is told that the block has no checksums, and they are left out:
// once is enough.
//
// The answer (Hadoop's DataTransferProtocol): a BlockOpResponseProto behind its
// length as a varint, then packets of int32 length (of itself, the checksums and
// the data), int16 length of the header, PacketHeaderProto, checksums, data.
type packets struct {
	receive func([]byte) (int, error)

	buf         []byte
	start, end  int // bytes that came and were not handed on
	ready       int // how many of them may be handed on
	gotResponse bool

	table    *crc32.Table // nil: the block has no checksums
	perChunk int          // bytes of data under one checksum
	sums     []byte       // of the packet whose data comes next
	data     int          // its length, until it is verified

	err error // of receive
}

const (
	// headSize is what a packet of the usual 64 KiB has before its data. Not much
	// more is received at a time, so that most data goes where it is wanted at once.
	headSize = 1 << 10
	// maxPacket is Hadoop's own bound.
	maxPacket = 16 << 20
	// maxResponse is generous: it holds two numbers, or a message.
	maxResponse = 64 << 10
)

var errBadChecksum = errors.New("a checksum does not fit the data")

// Read gives verified bytes. What it leaves in b beyond them is not verified.
func (p *packets) Read(b []byte) (int, error) {
	for p.ready == 0 {
		if p.data > 0 && len(b) >= p.data {
			return p.readData(b[:p.data])
		}
		switch err := p.unit(); {
		case err != nil:
			return 0, err
		case p.ready > 0:
		case p.err != nil:
			return 0, p.err
		default:
			p.more()
		}
	}
	n := copy(b, p.buf[p.start:p.start+p.ready])
	p.start += n
	p.ready -= n
	return n, nil
}

// readData receives a packet's data into b, which has its length.
func (p *packets) readData(b []byte) (int, error) {
	n := copy(b, p.buf[p.start:p.end])
	p.start += n
	for n < len(b) {
		if p.err != nil {
			return 0, p.err
		}
		var came int
		came, p.err = p.receive(b[n:])
		n += came
	}
	if err := p.check(b); err != nil {
		return 0, err
	}
	p.data = 0
	return n, nil
}

// more receives into the buffer, which grows when one unit fills it.
func (p *packets) more() {
	if p.start > 0 {
		p.end = copy(p.buf, p.buf[p.start:p.end])
		p.start = 0
	}
	if room := max(p.data, p.end+headSize); room > len(p.buf) {
		bigger := make([]byte, max(room, 2*len(p.buf)))
		copy(bigger, p.buf[:p.end])
		p.buf = bigger
	}
	var n int
	n, p.err = p.receive(p.buf[p.end:max(p.data, p.end+headSize)])
	p.end += n
}

// unit looks at the start of the buffer and makes ready what is whole there: the
// response, the head of a packet, or its data.
func (p *packets) unit() error {
	b := p.buf[p.start:p.end]
	switch {
	case !p.gotResponse:
		return p.response(b)
	case p.data == 0:
		return p.head(b)
	case len(b) < p.data:
		return nil
	}
	if err := p.check(b[:p.data]); err != nil {
		return err
	}
	p.ready, p.data = p.data, 0
	return nil
}

// head reads what comes before a packet's data, and takes the checksums out.
func (p *packets) head(b []byte) error {
	if len(b) < 6 {
		return nil
	}
	payload, header := int64(binary.BigEndian.Uint32(b))-4, int64(binary.BigEndian.Uint16(b[4:]))
	if payload < 0 || payload > maxPacket {
		return fmt.Errorf("the data node announces a packet of %d bytes", payload)
	}
	head := 6 + header
	if int64(len(b)) < head {
		return nil
	}
	size, ok := packetDataLength(b[6:head])
	if !ok || size < 0 || size > payload {
		return fmt.Errorf("the header of the data node's packet is wrong")
	}
	sums := payload - size
	switch {
	case p.table == nil && sums > 0:
		return fmt.Errorf("the data node's packet has checksums of no kind")
	case p.table != nil && sums != 4*((size+int64(p.perChunk)-1)/int64(p.perChunk)):
		return fmt.Errorf("the data node's packet has %d bytes of checksums for %d bytes", sums, size)
	case int64(len(b)) < head+sums:
		return nil
	}
	p.sums = append(p.sums[:0], b[head:head+sums]...)
	copy(b[sums:], b[:head])
	binary.BigEndian.PutUint32(b[sums:], uint32(4+size))
	p.start += int(sums)
	p.ready, p.data = int(head), int(size)
	return nil
}

// check holds a packet's data against its checksums.
func (p *packets) check(data []byte) error {
	if p.table == nil {
		return nil
	}
	for sums := p.sums; len(data) > 0; sums = sums[4:] {
		chunk := data[:min(len(data), p.perChunk)]
		if crc32.Checksum(chunk, p.table) != binary.BigEndian.Uint32(sums) {
			return errBadChecksum
		}
		data = data[len(chunk):]
	}
	return nil
}

// response reads the BlockOpResponseProto: status(1),
// readOpChecksumInfo(4){checksum(1){type(1), bytesPerChecksum(2)}, chunkOffset(2)}.
// When packets follow, one that announces no checksums takes its place.
func (p *packets) response(b []byte) error {
	size, used := binary.Uvarint(b)
	switch {
	case used < 0 || size > maxResponse:
		return fmt.Errorf("the data node's answer is no answer to a read")
	case used == 0 || uint64(len(b)-used) < size:
		return nil
	}
	whole := used + int(size)
	p.gotResponse = true
	status := varintField(b[used:whole], 1)
	info, _ := bytesField(b[used:whole], 4)
	checksum, announced := bytesField(info, 1)
	if !announced { // a refusal: no packets follow
		p.ready = whole
		return nil
	}
	kind, perChunk := varintField(checksum, 1), varintField(checksum, 2)
	switch kind {
	case 0:
	case 1:
		p.table = crc32.IEEETable
	case 2:
		p.table = castagnoli
	default:
		return fmt.Errorf("the data node uses checksums of kind %d", kind)
	}
	if p.table != nil && perChunk == 0 || perChunk > maxPacket {
		return fmt.Errorf("the data node announces %d bytes per checksum", perChunk)
	}
	p.perChunk = int(perChunk)
	rest := p.buf[p.start+whole : p.end]
	p.buf = append(withoutChecksums(status, perChunk, varintField(info, 2)), rest...)
	p.start, p.end, p.ready = 0, len(p.buf), len(p.buf)-len(rest)
	return nil
}

// withoutChecksums makes the response of a data node whose block has none.
func withoutChecksums(status, perChunk, chunkOffset uint64) []byte {
	number := func(b []byte, n protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
	}
	message := func(b []byte, n protowire.Number, m []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), m)
	}
	info := message(nil, 1, number(number(nil, 1, 0), 2, perChunk))
	return protowire.AppendBytes(nil, message(number(nil, 1, status), 4, number(info, 2, chunkOffset)))
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
