// Package files holds what the file systems share: how a file is described, and
// the checks that every one of them makes before it touches anything.
package files

import (
	"errors"
	"strings"
	"time"
)

// Info describes a file or directory.
type Info struct {
	Name     string // last path segment
	Path     string // absolute
	Size     int64
	Dir      bool
	Modified time.Time
	// ID changes when another file takes the same path (the HDFS inode number);
	// 0 when the file system has none.
	ID uint64
}

// ByName orders by name, byte by byte.
func ByName(a, b Info) int { return strings.Compare(a.Name, b.Name) }

// ErrEnded is the cause when a writer is used after its end.
var ErrEnded = errors.New("the writer was closed or aborted before")

// ErrReplaced is the cause when another file has taken the path during a read or
// an opening.
var ErrReplaced = errors.New("another file has taken this path while it was read")

// ErrOpenForWriting is the cause when a file's end is not known yet.
var ErrOpenForWriting = errors.New("the file is still open for writing")

// ErrAnswerLost is among the causes when a call that is not repeated may have been
// carried out or not.
var ErrAnswerLost = errors.New("the name node's answer was lost")

// PageSize is how many entries one page of a directory has, unless it is the last;
// the usual limit of one answer of an HDFS name node (dfs.ls.limit).
const PageSize = 1000
