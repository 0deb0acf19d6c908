package hfile

import (
	"encoding/binary"
	"errors"
)

var errLZ4 = errors.New("no LZ4 block")

// lz4Block appends what an LZ4 block stands for to dst, within its capacity. A
// block is a row of sequences: a byte with the length of the literals in the high
// and of the match in the low half (15: more length bytes follow, up to one below
// 255), the literals, an int16 distance (little-endian), where the match of at
// least 4 bytes begins. The last sequence has literals only.
func lz4Block(dst, src []byte) ([]byte, error) {
	base := len(dst)
	for len(src) > 0 {
		token := src[0]
		literals, rest, ok := lz4Length(int(token>>4), src[1:])
		if !ok || literals > len(rest) || literals > cap(dst)-len(dst) {
			return dst[:base], errLZ4
		}
		dst = append(dst, rest[:literals]...)
		src = rest[literals:]
		if len(src) == 0 {
			return dst, nil
		}
		if len(src) < 2 {
			return dst[:base], errLZ4
		}
		distance := int(binary.LittleEndian.Uint16(src))
		match, rest, ok := lz4Length(int(token&15), src[2:])
		match += 4
		if !ok || distance == 0 || distance > len(dst)-base || match > cap(dst)-len(dst) {
			return dst[:base], errLZ4
		}
		src = rest
		for match > 0 { // the source may overlap what is being written
			n := min(match, distance)
			dst = append(dst, dst[len(dst)-distance:len(dst)-distance+n]...)
			match -= n
		}
	}
	return dst[:base], errLZ4
}

// lz4Length completes a length of 15.
func lz4Length(n int, b []byte) (int, []byte, bool) {
	if n < 15 {
		return n, b, true
	}
	for i, x := range b {
		n += int(x)
		if x != 255 {
			return n, b[i+1:], true
		}
	}
	return 0, nil, false
}
