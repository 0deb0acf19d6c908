package hdfs

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// answer is what a name node said to a call, as far as it is needed here. The
// field numbers are those of Hadoop's RpcHeader.proto, hdfs.proto and
// ClientNamenodeProtocol.proto.
type answer struct {
	method         string
	sent, received bool

	sealed    bool   // wrapped by SASL, so nothing else is known
	exception string // Java class, "" on success
	message   string // the exception's first line

	file fileState // of getBlockLocations and create
	made bool      // by mkdirs: there is a directory now
}

// fileState is what decides whether a file's bytes can be taken as they are.
type fileState struct {
	known     bool
	length    uint64
	open      bool   // under construction
	inode     uint64 // of create; 0: not said
	encrypted bool
	erasure   bool
}

// isRead names the methods of whose answers more is read than whether they succeeded.
func isRead(method string) bool { return tellsFileState(method) || method == mkdirs }

// tellsFileState names the methods whose answers have a fileState.
func tellsFileState(method string) bool { return method == "getBlockLocations" || method == "create" }

const (
	statusSuccess = 0
	saslCallID    = -33

	flagEncrypted = 0x02 // HdfsFileStatusProto.Flags
	flagErasure   = 0x04
)

func parseAnswer(method string, b []byte) answer {
	a := answer{method: method, sent: true, received: true}
	header, rest, ok := delimited(b)
	if !ok {
		return a
	}
	if int32(uint32(varintField(header, 1))) == saslCallID {
		a.sealed = true
		return a
	}
	if varintField(header, 2) != statusSuccess {
		class, _ := bytesField(header, 4)
		message, _ := bytesField(header, 5)
		a.exception = string(class)
		a.message, _, _ = strings.Cut(string(message), "\n")
		if a.exception == "" {
			a.exception = "unknown exception"
		}
		return a
	}
	body, _, ok := delimited(rest)
	if !ok {
		return a
	}
	if method == mkdirs {
		a.made = varintField(body, 1) != 0
		return a
	}
	// Field 1 of GetBlockLocationsResponseProto is a LocatedBlocksProto, that of
	// CreateResponseProto an HdfsFileStatusProto.
	inner, ok := bytesField(body, 1)
	if !ok {
		return a
	}
	switch method {
	case "getBlockLocations":
		_, encrypted := bytesField(inner, 6)
		_, erasure := bytesField(inner, 7)
		a.file = fileState{known: true, length: varintField(inner, 1), open: varintField(inner, 3) != 0, encrypted: encrypted, erasure: erasure}
	case "create":
		_, encrypted := bytesField(inner, 15)
		_, erasure := bytesField(inner, 17)
		flags := varintField(inner, 18)
		a.file = fileState{known: true, length: varintField(inner, 3), open: true, inode: varintField(inner, 13),
			encrypted: encrypted || flags&flagEncrypted != 0, erasure: erasure || flags&flagErasure != 0}
	}
	return a
}

// delimited takes one length-delimited message off the front.
func delimited(b []byte) (message, rest []byte, ok bool) {
	n, used := protowire.ConsumeVarint(b)
	if used < 0 || n > uint64(len(b)-used) {
		return nil, nil, false
	}
	return b[used : used+int(n)], b[used+int(n):], true
}

// varintField gives the last value of a field of type varint, 0 if it is absent.
func varintField(b []byte, number protowire.Number) (v uint64) {
	eachField(b, func(n protowire.Number, t protowire.Type, varint uint64, _ []byte) {
		if n == number && t == protowire.VarintType {
			v = varint
		}
	})
	return v
}

func bytesField(b []byte, number protowire.Number) (v []byte, ok bool) {
	eachField(b, func(n protowire.Number, t protowire.Type, _ uint64, bytes []byte) {
		if n == number && t == protowire.BytesType {
			v, ok = bytes, true
		}
	})
	return v, ok
}

// eachFixed32 gives every value of a field of a 32-bit fixed type.
func eachFixed32(b []byte, number protowire.Number, f func(uint32)) {
	for len(b) > 0 {
		n, t, used := protowire.ConsumeTag(b)
		if used < 0 {
			return
		}
		b = b[used:]
		if n == number && t == protowire.Fixed32Type {
			if v, ok := protowire.ConsumeFixed32(b); ok > 0 {
				f(v)
			}
		}
		if used = protowire.ConsumeFieldValue(n, t, b); used < 0 {
			return
		}
		b = b[used:]
	}
}

// eachField walks over a message until its end or its first flaw.
func eachField(b []byte, f func(n protowire.Number, t protowire.Type, varint uint64, bytes []byte)) {
	for len(b) > 0 {
		n, t, used := protowire.ConsumeTag(b)
		if used < 0 {
			return
		}
		b = b[used:]
		var varint uint64
		var bytes []byte
		switch t {
		case protowire.VarintType:
			varint, used = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			bytes, used = protowire.ConsumeBytes(b)
		default:
			used = protowire.ConsumeFieldValue(n, t, b)
		}
		if used < 0 {
			return
		}
		f(n, t, varint, bytes)
		b = b[used:]
	}
}
