package rpc

import (
	"errors"
	"strings"

	"hbackup"
)

// retry says what to do with a call that failed.
type retry int

const (
	retryNever  retry = iota
	retryWait         // the same server, a little later
	retryLocate       // look for the server again, then the same call
)

// exceptionClass is what the client knows about one Java class, by short name.
type exceptionClass struct {
	kind  hbackup.Kind
	retry retry
	hint  string
}

// The classes seen on real servers. A class that is not here is never repeated,
// whatever its do-not-retry flag says: java.io.IOException comes with the flag
// unset for errors that stay for ever.
var exceptionClasses = map[string]exceptionClass{
	"PleaseHoldException":            {hbackup.KindUnavailable, retryWait, "the master is still starting; wait until it is ready"},
	"ServerNotRunningYetException":   {hbackup.KindUnavailable, retryLocate, "the server is starting or is a standby master"},
	"MasterNotRunningException":      {hbackup.KindUnavailable, retryLocate, ""},
	"MasterStoppedException":         {hbackup.KindUnavailable, retryLocate, ""},
	"NotServingRegionException":      {hbackup.KindUnavailable, retryLocate, "the region is moving; if it stays so, look for regions in transition"},
	"RegionMovedException":           {hbackup.KindUnavailable, retryLocate, ""},
	"RegionOpeningException":         {hbackup.KindUnavailable, retryLocate, ""},
	"WrongRegionException":           {hbackup.KindUnavailable, retryLocate, ""},
	"RegionServerStoppedException":   {hbackup.KindUnavailable, retryLocate, ""},
	"RegionServerAbortedException":   {hbackup.KindUnavailable, retryLocate, ""},
	"CallDroppedException":           {hbackup.KindUnavailable, retryWait, ""},
	"CallQueueTooBigException":       {hbackup.KindThrottled, retryWait, "the server has too many calls waiting"},
	"RpcThrottlingException":         {hbackup.KindThrottled, retryWait, "a quota of HBase limits this user"},
	"RegionTooBusyException":         {hbackup.KindThrottled, retryWait, ""},
	"UnknownScannerException":        {hbackup.KindUnavailable, retryNever, ""}, // the scanner opens again by itself
	"ScannerResetException":          {hbackup.KindUnavailable, retryNever, ""},
	"OutOfOrderScannerNextException": {hbackup.KindUnavailable, retryNever, ""},

	"TableNotFoundException":           {hbackup.KindNotFound, retryNever, "check the table's name and its name space"},
	"NamespaceNotFoundException":       {hbackup.KindNotFound, retryNever, "create the name space first"},
	"SnapshotDoesNotExistException":    {hbackup.KindNotFound, retryNever, ""},
	"UnknownSnapshotException":         {hbackup.KindNotFound, retryNever, ""},
	"SnapshotTTLExpiredException":      {hbackup.KindNotFound, retryNever, "the snapshot has expired; HBase will not use it any more"},
	"ReplicationPeerNotFoundException": {hbackup.KindNotFound, retryNever, ""},
	"NoSuchColumnFamilyException":      {hbackup.KindNotFound, retryNever, ""},
	"UnknownRegionException":           {hbackup.KindNotFound, retryNever, ""},

	"TableExistsException":       {hbackup.KindExists, retryNever, ""},
	"NamespaceExistException":    {hbackup.KindExists, retryNever, ""},
	"SnapshotExistsException":    {hbackup.KindExists, retryNever, ""},
	"TableNotDisabledException":  {hbackup.KindConflict, retryNever, "the table must be disabled for this"},
	"TableNotEnabledException":   {hbackup.KindConflict, retryNever, "the table must be enabled for this"},
	"TableInfoMissingException":  {hbackup.KindIncomplete, retryNever, ""},
	"CorruptedSnapshotException": {hbackup.KindIncomplete, retryNever, "a file that the snapshot names is missing or of another size"},
	"HBaseSnapshotException":     {hbackup.KindUnavailable, retryNever, "the snapshot failed on the way, for instance because a region moved or split; try again"},
	"ConstraintException":        {hbackup.KindRefused, retryNever, ""},
	"QuotaExceededException":     {hbackup.KindNoSpace, retryNever, "a quota of HBase is reached"},

	"AccessDeniedException":         {hbackup.KindDenied, retryNever, "the HBase user needs more rights (ADMIN for snapshots and peers)"},
	"AuthorizationException":        {hbackup.KindDenied, retryNever, "the HBase user needs more rights"},
	"AccessControlException":        {hbackup.KindDenied, retryNever, "the HBase user needs more rights"},
	"BadAuthException":              {hbackup.KindDenied, retryNever, "the server does not accept this kind of authentication"},
	"FatalConnectionException":      {hbackup.KindUnsupported, retryNever, ""},
	"WrongVersionException":         {hbackup.KindUnsupported, retryNever, ""},
	"UnsupportedOperationException": {hbackup.KindUnsupported, retryNever, ""},
}

// classOf looks the exception up; the class alone does not always tell, some
// of HBase's errors differ only by their text.
func classOf(e *RemoteError) exceptionClass {
	switch text := e.Message; {
	case e.is("SnapshotCreationException") && inProgress(text):
		// Flagged do-not-retry by the server, but it passes.
		return exceptionClass{kind: hbackup.KindBusy, hint: "another snapshot or restore of the table is running; wait for it to end"}
	case e.is("SnapshotCreationException") && strings.Contains(text, "doesn't exist"):
		return exceptionClass{kind: hbackup.KindNotFound, hint: "check the table's name"}
	case unsupported(e):
		return exceptionClass{kind: hbackup.KindUnsupported, hint: "this HBase version does not have the call"}
	case e.is("IOException") && strings.Contains(text, "RejectedExecutionException"):
		// A master that is stopping: its own client is closed before its port.
		return exceptionClass{hbackup.KindUnavailable, retryLocate, "the server is stopping"}
	case strings.Contains(text, "must be disabled"):
		return exceptionClass{kind: hbackup.KindConflict, hint: "disable the table first"}
	}
	return exceptionClasses[e.ShortClass()]
}

// inProgress recognises the texts with which servers refuse a second snapshot.
func inProgress(text string) bool {
	return strings.Contains(text, "already running") || strings.Contains(text, "is in progress") ||
		strings.Contains(text, "in progress on the same table")
}

// unsupported recognises the answer to a call that the server does not know.
func unsupported(e *RemoteError) bool {
	return e.is("UnsupportedOperationException") || strings.Contains(e.Message, "UnsupportedOperationException")
}

// isRemote reports whether err comes from an exception of one of the classes.
func isRemote(err error, short ...string) bool {
	var r *RemoteError
	return errors.As(err, &r) && r.is(short...)
}

// isUnsupported reports whether the server does not know the call.
func isUnsupported(err error) bool {
	var r *RemoteError
	return errors.As(err, &r) && unsupported(r)
}

// explain gives kind and hint of an error from below; both are empty for an
// error that brings its own.
func explain(err error) (hbackup.Kind, string) {
	var own *hbackup.Error
	if errors.As(err, &own) {
		return hbackup.KindOther, "" // taken over from it
	}
	var remote *RemoteError
	if errors.As(err, &remote) {
		class := classOf(remote)
		return class.kind, class.hint
	}
	var lost *ConnError
	if errors.As(err, &lost) {
		return lost.kind(), connHint(lost)
	}
	switch {
	case errors.Is(err, errClosed):
		return hbackup.KindInterrupted, ""
	case errors.Is(err, errCorrupt):
		return hbackup.KindCorrupt, ""
	}
	return hbackup.KindOther, ""
}

func connHint(e *ConnError) string {
	switch {
	case e.Bare:
		return "the address may belong to another kind of server, or the server wants TLS or Kerberos"
	case e.Phase == PhaseDial:
		return "check that HBase is up and that this host can reach the address"
	case e.sent() && e.kind() == hbackup.KindTimeout:
		return "the server may still carry the call out: look at the real state before trying again"
	}
	return ""
}

// retryOf decides whether a failed call may be sent again. repeatable says that
// sending twice does no harm.
func retryOf(err error, repeatable bool) retry {
	var remote *RemoteError
	if errors.As(err, &remote) {
		return classOf(remote).retry
	}
	var lost *ConnError
	if errors.As(err, &lost) {
		switch {
		case lost.kind() == hbackup.KindInterrupted, lost.Phase == PhaseEncode, lost.Phase == PhaseDecode:
			return retryNever
		case lost.sent() && !repeatable:
			return retryNever
		}
		return retryLocate
	}
	if hbackup.Retryable(err) { // from the registry
		return retryLocate
	}
	return retryNever
}
