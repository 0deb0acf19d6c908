package catalog_test

import (
	"bytes"
	"strings"
	"testing"

	"hbackup"
	"hbackup/catalog"
	"hbackup/storage/mem"
)

func tablesOf(names ...string) (all []hbackup.TableName) {
	for _, n := range names {
		all = append(all, hbackup.TableName{Namespace: "ns", Qualifier: n})
	}
	return all
}

// A request id stands for one request, and the error says what is not the same.
func TestARequestIDStandsForOneRequest(t *testing.T) {
	s := mem.New("jobs")
	first := catalog.Job{Request: "r", Verb: "backup", Backup: "20261130T230501.123Z-7f3k2m9q4x", Cluster: "prod", Tables: tablesOf("a", "b", "c")}
	recorded, existed, err := catalog.CreateJob(t.Context(), s, first)
	if err != nil || existed || len(recorded.Digest) != 64 {
		t.Fatalf("%+v, %v, %v", recorded, existed, err)
	}
	same := first
	same.Backup = "20261130T230501.124Z-7f3k2m9q4y" // each try proposes its own
	if again, existed, err := catalog.CreateJob(t.Context(), s, same); err != nil || !existed || again.Backup != first.Backup || again.Digest != recorded.Digest {
		t.Errorf("the same: %+v, %v, %v", again, existed, err)
	}
	for want, change := range map[string]func(*catalog.Job){
		"with ns:d, without ns:b":           func(j *catalog.Job) { j.Tables = tablesOf("a", "d", "c") },
		"the tables in another order":       func(j *catalog.Job) { j.Tables = tablesOf("c", "b", "a") },
		"verb restore instead of backup":    func(j *catalog.Job) { j.Verb = "restore" },
		"tables by ":                        func(j *catalog.Job) { j.Tables, j.Selection = nil, &hbackup.Selection{Set: "billing"} },
		"cluster dr instead of prod":        func(j *catalog.Job) { j.Cluster = "dr" },
		"target cluster dr instead of none": func(j *catalog.Job) { j.TargetCluster = "dr" },
	} {
		other := first
		change(&other)
		if _, _, err := catalog.CreateJob(t.Context(), s, other); !hbackup.IsKind(err, hbackup.KindConflict) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
		if other.RequestDigest() == first.RequestDigest() {
			t.Errorf("%q has the same digest", want)
		}
	}
	// A record whose tables are not those that were asked for binds nothing.
	s.Tamper(catalog.JobKey("r"), func(b []byte) []byte { return bytes.Replace(b, []byte(`"ns:b"`), []byte(`"ns:x"`), 1) })
	if _, err := catalog.ReadJob(t.Context(), s, "r"); !hbackup.IsKind(err, hbackup.KindCorrupt) {
		t.Errorf("a record that was changed: %v", err)
	}
}

// What is empty and what is missing is the same request.
func TestEmptyIsMissing(t *testing.T) {
	s := mem.New("jobs")
	j := catalog.Job{Request: "r", Verb: "backup", Cluster: "prod", Tables: []hbackup.TableName{},
		Selection: &hbackup.Selection{Include: []hbackup.TablePattern{}, Exclude: []hbackup.TablePattern{}}}
	if _, _, err := catalog.CreateJob(t.Context(), s, j); err != nil {
		t.Fatal(err)
	}
	if _, err := catalog.ReadJob(t.Context(), s, "r"); err != nil {
		t.Error(err)
	}
}
