package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"strconv"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// Region is a row of hbase:meta: a region and where it is.
type Region struct {
	RegionInfo
	RowKey []byte     // the full region name, as the row says it
	Server ServerName // where it was opened last; zero: nowhere
	State  string     // OPEN, CLOSED, OPENING, ...; "" when the row does not say
}

// Regions lists the regions of a table in key order, those of a disabled table
// too. Split parents and replicas are left out, so that the rest tiles the key
// space. Errors: KindNotFound when hbase:meta has no region of the table.
func (c *Client) Regions(ctx context.Context, t hbackup.TableName) ([]Region, error) {
	const op = "list regions of"
	if err := checkTable(op, t); err != nil {
		return nil, err
	}
	all, err := c.regions(ctx, t)
	return all, c.fail(op, t.String(), err)
}

func (c *Client) regions(ctx context.Context, t hbackup.TableName) ([]Region, error) {
	// The order of hbase:meta compares table, key and id apart. The empty key
	// is part of the bounds: "T," alone sorts behind the first region.
	scan := metaScan()
	scan.StartRow = []byte(t.String() + ",,")
	scan.StopRow = []byte(t.String() + " ,,")
	var out []Region
	for row, err := range c.scan(ctx, c.locateMeta, scan, 500) {
		if err != nil {
			return nil, err
		}
		r, ok, err := parseMetaRow(row)
		if err != nil {
			return nil, err
		}
		if ok && r.Table == t && r.serves() {
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		return nil, hbackup.Errorf("", "", hbackup.KindNotFound, "hbase:meta has no regions of it").
			WithHint("check the table's name and its name space")
	}
	return out, nil
}

// Locate gives the region that holds a row of a table.
func (c *Client) Locate(ctx context.Context, t hbackup.TableName, row []byte) (Region, error) {
	const op = "locate row in"
	if err := checkTable(op, t); err != nil {
		return Region{}, err
	}
	r, err := c.locateRow(ctx, t, row)
	return r, c.fail(op, t.String(), err)
}

// locateRow reads backwards from the last region name that could hold the row.
func (c *Client) locateRow(ctx context.Context, t hbackup.TableName, row []byte) (Region, error) {
	const pastEveryID = ",99999999999999"
	scan := metaScan()
	scan.Reversed = proto.Bool(true)
	scan.StartRow = append(append([]byte(t.String()+","), row...), pastEveryID...)
	// One row is enough unless a split or merge is under way.
	for found, err := range c.scan(ctx, c.locateMeta, scan, 1) {
		if err != nil {
			return Region{}, err
		}
		r, ok, err := parseMetaRow(found)
		if err != nil {
			return Region{}, err
		}
		if ok && r.Table != t {
			break
		}
		if !ok || !r.serves() || !r.Contains(row) {
			continue
		}
		if r.Server.IsZero() {
			return Region{}, hbackup.Errorf("", "", hbackup.KindUnavailable, "region %s is on no server", r.RowKey)
		}
		return r, nil
	}
	if there, err := c.tableExists(ctx, t); err != nil || !there {
		if err == nil {
			err = hbackup.Errorf("", "", hbackup.KindNotFound, "no such table")
		}
		return Region{}, err
	}
	return Region{}, hbackup.Errorf("", "", hbackup.KindUnavailable, "no region holds row %q", row)
}

// FindRegion gives the row of hbase:meta with exactly this region name.
func (c *Client) FindRegion(ctx context.Context, name []byte) (Region, error) {
	const op = "find region"
	path := cleanLine(string(name), 200)
	scan := metaScan()
	scan.StartRow, scan.StopRow = name, name
	scan.IncludeStopRow = proto.Bool(true)
	for row, err := range c.scan(ctx, c.locateMeta, scan, 1) {
		if err != nil {
			return Region{}, c.fail(op, path, err)
		}
		if !bytes.Equal(row.Key, name) {
			continue
		}
		if r, ok, err := parseMetaRow(row); err != nil || ok {
			return r, c.fail(op, path, err)
		}
	}
	return Region{}, hbackup.Errorf(op, path, hbackup.KindNotFound, "hbase:meta has no such region")
}

func metaScan() *hbpb.Scan {
	return &hbpb.Scan{
		Column:        []*hbpb.Column{{Family: []byte("info")}},
		CacheBlocks:   proto.Bool(true),
		ReadType:      hbpb.Scan_PREAD.Enum(),
		MaxVersions:   proto.Uint32(1),
		MaxResultSize: proto.Uint64(scanBytes),
	}
}

// locateMeta gives the one region of hbase:meta.
func (c *Client) locateMeta(ctx context.Context, _ []byte) (location, error) {
	server, err := c.findMeta(ctx)
	return location{server: server, region: []byte(metaRegion), forget: func() { c.forgetMeta(server) }}, err
}

func (r Region) serves() bool { return r.Replica == 0 && !r.Offline && !r.Split }

// parseMetaRow reads the columns info:regioninfo, server, serverstartcode and
// state. A row without regioninfo is no region.
func parseMetaRow(row Row) (r Region, ok bool, err error) {
	r.RowKey = row.Key
	var address string
	var start int64
	for _, cell := range row.Cells {
		if string(cell.Family) != "info" {
			continue
		}
		switch string(cell.Qualifier) {
		case "regioninfo":
			body, found := bytes.CutPrefix(cell.Value, []byte("PBUF"))
			if !found {
				return Region{}, false, nil // deleted by an old server
			}
			var p hbpb.RegionInfo
			if err := proto.Unmarshal(body, &p); err != nil {
				return Region{}, false, corruptf("hbase:meta row %q: %v", row.Key, err)
			}
			r.RegionInfo, ok = regionInfo(&p), true
		case "server":
			address = string(cell.Value)
		case "serverstartcode":
			if len(cell.Value) == 8 {
				start = int64(binary.BigEndian.Uint64(cell.Value))
			}
		case "state":
			r.State = cleanLine(string(cell.Value), 50)
		}
	}
	if address != "" {
		host, port, err := net.SplitHostPort(address)
		n, portErr := strconv.ParseUint(port, 10, 16)
		if err != nil || portErr != nil {
			return Region{}, false, corruptf("hbase:meta row %q: server %q", row.Key, address)
		}
		r.Server = ServerName{host, int(n), start}
	}
	return r, ok, nil
}
