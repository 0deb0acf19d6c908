package catalog

import (
	"strings"

	"hbackup"
)

// Remembered is what was once read of a location's records. Records of runs and
// jobs never change once they are made, and a request id is never used for
// something else, so what a listing shows and this holds need not be read again.
type Remembered struct {
	Runs  []Entry         // ascending by id, all of them readable; the place is not set
	Sizes []int64         // of the records of the runs, in bytes
	Jobs  []RememberedJob // in the order of their folders
}

// RememberedJob is what a history needs of the record of a request.
type RememberedJob struct {
	Request hbackup.RequestID
	Verb    string
	Backup  hbackup.BackupID
}

// Records remember the records of one location. What they give is only used for
// keys that a listing shows.
type Records interface {
	// Load gives what is remembered, for the caller to keep; the zero value when
	// there is nothing.
	Load() Remembered
	// Save replaces what is remembered. The caller does not change it any more.
	Save(Remembered)
}

func (p Place) remembered() Remembered {
	if p.Known == nil {
		return Remembered{}
	}
	return p.Known.Load()
}

// compareFolders orders requests as their folders are listed.
func compareFolders(a, b hbackup.RequestID) int { return compareSegment(string(a), string(b)) }

// jobFolder reads the request out of the folder in a listing of jobs.
func jobFolder(key string) (hbackup.RequestID, bool) {
	name, isFolder := strings.CutSuffix(strings.TrimPrefix(key, jobsPrefix), "/")
	r := hbackup.RequestID(name)
	return r, isFolder && r.Validate() == nil
}
