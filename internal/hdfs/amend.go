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
	amended, ok := withField(packet, 2, []byte(after))
	if !ok {
		return nil, errors.New("the request to list from a name on could not be made")
	}
	return amended, nil
}

// withLastBlock gives the request complete with the block that the file ends with.
// The library names it in its first request for a file only. But the name node does
// not take note of it before the block ahead of it is complete, which it may hear of
// after that request; and by it the name node knows a request that it has carried out
// already, when the answer was lost.
//
// The block is field 3 of CompleteRequestProto.
func withLastBlock(packet, block []byte) ([]byte, error) {
	amended, ok := withField(packet, lastBlockField, block)
	if !ok {
		return nil, errors.New("the request to complete the file could not be made")
	}
	return amended, nil
}

const lastBlockField = 3

// withField puts a field of bytes into a request that does not have it. It reports
// false when this is no request.
func withField(packet []byte, number protowire.Number, value []byte) ([]byte, bool) {
	if len(packet) < 4 {
		return nil, false
	}
	_, rest, ok := delimited(packet[4:])
	if ok {
		_, rest, ok = delimited(rest)
	}
	if !ok {
		return nil, false
	}
	request, behind, ok := delimited(rest)
	if !ok || len(behind) > 0 {
		return nil, false
	}
	if there, _ := bytesField(request, number); len(there) > 0 {
		return packet, true
	}
	// Of a field that is there twice, the last counts.
	request = protowire.AppendTag(slices.Clone(request), number, protowire.BytesType)
	request = protowire.AppendBytes(request, value)
	head := packet[4 : len(packet)-len(rest)]
	body := protowire.AppendBytes(slices.Clone(head), request)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...), true
}
