// Package rootfs tests hbackup/hbase/rootfs against a real HDFS.
package rootfs

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"hbackup"
	"hbackup/e2e/servers"
	"hbackup/hbase/rootfs"
	"hbackup/hbase/rootfs/rootfstest"
)

var cluster *servers.HDFS

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run starts an HDFS with blocks of 1 MiB, so that files have many.
func run(m *testing.M) (int, error) {
	ctx := context.Background()
	var err error
	cluster, err = servers.StartHDFS(ctx, servers.HDFSOptions{Extra: servers.Settings{
		"dfs.blocksize": blockSize(), "dfs.permissions.enabled": "true",
	}})
	if err != nil {
		return 1, err
	}
	defer cluster.Stop()
	return m.Run(), nil
}

// connect gives a file system; change may alter its configuration.
func connect(t testing.TB, change func(*rootfs.Config)) rootfs.FS {
	t.Helper()
	cfg := rootfs.Config{NameNodes: []string{cluster.Address()}, User: cluster.User()}
	if change != nil {
		change(&cfg)
	}
	fs, err := rootfs.HDFS(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fs.Close() })
	return fs
}

func directory(t testing.TB, fs rootfs.FS) string {
	t.Helper()
	dir := "/" + strings.ReplaceAll(t.Name(), "/", "-")
	if err := fs.MkdirAll(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestConformance(t *testing.T) {
	fs := connect(t, nil)
	rootfstest.Run(t, fs, directory(t, fs), 4)
}

// webhdfs makes a call over HTTP, for what the native client cannot do.
func webhdfs(t *testing.T, method, path, query string) {
	t.Helper()
	url := fmt.Sprintf("http://%s/webhdfs/v1%s?user.name=%s&%s", cluster.HTTPAddress(), path, cluster.User(), query)
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		body := make([]byte, 1000)
		n, _ := resp.Body.Read(body)
		t.Fatalf("%s %s: %s %s", method, url, resp.Status, body[:n])
	}
}

func wantKind(t testing.TB, err error, kind hbackup.Kind) {
	t.Helper()
	if !hbackup.IsKind(err, kind) {
		t.Fatalf("the error is %v (kind %q), not of kind %q", err, hbackup.KindOf(err), kind)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// blockSize can be set for benchmarks, where blocks should be as large as usual.
func blockSize() string {
	if s := os.Getenv("BLOCK_SIZE"); s != "" {
		return s
	}
	return "1048576"
}
