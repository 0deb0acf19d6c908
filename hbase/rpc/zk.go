package rpc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// zkRegistry reads HBase's nodes in ZooKeeper. Each look-up is a short session
// of its own: there is nothing to keep alive and nothing to leak.
type zkRegistry struct {
	cfg *Config

	mu      sync.Mutex
	servers []string // the one that answered last is first
}

// read gives the protocol buffer in a node below the parent.
func (r *zkRegistry) read(ctx context.Context, node string, into proto.Message) error {
	path := strings.TrimSuffix(r.cfg.ZNodeParent, "/") + "/" + node
	r.mu.Lock()
	servers := append([]string(nil), r.servers...)
	r.mu.Unlock()
	var failures []string
	for i, server := range servers {
		data, err := r.get(ctx, server, path)
		if err == nil {
			r.prefer(i, server)
			return decodeZNode(data, into)
		}
		if errors.Is(err, errNoNode) {
			r.prefer(i, server)
			return err
		}
		failures = append(failures, server+": "+cleanLine(err.Error(), 300))
		if ctx.Err() != nil {
			return &ConnError{Peer: Peer{server, "ZooKeeper"}, Phase: PhaseSend, Err: ctx.Err()}
		}
	}
	return hbackup.Errorf("ask ZooKeeper", path, hbackup.KindUnavailable, "%s", strings.Join(failures, "; ")).
		WithHint("check the ZooKeeper addresses, and that the servers are up")
}

func (r *zkRegistry) get(ctx context.Context, server, path string) ([]byte, error) {
	if _, _, err := net.SplitHostPort(server); err != nil {
		server = net.JoinHostPort(strings.Trim(server, "[]"), "2181")
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.ConnectTimeout)
	defer cancel()
	return zkGet(ctx, dialTCP, server, path)
}

func (r *zkRegistry) prefer(i int, server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i < len(r.servers) && r.servers[i] == server {
		copy(r.servers[1:], r.servers[:i])
		r.servers[0] = server
	}
}

func (r *zkRegistry) clusterID(ctx context.Context) (string, error) {
	var id hbpb.ClusterId
	if err := r.read(ctx, "hbaseid", &id); err != nil {
		return "", r.missing(err, fmt.Errorf("ZooKeeper has no node %s/hbaseid", r.cfg.ZNodeParent))
	}
	return id.GetClusterId(), nil
}

func (r *zkRegistry) activeMaster(ctx context.Context) (ServerName, error) {
	var m hbpb.Master
	if err := r.read(ctx, "master", &m); err != nil {
		return ServerName{}, r.missing(err, errNoMaster)
	}
	return serverName(m.Master)
}

func (r *zkRegistry) metaServer(ctx context.Context) (ServerName, error) {
	var m hbpb.MetaRegionServer
	if err := r.read(ctx, "meta-region-server", &m); err != nil {
		return ServerName{}, r.missing(err, errNoMeta)
	}
	if m.GetState() != hbpb.RegionState_OPEN {
		return ServerName{}, hbackup.E("find hbase:meta", "", hbackup.KindUnavailable, errNoMeta)
	}
	return serverName(m.Server)
}

// missing says what a node that is not there means.
func (r *zkRegistry) missing(err, meaning error) error {
	if !errors.Is(err, errNoNode) {
		return err
	}
	return hbackup.E("ask ZooKeeper", r.cfg.ZNodeParent, hbackup.KindUnavailable, meaning).
		WithHint("check that HBase is running, and zookeeper.znode.parent in its configuration")
}

// decodeZNode reads HBase's payload: 0xFF, int32 n, n bytes of an id that means
// nothing to us, "PBUF", the message.
func decodeZNode(data []byte, into proto.Message) error {
	if len(data) < 5 || data[0] != 0xFF {
		return corruptf("ZooKeeper node without HBase's prefix")
	}
	n, data := binary.BigEndian.Uint32(data[1:5]), data[5:]
	if uint64(n) > uint64(len(data)) {
		return corruptf("ZooKeeper node: an id of %d bytes in %d", n, len(data))
	}
	body, found := strings.CutPrefix(string(data[n:]), "PBUF")
	if !found {
		return corruptf("ZooKeeper node without PBUF")
	}
	if err := proto.Unmarshal([]byte(body), into); err != nil {
		return corruptf("ZooKeeper node: %v", err)
	}
	return nil
}
