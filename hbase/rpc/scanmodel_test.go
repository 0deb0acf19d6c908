package rpc

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"hbackup/hbase/hbpb"
)

// scanModel is two region servers and hbase:meta, with one table whose regions
// split and move while it is read, and servers that answer in every way that
// the protocol allows.
type scanModel struct {
	servers [2]*fakeServer
	mu      sync.Mutex
	chaos   *rand.Rand
	unrest  int // percentage of calls that go wrong
	rows    []Row
	regions []modelRegion
	lastID  int64
	open    map[uint64]*modelScanner
	nextID  uint64
	lost    map[string]int // what went wrong, how often
}

type modelRegion struct {
	RegionInfo
	server int
}

type modelScanner struct {
	region string // full name
	left   []Row
	seq    uint64
	inRow  int // cells of left[0] given already
}

func newScanModel(t testing.TB) *scanModel {
	m := &scanModel{open: map[uint64]*modelScanner{}, lost: map[string]int{}}
	for i := range m.servers {
		m.servers[i] = newFake(t)
	}
	m.servers[0].on(ClientMetaService, registryOf(m.servers[0].name, m.servers[0].name))
	m.servers[0].on(MasterService, func(c *fakeCall) {
		c.reply(&hbpb.GetTableStateResponse{TableState: &hbpb.TableState{State: hbpb.TableState_ENABLED.Enum()}})
	})
	for i, s := range m.servers {
		s.on(ClientService, func(c *fakeCall) { m.scan(i, c) })
	}
	return m
}

// reset makes a table of rows with one region per bound, and a seed of unrest.
func (m *scanModel) reset(rows []Row, bounds []string, seed uint64, unrest int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.chaos, m.unrest, m.rows = rand.New(rand.NewPCG(seed, 1)), unrest, rows
	m.regions = nil
	clear(m.open)
	start := ""
	for _, b := range append(bounds, "") {
		m.lastID++
		m.regions = append(m.regions, modelRegion{RegionInfo{Table: tbl, ID: m.lastID, StartKey: []byte(start), EndKey: []byte(b)}, m.chaos.IntN(2)})
		start = b
	}
}

func (m *scanModel) scan(server int, c *fakeCall) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var req hbpb.ScanRequest
	c.read(&req)
	if m.chaos.IntN(100) < m.unrest && m.disturb(c) {
		return
	}
	s, id := m.open[req.GetScannerId()], req.GetScannerId()
	switch {
	case req.ScannerId == nil:
		name := string(req.Region.Value)
		rows, ok := m.regionRows(server, name, req.Scan)
		if !ok {
			c.fail("NotServingRegionException", name+" is not online", false)
			return
		}
		m.nextID++
		id = m.nextID
		s = &modelScanner{region: name, left: rows}
		m.open[id] = s
	case s == nil:
		c.fail("UnknownScannerException", "unknown", true)
		return
	case req.GetCloseScanner():
		delete(m.open, id)
		c.reply(&hbpb.ScanResponse{})
		return
	case !m.serves(server, s.region):
		delete(m.open, id)
		c.fail("NotServingRegionException", "Region has changed on the scanner", false)
		return
	case req.NextCallSeq == nil || req.GetNextCallSeq() != s.seq:
		delete(m.open, id)
		c.fail("exceptions.OutOfOrderScannerNextException", "expected another", true)
		return
	default:
		s.seq++
	}
	m.give(c, id, s)
}

// give answers with some of what is left, in whole rows or pieces of them.
func (m *scanModel) give(c *fakeCall, id uint64, s *modelScanner) {
	resp := &hbpb.ScanResponse{ScannerId: &id, MoreResults: proto.Bool(true), MoreResultsInRegion: proto.Bool(true)}
	var block []byte
	if m.chaos.IntN(4) == 0 {
		resp.HeartbeatMessage = proto.Bool(true) // with results or without
	}
	for budget := m.chaos.IntN(8); budget > 0 && len(s.left) > 0; {
		row := s.left[0]
		n := min(1+m.chaos.IntN(4), budget, len(row.Cells)-s.inRow)
		for _, cell := range row.Cells[s.inRow : s.inRow+n] {
			block, _ = appendCell(block, cell)
		}
		s.inRow += n
		budget -= n
		ends := s.inRow == len(row.Cells)
		// A server that stops at its size limit may call the last piece partial as well.
		partial := !ends || m.chaos.IntN(4) == 0
		resp.CellsPerResult = append(resp.CellsPerResult, uint32(n))
		resp.PartialFlagPerResult = append(resp.PartialFlagPerResult, partial)
		if ends {
			s.left, s.inRow = s.left[1:], 0
		}
	}
	if len(s.left) == 0 && m.chaos.IntN(2) == 0 {
		resp.MoreResultsInRegion = proto.Bool(false)
		delete(m.open, id)
	}
	c.reply(resp, block...)
}

// disturb does something that goes wrong on real servers. It reports whether
// the call has been answered, or never will be.
func (m *scanModel) disturb(c *fakeCall) bool {
	what := []string{"split", "move", "hang", "expire", "queue", "opening"}[m.chaos.IntN(6)]
	m.lost[what]++
	i := m.chaos.IntN(len(m.regions))
	r := m.regions[i]
	switch what {
	case "split":
		in := slices.DeleteFunc(slices.Clone(m.rows), func(row Row) bool { return !r.Contains(row.Key) || bytes.Equal(row.Key, r.StartKey) })
		if len(in) == 0 {
			return false
		}
		at := in[m.chaos.IntN(len(in))].Key
		a, b := r, r
		m.lastID++
		a.ID, a.EndKey = m.lastID, at
		b.ID, b.StartKey, b.server = m.lastID, at, m.chaos.IntN(2)
		m.regions = slices.Replace(m.regions, i, i+1, a, b)
		return false
	case "move":
		m.regions[i].server = 1 - r.server
		return false
	case "expire":
		clear(m.open)
		return false
	case "hang":
		c.hang()
	case "queue":
		c.fail("CallQueueTooBigException", "full", false)
	case "opening":
		c.fail("exceptions.RegionOpeningException", "opening", false)
	}
	return true
}

func (m *scanModel) serves(server int, name string) bool {
	if name == metaRegion {
		return server == 0
	}
	return slices.ContainsFunc(m.regions, func(r modelRegion) bool { return r.server == server && string(r.Name()) == name })
}

// regionRows gives the rows of a region that a scan selects.
func (m *scanModel) regionRows(server int, name string, scan *hbpb.Scan) ([]Row, bool) {
	if !m.serves(server, name) {
		return nil, false
	}
	all, less := m.rows, func(a, b []byte) bool { return bytes.Compare(a, b) < 0 }
	var bounds RegionInfo
	if name == metaRegion {
		all, less = m.meta(), metaLess
	} else {
		bounds = m.regions[slices.IndexFunc(m.regions, func(r modelRegion) bool { return string(r.Name()) == name })].RegionInfo
	}
	reversed := scan.GetReversed()
	if reversed {
		forward := less
		less = func(a, b []byte) bool { return forward(b, a) }
	}
	var out []Row
	for _, row := range all {
		from, to := scan.GetStartRow(), scan.GetStopRow()
		if len(from) > 0 && (less(row.Key, from) || bytes.Equal(row.Key, from) && !scan.GetIncludeStartRow()) ||
			len(to) > 0 && !less(row.Key, to) && !(bytes.Equal(row.Key, to) && scan.GetIncludeStopRow()) || !bounds.Contains(row.Key) {
			continue
		}
		out = append(out, row)
	}
	if reversed {
		slices.Reverse(out)
	}
	return out, true
}

// meta gives the rows of hbase:meta: the table's regions, a split parent of the
// first one, and tables whose names sort around it.
func (m *scanModel) meta() []Row {
	regions := slices.Clone(m.regions)
	parent := regions[0]
	parent.ID, parent.Offline, parent.Split = 0, true, true
	regions = append(regions, parent)
	for _, other := range []string{"ns:s", "ns:t-x", "ns:t.x", "ns:t0", "ns:u"} {
		regions = append(regions, modelRegion{RegionInfo{Table: mustTable(other), ID: 1}, 0})
	}
	var rows []Row
	for _, r := range regions {
		info, _ := proto.Marshal(&hbpb.RegionInfo{
			RegionId: proto.Uint64(uint64(r.ID)), TableName: tableProto(r.Table), StartKey: r.StartKey, EndKey: r.EndKey,
			Offline: &r.Offline, Split: &r.Split,
		})
		cell := func(q string, v []byte) Cell {
			return Cell{Row: r.Name(), Family: []byte("info"), Qualifier: []byte(q), Timestamp: 1, Type: CellPut, Value: v}
		}
		rows = append(rows, Row{Key: r.Name(), Cells: []Cell{
			cell("regioninfo", append([]byte("PBUF"), info...)),
			cell("server", []byte(m.servers[r.server].addr)),
			cell("serverstartcode", binary.BigEndian.AppendUint64(nil, 1)),
			cell("state", []byte("OPEN")),
		}})
	}
	slices.SortFunc(rows, func(a, b Row) int {
		if metaLess(a.Key, b.Key) {
			return -1
		}
		return 1
	})
	return rows
}

// metaLess is the order of hbase:meta: table, then start key, then the rest.
func metaLess(a, b []byte) bool {
	parts := func(k []byte) [3]string {
		s := string(k)
		first, last := strings.IndexByte(s, ','), strings.LastIndexByte(s, ',')
		if first == last { // "T," sorts behind the first region of T, as on real servers
			return [3]string{s[:first], "\x00", s[first+1:]}
		}
		return [3]string{s[:first], s[first+1 : last], s[last+1:]}
	}
	x, y := parts(a), parts(b)
	return slices.Compare(x[:], y[:]) < 0
}
