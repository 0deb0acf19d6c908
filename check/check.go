// Package check looks at everything a backup or a restore depends on and says of
// each whether it is well, and if not, what to do. It changes nothing but one
// small object that it writes to the target and removes again.
package check

import (
	"context"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/hbase/rootfs"
	"hbackup/hbase/rpc"
	"hbackup/storage"
)

// Status is the verdict on one item.
type Status string

const (
	OK      Status = "OK"
	Warning Status = "WARNING"
	Failed  Status = "FAILED"
	// Absent is said of what a store cannot do and hbackup does without.
	Absent Status = "NO"
)

// Item is one thing that was looked at.
type Item struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
	// Err is the error behind a failure, for the exit code.
	Err error `json:"-"`
}

// Cluster is what is looked at. A part that could not even be opened is given
// as its error.
type Cluster struct {
	Name      hbackup.ClusterName
	Master    Master
	MasterErr error
	FS        rootfs.FS
	FSErr     error
	Root      string
	Target    Location
	History   []Location // earlier locations
	Elsewhere catalog.Elsewhere
}

// Location is a location with the cluster's folder in it.
type Location struct {
	Name     string
	Location storage.Store // the location itself
	Place    catalog.Place // the cluster's folder
	Err      error         // why it could not be opened
}

// Master is what is asked of HBase; rpc.Client does it.
type Master interface {
	ClusterID() string
	Version(ctx context.Context) (rpc.Version, error)
	Snapshots(ctx context.Context) ([]rpc.SnapshotInfo, error)
}

// MaxSkew is how far this machine's clock may be from a store's before it is a
// warning. Requests to S3 are refused from 15 minutes on.
const MaxSkew = 2 * time.Minute

// Run looks at everything and goes on after a failure.
func Run(ctx context.Context, c Cluster) []Item {
	var l list
	l.hbase(ctx, c)
	l.root(ctx, c)
	l.target(ctx, c)
	for _, h := range c.History {
		l.history(ctx, h)
	}
	l.backups(ctx, c)
	return l.items
}

// Worst gives the gravest verdict and the first error behind it.
func Worst(items []Item) (Status, error) {
	worst, err := OK, error(nil)
	for _, i := range items {
		switch {
		case i.Status == Failed && worst != Failed:
			worst, err = Failed, i.Err
		case i.Status == Warning && worst == OK:
			worst = Warning
		}
	}
	return worst, err
}

type list struct{ items []Item }

func (l *list) ok(name, detail string) {
	l.items = append(l.items, Item{Name: name, Status: OK, Detail: detail})
}

func (l *list) warn(name, detail, hint string) {
	l.items = append(l.items, Item{Name: name, Status: Warning, Detail: detail, Hint: hint})
}

func (l *list) fail(name string, err error) {
	l.items = append(l.items, Item{Name: name, Status: Failed, Detail: err.Error(), Hint: hbackup.HintOf(err), Err: err})
}
