package index

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hbackup"
	"hbackup/catalog"
	"hbackup/storage"
	"hbackup/storage/mem"
)

// someRun draws a run of one to five tables, with all that a record may hold.
func someRun(t *rapid.T, id hbackup.BackupID, request hbackup.RequestID) catalog.Run {
	word := rapid.SampledFrom([]string{"", "a", "b\u00e4", "2.6.4"})
	zone := rapid.SampledFrom([]*time.Location{time.UTC, time.UTC, time.UTC, time.FixedZone("", 3600)})
	moment := rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.IntRange(0, 5).Draw(t, "zero") == 0 {
			return time.Time{}
		}
		return time.Unix(rapid.Int64Range(-1<<35, 1<<35).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).In(zone.Draw(t, "zone"))
	})
	failure := rapid.Custom(func(t *rapid.T) *catalog.Failure {
		if rapid.IntRange(0, 4).Draw(t, "failed") > 0 {
			return nil
		}
		return &catalog.Failure{Kind: hbackup.KindCorrupt, Message: word.Draw(t, "message"), Hint: word.Draw(t, "hint")}
	})
	number := rapid.Int64()
	r := catalog.Run{ID: id, Request: request, Cluster: hbackup.ClusterName(word.Draw(t, "cluster")), ClusterID: word.Draw(t, "cluster id"), HBaseVersion: word.Draw(t, "version"),
		State: rapid.SampledFrom([]catalog.State{catalog.StateComplete, catalog.StatePartial}).Draw(t, "state"), Started: moment.Draw(t, "started"), Finished: moment.Draw(t, "finished"),
		Host: word.Draw(t, "host"), Writer: word.Draw(t, "writer"), Committer: word.Draw(t, "committer")}
	if rapid.Bool().Draw(t, "by selection") {
		r.Selection = &hbackup.Selection{Set: word.Draw(t, "set"), Include: []hbackup.TablePattern{"ns:*"}}
		r.Gone = rapid.SliceOfN(rapid.Just(hbackup.TableName{Namespace: "ns", Qualifier: "gone"}), 0, 2).Draw(t, "gone")
	}
	for n := range rapid.IntRange(0, 5).Draw(t, "tables") {
		table := catalog.TableRun{Table: hbackup.TableName{Namespace: rapid.SampledFrom([]string{"default", "ns"}).Draw(t, "ns"), Qualifier: fmt.Sprint("t", n)},
			SnapshotStarted: moment.Draw(t, "from"), SnapshotFinished: moment.Draw(t, "to"),
			Totals:      catalog.Totals{Regions: int(number.Draw(t, "regions")), Files: int(number.Draw(t, "files")), Bytes: number.Draw(t, "bytes"), Cells: number.Draw(t, "cells")},
			CopiedFiles: int(number.Draw(t, "copied files")), CopiedBytes: number.Draw(t, "copied bytes"), Caveat: failure.Draw(t, "caveat"), Failure: failure.Draw(t, "failure")}
		if table.Failure == nil {
			table.Image = id.Image(n + rapid.SampledFrom([]int{0, 0, 0, 7}).Draw(t, "number"))
		}
		r.Tables = append(r.Tables, table)
	}
	return r
}

// Whatever runs come, die and go, whoever else writes, and whichever older index
// is put back: the history with an index is the one without.
func TestTheIndexChangesNoAnswer(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		dir, err := os.MkdirTemp(base, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		s := mem.New("prod")
		n := 0
		next := func() (hbackup.BackupID, hbackup.RequestID) {
			n++
			// Clocks of hosts differ: an id may come before those that are there.
			at := start.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "minute")) * time.Minute)
			return hbackup.NewBackupID(at), hbackup.RequestID(rapid.SampledFrom([]string{"r", "r-", "r.", "R", "r0"}).Draw(t, "prefix") + fmt.Sprint(n))
		}
		check := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		open := func(verb string) (hbackup.BackupID, hbackup.RequestID) {
			id, request := next()
			_, _, err := catalog.CreateJob(ctx, s, catalog.Job{Request: request, Verb: verb, Backup: id, Cluster: "prod", Created: start})
			check(err)
			return id, request
		}
		entry := func() catalog.Entry {
			h := catalog.ReadHistory(ctx, []catalog.Place{{Name: "main", Store: s}})
			readable := slices.DeleteFunc(h.Entries, func(e catalog.Entry) bool { return e.Unreadable != nil })
			if len(readable) == 0 {
				t.Skip("nothing there")
			}
			return readable[rapid.IntRange(0, len(readable)-1).Draw(t, "entry")]
		}
		t.Repeat(map[string]func(*rapid.T){
			"run": func(*rapid.T) {
				id, request := open("backup")
				_, err := catalog.CommitRun(ctx, s, someRun(t, id, request))
				check(err)
			},
			"run without a job": func(*rapid.T) {
				id, request := next()
				_, err := catalog.CommitRun(ctx, s, someRun(t, id, request))
				check(err)
			},
			"die":     func(*rapid.T) { open("backup") },
			"restore": func(*rapid.T) { open("restore") },
			"go on": func(*rapid.T) {
				e := entry()
				_, err := catalog.CommitRun(ctx, s, someRun(t, e.ID, e.Request))
				check(err)
			},
			"remove": func(*rapid.T) {
				e := entry()
				check(s.Delete(ctx, catalog.BackupKey(e.ID)))
				check(s.Delete(ctx, catalog.JobKey(e.Request)))
			},
			"remove the record": func(*rapid.T) { check(s.Delete(ctx, catalog.BackupKey(entry().ID))) },
			"damage": func(*rapid.T) {
				_, err := storage.PutBytes(ctx, s, catalog.BackupKey(entry().ID), []byte("{"), false)
				check(err)
			},
			"ask again under the id of one that is gone": func(*rapid.T) {
				e := entry()
				check(s.Delete(ctx, catalog.BackupKey(e.ID)))
				check(s.Delete(ctx, catalog.JobKey(e.Request)))
				id, _ := next()
				_, _, err := catalog.CreateJob(ctx, s, catalog.Job{Request: e.Request, Verb: "backup", Backup: id, Cluster: "prod", Created: start})
				if !hbackup.IsKind(err, hbackup.KindExists) {
					check(err)
				}
			},
			"keep the index": func(*rapid.T) { copyFiles(t, dir, dir+"-old") },
			"put the index back": func(*rapid.T) {
				if _, err := os.Stat(dir + "-old"); err == nil {
					copyFiles(t, dir+"-old", dir)
				}
			},
			"look": func(*rapid.T) { compare(t, dir, s) },
		})
		compare(t, dir, s)
		compare(t, dir, s)
		os.RemoveAll(dir + "-old")
	})
}

// compare reads the history with the index and without.
func compare(t *rapid.T, dir string, s storage.Store) {
	x := Open(dir, "prod", quiet)
	h := catalog.ReadHistory(context.Background(), []catalog.Place{{Name: "main", Store: s, Known: x.Location("l1")}})
	x.Close()
	want := catalog.ReadHistory(context.Background(), []catalog.Place{{Name: "main", Store: s}})
	if len(h.Entries) != len(want.Entries) || len(h.Unreachable) != len(want.Unreachable) {
		t.Fatalf("%d entries with the index, %d without; %v, %v", len(h.Entries), len(want.Entries), h.Unreachable, want.Unreachable)
	}
	for i := range h.Entries {
		a, b := h.Entries[i], want.Entries[i]
		if (a.Unreadable == nil) != (b.Unreadable == nil) {
			t.Fatalf("%s: %v, %v", a.ID, a.Unreadable, b.Unreadable)
		}
		a.Unreadable, b.Unreadable = nil, nil
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("with the index\n%+v\nwithout\n%+v", a, b)
		}
	}
}

func copyFiles(t *rapid.T, from, to string) {
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"prod.index", "prod.index.sum"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if os.IsNotExist(err) {
			os.Remove(filepath.Join(to, name))
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
