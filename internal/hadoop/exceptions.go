// Package hadoop knows what Hadoop's servers mean, whichever protocol it came by.
package hadoop

import (
	"fmt"
	"strings"

	"hbackup"
)

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
	"SecurityException":                       hbackup.KindDenied,
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

// Explain turns an exception of a Hadoop server into the project's error: by its
// Java class, with or without the package, and by the first line of its message.
func Explain(op, uri, class, message string) *hbackup.Error {
	class = class[strings.LastIndexAny(class, ".$")+1:]
	text, _, _ := strings.Cut(message, "\n")
	if text == "" {
		text = "no message"
	}
	cause := fmt.Errorf("%s (%s)", text, class)
	kind := exceptionKinds[class]
	if kind == hbackup.KindOther {
		kind = KindOfMessage(text)
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

// KindOfMessage classes the messages of exceptions that are plain IOExceptions.
func KindOfMessage(text string) hbackup.Kind {
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
