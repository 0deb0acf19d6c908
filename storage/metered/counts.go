package metered

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"hbackup"
)

// Op is how often a method was called, how often it failed, and how long its
// calls took together. A call counts when it has ended. Whether a store makes
// one request of a call or many is its own affair.
type Op struct {
	Calls  int64         `json:"calls"`
	Errors int64         `json:"errors"`
	Time   time.Duration `json:"time_ns"`
}

// Counts are the counters of a store.
type Counts struct {
	Put         Op `json:"put"`
	Get         Op `json:"get"`
	Stat        Op `json:"stat"`
	List        Op `json:"list"`
	Delete      Op `json:"delete"`
	DeleteBatch Op `json:"delete_batch"`
	ServerTime  Op `json:"server_time"`

	OpenUpload   Op `json:"open_upload"`
	FillUpload   Op `json:"fill_upload"`
	FinishUpload Op `json:"finish_upload"`
	DropUpload   Op `json:"drop_upload"`
	OpenUploads  Op `json:"open_uploads"`

	BytesWritten int64 `json:"bytes_written"` // read from bodies, also of puts that failed
	BytesRead    int64 `json:"bytes_read"`    // given by readers
	Listed       int64 `json:"listed"`        // objects in listings
	OpenReaders  int64 `json:"open_readers"`  // that nobody has closed yet

	// ErrorKinds has every error by its kind. Not found on Stat and exists on
	// Put are answers as much as errors: who reads this decides.
	ErrorKinds map[hbackup.Kind]int64 `json:"error_kinds,omitempty"`
}

// Calls gives the number of calls of all methods.
func (c Counts) Calls() int64 {
	var n int64
	for _, op := range c.ops() {
		n += op.op.Calls
	}
	return n
}

// Errors gives the number of errors of all methods.
func (c Counts) Errors() int64 {
	var n int64
	for _, op := range c.ops() {
		n += op.op.Errors
	}
	return n
}

// Sub gives what happened since an earlier state of the same counters.
func (c Counts) Sub(earlier Counts) Counts {
	d := c.clone()
	before := earlier.ops()
	for i, op := range d.ops() {
		op.op.Calls -= before[i].op.Calls
		op.op.Errors -= before[i].op.Errors
		op.op.Time -= before[i].op.Time
	}
	d.BytesWritten -= earlier.BytesWritten
	d.BytesRead -= earlier.BytesRead
	d.Listed -= earlier.Listed
	d.OpenReaders -= earlier.OpenReaders
	for kind, n := range earlier.ErrorKinds {
		if d.ErrorKinds[kind] -= n; d.ErrorKinds[kind] == 0 {
			delete(d.ErrorKinds, kind)
		}
	}
	return d
}

// String gives one line for people: "put 3, stat 1; 12345 bytes written".
func (c Counts) String() string {
	var parts []string
	for _, op := range c.ops() {
		if op.op.Calls > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", op.name, op.op.Calls))
		}
	}
	if len(parts) == 0 {
		return "no requests"
	}
	line := strings.Join(parts, ", ")
	if c.BytesWritten > 0 {
		line += fmt.Sprintf("; %d bytes written", c.BytesWritten)
	}
	if c.BytesRead > 0 {
		line += fmt.Sprintf("; %d bytes read", c.BytesRead)
	}
	if n := c.Errors(); n > 0 {
		line += fmt.Sprintf("; %d errors", n)
	}
	return line
}

type namedOp struct {
	name string
	op   *Op
}

func (c *Counts) ops() []namedOp {
	return []namedOp{
		{"put", &c.Put}, {"get", &c.Get}, {"stat", &c.Stat}, {"list", &c.List},
		{"delete", &c.Delete}, {"delete batch", &c.DeleteBatch}, {"server time", &c.ServerTime},
		{"open upload", &c.OpenUpload}, {"fill upload", &c.FillUpload}, {"finish upload", &c.FinishUpload},
		{"drop upload", &c.DropUpload}, {"list uploads", &c.OpenUploads},
	}
}

func (c Counts) clone() Counts {
	c.ErrorKinds = maps.Clone(c.ErrorKinds)
	return c
}
