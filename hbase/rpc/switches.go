package rpc

import (
	"context"

	"google.golang.org/protobuf/proto"

	"hbackup/hbase/hbpb"
)

// The cluster's switches. Whoever turns one off must write the value found
// before down first and turn it back, also after a crash. Each Set gives the
// value before; when its answer is lost it fails with KindTimeout instead of
// being sent again, because a second answer would give our own value.

// RegionSwitch is one of the two things that a master may do with regions.
type RegionSwitch string

// The switches of SetRegionSwitch.
const (
	SwitchSplit RegionSwitch = "SPLIT"
	SwitchMerge RegionSwitch = "MERGE"
)

func (s RegionSwitch) proto() hbpb.MasterSwitchType {
	if s == SwitchMerge {
		return hbpb.MasterSwitchType_MERGE
	}
	return hbpb.MasterSwitchType_SPLIT
}

// RegionSwitch reports whether regions may split, or merge. The setting is kept
// over restarts.
func (c *Client) RegionSwitch(ctx context.Context, s RegionSwitch) (bool, error) {
	var resp hbpb.IsSplitOrMergeEnabledResponse
	err := c.callMaster(ctx, "IsSplitOrMergeEnabled", &hbpb.IsSplitOrMergeEnabledRequest{SwitchType: s.proto().Enum()}, &resp, callOptions{})
	return resp.GetEnabled(), c.fail("read region switch", string(s), err)
}

// SetRegionSwitch allows or stops splits, or merges, and waits until those under
// way have ended.
func (c *Client) SetRegionSwitch(ctx context.Context, s RegionSwitch, on bool) (before bool, err error) {
	const op = "set region switch"
	req := &hbpb.SetSplitOrMergeEnabledRequest{
		Enabled: &on, Synchronous: proto.Bool(true),
		SwitchTypes: []hbpb.MasterSwitchType{s.proto()},
	}
	var resp hbpb.SetSplitOrMergeEnabledResponse
	err = c.callMaster(ctx, "SetSplitOrMergeEnabled", req, &resp, callOptions{slow: true, fragile: true})
	if err == nil && len(resp.PrevValue) != 1 {
		err = corruptf("%d values before for one switch", len(resp.PrevValue))
	}
	if err != nil {
		return false, c.fail(op, string(s), err)
	}
	return resp.PrevValue[0], nil
}

// SnapshotCleanup reports whether expired snapshots are deleted.
func (c *Client) SnapshotCleanup(ctx context.Context) (bool, error) {
	var resp hbpb.IsSnapshotCleanupEnabledResponse
	err := c.callMaster(ctx, "IsSnapshotCleanupEnabled", &hbpb.IsSnapshotCleanupEnabledRequest{}, &resp, callOptions{})
	return resp.GetEnabled(), c.fail("read snapshot clean-up switch", "", err)
}

// SetSnapshotCleanup allows or stops the deletion of expired snapshots.
func (c *Client) SetSnapshotCleanup(ctx context.Context, on bool) (before bool, err error) {
	req := &hbpb.SetSnapshotCleanupRequest{Enabled: &on, Synchronous: proto.Bool(true)}
	var resp hbpb.SetSnapshotCleanupResponse
	err = c.callMaster(ctx, "SwitchSnapshotCleanup", req, &resp, callOptions{slow: true, fragile: true})
	return resp.GetPrevSnapshotCleanup(), c.fail("set snapshot clean-up switch", "", err)
}

// CleanerChore reports whether the cleaners of old logs and archived files run.
func (c *Client) CleanerChore(ctx context.Context) (bool, error) {
	var resp hbpb.IsCleanerChoreEnabledResponse
	err := c.callMaster(ctx, "IsCleanerChoreEnabled", &hbpb.IsCleanerChoreEnabledRequest{}, &resp, callOptions{})
	return resp.GetValue(), c.fail("read cleaner switch", "", err)
}

// SetCleanerChore lets the cleaners run or stops them. The setting is lost when
// another master takes over, so nothing may depend on it.
func (c *Client) SetCleanerChore(ctx context.Context, on bool) (before bool, err error) {
	var resp hbpb.SetCleanerChoreRunningResponse
	err = c.callMaster(ctx, "SetCleanerChoreRunning", &hbpb.SetCleanerChoreRunningRequest{On: &on}, &resp, callOptions{fragile: true})
	return resp.GetPrevValue(), c.fail("set cleaner switch", "", err)
}
