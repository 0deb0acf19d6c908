package check

import (
	"context"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/hbase/rootfs"
	"hbackup/storage/mem"
	"hbackup/storage/prefixed"
)

// Backups whose files lie in another location need it: check says which one, and
// whether it is to be had.
func TestLocationsThatBackupsNeed(t *testing.T) {
	const old = "feedfeedfeedfeedfeedfeedfeedfeed"
	s := mem.New("main")
	if _, err := catalog.EnsureMarker(t.Context(), s, "test", false); err != nil {
		t.Fatal(err)
	}
	id := hbackup.NewBackupID(time.UnixMilli(1796079901000))
	run := catalog.Run{ID: id, Request: "r", Cluster: "prod", State: catalog.StateComplete, Tables: []catalog.TableRun{
		{Table: hbackup.TableName{Namespace: "ns", Qualifier: "orders"}, Image: id.Image(0), References: []catalog.Reference{{Location: old, Name: "hdfs://nn:8020/backup/prod", Files: 3}}}}}
	if _, err := catalog.CommitRun(t.Context(), prefixed.New(s, "prod"), run); err != nil {
		t.Fatal(err)
	}
	for _, known := range []bool{true, false} {
		items := Run(t.Context(), Cluster{Name: "prod", Master: master{}, FS: rootfs.Local(), Root: rootDir(t),
			Target: Location{Name: "main", Location: s, Place: catalog.Place{Name: "main", Store: prefixed.New(s, "prod")}},
			Elsewhere: func(_ context.Context, id string) (catalog.Place, error) {
				if known && id == old {
					return catalog.Place{Name: "old", Store: mem.New("moved")}, nil
				}
				return catalog.Place{}, hbackup.Errorf("find location", id, hbackup.KindNotFound, "it is not in the configuration")
			}})
		n := 0
		for _, i := range items {
			if i.Name != "files in location id "+old {
				continue
			}
			n++
			if known && (i.Status != OK || !strings.Contains(i.Detail, "mem://moved")) {
				t.Errorf("got %+v", i)
			}
			if !known && (i.Status != Failed || !strings.Contains(i.Detail, "hdfs://nn:8020/backup/prod") || i.Hint == "" || !hbackup.IsKind(i.Err, hbackup.KindNotFound)) {
				t.Errorf("got %+v", i)
			}
		}
		if n != 1 {
			t.Errorf("known %v: said %d times in %+v", known, n, items)
		}
	}
}
