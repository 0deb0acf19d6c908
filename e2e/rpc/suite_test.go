// Package rpc tries the RPC client on real HBase servers of every supported
// version: the whole suite on the main version, a shorter one on the others.
// Each trap that was found on a real server is a test here.
package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hbackup"
	"hbackup/e2e/servers"
	"hbackup/hbase/rpc"
)

// world is one cluster and a client of it.
type world struct {
	*rpc.Client
	cluster *servers.Cluster
	version servers.Version
	config  rpc.Config
}

type check struct {
	name string
	run  func(*testing.T, *world)
}

// every holds what runs on all versions; main what runs on the main one only.
var (
	every = []check{
		{"Cluster", testCluster},
		{"Registry", testRegistry},
		{"Namespaces", testNamespaces},
		{"Tables", testTables},
		{"Snapshot", testSnapshot},
		{"SnapshotRefusals", testSnapshotRefusals},
		{"SnapshotOfDisabledTable", testSnapshotDisabled},
		{"SnapshotsOfOneTableAtOnce", testSnapshotsAtOnce},
		{"Clone", testClone},
		{"RestoreTrap", testRestoreTrap},
		{"Scan", testScan},
		{"RegionsAndLocate", testRegions},
		{"Admin", testAdmin},
		{"Peers", testPeers},
		{"Switches", testSwitches},
		{"WireTraps", testWireTraps},
		{"ScanTraps", testScanTraps},
	}
	main = []check{
		{"Nonces", testNonces},
		{"MovedRegionUnderScan", testScanFollowsMoves},
		{"SplitUnderScan", testScanFollowsSplits},
		{"BigRows", testBigRows},
		{"ManyCallsAtOnce", testManyCalls},
		{"PeerNeverAnswered", testPeerUnanswered},
		{"SnapshotNameWithSlash", testSlash},
	}
)

func TestHBase24(t *testing.T) { run(t, servers.HBase24, every) }
func TestHBase25(t *testing.T) { run(t, servers.HBase25, every) }
func TestHBase26(t *testing.T) { run(t, servers.HBase26, append(append([]check{}, every...), main...)) }
func TestHBase30(t *testing.T) { run(t, servers.HBase30, every) }

func run(t *testing.T, v servers.Version, checks []check) {
	t.Parallel() // much of the time is waiting for HBase
	c := servers.ForTest(t).Cluster(servers.ClusterOptions{Version: v, LocalRoot: true, RegionServers: 2})
	w := &world{cluster: c, version: v, config: rpc.Config{ZooKeeper: []string{c.ZooKeeper()}, User: "tester"}}
	w.Client = dial(t, w.config)
	for _, check := range checks {
		t.Run(check.name, func(t *testing.T) { check.run(t, w) })
	}
}

func dial(t *testing.T, cfg rpc.Config) *rpc.Client {
	t.Helper()
	c, err := rpc.Dial(t.Context(), cfg)
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (kind %q, hint %q)", err, hbackup.KindOf(err), hbackup.HintOf(err))
	}
}

// wantKind checks kind, and that the text is one line without a stack trace.
func wantKind(t *testing.T, err error, kind hbackup.Kind) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; wanted kind %q", kind)
	}
	if hbackup.KindOf(err) != kind {
		t.Fatalf("kind %q instead of %q: %v", hbackup.KindOf(err), kind, err)
	}
	if s := err.Error(); strings.Contains(s, "\n") || strings.Contains(s, "\tat ") {
		t.Fatalf("not one line: %q", s)
	}
	var typed *hbackup.Error
	if !errors.As(err, &typed) || typed.Op == "" {
		t.Fatalf("not a typed error: %#v", err)
	}
	t.Logf("as wanted: %v [%s] hint: %s", err, hbackup.KindOf(err), hbackup.HintOf(err))
}

var tables atomic.Int32

// newTable makes a table of its own for a test.
func (w *world) newTable(t *testing.T, splits ...string) hbackup.TableName {
	t.Helper()
	name := hbackup.TableName{Namespace: "default", Qualifier: fmt.Sprintf("t%d", tables.Add(1))}
	var keys [][]byte
	for _, s := range splits {
		keys = append(keys, []byte(s))
	}
	must(t, w.CreateTable(t.Context(), rpc.NewSchema(name, "f", "g"), keys, rpc.Nonce{}))
	return name
}

// rows writes n rows "r00000"... with one cell of the value in family f.
func (w *world) rows(t *testing.T, table hbackup.TableName, n int, value string) {
	t.Helper()
	cells := make([]rpc.Cell, 0, n)
	for i := range n {
		cells = append(cells, rpc.Cell{
			Row: fmt.Appendf(nil, "r%05d", i), Family: []byte("f"), Qualifier: []byte("q"),
			Timestamp: 1000, Type: rpc.CellPut, Value: []byte(value),
		})
	}
	must(t, w.Put(t.Context(), table, cells))
}

// read gives all rows as "row=value" of the first cell.
func (w *world) read(t *testing.T, r rpc.ScanRequest) []string {
	t.Helper()
	var out []string
	for row, err := range w.Scan(t.Context(), r) {
		must(t, err)
		out = append(out, string(row.Key)+"="+string(row.Cells[0].Value))
	}
	return out
}

// soon is the context of something that must end quickly.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}
