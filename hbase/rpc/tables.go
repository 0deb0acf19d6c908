package rpc

import (
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// TableState is whether a table serves.
type TableState string

// The states of a table.
const (
	TableEnabled   TableState = "ENABLED"
	TableDisabled  TableState = "DISABLED"
	TableDisabling TableState = "DISABLING"
	TableEnabling  TableState = "ENABLING"
)

// TableDescriptor is a table's schema. Raw is the schema message as the server
// encoded it, fields unknown to this client included: keep it, and decode it
// only to look inside.
type TableDescriptor struct {
	Name   hbackup.TableName
	Raw    []byte
	Schema *hbpb.TableSchema
	State  TableState // only set by Table
}

// Families gives the names of the column families, in the server's order.
func (d TableDescriptor) Families() []hbackup.Family {
	var out []hbackup.Family
	for _, f := range d.Schema.GetColumnFamilies() {
		out = append(out, hbackup.Family(f.Name))
	}
	return out
}

// Attribute gives a table attribute ("MAX_FILESIZE"), "" when it is not set.
func (d TableDescriptor) Attribute(name string) string {
	return attribute(d.Schema.GetAttributes(), name)
}

// FamilyAttribute gives an attribute of a family ("COMPRESSION"), "" when it is not set.
func (d TableDescriptor) FamilyAttribute(family hbackup.Family, name string) string {
	for _, f := range d.Schema.GetColumnFamilies() {
		if string(f.Name) == string(family) {
			return attribute(f.Attributes, name)
		}
	}
	return ""
}

func attribute(pairs []*hbpb.BytesBytesPair, name string) string {
	for _, p := range pairs {
		if string(p.First) == name {
			return string(p.Second)
		}
	}
	return ""
}

// Table gives a table's schema and state. Errors: KindNotFound.
func (c *Client) Table(ctx context.Context, t hbackup.TableName) (TableDescriptor, error) {
	const op = "read table"
	if err := checkTable(op, t); err != nil {
		return TableDescriptor{}, err
	}
	req := &hbpb.GetTableDescriptorsRequest{TableNames: []*hbpb.TableName{tableProto(t)}, IncludeSysTables: proto.Bool(true)}
	found, err := c.descriptors(ctx, req)
	if err != nil {
		return TableDescriptor{}, c.fail(op, t.String(), err)
	}
	i := slices.IndexFunc(found, func(d TableDescriptor) bool { return d.Name == t })
	if i < 0 {
		return TableDescriptor{}, hbackup.Errorf(op, t.String(), hbackup.KindNotFound, "no such table").
			WithHint("check the table's name and its name space")
	}
	d := found[i]
	if d.State, err = c.tableState(ctx, t); err != nil {
		return TableDescriptor{}, c.fail(op, t.String(), err)
	}
	return d, nil
}

// TableExists reports whether the table is there, in whatever state.
func (c *Client) TableExists(ctx context.Context, t hbackup.TableName) (bool, error) {
	const op = "look for table"
	if err := checkTable(op, t); err != nil {
		return false, err
	}
	there, err := c.tableExists(ctx, t)
	return there, c.fail(op, t.String(), err)
}

func (c *Client) tableExists(ctx context.Context, t hbackup.TableName) (bool, error) {
	switch _, err := c.tableState(ctx, t); {
	case err == nil:
		return true, nil
	case isRemote(err, "TableNotFoundException"):
		return false, nil
	default:
		return false, err
	}
}

// TableState gives the state alone. Errors: KindNotFound.
func (c *Client) TableState(ctx context.Context, t hbackup.TableName) (TableState, error) {
	const op = "read table state"
	if err := checkTable(op, t); err != nil {
		return "", err
	}
	s, err := c.tableState(ctx, t)
	return s, c.fail(op, t.String(), err)
}

func (c *Client) tableState(ctx context.Context, t hbackup.TableName) (TableState, error) {
	var resp hbpb.GetTableStateResponse
	err := c.callMaster(ctx, "GetTableState", &hbpb.GetTableStateRequest{TableName: tableProto(t)}, &resp, callOptions{})
	return TableState(resp.GetTableState().GetState().String()), err
}

// TableFilter selects tables; the zero value selects all of the users' tables.
type TableFilter struct {
	Namespace string // all when empty
	Regexp    string // Java's syntax, matched against the whole name; all when empty
	System    bool   // HBase's own tables too
}

// Tables gives the schemas of the selected tables, ordered by name.
func (c *Client) Tables(ctx context.Context, f TableFilter) ([]TableDescriptor, error) {
	const op = "list tables"
	req := &hbpb.GetTableDescriptorsRequest{IncludeSysTables: &f.System}
	if f.Namespace != "" {
		if err := checkNamespace(op, f.Namespace); err != nil {
			return nil, err
		}
		req.Namespace = &f.Namespace
	}
	if f.Regexp != "" {
		req.Regex = &f.Regexp
	}
	found, err := c.descriptors(ctx, req)
	return found, c.fail(op, "", err)
}

// TableNames gives the names of the selected tables, in order.
func (c *Client) TableNames(ctx context.Context, f TableFilter) ([]hbackup.TableName, error) {
	const op = "list tables"
	req := &hbpb.GetTableNamesRequest{IncludeSysTables: &f.System}
	if f.Namespace != "" {
		if err := checkNamespace(op, f.Namespace); err != nil {
			return nil, err
		}
		req.Namespace = &f.Namespace
	}
	if f.Regexp != "" {
		req.Regex = &f.Regexp
	}
	var resp hbpb.GetTableNamesResponse
	if err := c.callMaster(ctx, "GetTableNames", req, &resp, callOptions{}); err != nil {
		return nil, c.fail(op, "", err)
	}
	out := make([]hbackup.TableName, 0, len(resp.TableNames))
	for _, t := range resp.TableNames {
		out = append(out, tableName(t))
	}
	slices.SortFunc(out, hbackup.TableName.Compare)
	return out, nil
}

func (c *Client) descriptors(ctx context.Context, req *hbpb.GetTableDescriptorsRequest) ([]TableDescriptor, error) {
	var resp hbpb.GetTableDescriptorsResponse
	if err := c.callMaster(ctx, "GetTableDescriptors", req, &resp, callOptions{}); err != nil {
		return nil, err
	}
	out := make([]TableDescriptor, 0, len(resp.TableSchema))
	for _, raw := range resp.TableSchema {
		s := &hbpb.TableSchema{}
		if err := proto.Unmarshal(raw, s); err != nil {
			return nil, corruptf("table schema: %v", err)
		}
		out = append(out, TableDescriptor{Name: tableName(s.TableName), Raw: raw, Schema: s})
	}
	slices.SortFunc(out, func(a, b TableDescriptor) int { return a.Name.Compare(b.Name) })
	return out, nil
}
