package rpc

import (
	"context"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// CreateTable makes a table and waits until it serves. The schema's name is the
// table's. Errors: KindExists, KindNotFound for its name space.
func (c *Client) CreateTable(ctx context.Context, schema *hbpb.TableSchema, splitKeys [][]byte, nonce Nonce) error {
	const op = "create table"
	t := tableName(schema.GetTableName())
	if err := checkTable(op, t); err != nil {
		return err
	}
	if len(schema.ColumnFamilies) == 0 {
		return hbackup.Errorf(op, t.String(), hbackup.KindUsage, "the schema has no column family")
	}
	nonce = nonce.orNew()
	req := &hbpb.CreateTableRequest{TableSchema: schema, SplitKeys: splitKeys, NonceGroup: &nonce.Group, Nonce: &nonce.Value}
	var resp hbpb.CreateTableResponse
	return c.fail(op, t.String(), c.runProcedure(ctx, "CreateTable", req, &resp, c.inState(t, TableEnabled)))
}

// NewSchema makes a plain schema: the server fills in the defaults.
func NewSchema(t hbackup.TableName, families ...hbackup.Family) *hbpb.TableSchema {
	s := &hbpb.TableSchema{TableName: tableProto(t)}
	for _, f := range families {
		s.ColumnFamilies = append(s.ColumnFamilies, &hbpb.ColumnFamilySchema{Name: []byte(f)})
	}
	return s
}

// DisableTable stops a table serving and waits for that. A table that is
// disabled already is no error. The call waits while another procedure holds
// the table's lock.
func (c *Client) DisableTable(ctx context.Context, t hbackup.TableName, nonce Nonce) error {
	const op = "disable table"
	if err := checkTable(op, t); err != nil {
		return err
	}
	nonce = nonce.orNew()
	req := &hbpb.DisableTableRequest{TableName: tableProto(t), NonceGroup: &nonce.Group, Nonce: &nonce.Value}
	var resp hbpb.DisableTableResponse
	err := c.runProcedure(ctx, "DisableTable", req, &resp, c.inState(t, TableDisabled))
	return c.fail(op, t.String(), c.unlessAlready(ctx, err, "TableNotEnabledException", t, TableDisabled))
}

// EnableTable makes a table serve and waits for that. A table that is enabled
// already is no error.
func (c *Client) EnableTable(ctx context.Context, t hbackup.TableName, nonce Nonce) error {
	const op = "enable table"
	if err := checkTable(op, t); err != nil {
		return err
	}
	nonce = nonce.orNew()
	req := &hbpb.EnableTableRequest{TableName: tableProto(t), NonceGroup: &nonce.Group, Nonce: &nonce.Value}
	var resp hbpb.EnableTableResponse
	err := c.runProcedure(ctx, "EnableTable", req, &resp, c.inState(t, TableEnabled))
	return c.fail(op, t.String(), c.unlessAlready(ctx, err, "TableNotDisabledException", t, TableEnabled))
}

// DeleteTable removes a disabled table; one that is not there is no error.
// Errors: KindConflict while it is enabled.
func (c *Client) DeleteTable(ctx context.Context, t hbackup.TableName, nonce Nonce) error {
	const op = "delete table"
	if err := checkTable(op, t); err != nil {
		return err
	}
	nonce = nonce.orNew()
	req := &hbpb.DeleteTableRequest{TableName: tableProto(t), NonceGroup: &nonce.Group, Nonce: &nonce.Value}
	var resp hbpb.DeleteTableResponse
	err := c.runProcedure(ctx, "DeleteTable", req, &resp, func(ctx context.Context) (bool, error) {
		there, err := c.tableExists(ctx, t)
		return !there, err
	})
	if isRemote(err, "TableNotFoundException") {
		return nil
	}
	return c.fail(op, t.String(), err)
}

// TruncateTable empties a disabled table and waits until it serves again.
func (c *Client) TruncateTable(ctx context.Context, t hbackup.TableName, preserveSplits bool, nonce Nonce) error {
	const op = "truncate table"
	if err := checkTable(op, t); err != nil {
		return err
	}
	nonce = nonce.orNew()
	req := &hbpb.TruncateTableRequest{
		TableName: tableProto(t), PreserveSplits: &preserveSplits,
		NonceGroup: &nonce.Group, Nonce: &nonce.Value,
	}
	var resp hbpb.TruncateTableResponse
	return c.fail(op, t.String(), c.runProcedure(ctx, "truncateTable", req, &resp, c.inState(t, TableEnabled)))
}

// withProcID is an answer that names the procedure which the call has started.
type withProcID interface {
	proto.Message
	GetProcId() uint64
}

// runProcedure sends a call that carries a nonce and waits for its procedure.
// effect looks at the real state when the master has forgotten the procedure.
func (c *Client) runProcedure(ctx context.Context, method string, req proto.Message, resp withProcID, effect func(context.Context) (bool, error)) error {
	if err := c.callMaster(ctx, method, req, resp, callOptions{slow: true}); err != nil {
		return err
	}
	return c.finish(ctx, resp.GetProcId(), effect)
}

func (c *Client) inState(t hbackup.TableName, want TableState) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		s, err := c.tableState(ctx, t)
		return s == want, err
	}
}

// unlessAlready takes an error that may only mean "it is so already" and looks
// whether it is.
func (c *Client) unlessAlready(ctx context.Context, err error, class string, t hbackup.TableName, want TableState) error {
	if !isRemote(err, class) {
		return err
	}
	if s, stateErr := c.tableState(ctx, t); stateErr != nil || s != want {
		return err
	}
	return nil
}
