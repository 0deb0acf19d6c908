// Package generations backs up tables of a real HBase again and again while they
// live, and restores every generation; and a cluster of which some tables are broken.
package generations

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hbackup/e2e/cli"
	"hbackup/e2e/servers"
	"hbackup/hbase/rootfs"
)

var cluster *servers.Cluster

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	defer cli.Cleanup()
	if cluster, err = servers.StartCluster(context.Background(), servers.ClusterOptions{HBase: servers.EagerCleaners()}); err != nil {
		panic(err)
	}
	defer cluster.Stop()
	return m.Run()
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hdfs is the file system below HBase.
func hdfs(t *testing.T) rootfs.FS {
	t.Helper()
	fs, err := rootfs.HDFS(t.Context(), rootfs.Config{NameNodes: []string{cluster.HDFS.Address()}, User: cluster.HDFS.User()})
	check(t, err)
	t.Cleanup(func() { fs.Close() })
	return fs
}

// objects gives what lies in a location in a directory, by key, with the sizes.
func objects(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	check(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		out[strings.TrimPrefix(path, dir+"/")] = info.Size()
		return nil
	}))
	return out
}

// backupDocument is what backup says with -o json.
type backupDocument struct {
	ID          string      `json:"backup"`
	Request     string      `json:"request"`
	State       string      `json:"state"`
	CopiedFiles int         `json:"copied_files"`
	CopiedBytes int64       `json:"copied_bytes"`
	Gone        []string    `json:"gone"`
	Tables      []tableLine `json:"tables"`
}

type tableLine struct {
	Table  string   `json:"table"`
	Image  string   `json:"image"`
	Error  *problem `json:"error"`
	Caveat *problem `json:"caveat"`
}

type problem struct{ Kind, Message, Hint string }

func backupOf(t *testing.T, r cli.Result, code int) (b backupDocument) {
	t.Helper()
	if r.Code != code {
		t.Fatalf("exit code %d, want %d: %s", r.Code, code, r)
	}
	if err := json.Unmarshal([]byte(r.Stdout), &b); err != nil {
		t.Fatalf("%v: %s", err, r)
	}
	return b
}
