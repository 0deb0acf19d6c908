package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	lib "github.com/colinmarc/hdfs/v2"

	"hbackup"
	"hbackup/internal/files"
	"hbackup/internal/hadoop"
)

// Why Open refuses a file whose bytes it could not read faithfully. They are the
// causes of an error of KindUnsupported.
var (
	ErrOpenForWriting = files.ErrOpenForWriting
	ErrEncrypted      = errors.New("the file lies in an HDFS encryption zone")
	ErrErasureCoded   = errors.New("the file is erasure-coded")
)

// errCannotTell is the cause when the name node's answers are sealed.
var errCannotTell = errors.New("whether the file is still open for writing cannot be seen, because RPC is sealed (hadoop.rpc.protection)")

// explain turns a failure of the library into the project's error. s, when not
// nil, knows what the name node said last.
func (h *FS) explain(ctx context.Context, op, path string, s *session, err error) *hbackup.Error {
	uri := h.uri(path)
	if ctx.Err() != nil {
		cause := context.Cause(ctx)
		kind := hbackup.KindOf(cause)
		if kind == hbackup.KindOther {
			kind = hbackup.KindOf(ctx.Err())
		}
		return hbackup.E(op, uri, kind, cause)
	}
	var typed *hbackup.Error
	if errors.As(err, &typed) {
		return typed
	}
	if s != nil {
		switch a := s.lastAnswer(); {
		case strings.HasSuffix(a.exception, ".UnknownCryptoProtocolVersionException"):
			// A create in an encryption zone, where the library names no way to encrypt.
			return refuseEncrypted(op, uri)
		case a.exception != "":
			return hadoop.Explain(op, uri, a.exception, a.message)
		}
	}
	return explainText(op, uri, err)
}

func explainText(op, uri string, err error) *hbackup.Error {
	text := err.Error()
	var netErr net.Error
	switch {
	case errors.Is(err, os.ErrNotExist):
		return hbackup.E(op, uri, hbackup.KindNotFound, os.ErrNotExist)
	case errors.Is(err, os.ErrExist):
		return hbackup.E(op, uri, hbackup.KindExists, os.ErrExist)
	case errors.Is(err, os.ErrPermission):
		return hbackup.E(op, uri, hbackup.KindDenied, os.ErrPermission)
	case errors.Is(err, syscall.ENOTEMPTY):
		return hbackup.E(op, uri, hbackup.KindConflict, syscall.ENOTEMPTY)
	case errors.Is(err, lib.ErrReplicating):
		return hbackup.E(op, uri, hbackup.KindUnavailable, err).
			WithHint("the data nodes have not reported the last block in time: see hdfs dfsadmin -report")
	case strings.Contains(text, "SASL handshake"), strings.Contains(text, "kerberos"), strings.Contains(text, "KRB"):
		return hbackup.E(op, uri, hbackup.KindDenied, err).
			WithHint("check keytab, principal and clock, and that the name node's principal is right")
	case errors.Is(err, errBadChecksum), strings.Contains(text, "invalid checksum"):
		return hbackup.E(op, uri, hbackup.KindCorrupt, fmt.Errorf("no data node has a replica whose checksum is right: %w", err)).
			WithHint("hdfs fsck on the path shows the state of its blocks")
	case strings.Contains(text, "no available datanodes"), strings.Contains(text, "read failed:"), strings.Contains(text, "write failed:"), strings.Contains(text, "Ack error"):
		kind := hadoop.KindOfMessage(text)
		if kind == hbackup.KindOther {
			kind = hbackup.KindUnavailable
		}
		return hbackup.E(op, uri, kind, err).WithHint("hdfs dfsadmin -report shows the data nodes, hdfs fsck on the path its blocks")
	case strings.Contains(text, "no available namenodes"):
		return hbackup.E(op, uri, hbackup.KindUnavailable, err).
			WithHint("check that the name node is up and that address and port are those of its RPC service (fs.defaultFS)")
	case errors.As(err, &netErr) && netErr.Timeout():
		return hbackup.E(op, uri, hbackup.KindTimeout, err).WithHint("HDFS does not answer in time: see the load of the name node and the data nodes")
	case strings.Contains(text, "proto:"), strings.Contains(text, "unexpected sequence number"):
		return hbackup.E(op, uri, hbackup.KindOther, err).WithHint("this is no answer of a name node: the address may belong to another kind of server, such as HBase's master or HDFS's web pages")
	case isConnectionFailure(err):
		return hbackup.E(op, uri, hbackup.KindUnavailable, err).WithHint("the connection to HDFS broke: see the logs of the name node and the data nodes")
	}
	return hbackup.E(op, uri, hbackup.KindOther, err)
}

func isConnectionFailure(err error) bool {
	var op *net.OpError
	var node *dataNodeError
	return errors.As(err, &op) || errors.As(err, &node) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, errSessionClosed) || errors.Is(err, errNotBound)
}
