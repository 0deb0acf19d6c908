package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/storage"
)

// libraryOf writes a location in a directory with that many backups of two tables,
// and gives a configuration that reads it.
func libraryOf(b *testing.B, backups int) (configFile string) {
	b.Helper()
	dir := b.TempDir()
	write := func(key storage.Key, v any) {
		text, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			b.Fatal(err)
		}
		path := filepath.Join(dir, "location", string(key))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	write(catalog.MarkerKey, catalog.Marker{Format: catalog.LocationFormat, ID: "0123456789abcdef0123456789abcdef", Created: at(0)})
	for n := range backups {
		started := at(time.Duration(n-backups) * time.Hour)
		id := hbackup.NewBackupID(started)
		r := completeRun()
		r.ID, r.Request, r.Committer = id, hbackup.RequestID(id), "direct"
		r.Started, r.Finished = started, started.Add(time.Minute)
		for i := range r.Tables {
			t := &r.Tables[i]
			t.Image, t.SnapshotStarted, t.SnapshotFinished, t.CopiedBytes = id.Image(i), started, started.Add(time.Second), int64(n)<<20
		}
		write("prod/"+catalog.BackupKey(id), r)
		write("prod/"+catalog.JobKey(r.Request), catalog.Job{Format: catalog.RunFormat, Request: r.Request, Verb: "backup", Backup: id, Cluster: "prod", Tables: []hbackup.TableName{orders, customers}, Created: started})
		write("prod/"+catalog.JobDoneKey(r.Request), catalog.JobDone{Format: catalog.RunFormat, Request: r.Request, Finished: r.Finished, State: r.State})
	}
	configFile = filepath.Join(dir, "hbackup.yaml")
	text := fmt.Sprintf("version: 1\nclusters:\n  prod: {registry: {zookeeper: [zk1]}, root: hdfs://nn1/hbase, user: hbase, target: main}\nlocations:\n  main: {url: \"file://%s/location\"}\nindex: {directory: %s/index}\n", dir, dir)
	if err := os.WriteFile(configFile, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	return configFile
}

// The process as it is started by hand, with the index warm; "version" is what
// starting costs.
func BenchmarkListOf10000(b *testing.B) {
	binary := filepath.Join(b.TempDir(), "hbackup")
	if out, err := exec.Command("go", "build", "-tags", "disable_grpc_modules", "-o", binary, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	file := libraryOf(b, 10_000)
	for _, args := range [][]string{{"version"}, {"list"}, {"list", "-o", "json"}, {"list", "--set", "index.enabled=false"}} {
		b.Run(fmt.Sprint(args), func(b *testing.B) {
			run := func() time.Duration {
				cmd := exec.Command(binary, append([]string{"--config", file}, args...)...)
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
				return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			}
			run() // makes the index
			var used time.Duration
			for b.Loop() {
				used += run()
			}
			b.ReportMetric(float64(used.Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}
