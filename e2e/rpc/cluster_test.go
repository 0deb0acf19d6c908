package rpc

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"hbackup"
	"hbackup/e2e/servers"
	"hbackup/hbase/rpc"
)

func testCluster(t *testing.T, w *world) {
	must(t, w.Ready(soon(t)))
	s, err := w.ClusterStatus(t.Context())
	must(t, err)
	if len(s.Live) < 1 || s.ClusterID != w.ClusterID() || s.Master.Addr() == "" || len(s.Dead) != 0 {
		t.Fatalf("status %+v", s)
	}
	if !strings.HasPrefix(s.Version.String(), string(w.version)) {
		t.Fatalf("version %q for %s", s.Version, w.version)
	}
	v, err := w.Version(t.Context())
	must(t, err)
	if v != s.Version {
		t.Fatalf("version %v and %v", v, s.Version)
	}
	running, err := w.IsMasterRunning(t.Context())
	must(t, err)
	if !running {
		t.Fatal("the master says that it does not run")
	}
}

// testRegistry finds the cluster through its masters, and where the version can
// through a region server.
func testRegistry(t *testing.T, w *world) {
	s, err := w.ClusterStatus(t.Context())
	must(t, err)
	table := w.newTable(t)
	byMaster := dial(t, rpc.Config{Bootstrap: []string{"127.0.0.1:1", s.Master.Addr()}})
	if byMaster.ClusterID() != w.ClusterID() {
		t.Fatalf("cluster id %q, by ZooKeeper %q", byMaster.ClusterID(), w.ClusterID())
	}
	if _, err := byMaster.Regions(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	server, err := w.Locate(t.Context(), table, []byte("x"))
	must(t, err)
	byRS, err := rpc.Dial(soon(t), rpc.Config{Bootstrap: []string{server.Server.Addr()}})
	if w.version == servers.HBase24 {
		// This region server has no such service and closes without a word.
		wantKind(t, err, hbackup.KindUnavailable)
		return
	}
	must(t, err)
	defer byRS.Close()
	if _, err := byRS.Table(t.Context(), table); err != nil {
		t.Fatal(err)
	}
}

func testNamespaces(t *testing.T, w *world) {
	ctx := t.Context()
	config := map[string]string{"hbase.namespace.quota.maxregions": "100"}
	must(t, w.CreateNamespace(ctx, "ns1", config, rpc.Nonce{}))
	wantKind(t, w.CreateNamespace(ctx, "ns1", nil, rpc.Nonce{}), hbackup.KindExists)
	all, err := w.Namespaces(ctx)
	must(t, err)
	i := slices.IndexFunc(all, func(n rpc.Namespace) bool { return n.Name == "ns1" })
	if i < 0 || !maps.Equal(all[i].Config, config) {
		t.Fatalf("name spaces %+v", all)
	}
	in := hbackup.TableName{Namespace: "ns1", Qualifier: "t-1.x_Y"}
	must(t, w.CreateTable(ctx, rpc.NewSchema(in, "f"), nil, rpc.Nonce{}))
	got, err := w.TableNames(ctx, rpc.TableFilter{Namespace: "ns1"})
	must(t, err)
	if !slices.Equal(got, []hbackup.TableName{in}) {
		t.Fatalf("tables %v", got)
	}
	if _, err := w.Regions(ctx, in); err != nil {
		t.Fatal(err)
	}
	if err := w.DeleteNamespace(ctx, "ns1", rpc.Nonce{}); err == nil {
		t.Fatal("a name space with a table was deleted")
	} else {
		t.Log(err)
	}
	must(t, w.DisableTable(ctx, in, rpc.Nonce{}))
	must(t, w.DeleteTable(ctx, in, rpc.Nonce{}))
	must(t, w.DeleteNamespace(ctx, "ns1", rpc.Nonce{}))
	must(t, w.DeleteNamespace(ctx, "ns1", rpc.Nonce{}))
	missing := rpc.NewSchema(hbackup.TableName{Namespace: "nowhere", Qualifier: "t"}, "f")
	wantKind(t, w.CreateTable(ctx, missing, nil, rpc.Nonce{}), hbackup.KindNotFound)
}

func testSwitches(t *testing.T, w *world) {
	ctx := t.Context()
	for _, s := range []rpc.RegionSwitch{rpc.SwitchSplit, rpc.SwitchMerge} {
		before, err := w.SetRegionSwitch(ctx, s, false)
		must(t, err)
		is, err := w.RegionSwitch(ctx, s)
		must(t, err)
		again, err := w.SetRegionSwitch(ctx, s, before)
		must(t, err)
		if !before || is || again {
			t.Fatalf("%s: before %v, then %v, then %v", s, before, is, again)
		}
	}
	before, err := w.SetSnapshotCleanup(ctx, false)
	must(t, err)
	is, err := w.SnapshotCleanup(ctx)
	must(t, err)
	_, err = w.SetSnapshotCleanup(ctx, before)
	must(t, err)
	if !before || is {
		t.Fatalf("snapshot clean-up: before %v, then %v", before, is)
	}
	before, err = w.SetCleanerChore(ctx, false)
	must(t, err)
	is, err = w.CleanerChore(ctx)
	must(t, err)
	_, err = w.SetCleanerChore(ctx, before)
	must(t, err)
	if !before || is {
		t.Fatalf("cleaner: before %v, then %v", before, is)
	}
}
