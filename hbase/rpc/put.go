package rpc

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// putBytes and putRows bound one call of Put.
const (
	putBytes = 2 << 20
	putRows  = 1000
)

// Put writes cells, puts and deletes alike, in the order given as far as they
// are of one row. A cell with the timestamp Now gets the server's clock; only
// with timestamps of its own is a repetition the same write. On an error some
// of the cells may be written.
func (c *Client) Put(ctx context.Context, t hbackup.TableName, cells []Cell) error {
	const op = "write to"
	if err := checkTable(op, t); err != nil {
		return err
	}
	for len(cells) > 0 {
		n, err := putBatch(cells)
		if err != nil {
			return hbackup.E(op, t.String(), hbackup.KindUsage, err)
		}
		err = c.repeat(ctx, "Multi", callOptions{}, func(ctx context.Context) (func(), error) {
			return func() {}, c.putOnce(ctx, t, cells[:n])
		})
		if err != nil {
			return c.fail(op, t.String(), err)
		}
		cells = cells[n:]
	}
	return nil
}

// putBatch gives how many cells go into the next call, at least one, and checks
// them.
func putBatch(cells []Cell) (n int, err error) {
	bytes := 0
	for _, cell := range cells {
		one, err := appendCell(nil, cell)
		if err != nil {
			return 0, err
		}
		if bytes += len(one); n > 0 && (bytes > putBytes || n == putRows) {
			break
		}
		n++
	}
	return n, nil
}

func (c *Client) putOnce(ctx context.Context, t hbackup.TableName, cells []Cell) error {
	regions, err := c.regions(ctx, t)
	if err != nil {
		return err
	}
	byRegion := map[int][]Cell{}
	for _, cell := range cells {
		i := slices.IndexFunc(regions, func(r Region) bool { return r.Contains(cell.Row) })
		if i < 0 || regions[i].Server.IsZero() {
			return hbackup.Errorf("", "", hbackup.KindUnavailable, "no server has row %q", cell.Row)
		}
		byRegion[i] = append(byRegion[i], cell)
	}
	for i := range regions {
		if part := byRegion[i]; len(part) > 0 {
			if err := c.putRegion(ctx, regions[i], part); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Client) putRegion(ctx context.Context, r Region, cells []Cell) error {
	actions, block, err := mutations(cells)
	if err != nil {
		return err
	}
	req := &hbpb.MultiRequest{RegionAction: []*hbpb.RegionAction{{Region: byName(r.RowKey), Action: actions}}}
	var resp hbpb.MultiResponse
	if _, err := c.callServer(ctx, r.Server, ClientService, "Multi", req, &resp, block, callOptions{}); err != nil {
		return err
	}
	if len(resp.RegionActionResult) != 1 {
		return corruptf("%d region results for one region", len(resp.RegionActionResult))
	}
	// A region that has moved is an exception of the region, a row that fails
	// one of the row: neither fails the call itself.
	result := resp.RegionActionResult[0]
	if e := result.Exception; e != nil {
		return multiError(r.Server, e)
	}
	for _, one := range result.ResultOrException {
		if one.Exception != nil {
			return multiError(r.Server, one.Exception)
		}
	}
	if len(result.ResultOrException) != len(actions) {
		return corruptf("%d results for %d rows", len(result.ResultOrException), len(actions))
	}
	return nil
}

// mutations makes one mutation of each run of cells of the same row and sort,
// and the cell block that holds their cells in the same order.
func mutations(cells []Cell) (actions []*hbpb.Action, block []byte, err error) {
	for len(cells) > 0 {
		kind := mutationType(cells[0].Type)
		n := 1
		for n < len(cells) && string(cells[n].Row) == string(cells[0].Row) && mutationType(cells[n].Type) == kind {
			n++
		}
		for _, cell := range cells[:n] {
			if block, err = appendCell(block, cell); err != nil {
				return nil, nil, err
			}
		}
		actions = append(actions, &hbpb.Action{
			Index: proto.Uint32(uint32(len(actions))),
			Mutation: &hbpb.MutationProto{
				Row:                 cells[0].Row,
				MutateType:          kind.Enum(),
				AssociatedCellCount: proto.Int32(int32(n)),
			},
		})
		cells = cells[n:]
	}
	return actions, block, nil
}

func mutationType(t CellType) hbpb.MutationProto_MutationType {
	if t == CellPut {
		return hbpb.MutationProto_PUT
	}
	return hbpb.MutationProto_DELETE
}

func multiError(server ServerName, e *hbpb.NameBytesPair) error {
	if e.GetName() == "" {
		return corruptf("an exception without a class: %.100q", fmt.Sprint(e))
	}
	class := cleanLine(e.GetName(), 200)
	return &RemoteError{
		Method: "Multi", Class: class, Server: server.Addr(),
		Message: firstMessage(e.GetName(), strings.ToValidUTF8(string(e.Value), "?")),
	}
}
