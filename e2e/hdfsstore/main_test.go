// Package hdfsstore tests hbackup/storage/hdfs against a real HDFS.
package hdfsstore

import (
	"context"
	"fmt"
	"os"
	"path"
	"testing"

	"hbackup"
	"hbackup/e2e/cli"
	"hbackup/e2e/servers"
	"hbackup/storage"
	"hbackup/storage/hdfs"
	"hbackup/storage/storetest"
)

var (
	cluster  *servers.HDFS
	toolMade bool // the binary is there, to be removed
)

func TestMain(m *testing.M) {
	if at := os.Getenv(childEnv); at != "" {
		writeForEver(at)
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// zone is an encryption zone of the HDFS.
const zone = "/zone"

// run starts an HDFS with blocks of 1 MiB, so that files have many, and with as many
// data nodes as the smallest erasure code wants.
func run(m *testing.M) (int, error) {
	var err error
	cluster, err = servers.StartHDFS(context.Background(), servers.HDFSOptions{DataNodes: 3, Zone: zone, Extra: servers.Settings{
		"dfs.blocksize": "1048576", "dfs.permissions.enabled": "true",
	}})
	if err != nil {
		return 1, err
	}
	defer cluster.Stop()
	defer func() {
		if toolMade {
			cli.Cleanup()
		}
	}()
	return m.Run(), nil
}

// directory gives a location of the test's own, another one in each of its runs:
// the testing package makes such names for temporary directories.
func directory(t testing.TB) string {
	return cluster.URI() + "/" + path.Base(path.Dir(t.TempDir()))
}

func openAt(t testing.TB, at string, cfg hdfs.Config) *hdfs.Store {
	t.Helper()
	s, err := open(at, cfg)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func open(at string, cfg hdfs.Config) (*hdfs.Store, error) {
	place, err := storage.ParseLocation(at)
	if err != nil {
		return nil, err
	}
	return hdfs.Open(place, cfg)
}

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storage.Store {
		return openAt(t, directory(t), hdfs.Config{User: cluster.User()})
	}, storetest.NoNesting())
}

// overHTTP reaches the name node by WebHDFS.
func overHTTP() hdfs.Config {
	return hdfs.Config{User: cluster.User(), WebHDFS: []string{"http://" + cluster.HTTPAddress()}}
}

func TestContractOverHTTP(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storage.Store {
		return openAt(t, directory(t), overHTTP())
	}, storetest.NoNesting(), storetest.Brief())
}

func put(t testing.TB, s storage.Store, key storage.Key, text string) {
	t.Helper()
	_, err := storage.PutBytes(t.Context(), s, key, []byte(text), true)
	must(t, err)
}

func wantKind(t testing.TB, err error, kinds ...hbackup.Kind) {
	t.Helper()
	if !hbackup.IsKind(err, kinds...) {
		t.Fatalf("the error is %v (kind %q), not of kind %q", err, hbackup.KindOf(err), kinds)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
