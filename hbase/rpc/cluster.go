package rpc

import (
	"context"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// ClusterStatus is what the active master says about its cluster.
type ClusterStatus struct {
	Version      Version
	ClusterID    string
	Master       ServerName
	BackupMaster []ServerName
	Live         []ServerName // region servers
	Dead         []ServerName
	InTransition []RegionInTransition
}

// RegionInTransition is a region that is not where it should be.
type RegionInTransition struct {
	Region RegionInfo
	State  string // OPENING, CLOSING, FAILED_OPEN, ...
	Since  int64  // ms since 1970
}

var statusOptions = []hbpb.ClusterStatusOption{
	hbpb.ClusterStatusOption_HBASE_VERSION,
	hbpb.ClusterStatusOption_CLUSTER_ID,
	hbpb.ClusterStatusOption_LIVE_SERVERS,
	hbpb.ClusterStatusOption_DEAD_SERVERS,
	hbpb.ClusterStatusOption_MASTER,
	hbpb.ClusterStatusOption_BACKUP_MASTERS,
	hbpb.ClusterStatusOption_REGIONS_IN_TRANSITION,
}

// ClusterStatus asks the active master. It proves first that the master is
// active and has finished starting: a standby answers this question as well,
// with little but its version.
func (c *Client) ClusterStatus(ctx context.Context) (ClusterStatus, error) {
	const op = "read cluster status"
	if _, err := c.listNamespaces(ctx, callOptions{}); err != nil {
		return ClusterStatus{}, c.fail(op, "", err)
	}
	resp, err := c.status(ctx, statusOptions)
	if err != nil {
		return ClusterStatus{}, c.fail(op, "", err)
	}
	s := ClusterStatus{
		ClusterID:    resp.GetClusterId().GetClusterId(),
		BackupMaster: serverNames(resp.BackupMasters),
		Dead:         serverNames(resp.DeadServers),
	}
	if s.Version, err = ParseVersion(resp.GetHbaseVersion().GetVersion()); err != nil {
		return ClusterStatus{}, c.fail(op, "", corruptf("%v", err))
	}
	if s.Master, err = serverName(resp.Master); err != nil {
		return ClusterStatus{}, c.fail(op, "", hbackup.E("", "", hbackup.KindUnavailable, errNoMaster))
	}
	for _, live := range resp.LiveServers {
		name, err := serverName(live.Server)
		if err != nil {
			return ClusterStatus{}, c.fail(op, "", err)
		}
		s.Live = append(s.Live, name)
	}
	for _, t := range resp.RegionsInTransition {
		s.InTransition = append(s.InTransition, RegionInTransition{
			Region: regionInfo(t.GetRegionState().GetRegionInfo()),
			State:  t.GetRegionState().GetState().String(),
			Since:  int64(t.GetRegionState().GetStamp()),
		})
	}
	return s, nil
}

func (c *Client) status(ctx context.Context, options []hbpb.ClusterStatusOption) (*hbpb.ClusterStatus, error) {
	var resp hbpb.GetClusterStatusResponse
	err := c.callMaster(ctx, "GetClusterStatus", &hbpb.GetClusterStatusRequest{Options: options}, &resp, callOptions{})
	return resp.ClusterStatus, err
}

// Version gives the master's version, remembered while the master is the same.
func (c *Client) Version(ctx context.Context) (Version, error) {
	const op = "read HBase version"
	c.mu.Lock()
	v := c.version
	c.mu.Unlock()
	if v != (Version{}) {
		return v, nil
	}
	status, err := c.status(ctx, statusOptions[:1])
	if err != nil {
		return Version{}, c.fail(op, "", err)
	}
	if v, err = ParseVersion(status.GetHbaseVersion().GetVersion()); err != nil {
		return Version{}, c.fail(op, "", corruptf("%v", err))
	}
	c.mu.Lock()
	c.version = v
	c.mu.Unlock()
	return v, nil
}

// Ready makes one attempt to find an active master that has finished starting.
// KindUnavailable means not yet.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.listNamespaces(ctx, callOptions{attempts: 1})
	return c.fail("ask whether HBase is ready", "", err)
}

// IsMasterRunning asks the active master whether it runs. It says yes before
// the master has finished starting; see Ready.
func (c *Client) IsMasterRunning(ctx context.Context) (bool, error) {
	var resp hbpb.IsMasterRunningResponse
	err := c.callMaster(ctx, "IsMasterRunning", &hbpb.IsMasterRunningRequest{}, &resp, callOptions{})
	return resp.GetIsMasterRunning(), c.fail("ask whether the master runs", "", err)
}
