package rpc

import (
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// fakePeers keeps peers as a 2.4 master does: no class of its own for an
// unknown peer, and no nonce.
type fakePeers struct {
	mu    sync.Mutex
	peers map[string]*hbpb.ReplicationPeerDescription
	lose  int // answers to lose after the change is made
	sent  map[string]int
}

func (p *fakePeers) handle(c *fakeCall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent[c.method]++
	lost := func() bool {
		if p.lose == 0 {
			return false
		}
		p.lose--
		c.hang()
		return true
	}
	switch c.method {
	case "AddReplicationPeer":
		var req hbpb.AddReplicationPeerRequest
		c.read(&req)
		if p.peers[req.GetPeerId()] != nil {
			c.fail("DoNotRetryIOException", "Replication peer "+req.GetPeerId()+" already exists", true)
			return
		}
		p.peers[req.GetPeerId()] = &hbpb.ReplicationPeerDescription{Id: req.PeerId, State: req.PeerState, Config: req.PeerConfig}
		if !lost() {
			c.reply(&hbpb.AddReplicationPeerResponse{ProcId: proto.Uint64(1)})
		}
	case "RemoveReplicationPeer":
		var req hbpb.RemoveReplicationPeerRequest
		c.read(&req)
		if p.peers[req.GetPeerId()] == nil {
			c.fail("DoNotRetryIOException", "Replication peer "+req.GetPeerId()+" does not exist", true)
			return
		}
		delete(p.peers, req.GetPeerId())
		if !lost() {
			c.reply(&hbpb.RemoveReplicationPeerResponse{ProcId: proto.Uint64(1)})
		}
	case "ListReplicationPeers":
		resp := &hbpb.ListReplicationPeersResponse{}
		for _, d := range p.peers {
			resp.PeerDesc = append(resp.PeerDesc, d)
		}
		c.reply(resp)
	case "getProcedureResult":
		c.reply(&hbpb.GetProcedureResultResponse{State: hbpb.GetProcedureResultResponse_FINISHED.Enum()})
	}
}

func TestPeers(t *testing.T) {
	noLeaks(t)
	p := &fakePeers{peers: map[string]*hbpb.ReplicationPeerDescription{}, sent: map[string]int{}}
	f := newMaster(t, p.handle)
	c := connect(t, nil, f)
	ctx := t.Context()
	request := AddPeerRequest{ID: "p", Endpoint: "a.B"}

	// Never sent: servers do not answer it.
	wantKind(t, c.AddPeer(ctx, AddPeerRequest{ID: "p"}), hbackup.KindUsage)
	wantKind(t, c.AddPeer(ctx, AddPeerRequest{ID: "a-b", Endpoint: "a.B"}), hbackup.KindUsage)
	p.mu.Lock()
	if p.sent["AddReplicationPeer"] != 0 {
		t.Error("it was sent")
	}
	p.lose = 1
	p.mu.Unlock()
	if err := c.AddPeer(ctx, request); err != nil { // its own success, found after a lost answer
		t.Fatal(err)
	}
	got, err := c.Peers(ctx)
	if err != nil || len(got) != 1 || got[0].ID != "p" || got[0].Endpoint != "a.B" || got[0].Enabled {
		t.Fatalf("%+v, %v", got, err)
	}
	other := request
	other.Endpoint = "a.C"
	wantKind(t, c.AddPeer(ctx, other), hbackup.KindExists)
	p.mu.Lock()
	p.lose = 1
	p.mu.Unlock()
	for range 2 {
		if err := c.RemovePeer(ctx, "p"); err != nil {
			t.Fatal(err)
		}
	}
}

// A master that has no FlushTable: every region is flushed, wherever it is.
func TestFlushTableByRegions(t *testing.T) {
	noLeaks(t)
	m := newScanModel(t)
	m.servers[0].on(MasterService, func(c *fakeCall) {
		c.fail("DoNotRetryIOException", "java.lang.UnsupportedOperationException: "+c.method, true)
	})
	var mu sync.Mutex
	flushed := map[string]int{}
	moves := 2
	for i, s := range m.servers {
		s.on(AdminService, func(c *fakeCall) {
			var req hbpb.FlushRegionRequest
			c.read(&req)
			mu.Lock()
			defer mu.Unlock()
			name := string(req.Region.Value)
			m.mu.Lock()
			here := m.serves(i, name)
			if here && moves > 0 {
				moves--
				here = false
				for j := range m.regions {
					m.regions[j].server = 1 - m.regions[j].server
				}
			}
			m.mu.Unlock()
			if !here {
				c.fail("NotServingRegionException", name, false)
				return
			}
			flushed[name]++
			c.reply(&hbpb.FlushRegionResponse{LastFlushTime: proto.Uint64(1), Flushed: proto.Bool(true)})
		})
	}
	m.reset(nil, []string{"b", "c", "d"}, 1, 0)
	c := connect(t, nil, m.servers[0])
	if err := c.FlushTable(t.Context(), tbl, Nonce{}); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(flushed) != 4 || moves != 0 {
		t.Fatalf("flushed %v, moves left %d", flushed, moves)
	}
	wantKind(t, c.RollWAL(t.Context(), ServerName{Host: "127.0.0.1", Port: 1}), hbackup.KindUnavailable)
}

// Rows are written wherever their region is; a region that has moved is an
// exception inside an answer that is otherwise good.
func TestPut(t *testing.T) {
	noLeaks(t)
	m := newScanModel(t)
	c := connect(t, nil, m.servers[0])
	m.reset(nil, []string{"m"}, 1, 0)
	var mu sync.Mutex
	var got []string
	trouble := 2
	for i, s := range m.servers {
		s.on(ClientService, func(c *fakeCall) {
			if c.method != "Multi" {
				m.scan(i, c)
				return
			}
			var req hbpb.MultiRequest
			c.read(&req)
			mu.Lock()
			defer mu.Unlock()
			result := &hbpb.RegionActionResult{}
			if trouble > 0 {
				trouble--
				result.Exception = &hbpb.NameBytesPair{Name: proto.String("org.apache.hadoop.hbase.NotServingRegionException"), Value: []byte("moved")}
			} else {
				block := c.cells
				for _, a := range req.RegionAction[0].Action {
					cells, rest, err := takeCells(block, int(a.Mutation.GetAssociatedCellCount()))
					if err != nil {
						t.Error(err)
					}
					block = rest
					for _, cell := range cells {
						got = append(got, string(cell.Row)+a.Mutation.GetMutateType().String())
					}
					result.ResultOrException = append(result.ResultOrException, &hbpb.ResultOrException{Index: a.Index})
				}
			}
			c.reply(&hbpb.MultiResponse{RegionActionResult: []*hbpb.RegionActionResult{result}})
		})
	}
	cell := func(row string, kind CellType) Cell {
		return Cell{Row: []byte(row), Family: []byte("f"), Timestamp: 1, Type: kind}
	}
	cells := []Cell{cell("a", CellPut), cell("a", CellPut), cell("a", CellDeleteFamily), cell("z", CellPut)}
	if err := c.Put(t.Context(), tbl, cells); err != nil {
		t.Fatal(err)
	}
	want := []string{"aPUT", "aPUT", "aDELETE", "zPUT"}
	mu.Lock()
	defer mu.Unlock()
	if len(got) != len(want) || trouble != 0 {
		t.Fatalf("%v, trouble %d", got, trouble)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%v", got)
		}
	}
	wantKind(t, c.Put(t.Context(), tbl, []Cell{{}}), hbackup.KindUsage)
}
