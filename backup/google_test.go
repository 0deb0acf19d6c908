package backup_test

import (
	"context"
	"fmt"
	"testing"

	"hbackup"
	"hbackup/backup"
	"hbackup/catalog"
	"hbackup/committer"
	"hbackup/storage"
	"hbackup/storage/gcs"
	"hbackup/storage/gcs/gcstest"
	"hbackup/storage/lease"
)

// TestKilledOnGoogle has a process fall silent in each phase, by both committers, on
// a server that keeps the rules of Google Cloud Storage. The next process finds what
// is there, once the lease of the silent one has ended.
func TestKilledOnGoogle(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for leases to end; run without -short")
	}
	server, err := gcstest.Start("", gcstest.Options{Buckets: []string{"backups"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	open := func(t *testing.T, prefix string) storage.Store {
		s, err := gcs.New(t.Context(), gcs.Config{Bucket: "backups", Prefix: prefix, Endpoint: server.Endpoint()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	points := []struct {
		by   committer.Protocol
		n    int // the n-th call of the kind with the part in its key never comes
		kind string
		part string
	}{
		{committer.ProtocolDirect, 2, "put", "archive/"}, {committer.ProtocolDirect, 1, "put", ".snapshotinfo"}, {committer.ProtocolDirect, 1, "put", "images/"},
		{committer.ProtocolDirect, 1, "put", "backups/"},
		{committer.ProtocolDeferred, 2, "open", ""}, {committer.ProtocolDeferred, 2, "put", "/uploads/"}, {committer.ProtocolDeferred, 2, "fill", ""},
		{committer.ProtocolDeferred, 1, "finish", ""}, {committer.ProtocolDeferred, 3, "finish", ""}, {committer.ProtocolDeferred, 1, "put", "data.manifest"},
		{committer.ProtocolDeferred, 1, "put", "images/"}, {committer.ProtocolDeferred, 1, "batch", "/uploads/"},
	}
	worlds := make([]*world, len(points))
	for i, c := range points {
		w := newWorld(t)
		worlds[i] = w
		mine, other := open(t, fmt.Sprintf("p%d", i)), open(t, fmt.Sprintf("p%d", i))
		first := newDyingOf(mine, func() storage.Store { return other }, nth(c.n, c.kind, c.part))
		if !w.kill(t, first, "r", backup.Options{Files: 1, LeaseTTL: lease.MinTTL, Committer: c.by}) {
			t.Fatalf("it was not killed at %+v", c)
		}
	}
	for i, c := range points {
		w := worlds[i]
		r, err := backup.Run(context.Background(), backup.Request{ID: "r", Cluster: "prod", Tables: []hbackup.TableName{orders}},
			backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: w.store, Name: "main"}, backup.Options{Files: 1, Committer: c.by})
		if err != nil || r.State != catalog.StateComplete || r.Committer != string(c.by) {
			t.Errorf("%+v, again: %+v, %v", c, r, err)
			continue
		}
		if n := len(w.images(t)); n != 1 {
			t.Errorf("%+v: %d images", c, n)
		}
		h, _ := storage.HolderOf(w.folder())
		for _, f := range w.tables[orders].files {
			key := storage.Key("archive/data/ns/orders/" + string(w.tables[orders].region) + "/f/" + f)
			if left, err := h.OpenUploads(context.Background(), key); err != nil || len(left) > 0 {
				t.Errorf("%+v: uploads of %s are left: %v, %v", c, key, left, err)
			}
		}
		if open, err := catalog.OpenUploads(context.Background(), w.folder()); err != nil || len(open) > 0 {
			t.Errorf("%+v: records left open: %v, %v", c, open, err)
		}
	}
}
