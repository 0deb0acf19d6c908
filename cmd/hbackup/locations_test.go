package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/catalog/index"
	"hbackup/config"
	"hbackup/storage"
	"hbackup/storage/faulty"
	"hbackup/storage/mem"
	"hbackup/storage/prefixed"
)

// command runs hbackup on the configuration of the golden tests, with stores in
// place of its locations.
func command(t *testing.T, target, old storage.Store, args ...string) (stdout, stderr string, code exitCode) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hbackup.yaml")
	if err := os.WriteFile(file, []byte(goldenConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEST_KEY", "access-key-value")
	t.Setenv("TEST_SECRET", "hunter2hunter2")
	var out, errOut bytes.Buffer
	p := &program{stdout: &out, stderr: &errOut, environ: []string{}, now: fakeNow, searchPaths: []string{file}}
	p.connect = func(s *session) (services, error) {
		return &world{session: s, stores: map[config.LocationName]storage.Store{"main": target, "old": old}, index: map[hbackup.ClusterName]*index.Index{}}, nil
	}
	code = p.run(t.Context(), append(args, "--quiet", "--set", "index.directory="+t.TempDir()))
	return out.String(), errOut.String(), code
}

// backedUp commits a run of the table with files of these names, after so long.
func backedUp(t *testing.T, s storage.Store, table hbackup.TableName, after time.Duration, names ...string) hbackup.BackupID {
	t.Helper()
	ctx, folder := context.Background(), prefixed.New(s, "prod")
	id := hbackup.NewBackupID(at(after))
	im := &catalog.Image{Header: catalog.Header{ID: id.Image(0), Backup: id, Cluster: "prod", Table: table, SnapshotStarted: at(after + time.Second), SnapshotFinished: at(after + 2*time.Second)}}
	for _, name := range names {
		f := catalog.File{Table: table, Region: "0123456789abcdef0123456789abcdef", Family: "f", Name: name, Size: 1000}
		im.Files = append(im.Files, f)
		im.Totals.Files++
		im.Totals.Bytes += f.Size
	}
	b, err := im.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := storage.PutBytes(ctx, folder, catalog.ImageKey(table, im.ID), b, true); err != nil {
		t.Fatal(err)
	}
	run := catalog.Run{ID: id, Request: hbackup.RequestID("r-" + id), Cluster: "prod", State: catalog.StateComplete, Started: at(after), Finished: at(after + time.Minute),
		Tables: []catalog.TableRun{{Table: table, Image: im.ID, SnapshotStarted: im.SnapshotStarted, SnapshotFinished: im.SnapshotFinished, Totals: im.Totals, CopiedBytes: 1000}}}
	if _, err := catalog.CommitRun(ctx, folder, run); err != nil {
		t.Fatal(err)
	}
	return id
}

// broken is a location that fails by the script.
func broken(t *testing.T, s storage.Store, script string) storage.Store {
	t.Helper()
	f, err := faulty.New(s, script)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// newerFormat is a location that only a later hbackup can read.
func newerFormat(t *testing.T) storage.Store {
	t.Helper()
	s := mem.New("old")
	if _, err := storage.PutBytes(context.Background(), s, catalog.MarkerKey, []byte(`{"format":99,"location":"0123456789abcdef0123456789abcdef"}`), true); err != nil {
		t.Fatal(err)
	}
	return s
}

// Backups of the target and of an earlier location are one history in the order of
// time, each with its location, also when the target moved back and forth.
func TestListIsOneHistory(t *testing.T) {
	main, old := marked(t, "main"), marked(t, "old")
	var ids []string
	for i, s := range []storage.Store{old, main, old, main} {
		ids = append(ids, string(backedUp(t, s, orders, time.Duration(i)*time.Minute, "a")))
	}
	out, stderr, code := command(t, main, old, "list", "--cluster", "prod")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != exitDone || len(lines) != 5 {
		t.Fatalf("code %d\n%s%s", code, out, stderr)
	}
	for i, place := range []string{"old", "main", "old", "main"} {
		if words := strings.Fields(lines[i+1]); words[0] != ids[i] || words[2] != place {
			t.Errorf("line %d: %s", i, lines[i+1])
		}
	}
	for i, id := range ids {
		out, stderr, code := command(t, main, old, "describe", id, "-o", "json")
		var doc struct{ Location string }
		if err := json.Unmarshal([]byte(out), &doc); err != nil || code != exitDone || doc.Location != []string{"old", "main"}[i%2] {
			t.Errorf("describe: %v, code %d\n%s%s", err, code, out, stderr)
		}
	}
}

// A location that cannot be read is said by name, and what the other one holds is
// shown and works.
func TestALocationThatCannotBeReadIsSaid(t *testing.T) {
	main, old := marked(t, "main"), marked(t, "old")
	inMain, inOld := string(backedUp(t, main, orders, 0, "a")), string(backedUp(t, old, orders, time.Minute, "b"))
	for name, c := range map[string]struct {
		main, old  storage.Store
		lost       string // the location
		seen, gone string // backups
	}{
		"the earlier one is down":          {main, broken(t, old, "any#*:fail=unavailable"), "old", inMain, inOld},
		"the earlier one is denied":        {main, broken(t, old, "any#*:fail=denied"), "old", inMain, inOld},
		"the earlier one is of the future": {main, newerFormat(t), "old", inMain, inOld},
		"the target is down":               {broken(t, main, "any#*:fail=unavailable"), old, "main", inOld, inMain},
		"the requests cannot be listed":    {main, broken(t, old, "list[jobs/]#*:fail=unavailable"), "old", inMain, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, verb := range []string{"list", "info"} {
				out, stderr, code := command(t, c.main, c.old, verb, "--cluster", "prod")
				if code != exitPartial || !strings.Contains(stderr, c.lost) {
					t.Errorf("%s: code %d\n%s", verb, code, stderr)
				}
				if verb == "list" && (!strings.Contains(out, c.seen) || c.gone != "" && strings.Contains(out, c.gone)) {
					t.Errorf("%s:\n%s", verb, out)
				}
				if verb == "info" && (!strings.Contains(out, "location "+c.lost+" cannot be read") || !strings.Contains(out, "not readable") || !strings.Contains(out, "ns:orders")) {
					t.Errorf("%s:\n%s", verb, out)
				}
			}
			out, stderr, code := command(t, c.main, c.old, "list", "--cluster", "prod", "-o", "json")
			var doc struct {
				Backups     []struct{ Backup string }
				Unreachable []struct{ Location string }
			}
			if err := json.Unmarshal([]byte(out), &doc); err != nil || code != exitPartial || len(doc.Unreachable) != 1 || doc.Unreachable[0].Location != c.lost {
				t.Errorf("%v, code %d\n%s%s", err, code, out, stderr)
			}
			if out, stderr, code := command(t, c.main, c.old, "describe", c.seen); code != exitDone || !strings.Contains(out, c.seen) {
				t.Errorf("describe: code %d\n%s%s", code, out, stderr)
			}
			// What is not found may be where nobody could look.
			if c.gone == "" {
				return
			}
			if _, stderr, code := command(t, c.main, c.old, "describe", c.gone); code == exitDone || code == exitNotFound || !strings.Contains(stderr, c.lost) {
				t.Errorf("describe of what is there: code %d\n%s", code, stderr)
			}
		})
	}
	if _, stderr, code := command(t, main, old, "describe", "20200101T000000.000Z-0000000000"); code != exitNotFound {
		t.Errorf("describe of nothing: code %d\n%s", code, stderr)
	}
}

// Nothing could be read: that is no empty answer.
func TestNoLocationCanBeRead(t *testing.T) {
	down := broken(t, marked(t, "x"), "any#*:fail=unavailable")
	for _, verb := range []string{"list", "info"} {
		if out, stderr, code := command(t, down, down, verb, "--cluster", "prod"); code != exitFailed || out != "" {
			t.Errorf("%s: code %d\n%s%s", verb, code, out, stderr)
		}
	}
}
