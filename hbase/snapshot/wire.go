package snapshot

import (
	"errors"
	"fmt"
	"io"
	"math"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

var (
	errNameTooLong = errors.New("the snapshot name is longer than 250 bytes")
	errShort       = errors.New("the message ends inside a field")
)

func notAFile(name string) error {
	return fmt.Errorf("%q is not the name of a file that holds bytes itself", name)
}

// field is one field of a protocol buffer message. Only the two wire types that
// snapshot files use are decoded; others are skipped over and kept in raw.
type field struct {
	num    protowire.Number
	typ    protowire.Type
	varint uint64
	bytes  []byte
	raw    []byte // tag and value
}

// next takes the first field off *b. It never allocates.
func next(b *[]byte, f *field) error {
	buf := *b
	num, typ, n := protowire.ConsumeTag(buf)
	if n < 0 {
		return wireError(n)
	}
	f.num, f.typ = num, typ
	var m int
	switch typ {
	case protowire.VarintType:
		f.varint, m = protowire.ConsumeVarint(buf[n:])
	case protowire.BytesType:
		f.bytes, m = protowire.ConsumeBytes(buf[n:])
	default:
		m = protowire.ConsumeFieldValue(num, typ, buf[n:])
	}
	if m < 0 {
		return wireError(m)
	}
	f.raw = buf[:n+m]
	*b = buf[n+m:]
	return nil
}

func wireError(n int) error {
	err := protowire.ParseError(n)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errShort
	}
	return err
}

// wantBytes and wantVarint refuse a known field that has the wrong wire type.
func (f *field) wantBytes() error {
	if f.typ != protowire.BytesType {
		return fmt.Errorf("field %d has wire type %d, not bytes", f.num, f.typ)
	}
	return nil
}

func (f *field) wantVarint() error {
	if f.typ != protowire.VarintType {
		return fmt.Errorf("field %d has wire type %d, not varint", f.num, f.typ)
	}
	return nil
}

// size gives a varint as a file length.
func (f *field) size() (int64, error) {
	if err := f.wantVarint(); err != nil {
		return 0, err
	}
	if f.varint > math.MaxInt64 {
		return 0, fmt.Errorf("size %d is out of range", f.varint)
	}
	return int64(f.varint), nil
}

// text gives the bytes as a string without copying them: the message's array
// must not be changed as long as the string lives.
func text(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}

func appendBytesField(dst []byte, num protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, num, protowire.BytesType), v)
}

func appendStringField(dst []byte, num protowire.Number, v string) []byte {
	return protowire.AppendString(protowire.AppendTag(dst, num, protowire.BytesType), v)
}

func appendVarintField(dst []byte, num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.VarintType), v)
}

// dropFields copies a message without the given fields; the rest, fields we do
// not know included, keeps its bytes and its order.
func dropFields(msg []byte, drop ...protowire.Number) ([]byte, error) {
	out := make([]byte, 0, len(msg))
	var f field
fields:
	for len(msg) > 0 {
		if err := next(&msg, &f); err != nil {
			return nil, err
		}
		for _, d := range drop {
			if f.num == d {
				continue fields
			}
		}
		out = append(out, f.raw...)
	}
	return out, nil
}
