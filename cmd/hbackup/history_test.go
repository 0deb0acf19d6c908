package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"hbackup"
	"hbackup/catalog"
	"hbackup/config"
	"hbackup/storage"
	"hbackup/storage/faulty"
	"hbackup/storage/mem"
	"hbackup/storage/prefixed"
)

// realWorld is the real services of cluster prod over stores in memory; messages
// go to the buffer.
func realWorld(t *testing.T, target, old storage.Store) (*world, *config.Cluster, *bytes.Buffer) {
	t.Helper()
	cl := &config.Cluster{Name: "prod", Target: "main", History: []config.LocationName{"old"}}
	cfg := &config.Config{Clusters: map[hbackup.ClusterName]*config.Cluster{"prod": cl},
		Locations: map[config.LocationName]*config.Location{"main": {Name: "main"}, "old": {Name: "old"}}}
	var log bytes.Buffer
	s := &session{cfg: cfg, log: slog.New(slog.NewTextHandler(&log, nil))}
	return &world{session: s, stores: map[config.LocationName]storage.Store{"main": target, "old": old}}, cl, &log
}

// marked is a location of ours with nothing in it.
func marked(t *testing.T, name string) *mem.Store {
	t.Helper()
	s := mem.New(name)
	if _, err := catalog.EnsureMarker(context.Background(), s, "test", false); err != nil {
		t.Fatal(err)
	}
	return s
}

// died leaves the traces of a run that was killed after the image of its second
// table.
func died(t *testing.T, s storage.Store) {
	t.Helper()
	ctx, folder := context.Background(), prefixed.New(s, "prod")
	job := catalog.Job{Request: "nightly", Verb: "backup", Backup: fakeID, Cluster: "prod", Tables: []hbackup.TableName{orders, customers}, Created: at(0)}
	if _, _, err := catalog.CreateJob(ctx, folder, job); err != nil {
		t.Fatal(err)
	}
	im := &catalog.Image{Header: catalog.Header{ID: fakeID.Image(1), Backup: fakeID, Cluster: "prod", Table: customers}}
	b, err := im.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := storage.PutBytes(ctx, folder, catalog.ImageKey(customers, im.ID), b, true); err != nil {
		t.Fatal(err)
	}
}

func TestTheImagesOfARunThatDiedAreFound(t *testing.T) {
	s := marked(t, "main")
	died(t, s)
	w, cl, log := realWorld(t, s, marked(t, "old"))
	found, err := w.FindBackup(context.Background(), []*config.Cluster{cl}, fakeID)
	if err != nil || found.run.State != catalog.StateFailed || len(found.run.Tables) != 2 {
		t.Fatalf("%+v, %v", found.run, err)
	}
	// This is how restore and verify come to an image.
	if image, err := found.tableFor(customers); err != nil || image.ID != fakeID.Image(1) {
		t.Errorf("%+v, %v", image, err)
	}
	if one, err := found.only(backupRef{fakeID, fakeID.Image(1)}); err != nil || len(one.run.Tables) != 1 {
		t.Errorf("%+v, %v", one.run, err)
	}
	if _, err := found.tableFor(orders); !hbackup.IsKind(err, hbackup.KindNotFound) {
		t.Errorf("a table without an image: %v", err)
	}
	if log.Len() > 0 {
		t.Errorf("messages: %s", log)
	}
}

// Not found is an answer only when every location gave one.
func TestABackupIsNotMissingWhereALocationCannotBeListed(t *testing.T) {
	for script, want := range map[string]hbackup.Kind{
		"list[jobs/]#*:fail=unavailable": hbackup.KindUnavailable,
		"list#*:fail=denied":             hbackup.KindDenied,
		"get[backups/]#*:fail=timeout":   hbackup.KindTimeout,
	} {
		bad, err := faulty.New(marked(t, "old"), script)
		if err != nil {
			t.Fatal(err)
		}
		w, cl, _ := realWorld(t, marked(t, "main"), bad)
		_, err = w.FindBackup(context.Background(), []*config.Cluster{cl}, fakeID)
		if !hbackup.IsKind(err, want) || !strings.Contains(hbackup.HintOf(err), "old") {
			t.Errorf("%s: %v (%s)", script, err, hbackup.HintOf(err))
		}
	}
	w, cl, _ := realWorld(t, marked(t, "main"), marked(t, "old"))
	if _, err := w.FindBackup(context.Background(), []*config.Cluster{cl}, fakeID); !hbackup.IsKind(err, hbackup.KindNotFound) {
		t.Errorf("all could be asked: %v", err)
	}
}

func TestLocationsThatAreNotWhatTheyWere(t *testing.T) {
	ctx := context.Background()
	newer := mem.New("old")
	if _, err := storage.PutBytes(ctx, newer, catalog.MarkerKey, []byte(`{"format":2,"location":"x"}`), true); err != nil {
		t.Fatal(err)
	}
	empty := mem.New("main") // a mount point without its disk
	w, cl, log := realWorld(t, empty, newer)
	h, err := w.History(ctx, cl)
	if err != nil || !hbackup.IsKind(h.Unreachable["old"], hbackup.KindUnsupported) || h.Unreachable["main"] != nil {
		t.Fatalf("%+v, %v", h, err)
	}
	if n := strings.Count(log.String(), "is its disk mounted?"); n != 1 || !strings.Contains(log.String(), "location=main") {
		t.Errorf("messages: %s", log)
	}
	// Whoever has to restore does so without a marker, too.
	died(t, empty)
	if found, err := w.FindBackup(ctx, []*config.Cluster{cl}, fakeID); err != nil || found.place.Name != "main" {
		t.Errorf("%+v, %v", found, err)
	}
	if n := strings.Count(log.String(), "is its disk mounted?"); n != 1 {
		t.Errorf("said %d times", n)
	}
}
