package hdfs

import (
	"errors"

	"hbackup"
	client "hbackup/internal/hdfs"
	"hbackup/storage"
)

var (
	errMissing = errors.New("there is no such object")
	errTaken   = errors.New("there is an object already")
	errFolder  = errors.New("there are other keys below it")
)

// err makes the error of a method; its path is the object's full name.
func (s *Store) err(op string, key storage.Key, cause error) error {
	kind, hint := hbackup.KindOf(cause), hbackup.HintOf(cause)
	switch {
	case errors.Is(cause, errMissing):
		kind, hint = hbackup.KindNotFound, ""
	case errors.Is(cause, errTaken):
		kind, hint = hbackup.KindExists, ""
	case errors.Is(cause, errFolder):
		kind, hint = hbackup.KindConflict, ""
	}
	path := s.location.At(key)
	if key == "" {
		path = string(s.location)
	}
	// The client's error about this very file says the path once more.
	if e, ok := cause.(*hbackup.Error); ok && e.Path == path && e.Err != nil {
		cause = e.Err
	}
	e := hbackup.E(op, path, kind, cause)
	if hint != "" {
		e.WithHint("%s", hint)
	}
	switch {
	case errors.Is(cause, client.ErrEncrypted):
		e.WithHint("the native protocol cannot encrypt: reach this location over WebHDFS (webhdfs: [http://namenode:9870]), or keep the backups outside of encryption zones (hdfs crypto -listZones)")
	case errors.Is(cause, client.ErrErasureCoded):
		e.WithHint("the native protocol knows only replicated files: reach this location over WebHDFS (webhdfs: [http://namenode:9870]), or: hdfs ec -setPolicy -replicate -path %s", s.path)
	case kind == hbackup.KindDenied:
		e.WithHint("give the user that backups are written as the right to %s (hdfs dfs -ls -d shows owner and mode)", s.path)
	}
	return e
}

// isNotHere reports errors that mean: no object can be under that name. There is
// nothing, a directory, or a file where a directory would have to be.
func isNotHere(err error) bool {
	return hbackup.IsKind(err, hbackup.KindNotFound, hbackup.KindConflict)
}
