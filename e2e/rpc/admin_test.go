package rpc

import (
	"slices"
	"strings"
	"testing"

	"hbackup"
	"hbackup/hbase/rpc"
)

func testAdmin(t *testing.T, w *world) {
	ctx := t.Context()
	table := w.newTable(t)
	w.rows(t, table, 10, "v")
	r, err := w.Locate(ctx, table, nil)
	must(t, err)
	online, err := w.OnlineRegions(ctx, r.Server)
	must(t, err)
	if !slices.ContainsFunc(online, func(o rpc.RegionInfo) bool { return o.Encoded() == r.Encoded() }) {
		t.Fatalf("the region is not among the %d that its server has", len(online))
	}
	flushed, err := w.FlushRegion(ctx, r.Server, r.RowKey)
	must(t, err)
	again, err := w.FlushRegion(ctx, r.Server, r.RowKey)
	must(t, err)
	if !flushed || again {
		t.Fatalf("flushed %v, then %v", flushed, again)
	}
	files, err := w.StoreFiles(ctx, r.Server, r.RowKey, "f")
	must(t, err)
	if len(files) != 1 || !strings.Contains(files[0], "/data/"+table.Path()+"/"+string(r.Encoded())+"/f/") {
		t.Fatalf("store files %v", files)
	}
	// An IOException without the do-not-retry flag that would stay for ever.
	_, err = w.StoreFiles(soon(t), r.Server, r.RowKey, "nope")
	wantKind(t, err, hbackup.KindOther)
	details, err := w.RegionDetails(ctx, r.Server, r.RowKey)
	must(t, err)
	if details.Encoded() != r.Encoded() || details.Compaction != "NONE" {
		t.Fatalf("details %+v", details)
	}
	_, err = w.RegionDetails(soon(t), r.Server, []byte("nope,,1.00000000000000000000000000000000."))
	wantKind(t, err, hbackup.KindUnavailable)

	w.rows(t, table, 10, "w")
	must(t, w.FlushTable(ctx, table, rpc.Nonce{}))
	if flushed, err := w.FlushRegion(ctx, r.Server, r.RowKey); err != nil || flushed {
		t.Fatalf("something was left to flush: %v, %v", flushed, err)
	}
	status, err := w.ClusterStatus(ctx)
	must(t, err)
	for _, server := range status.Live {
		must(t, w.RollWAL(ctx, server))
	}
	wantKind(t, w.RollWAL(soon(t), rpc.ServerName{Host: "127.0.0.1", Port: 1}), hbackup.KindUnavailable)
}

const sink = "org.apache.hadoop.hbase.replication.VerifyWALEntriesReplicationEndpoint"

func testPeers(t *testing.T, w *world) {
	ctx := t.Context()
	request := rpc.AddPeerRequest{ID: "hold_1", Endpoint: sink, Config: map[string]string{"k": "v"}}
	must(t, w.AddPeer(ctx, request))
	must(t, w.AddPeer(ctx, request)) // the same again
	all, err := w.Peers(ctx)
	must(t, err)
	i := slices.IndexFunc(all, func(p rpc.ReplicationPeer) bool { return p.ID == "hold_1" })
	if i < 0 || all[i].Enabled || all[i].Endpoint != sink || all[i].Config["k"] != "v" {
		t.Fatalf("peers %+v", all)
	}
	other := request
	other.Enabled = true
	wantKind(t, w.AddPeer(ctx, other), hbackup.KindExists)
	wantKind(t, w.AddPeer(ctx, rpc.AddPeerRequest{ID: "p1"}), hbackup.KindUsage)
	wantKind(t, w.AddPeer(ctx, rpc.AddPeerRequest{ID: "a-b", Endpoint: sink}), hbackup.KindUsage)
	if err := w.AddPeer(soon(t), rpc.AddPeerRequest{ID: "p2", Endpoint: "no.such.Class"}); err == nil {
		t.Error("a peer with an endpoint class that does not exist was added")
		must(t, w.RemovePeer(ctx, "p2"))
	} else {
		t.Log(err)
	}
	must(t, w.RemovePeer(ctx, "hold_1"))
	must(t, w.RemovePeer(ctx, "hold_1"))
}
