package rpc

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"hbackup"
	"hbackup/e2e/servers"
	"hbackup/hbase/hbpb"
	"hbackup/hbase/rpc"
)

// TestMasterFailover: a standby is not taken for the master, and calls go on
// when the active master stops, and when the next one is killed.
//
// The masters and the region server are processes apart from the cluster of the
// harness, whose ZooKeeper and HDFS they share.
func TestMasterFailover(t *testing.T) {
	cluster := servers.ForTest(t).Cluster(servers.ClusterOptions{})
	second := &secondCluster{t: t, cluster: cluster}
	second.start("org.apache.hadoop.hbase.master.HMaster")
	second.start("org.apache.hadoop.hbase.regionserver.HRegionServer")
	c := second.dial()
	killed := second.start("org.apache.hadoop.hbase.master.HMaster")
	status := awaitStandby(t, c, 1)
	standby := status.BackupMaster[0]

	t.Run("Standby", func(t *testing.T) {
		m := dialRaw(t, standby.Addr(), "MasterService")
		var answer hbpb.GetClusterStatusResponse
		if e := m.call("GetClusterStatus", &hbpb.GetClusterStatusRequest{}, &answer); e != "" || answer.ClusterStatus.GetHbaseVersion() == nil {
			t.Fatalf("a standby answers with its status: %s, %v", e, &answer)
		}
		if e := m.call("ListNamespaceDescriptors", &hbpb.ListNamespaceDescriptorsRequest{}, nil); !strings.Contains(e, "ServerNotRunningYetException") {
			t.Fatalf("but not with name spaces: %q", e)
		}
		byStandby := dial(t, rpc.Config{Bootstrap: []string{standby.Addr()}})
		s, err := byStandby.ClusterStatus(t.Context())
		must(t, err)
		if s.Master != status.Master || len(s.Live) == 0 {
			t.Fatalf("status by the standby %+v", s)
		}
	})

	var calls sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for i := range 4 {
		calls.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if _, err := c.Namespaces(ctx); err != nil && ctx.Err() == nil {
					t.Errorf("caller %d, call %d: %v", i, n, err)
					return
				}
			}
		})
	}
	makeTable := func(name string) {
		t.Helper()
		table := hbackup.TableName{Namespace: "default", Qualifier: name}
		must(t, c.CreateTable(t.Context(), rpc.NewSchema(table, "f"), nil, rpc.Nonce{}))
		must(t, c.Snapshot(t.Context(), rpc.SnapshotRequest{Name: "s_" + name, Table: table}))
		state, err := c.TableState(t.Context(), table)
		must(t, err)
		if state != rpc.TableEnabled {
			t.Fatalf("%s is %s", name, state)
		}
	}
	makeTable("before")
	dialRaw(t, status.Master.Addr(), "MasterService").send("StopMaster", &hbpb.IsMasterRunningRequest{})
	makeTable("stopped")
	now, err := c.ClusterStatus(t.Context())
	must(t, err)
	if now.Master != standby {
		t.Fatalf("the master is %v, the standby was %v", now.Master, standby)
	}

	second.start("org.apache.hadoop.hbase.master.HMaster")
	awaitStandby(t, c, 1)
	var tables sync.WaitGroup
	for i := range 4 {
		tables.Go(func() { // procedures under way when it dies
			table := hbackup.TableName{Namespace: "default", Qualifier: fmt.Sprint("killed", i)}
			if err := c.CreateTable(t.Context(), rpc.NewSchema(table, "f"), nil, rpc.Nonce{}); err != nil {
				t.Errorf("%s: %v", table, err)
			}
		})
	}
	killed()
	tables.Wait()
	makeTable("killed")
	stop()
	calls.Wait()
	names, err := c.TableNames(t.Context(), rpc.TableFilter{})
	must(t, err)
	if len(names) != 7 {
		t.Fatalf("tables %v", names)
	}
}

// secondCluster is an HBase of its own in the ZooKeeper and HDFS of another.
type secondCluster struct {
	t       *testing.T
	cluster *servers.Cluster
}

const secondParent = "/second"

// start runs one server, until the test ends or the result is called: then it
// is killed as with kill -9.
func (s *secondCluster) start(class string) (kill func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err := s.cluster.RunTool(ctx, class,
			"-Dzookeeper.znode.parent="+secondParent, "-Dhbase.rootdir="+s.cluster.HDFS.URI()+secondParent,
			"-Dhbase.cluster.distributed=true", "-Dzookeeper.session.timeout=6000", "start")
		if ctx.Err() == nil {
			s.t.Logf("a server ended by itself: %v", err)
		}
	}()
	kill = sync.OnceFunc(func() { cancel(); <-ended })
	s.t.Cleanup(kill)
	return kill
}

// dial waits until the cluster can be reached and serves.
func (s *secondCluster) dial() *rpc.Client {
	var last error
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		c, err := rpc.Dial(s.t.Context(), rpc.Config{ZooKeeper: []string{s.cluster.ZooKeeper()}, ZNodeParent: secondParent})
		if last = err; err != nil {
			if !hbackup.IsKind(err, hbackup.KindUnavailable) {
				s.t.Fatal(err)
			}
			continue
		}
		if last = c.Ready(s.t.Context()); last == nil {
			s.t.Cleanup(func() { must(s.t, c.Close()) })
			return c
		}
		if !hbackup.IsKind(last, hbackup.KindUnavailable) {
			s.t.Fatal(last)
		}
		must(s.t, c.Close())
	}
	s.t.Fatal(last)
	return nil
}

// awaitStandby waits until the active master knows n standby masters.
func awaitStandby(t *testing.T, c *rpc.Client, n int) rpc.ClusterStatus {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		status, err := c.ClusterStatus(t.Context())
		must(t, err)
		if len(status.BackupMaster) == n {
			return status
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d standby masters", len(status.BackupMaster))
		}
	}
}
