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
