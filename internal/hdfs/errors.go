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
)

// Why Open refuses a file whose bytes it could not read faithfully. They are the
// causes of an error of KindUnsupported.
var (
	ErrOpenForWriting = errors.New("the file is still open for writing")
	ErrEncrypted      = errors.New("the file lies in an HDFS encryption zone")
	ErrErasureCoded   = errors.New("the file is erasure-coded")
)

// errCannotTell is the cause when the name node's answers are sealed.
var errCannotTell = errors.New("whether the file is still open for writing cannot be seen, because RPC is sealed (hadoop.rpc.protection)")

// ErrReplaced is the cause when another file has taken the path during a read or
// an opening.
var ErrReplaced = errors.New("another file has taken this path while it was read")

// exceptionKinds classes Java exceptions by the last segment of their class name.
var exceptionKinds = map[string]hbackup.Kind{
	"FileNotFoundException":                   hbackup.KindNotFound,
	"FileAlreadyExistsException":              hbackup.KindExists,
	"AlreadyBeingCreatedException":            hbackup.KindExists,
	"RecoveryInProgressException":             hbackup.KindBusy,
	"ParentNotDirectoryException":             hbackup.KindConflict,
	"PathIsNotDirectoryException":             hbackup.KindConflict,
	"PathIsNotEmptyDirectoryException":        hbackup.KindConflict,
	"LeaseExpiredException":                   hbackup.KindConflict,
	"AccessControlException":                  hbackup.KindDenied,
	"AuthorizationException":                  hbackup.KindDenied,
	"SaslException":                           hbackup.KindDenied,
	"InvalidToken":                            hbackup.KindDenied,
	"SafeModeException":                       hbackup.KindUnavailable,
	"StandbyException":                        hbackup.KindUnavailable,
	"RetriableException":                      hbackup.KindUnavailable,
	"ObserverRetryOnActiveException":          hbackup.KindUnavailable,
	"RetryStartFileException":                 hbackup.KindUnavailable,
	"NotReplicatedYetException":               hbackup.KindUnavailable,
	"ServerTooBusyException":                  hbackup.KindThrottled,
	"QuotaExceededException":                  hbackup.KindNoSpace,
	"NSQuotaExceededException":                hbackup.KindNoSpace,
	"DSQuotaExceededException":                hbackup.KindNoSpace,
	"QuotaByStorageTypeExceededException":     hbackup.KindNoSpace,
	"InvalidPathException":                    hbackup.KindUsage,
	"HadoopIllegalArgumentException":          hbackup.KindUsage,
	"PathComponentTooLongException":           hbackup.KindUsage,
	"MaxDirectoryItemsExceededException":      hbackup.KindNoSpace,
	"UnsupportedOperationException":           hbackup.KindUnsupported,
	"RpcNoSuchMethodException":                hbackup.KindUnsupported,
	"UnsupportedActionException":              hbackup.KindUnsupported,
	"SnapshotAccessControlException":          hbackup.KindReadOnly,
	"UnresolvedPathException":                 hbackup.KindUnsupported,
	"RpcServerException":                      hbackup.KindUnsupported,
	"IncompatibleVersionException":            hbackup.KindUnsupported,
	"UnknownHostException":                    hbackup.KindUnavailable,
	"ClusterStorageCapacityExceededException": hbackup.KindNoSpace,
}

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
		if a := s.lastAnswer(); a.exception != "" {
			return explainException(op, uri, a)
		}
	}
	return explainText(op, uri, err)
}

func explainException(op, uri string, a answer) *hbackup.Error {
	class := a.exception[strings.LastIndexAny(a.exception, ".$")+1:]
	text := a.message
	if text == "" {
		text = "no message"
	}
	cause := fmt.Errorf("%s (%s)", text, class)
	kind := exceptionKinds[class]
	if kind == hbackup.KindOther {
		kind = kindOfMessage(text)
	}
	if class == "AccessControlException" && strings.Contains(text, "is not a directory") {
		kind = hbackup.KindConflict // as Hadoop 2 says that a parent is a file
	}
	e := hbackup.E(op, uri, kind, cause)
	switch {
	case class == "SafeModeException" || strings.Contains(text, "safe mode"):
		e.Kind = hbackup.KindUnavailable
		return e.WithHint("the name node is in safe mode: wait until it has left it, or see hdfs dfsadmin -safemode get")
	case class == "StandbyException":
		return e.WithHint("every name node given is in standby: give the addresses of all name nodes of the HA group, and see hdfs haadmin -getAllServiceState")
	case class == "AccessControlException" && strings.Contains(text, "SIMPLE"):
		return e.WithHint("the cluster wants Kerberos: configure a keytab and the name node's principal")
	case e.Kind == hbackup.KindDenied:
		return e.WithHint("run as the user that owns HBase's files, or give this user the right (hdfs dfs -ls -d on the path shows owner and mode)")
	case e.Kind == hbackup.KindNoSpace:
		return e.WithHint("raise the quota (hdfs dfs -count -q) or free space on the data nodes (hdfs dfsadmin -report)")
	}
	return e
}

// kindOfMessage classes the messages of exceptions that are plain IOExceptions.
func kindOfMessage(text string) hbackup.Kind {
	switch {
	case strings.Contains(text, "could only be written to"), strings.Contains(text, "could only be replicated to"):
		if strings.Contains(text, "There are 0 datanode(s) running") {
			return hbackup.KindUnavailable
		}
		return hbackup.KindNoSpace
	case strings.Contains(text, "Out of space"), strings.Contains(text, "out of space"), strings.Contains(text, "No space left"):
		return hbackup.KindNoSpace
	case strings.Contains(text, "is non empty"):
		return hbackup.KindConflict
	case strings.Contains(text, "NameNode still not started"):
		return hbackup.KindUnavailable
	}
	return hbackup.KindOther
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
		kind := kindOfMessage(text)
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
