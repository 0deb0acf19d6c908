package faults

import (
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"hbackup/e2e/cli"
	"hbackup/e2e/servers"
)

// patience is how long hbackup may take to say that something is wrong with an
// address; an operator waits for it.
const patience = 45 * time.Second

// TestBadInput gives hbackup what it cannot work with. Each has one clear line,
// a hint, the right exit code, and leaves nothing behind.
func TestBadInput(t *testing.T) {
	const name = "faults:input"
	table(t, name, 600)
	good := toolOf(t, config(t))
	id := good.Backup(t, "dir", name)
	stored := len(objects(t, fileDir(t)))
	before, err := cluster.ListTables(t.Context())
	check(t, err)

	backup := func(more ...string) []string {
		return append([]string{"backup", "--cluster", "prod", "--tables", name}, more...)
	}
	cluster1 := func(change func(*cli.Cluster)) func(*cli.Config) {
		return func(c *cli.Config) {
			cl := c.Clusters["prod"]
			change(&cl)
			c.Clusters["prod"] = cl
		}
	}
	location := func(key string, value any) func(*cli.Config) {
		return func(c *cli.Config) { c.Locations["s3"][key] = value }
	}
	nobody := closedPort(t)
	for _, c := range []struct {
		name   string
		change func(*cli.Config)
		args   []string
		want   failure
	}{
		{"no such table", nil, []string{"backup", "--cluster", "prod", "--tables", "faults:nothing"}, failure{10, []string{"faults:nothing"}}},
		{"one table of two", nil, []string{"backup", "--cluster", "prod", "--tables", name + ",faults:nothing"}, failure{10, []string{"faults:nothing"}}},
		{"a table of HBase's own", nil, []string{"backup", "--cluster", "prod", "--tables", "hbase:meta"}, failure{2, []string{"hbase:meta"}}},
		{"no such cluster", nil, []string{"backup", "--cluster", "prid", "--tables", name}, failure{10, []string{"prid", "prod"}}},
		{"no such backup", nil, []string{"verify", "20200101T000000.000Z-aaaaaaaaaa"}, failure{10, []string{"20200101T000000.000Z-aaaaaaaaaa"}}},
		{"ZooKeeper's address", cluster1(func(c *cli.Cluster) { c.ZooKeeper = nobody }), backup(), failure{1, []string{nobody, "ZooKeeper"}}},
		{"ZooKeeper's host", cluster1(func(c *cli.Cluster) { c.ZooKeeper = "no-such-host.invalid:2181" }), backup(), failure{1, []string{"no-such-host.invalid"}}},
		{"a master's address", cluster1(func(c *cli.Cluster) { c.ZooKeeper, c.Masters = "", nobody }), backup(), failure{1, []string{nobody}}},
		{"a name node as master", cluster1(func(c *cli.Cluster) { c.ZooKeeper, c.Masters = "", cluster.HDFS.Address() }), backup(), failure{1, []string{cluster.HDFS.Address()}}},
		{"ZooKeeper as master", cluster1(func(c *cli.Cluster) { c.ZooKeeper, c.Masters = "", cluster.ZooKeeper() }), backup(), failure{1, []string{cluster.ZooKeeper()}}},
		{"a master as ZooKeeper", cluster1(func(c *cli.Cluster) { c.ZooKeeper = cluster.Master() }), backup(), failure{1, []string{cluster.Master()}}},
		{"the znode", cluster1(func(c *cli.Cluster) {
			c.ZooKeeper, c.Extra = "", map[string]any{"registry": map[string]any{"zookeeper": []string{cluster.ZooKeeper()}, "znode": "/other"}}
		}), backup(), failure{1, []string{"/other"}}},
		{"the name node's port", cluster1(func(c *cli.Cluster) { c.Root = "hdfs://" + nobody + "/hbase" }), backup(), failure{1, []string{nobody}}},
		{"a master as name node", cluster1(func(c *cli.Cluster) { c.Root = "hdfs://" + cluster.Master() + "/hbase" }), backup(), failure{1, []string{cluster.Master()}}},
		{"the root directory", cluster1(func(c *cli.Cluster) { c.Root = cluster.HDFS.URI() + "/habse" }), backup(), failure{2, []string{"/habse", "hbase.rootdir"}}},
		{"the bucket", location("url", "s3://no-such-bucket/x"), backup(), failure{2, []string{"no-such-bucket"}}},
		{"the endpoint", location("endpoint", "http://"+nobody), backup(), failure{1, []string{nobody}}},
		{"the name node as S3", location("endpoint", "http://"+cluster.HDFS.HTTPAddress()), backup(), failure{2, []string{"endpoint"}}},
		{"the secret key", location("credentials", map[string]any{"access_key": map[string]any{"env": "TEST_ACCESS_KEY"}, "secret_key": map[string]any{"env": "TEST_WRONG_KEY"}}), backup(), failure{12, []string{"s3"}}},
		{"the access key", location("credentials", map[string]any{"access_key": map[string]any{"env": "TEST_WRONG_KEY"}, "secret_key": map[string]any{"env": "TEST_SECRET_KEY"}}), backup(), failure{12, []string{"s3"}}},
		{"a secret that is not set", location("credentials", map[string]any{"access_key": map[string]any{"env": "TEST_ACCESS_KEY"}, "secret_key": map[string]any{"env": "TEST_NO_KEY"}}), backup(), failure{12, []string{"TEST_NO_KEY"}}},
		{"a directory that is not there", func(c *cli.Config) { c.Locations["s3"] = map[string]any{"url": "file://" + dirRoot + "/unmounted"} }, backup(), failure{10, []string{dirRoot + "/unmounted"}}},
		{"an unknown key", func(c *cli.Config) { c.Extra = map[string]any{"copyy": map[string]any{}} }, backup(), failure{2, []string{"copyy", "copy"}}},
		{"a time without a zone", nil, []string{"list", "--since", "2026-11-30T10:00:00"}, failure{2, []string{"--since", "2026-11-30T10:00:00"}}},
		{"a target that exists", nil, []string{"restore", id, "--table", name, "--as", name}, failure{15, []string{name, "exists"}}},
		{"a name space that is missing", nil, []string{"restore", id, "--table", name, "--as", "nowhere:t"}, failure{10, []string{"nowhere", "--create-namespace"}}},
		{"a table that is not in the backup", nil, []string{"restore", id, "--table", "faults:other", "--as", "faults:t"}, failure{10, []string{"faults:other"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			conf := config(t)
			conf.Locations["file"] = map[string]any{"url": "file://" + dirRoot + "/testbadinput"}
			if c.change != nil {
				c.change(&conf)
			}
			x := toolOf(t, conf).With("TEST_WRONG_KEY=wrong")
			r := within(t, patience, x, c.args...)
			c.want.holds(t, r)
			if left := objects(t, s3Dir(t)); len(left) > 0 {
				t.Errorf("written: %q", left)
			}
		})
	}
	if left := ours(t); len(left) > 0 {
		t.Errorf("snapshots left: %q", left)
	}
	if now := len(objects(t, fileDir(t))); now != stored {
		t.Errorf("the location had %d objects and has %d", stored, now)
	}
	tables, err := cluster.ListTables(t.Context())
	check(t, err)
	if !maps.Equal(tables, before) {
		t.Errorf("the tables were %v and are %v", before, tables)
	}
}

// within runs hbackup and fails the test when it takes longer.
func within(t *testing.T, limit time.Duration, x *cli.Tool, args ...string) cli.Result {
	t.Helper()
	began := time.Now()
	p := x.Start(t, args...)
	ended := make(chan cli.Result, 1)
	go func() { ended <- p.Wait() }()
	select {
	case r := <-ended:
		t.Logf("took %s: %s", time.Since(began).Round(100*time.Millisecond), strings.TrimSpace(r.Stderr))
		return r
	case <-time.After(limit):
		t.Fatalf("hbackup %s says nothing for %s", strings.Join(args, " "), limit)
		return cli.Result{}
	}
}

// closedPort gives an address at which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	return l.Addr().String()
}

// TestTargetTakesNoWrites backs up to a directory on a medium that is read-only,
// and to one that has no room.
func TestTargetTakesNoWrites(t *testing.T) {
	const name = "faults:full"
	table(t, name, 700)
	_, err := cluster.Load(t.Context(), name, servers.LoadSpec{Seed: 701, Rows: 1500, ValueBytes: 1000})
	check(t, err)
	check(t, cluster.Flush(t.Context(), name))
	conf := config(t)
	dir := mountTmpfs(t, "size=1m")
	conf.Locations["s3"] = map[string]any{"url": "file://" + dir}
	x := toolOf(t, conf)

	failure{1, []string{"bytes are free", "file://" + dir}}.holds(t, x.Run(t.Context(), "backup", "--cluster", "prod", "--tables", name, "--request-id", "full"))
	if done := committed(t, dir); len(done) > 0 {
		t.Errorf("committed: %q", done)
	}
	if left := ours(t); len(left) > 0 {
		t.Errorf("snapshots left: %q", left)
	}

	remount(t, dir, "ro")
	before := objects(t, dir)
	failure{1, []string{"read-only", "file://" + dir}}.holds(t, x.Run(t.Context(), "backup", "--cluster", "prod", "--tables", name))
	failure{1, []string{"read-only", "file://" + dir}}.holds(t, x.Run(t.Context(), "backup", "--cluster", "prod", "--tables", name, "--request-id", "full"))
	if after := objects(t, dir); len(after) != len(before) {
		t.Errorf("written to a read-only directory: %q", after)
	}
	if left := ours(t); len(left) > 0 {
		t.Errorf("snapshots left: %q", left)
	}

	// With room and permission the same request goes on.
	remount(t, dir, "rw,size=64m")
	want := dump(t, name)
	id := backupOf(t, x.Run(t.Context(), "-o", "json", "backup", "--cluster", "prod", "--tables", name, "--request-id", "full"))
	x.OK(t, "verify", id)
	// What is read-only can still be restored from.
	remount(t, dir, "ro")
	equal(t, x, id, name, want)
}

// mountTmpfs gives a small file system of the test's own.
func mountTmpfs(t *testing.T, options string) string {
	t.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("needs to mount a small file system, as root on Linux")
	}
	dir := filepath.Join(t.TempDir(), "mnt")
	check(t, os.Mkdir(dir, 0o700))
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("mount is refused: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return dir
}

func remount(t *testing.T, dir, options string) {
	t.Helper()
	if out, err := exec.Command("mount", "-o", "remount,"+options, dir).CombinedOutput(); err != nil {
		t.Fatalf("remount: %v: %s", err, out)
	}
}
