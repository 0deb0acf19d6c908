package rpc

import (
	"context"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// A replication peer makes every region server keep its
// logs until the peer has taken them. A disabled one takes nothing.

// ReplicationPeer is a replication peer.
type ReplicationPeer struct {
	ID         string
	Endpoint   string // Java class; "" for an ordinary cluster
	ClusterKey string // ZooKeeper address of an ordinary cluster
	Enabled    bool
	Config     map[string]string
}

// AddPeerRequest asks for a new replication peer.
type AddPeerRequest struct {
	ID         string
	Endpoint   string // one of Endpoint and ClusterKey must be set
	ClusterKey string
	Enabled    bool
	Config     map[string]string
}

// AddPeer makes a replication peer for all tables and waits until all servers
// know it. A peer of the same id and the same endpoint, cluster key and state
// is success; another one gives KindExists. The endpoint of a peer can't be
// changed later.
func (c *Client) AddPeer(ctx context.Context, r AddPeerRequest) error {
	const op = "add replication peer"
	if err := checkPeer(op, r.ID); err != nil {
		return err
	}
	if r.Endpoint == "" && r.ClusterKey == "" {
		// Servers never answer such a request.
		return hbackup.Errorf(op, r.ID, hbackup.KindUsage, "neither an endpoint class nor a cluster key is given")
	}
	state := hbpb.ReplicationState_DISABLED
	if r.Enabled {
		state = hbpb.ReplicationState_ENABLED
	}
	config := &hbpb.ReplicationPeer{ReplicateAll: proto.Bool(true)}
	if r.Endpoint != "" {
		config.ReplicationEndpointImpl = &r.Endpoint
	}
	if r.ClusterKey != "" {
		config.Clusterkey = &r.ClusterKey
	}
	for _, k := range slices.Sorted(maps.Keys(r.Config)) {
		v := r.Config[k]
		config.Configuration = append(config.Configuration, &hbpb.NameStringPair{Name: &k, Value: &v})
	}
	req := &hbpb.AddReplicationPeerRequest{PeerId: &r.ID, PeerConfig: config, PeerState: &hbpb.ReplicationState{State: &state}}
	var resp hbpb.AddReplicationPeerResponse
	err := c.runProcedure(ctx, "AddReplicationPeer", req, &resp, func(ctx context.Context) (bool, error) {
		p, err := c.findPeer(ctx, r.ID)
		return err == nil && r.same(p), unlessNotFound(err)
	})
	if err == nil {
		return nil
	}
	// The call knows no nonce, so "exists" may be about an earlier send of it;
	// and that has no class of its own. What is there decides.
	if isRemote(err, "DoNotRetryIOException") {
		if there, findErr := c.findPeer(ctx, r.ID); findErr == nil {
			if r.same(there) {
				return nil
			}
			return hbackup.E(op, r.ID, hbackup.KindExists, err)
		}
	}
	return c.fail(op, r.ID, err)
}

func (r AddPeerRequest) same(p ReplicationPeer) bool {
	return p.Endpoint == r.Endpoint && p.ClusterKey == r.ClusterKey && p.Enabled == r.Enabled
}

// RemovePeer removes a replication peer and waits until all servers have let go
// of it; one that is not there is no error.
func (c *Client) RemovePeer(ctx context.Context, id string) error {
	const op = "remove replication peer"
	if err := checkPeer(op, id); err != nil {
		return err
	}
	gone := func(ctx context.Context) (bool, error) {
		_, err := c.findPeer(ctx, id)
		return hbackup.IsKind(err, hbackup.KindNotFound), unlessNotFound(err)
	}
	var resp hbpb.RemoveReplicationPeerResponse
	err := c.runProcedure(ctx, "RemoveReplicationPeer", &hbpb.RemoveReplicationPeerRequest{PeerId: &id}, &resp, gone)
	if isRemote(err, "ReplicationPeerNotFoundException", "DoNotRetryIOException") { // the latter up to 2.4
		if there, lookErr := gone(ctx); lookErr == nil && there {
			return nil
		}
	}
	return c.fail(op, id, err)
}

// Peers lists the replication peers by id.
func (c *Client) Peers(ctx context.Context) ([]ReplicationPeer, error) {
	found, err := c.peers(ctx)
	return found, c.fail("list replication peers", "", err)
}

func (c *Client) peers(ctx context.Context) ([]ReplicationPeer, error) {
	var resp hbpb.ListReplicationPeersResponse
	if err := c.callMaster(ctx, "ListReplicationPeers", &hbpb.ListReplicationPeersRequest{}, &resp, callOptions{}); err != nil {
		return nil, err
	}
	out := make([]ReplicationPeer, 0, len(resp.PeerDesc))
	for _, d := range resp.PeerDesc {
		p := ReplicationPeer{
			ID:         d.GetId(),
			Endpoint:   d.GetConfig().GetReplicationEndpointImpl(),
			ClusterKey: d.GetConfig().GetClusterkey(),
			Enabled:    d.GetState().GetState() == hbpb.ReplicationState_ENABLED,
			Config:     map[string]string{},
		}
		for _, kv := range d.GetConfig().GetConfiguration() {
			p.Config[kv.GetName()] = kv.GetValue()
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b ReplicationPeer) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

func (c *Client) findPeer(ctx context.Context, id string) (ReplicationPeer, error) {
	all, err := c.peers(ctx)
	if err != nil {
		return ReplicationPeer{}, err
	}
	i := slices.IndexFunc(all, func(p ReplicationPeer) bool { return p.ID == id })
	if i < 0 {
		return ReplicationPeer{}, hbackup.Errorf("", "", hbackup.KindNotFound, "no such peer")
	}
	return all[i], nil
}
