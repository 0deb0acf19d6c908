package faults

import "testing"

// TestServersDown ends HDFS and then HBase; it is the last test of the package.
func TestServersDown(t *testing.T) {
	const name = "faults:down"
	table(t, name, 900)
	conf := config(t)
	x := toolOf(t, conf)
	id := x.Backup(t, "dir", name)

	// A master that has lost its file system soon ends as well, so either may be named.
	cluster.HDFS.Kill()
	r := within(t, patience, x, "backup", "--cluster", "prod", "--tables", name)
	failure{1, nil}.holds(t, r)
	failure{1, nil}.holds(t, within(t, patience, x, "restore", id, "--table", name, "--as", "faults:down2"))

	cluster.Kill()
	failure{1, []string{cluster.ZooKeeper()}}.holds(t, within(t, patience, x, "backup", "--cluster", "prod", "--tables", name))
	failure{1, []string{cluster.ZooKeeper()}}.holds(t, within(t, patience, x, "restore", id, "--table", name, "--as", "faults:down2"))
	if left := objects(t, s3Dir(t)); len(left) > 0 {
		t.Errorf("written: %q", left)
	}
	// What needs no cluster works without one.
	x.OK(t, "list", "--cluster", "dir")
	x.OK(t, "verify", id)
}
