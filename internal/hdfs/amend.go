package hdfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// withoutOverwrite gives the request rename2 with the flag that asks for the
// replacing of a file put out. The library always sets it and has no other call.
//
// The flag is field 3 of Rename2RequestProto, the third message of the packet.
func withoutOverwrite(packet []byte) ([]byte, error) {
	packet = slices.Clone(packet)
	if len(packet) >= 4 {
		_, rest, _ := delimited(packet[4:])
		_, rest, _ = delimited(rest)
		if request, _, ok := delimited(rest); ok {
			if flag := overwriteFlag(request); flag != nil {
				*flag = 0
				return packet, nil
			}
		}
	}
	return nil, fmt.Errorf("the request to rename without replacing could not be made")
}

// overwriteFlag finds the one byte of the flag's value; nil if there is not
// exactly one.
func overwriteFlag(request []byte) (flag *byte) {
	for len(request) > 0 {
		number, kind, used := protowire.ConsumeTag(request)
		if used < 0 {
			return nil
		}
		request = request[used:]
		if used = protowire.ConsumeFieldValue(number, kind, request); used < 0 {
			return nil
		}
		if number == 3 {
			if flag != nil || kind != protowire.VarintType || used != 1 {
				return nil
			}
			flag = &request[0]
		}
		request = request[used:]
	}
	return flag
}

// withStart gives the request getListing with a name after which the listing
// starts. The library always starts at the first and goes on by itself; a
// request that goes on is left as it is.
//
// The name is field 2 of GetListingRequestProto.
func withStart(packet []byte, after string) ([]byte, error) {
	errNot := errors.New("the request to list from a name on could not be made")
	if len(packet) < 4 {
		return nil, errNot
	}
	_, rest, ok := delimited(packet[4:])
	if ok {
		_, rest, ok = delimited(rest)
	}
	if !ok {
		return nil, errNot
	}
	request, behind, ok := delimited(rest)
	if !ok || len(behind) > 0 {
		return nil, errNot
	}
	if start, _ := bytesField(request, 2); len(start) > 0 {
		return packet, nil
	}
	// Of a field that is there twice, the last counts.
	request = protowire.AppendTag(slices.Clone(request), 2, protowire.BytesType)
	request = protowire.AppendString(request, after)
	head := packet[4 : len(packet)-len(rest)]
	body := protowire.AppendBytes(slices.Clone(head), request)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...), nil
}
