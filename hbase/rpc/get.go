package rpc

import (
	"context"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// GetRequest selects what to read of one row.
type GetRequest struct {
	Table    hbackup.TableName
	Row      []byte
	Columns  []Column
	Versions int // per column; 0: 1
}

// Get reads one row. A row that is not there has no cells.
func (c *Client) Get(ctx context.Context, r GetRequest) (Row, error) {
	const op = "read row of"
	if err := checkTable(op, r.Table); err != nil {
		return Row{}, err
	}
	req := &hbpb.GetRequest{Get: &hbpb.Get{
		Row:         r.Row,
		Column:      columns(r.Columns),
		MaxVersions: proto.Uint32(uint32(max(r.Versions, 1))),
	}}
	var cells []Cell
	err := c.repeat(ctx, "Get", callOptions{}, func(ctx context.Context) (func(), error) {
		at, err := c.locateRow(ctx, r.Table, r.Row)
		if err != nil {
			return func() {}, err
		}
		req.Region = byName(at.RowKey)
		var resp hbpb.GetResponse
		block, err := c.callServer(ctx, at.Server, ClientService, "Get", req, &resp, nil, callOptions{})
		if err == nil {
			cells, _, err = resultCells(resp.Result, block)
		}
		return func() {}, err
	})
	return Row{Key: r.Row, Cells: cells}, c.fail(op, r.Table.String(), err)
}
