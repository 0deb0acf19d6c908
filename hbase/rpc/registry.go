package rpc

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// registry finds the servers that lead to all others. Each call looks once; an
// answer may be stale for as long as a dead server's session lasts, so callers
// ask again when an address fails.
type registry interface {
	clusterID(ctx context.Context) (string, error)
	activeMaster(ctx context.Context) (ServerName, error)
	metaServer(ctx context.Context) (ServerName, error)
}

// errNoMaster and errNoMeta mean that the registry answered, but nobody has the role now.
var (
	errNoMaster = errors.New("the cluster has no active master at the moment")
	errNoMeta   = errors.New("hbase:meta is not served at the moment")
)

// bootstrapRegistry asks ClientMetaService, which every master has and, from
// 2.5 on, every region server. The address that answered last is asked first.
type bootstrapRegistry struct {
	pool    *pool
	timeout func(context.Context) (context.Context, context.CancelFunc)

	mu    sync.Mutex
	addrs []string
}

// ask tries the addresses in turn. An answer that names nobody is kept, in case
// no other address knows better: a server may not have heard of a new master yet.
func (r *bootstrapRegistry) ask(ctx context.Context, method string, req, resp proto.Message, found func() error) error {
	r.mu.Lock()
	addrs := append([]string(nil), r.addrs...)
	r.mu.Unlock()
	var failures []error
	for _, addr := range addrs {
		err := r.askOne(ctx, addr, method, req, resp)
		if err == nil {
			if err = found(); err == nil {
				r.prefer(addr)
				return nil
			}
		}
		failures = append(failures, err)
		if ctx.Err() != nil {
			break
		}
	}
	return pickFailure(failures)
}

func (r *bootstrapRegistry) askOne(ctx context.Context, addr, method string, req, resp proto.Message) error {
	ctx, cancel := r.timeout(ctx)
	defer cancel()
	c, err := r.pool.get(ctx, Peer{addr, ClientMetaService})
	if err != nil {
		return err
	}
	proto.Reset(resp)
	_, err = c.call(ctx, method, req, resp, nil)
	return err
}

func (r *bootstrapRegistry) prefer(addr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, a := range r.addrs {
		if a == addr {
			copy(r.addrs[1:], r.addrs[:i])
			r.addrs[0] = addr
		}
	}
}

// pickFailure prefers an answer ("no active master") and a refusal over a
// server that could not be reached.
func pickFailure(failures []error) error {
	best := failures[0]
	for _, err := range failures {
		var remote *RemoteError
		if errors.Is(err, errNoMaster) || errors.Is(err, errNoMeta) || errors.As(err, &remote) {
			best = err
		}
	}
	return best
}

func (r *bootstrapRegistry) clusterID(ctx context.Context) (id string, err error) {
	var resp hbpb.GetClusterIdResponse
	err = r.ask(ctx, "GetClusterId", &hbpb.GetClusterIdRequest{}, &resp, func() error {
		if id = resp.GetClusterId(); id == "" {
			return hbackup.Errorf("read cluster id", "", hbackup.KindUnavailable, "the server does not know it yet")
		}
		return nil
	})
	return id, err
}

func (r *bootstrapRegistry) activeMaster(ctx context.Context) (master ServerName, err error) {
	var resp hbpb.GetActiveMasterResponse
	err = r.ask(ctx, "GetActiveMaster", &hbpb.GetActiveMasterRequest{}, &resp, func() (err error) {
		if resp.ServerName == nil {
			return hbackup.E("find active master", "", hbackup.KindUnavailable, errNoMaster)
		}
		master, err = serverName(resp.ServerName)
		return err
	})
	return master, err
}

func (r *bootstrapRegistry) metaServer(ctx context.Context) (server ServerName, err error) {
	var resp hbpb.GetMetaRegionLocationsResponse
	err = r.ask(ctx, "GetMetaRegionLocations", &hbpb.GetMetaRegionLocationsRequest{}, &resp, func() (err error) {
		for _, l := range resp.MetaLocations {
			if l.GetRegionInfo().GetReplicaId() == 0 && l.ServerName != nil {
				server, err = serverName(l.ServerName)
				return err
			}
		}
		return hbackup.E("find hbase:meta", "", hbackup.KindUnavailable, errNoMeta)
	})
	return server, err
}
