package rpc

import (
	"context"
	"sync"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// Calls about the regions of one region server. They go to exactly that server
// and are not sent elsewhere: when the region has moved they fail with
// KindUnavailable, and the caller looks for it again with FindRegion.

// OnlineRegions lists the regions that a region server has open.
func (c *Client) OnlineRegions(ctx context.Context, server ServerName) ([]RegionInfo, error) {
	var resp hbpb.GetOnlineRegionResponse
	if err := c.callAdmin(ctx, server, "GetOnlineRegion", &hbpb.GetOnlineRegionRequest{}, &resp, callOptions{}); err != nil {
		return nil, c.fail("list regions of server", server.String(), err)
	}
	out := make([]RegionInfo, 0, len(resp.RegionInfo))
	for _, r := range resp.RegionInfo {
		out = append(out, regionInfo(r))
	}
	return out, nil
}

// RegionDetails is what a region server says about a region that it has open.
type RegionDetails struct {
	RegionInfo
	Compaction string // NONE, MINOR, MAJOR, MAJOR_AND_MINOR
	Splittable bool   // false for instance while it has references to a parent
	Mergeable  bool
}

// RegionDetails asks a region server about one of its regions, by full name.
func (c *Client) RegionDetails(ctx context.Context, server ServerName, region []byte) (RegionDetails, error) {
	want := true
	req := &hbpb.GetRegionInfoRequest{Region: byName(region), CompactionState: &want}
	var resp hbpb.GetRegionInfoResponse
	if err := c.callAdmin(ctx, server, "GetRegionInfo", req, &resp, callOptions{}); err != nil {
		return RegionDetails{}, c.fail("read region", regionPath(region), err)
	}
	return RegionDetails{
		RegionInfo: regionInfo(resp.RegionInfo),
		Compaction: resp.GetCompactionState().String(),
		Splittable: resp.GetSplittable(),
		Mergeable:  resp.GetMergeable(),
	}, nil
}

// StoreFiles lists the store files that a region server uses for families of a
// region, as fully qualified paths. The region is named by its full name.
func (c *Client) StoreFiles(ctx context.Context, server ServerName, region []byte, families ...hbackup.Family) ([]string, error) {
	req := &hbpb.GetStoreFileRequest{Region: byName(region)}
	for _, f := range families {
		req.Family = append(req.Family, []byte(f))
	}
	var resp hbpb.GetStoreFileResponse
	err := c.callAdmin(ctx, server, "GetStoreFile", req, &resp, callOptions{})
	return resp.StoreFile, c.fail("list store files of region", regionPath(region), err)
}

// FlushRegion writes a region's memory to store files. It reports false when
// there was nothing to write.
func (c *Client) FlushRegion(ctx context.Context, server ServerName, region []byte) (flushed bool, err error) {
	var resp hbpb.FlushRegionResponse
	err = c.callAdmin(ctx, server, "FlushRegion", &hbpb.FlushRegionRequest{Region: byName(region)}, &resp, callOptions{slow: true})
	return resp.GetFlushed(), c.fail("flush region", regionPath(region), err)
}

// FlushTable writes the memory of all regions of a table to store files. From
// 2.6 on that is one procedure of the master; before, a call per region, where
// a region that moves is followed.
func (c *Client) FlushTable(ctx context.Context, t hbackup.TableName, nonce Nonce) error {
	const op = "flush table"
	if err := checkTable(op, t); err != nil {
		return err
	}
	nonce = nonce.orNew()
	req := &hbpb.FlushTableRequest{TableName: tableProto(t), NonceGroup: &nonce.Group, Nonce: &nonce.Value}
	var resp hbpb.FlushTableResponse
	err := c.runProcedure(ctx, "FlushTable", req, &resp, func(context.Context) (bool, error) { return false, nil })
	if isUnsupported(err) {
		err = c.flushRegions(ctx, t)
	}
	return c.fail(op, t.String(), err)
}

const flushesAtOnce = 8

func (c *Client) flushRegions(ctx context.Context, t hbackup.TableName) error {
	regions, err := c.regions(ctx, t)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan Region)
	var workers sync.WaitGroup
	for range min(flushesAtOnce, len(regions)) {
		workers.Go(func() {
			for r := range next {
				if err := c.flushWherever(ctx, r); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, r := range regions {
		select {
		case next <- r:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// flushWherever follows a region that moves. A region that has been split or
// merged meanwhile was flushed by that.
func (c *Client) flushWherever(ctx context.Context, r Region) error {
	return c.repeat(ctx, "FlushRegion", callOptions{}, func(ctx context.Context) (func(), error) {
		now, err := c.FindRegion(ctx, r.RowKey)
		if hbackup.IsKind(err, hbackup.KindNotFound) || err == nil && !now.serves() {
			return func() {}, nil
		}
		if err != nil {
			return func() {}, err
		}
		if now.Server.IsZero() {
			return func() {}, hbackup.Errorf("", "", hbackup.KindUnavailable, "region %s is on no server", regionPath(r.RowKey))
		}
		_, err = c.callServer(ctx, now.Server, AdminService, "FlushRegion",
			&hbpb.FlushRegionRequest{Region: byName(r.RowKey)}, &hbpb.FlushRegionResponse{}, nil, callOptions{slow: true})
		return func() {}, err
	})
}

// MoveRegion moves a region, named by its encoded name, to a server, or to one
// of the master's choice when the server is zero. The call returns when it is
// under way or done.
func (c *Client) MoveRegion(ctx context.Context, region hbackup.EncodedRegion, to ServerName) error {
	const op = "move region"
	if err := region.Validate(); err != nil {
		return hbackup.E(op, string(region), hbackup.KindUsage, err)
	}
	req := &hbpb.MoveRegionRequest{Region: byEncodedName(region)}
	if !to.IsZero() {
		req.DestServerName = to.proto()
	}
	err := c.callMaster(ctx, "MoveRegion", req, &hbpb.MoveRegionResponse{}, callOptions{slow: true})
	return c.fail(op, string(region), err)
}

func regionPath(name []byte) string { return cleanLine(string(name), 300) }
