package rpc

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/e2e/servers"
	"hbackup/hbase/hbpb"
	"hbackup/hbase/rpc"
)

// testWireTraps holds the servers to what the client relies on.
func testWireTraps(t *testing.T, w *world) {
	status, err := w.ClusterStatus(t.Context())
	must(t, err)
	master := status.Master.Addr()
	table := w.newTable(t, "m")
	region, err := w.Locate(t.Context(), table, nil)
	must(t, err)

	t.Run("BadMagic", func(t *testing.T) {
		h, err := dialBytes(t, master, []byte("HTTP/1")).receive(nil, 10*time.Second)
		if w.version == servers.HBase30 { // this alpha only closes
			if err == nil || isTimeout(err) {
				t.Fatalf("%v, %v instead of a bare close", h, err)
			}
			return
		}
		must(t, err)
		if h.GetCallId() != 1<<32-1 || !strings.HasSuffix(h.GetException().GetExceptionClassName(), "FatalConnectionException") {
			t.Fatal(h)
		}
	})
	t.Run("WrongService", func(t *testing.T) {
		for _, service := range []string{"NoSuchService", ""} {
			r := dialRaw(t, master, service)
			r.send("GetClusterStatus", &hbpb.GetClusterStatusRequest{})
			if h, err := r.receive(nil, 10*time.Second); err == nil || isTimeout(err) {
				t.Fatalf("service %q: %v, %v instead of a bare close", service, h, err)
			}
		}
	})
	t.Run("UnknownMethod", func(t *testing.T) {
		r := dialRaw(t, master, "MasterService")
		if e := r.call("noSuchMethod", &hbpb.IsMasterRunningRequest{}, nil); !strings.Contains(e, "UnsupportedOperationException") {
			t.Fatal(e)
		}
		if e := r.call("GetProcedureResult", &hbpb.GetProcedureResultRequest{ProcId: proto.Uint64(1)}, nil); !strings.Contains(e, "UnsupportedOperationException") {
			t.Fatalf("method names are case sensitive: %s", e)
		}
		if e := r.call("IsMasterRunning", &hbpb.IsMasterRunningRequest{}, nil); e != "" {
			t.Fatalf("the connection cannot be used any more: %s", e)
		}
	})
	t.Run("NoParameter", func(t *testing.T) {
		r := dialRaw(t, master, "MasterService")
		if e := r.call("IsMasterRunning", nil, nil); e == "" {
			t.Fatal("a call without a parameter was accepted")
		}
	})
	t.Run("RegionSpecifier", func(t *testing.T) {
		encoded := &hbpb.RegionSpecifier{Type: hbpb.RegionSpecifier_ENCODED_REGION_NAME.Enum(), Value: []byte(region.Encoded())}
		full := &hbpb.RegionSpecifier{Type: hbpb.RegionSpecifier_REGION_NAME.Enum(), Value: region.RowKey}
		rs := dialRaw(t, region.Server.Addr(), "AdminService")
		if e := rs.call("GetRegionInfo", &hbpb.GetRegionInfoRequest{Region: encoded}, nil); !strings.Contains(e, "NotServingRegionException") {
			t.Fatalf("a region server takes the encoded name: %q", e)
		}
		if e := rs.call("GetRegionInfo", &hbpb.GetRegionInfoRequest{Region: full}, nil); e != "" {
			t.Fatal(e)
		}
		m := dialRaw(t, master, "MasterService")
		if e := m.call("MoveRegion", &hbpb.MoveRegionRequest{Region: full}, nil); !strings.Contains(e, "UnknownRegionException") {
			t.Fatalf("the master takes the full name: %q", e)
		}
	})
	t.Run("MasterServiceOnRegionServer", func(t *testing.T) {
		r := dialRaw(t, region.Server.Addr(), "MasterService")
		r.send("IsMasterRunning", &hbpb.IsMasterRunningRequest{})
		if h, err := r.receive(nil, 10*time.Second); err == nil || isTimeout(err) {
			t.Fatalf("%v, %v instead of a bare close", h, err)
		}
	})
	t.Run("FinishedIsNotSuccess", func(t *testing.T) {
		nonce := rpc.NewNonce()
		m := dialRaw(t, master, "MasterService")
		req := &hbpb.DeleteTableRequest{TableName: &hbpb.TableName{Namespace: []byte("default"), Qualifier: []byte(table.Qualifier)}, NonceGroup: &nonce.Group, Nonce: &nonce.Value}
		if e := m.call("DeleteTable", req, nil); !strings.Contains(e, "TableNotDisabledException") {
			t.Fatal(e)
		}
		var again hbpb.DeleteTableResponse
		if e := m.call("DeleteTable", req, &again); e != "" {
			t.Fatalf("the refused call again: %s", e)
		}
		err := w.WaitProcedure(t.Context(), again.GetProcId())
		wantKind(t, err, hbackup.KindConflict)
		if ended := (*rpc.ProcedureError)(nil); !asError(err, &ended) {
			t.Fatalf("%#v", err)
		}
	})
	t.Run("MetaScanFirstRegion", func(t *testing.T) {
		s, err := w.Regions(t.Context(), table)
		must(t, err)
		if len(s) != 2 || len(s[0].StartKey) != 0 {
			t.Fatalf("%v", s)
		}
	})
}

// testScanTraps drives a scanner by hand.
func testScanTraps(t *testing.T, w *world) {
	table := w.newTable(t)
	w.rows(t, table, 30, "v")
	region, err := w.Locate(t.Context(), table, nil)
	must(t, err)
	full := &hbpb.RegionSpecifier{Type: hbpb.RegionSpecifier_REGION_NAME.Enum(), Value: region.RowKey}
	r := dialRaw(t, region.Server.Addr(), "ClientService")
	open := func() uint64 {
		var resp hbpb.ScanResponse
		if e := r.call("Scan", &hbpb.ScanRequest{Region: full, Scan: &hbpb.Scan{}, NumberOfRows: proto.Uint32(10)}, &resp); e != "" {
			t.Fatal(e)
		}
		if len(resp.Results) != 10 || !resp.GetMoreResults() {
			t.Fatalf("the open call brought %d rows", len(resp.Results))
		}
		return resp.GetScannerId()
	}
	next := func(id, seq uint64, resp *hbpb.ScanResponse) string {
		return r.call("Scan", &hbpb.ScanRequest{ScannerId: &id, NumberOfRows: proto.Uint32(10), NextCallSeq: &seq}, resp)
	}
	var resp hbpb.ScanResponse
	id := open()
	if e := next(id, 1, &resp); !strings.Contains(e, "OutOfOrderScannerNextException") {
		t.Fatalf("the first next call is not number 0: %q", e)
	}
	id = open()
	for seq := range uint64(3) {
		resp.Reset()
		if e := next(id, seq, &resp); e != "" {
			t.Fatal(e)
		}
		if !resp.GetMoreResultsInRegion() && resp.MoreResultsInRegion != nil {
			break
		}
	}
	if resp.GetMoreResultsInRegion() || !resp.GetMoreResults() {
		t.Fatalf("at the region's end: more_results %v, in region %v", resp.GetMoreResults(), resp.GetMoreResultsInRegion())
	}
	if e := next(1<<40, 0, &resp); !strings.Contains(e, "UnknownScannerException") {
		t.Fatal(e)
	}
}

// testPeerUnanswered shows why the client refuses it.
func testPeerUnanswered(t *testing.T, w *world) {
	status, err := w.ClusterStatus(t.Context())
	must(t, err)
	r := dialRaw(t, status.Master.Addr(), "MasterService")
	r.send("AddReplicationPeer", &hbpb.AddReplicationPeerRequest{
		PeerId:     proto.String("unanswered"),
		PeerConfig: &hbpb.ReplicationPeer{ReplicateAll: proto.Bool(true)},
		PeerState:  &hbpb.ReplicationState{State: hbpb.ReplicationState_DISABLED.Enum()},
	})
	if h, err := r.receive(nil, 5*time.Second); !isTimeout(err) {
		t.Fatalf("answered: %v, %v", h, err)
	}
	if peers, err := w.Peers(t.Context()); err != nil || slices.ContainsFunc(peers, func(p rpc.ReplicationPeer) bool { return p.ID == "unanswered" }) {
		t.Fatalf("%v, %v", peers, err)
	}
}

// testSlash shows why the client checks snapshot names: the server does not.
func testSlash(t *testing.T, w *world) {
	status, err := w.ClusterStatus(t.Context())
	must(t, err)
	table := w.newTable(t)
	nonce := rpc.NewNonce()
	r := dialRaw(t, status.Master.Addr(), "MasterService")
	var resp hbpb.SnapshotResponse
	e := r.call("Snapshot", &hbpb.SnapshotRequest{
		Snapshot:   &hbpb.SnapshotDescription{Name: proto.String("a/b"), Table: proto.String(table.String())},
		NonceGroup: &nonce.Group, Nonce: &nonce.Value,
	}, &resp)
	if e != "" {
		t.Fatalf("the server refuses the name by now: %s", e)
	}
	t.Logf("procedure %d: %v", resp.GetProcId(), w.WaitProcedure(soon(t), uint64(resp.GetProcId())))
	all, err := w.Snapshots(t.Context())
	must(t, err)
	for _, s := range all {
		if strings.Contains(s.Name, "b") {
			t.Logf("listed: %+v", s)
		}
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}
