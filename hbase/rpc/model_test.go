package rpc

import (
	"fmt"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// model is a master of the tests with tables and snapshots, as HBase treats
// them: nonces, procedures, both ways to take a snapshot, and the trap of
// RestoreSnapshot.
type model struct {
	*fakeServer
	mu        sync.Mutex
	tables    map[string]*modelTable
	snapshots map[string]modelTable // by name; content at the time
	of        map[string]string     // snapshot name to its table
	procs     map[uint64]*hbpb.ForeignExceptionMessage
	byNonce   map[Nonce]uint64
	busy      int // so many Snapshot calls find another one running
	flaws     int // so many snapshots fail after they were started
	zkFlow    bool
	running   map[string]int // snapshots that run through ZooKeeper: polls left; by name
	sent      map[string]int // calls by method
	nonces    []Nonce        // of Snapshot calls
	// lose decides about a call before it is handled: "" answers, "before"
	// drops it, "after" carries it out and drops the answer.
	lose func(method string) string
}

type modelTable struct {
	state   hbpb.TableState_State
	content string
}

func newModel(t testing.TB) *model {
	m := &model{
		tables: map[string]*modelTable{}, snapshots: map[string]modelTable{}, of: map[string]string{},
		procs: map[uint64]*hbpb.ForeignExceptionMessage{}, byNonce: map[Nonce]uint64{},
		running: map[string]int{}, sent: map[string]int{}, lose: func(string) string { return "" },
	}
	m.fakeServer = newMaster(t, m.handle)
	return m
}

// reset keeps the server and forgets all else.
func (m *model) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.tables)
	clear(m.snapshots)
	clear(m.of)
	clear(m.procs)
	clear(m.byNonce)
	clear(m.running)
	clear(m.sent)
	m.nonces, m.busy, m.flaws, m.zkFlow = nil, 0, 0, false
}

// with runs f under the model's lock.
func (m *model) with(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

type answer struct {
	msg         proto.Message
	class, text string
}

func (m *model) handle(c *fakeCall) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent[c.method]++
	loss := m.lose(c.method)
	if loss == "before" {
		c.hang()
		return
	}
	a := m.answer(c)
	switch {
	case loss == "after":
		c.hang()
	case a.msg != nil:
		c.reply(a.msg)
	default:
		c.fail(a.class, a.text, true)
	}
}

func (m *model) answer(c *fakeCall) answer {
	switch c.method {
	case "GetClusterStatus":
		return answer{msg: &hbpb.GetClusterStatusResponse{ClusterStatus: &hbpb.ClusterStatus{
			HbaseVersion: &hbpb.HBaseVersionFileContent{Version: proto.String("2.6.4")}}}}
	case "GetTableState":
		var req hbpb.GetTableStateRequest
		c.read(&req)
		t := m.tables[tableName(req.TableName).String()]
		if t == nil {
			return answer{class: "TableNotFoundException", text: "no"}
		}
		return answer{msg: &hbpb.GetTableStateResponse{TableState: &hbpb.TableState{State: &t.state}}}
	case "GetCompletedSnapshots":
		resp := &hbpb.GetCompletedSnapshotsResponse{}
		for name := range m.snapshots {
			resp.Snapshots = append(resp.Snapshots, &hbpb.SnapshotDescription{Name: &name, Table: proto.String(m.of[name])})
		}
		return answer{msg: resp}
	case "getProcedureResult":
		var req hbpb.GetProcedureResultRequest
		c.read(&req)
		e, known := m.procs[req.GetProcId()]
		if !known {
			return answer{msg: &hbpb.GetProcedureResultResponse{State: hbpb.GetProcedureResultResponse_NOT_FOUND.Enum()}}
		}
		return answer{msg: &hbpb.GetProcedureResultResponse{State: hbpb.GetProcedureResultResponse_FINISHED.Enum(), Exception: e}}
	case "RestoreSnapshot":
		var req hbpb.RestoreSnapshotRequest
		c.read(&req)
		return m.restore(&req)
	case "Snapshot":
		var req hbpb.SnapshotRequest
		c.read(&req)
		return m.snapshot(&req)
	case "IsSnapshotDone":
		var req hbpb.IsSnapshotDoneRequest
		c.read(&req)
		return m.done(req.Snapshot.GetName())
	}
	return answer{class: "DoNotRetryIOException", text: "java.lang.UnsupportedOperationException: " + c.method}
}

// start gives the procedure of a nonce, making a new one with the outcome.
func (m *model) start(nonce Nonce, outcome func() *hbpb.ForeignExceptionMessage) uint64 {
	if id, known := m.byNonce[nonce]; known {
		return id
	}
	id := uint64(len(m.procs) + 1)
	m.byNonce[nonce], m.procs[id] = id, outcome()
	return id
}

func (m *model) restore(req *hbpb.RestoreSnapshotRequest) answer {
	name, wanted := req.Snapshot.GetName(), req.Snapshot.GetTable()
	nonce := Nonce{req.GetNonceGroup(), req.GetNonce()}
	id, known := m.byNonce[nonce]
	if !known {
		snap, there := m.snapshots[name]
		if !there {
			return answer{class: "snapshot.SnapshotDoesNotExistException", text: name}
		}
		if m.tables[wanted] == nil {
			id = m.start(nonce, func() *hbpb.ForeignExceptionMessage {
				m.tables[wanted] = &modelTable{hbpb.TableState_ENABLED, snap.content}
				return nil
			})
		} else {
			// The trap: the table that is put back is the stored one.
			t := m.tables[m.of[name]]
			if t == nil {
				return answer{class: "TableNotFoundException", text: m.of[name]}
			}
			if t.state != hbpb.TableState_DISABLED {
				return answer{class: "java.io.IOException", text: "Table '" + m.of[name] + "' must be disabled"}
			}
			id = m.start(nonce, func() *hbpb.ForeignExceptionMessage {
				t.content = snap.content
				return nil
			})
		}
	}
	return answer{msg: &hbpb.RestoreSnapshotResponse{ProcId: &id}}
}

func (m *model) snapshot(req *hbpb.SnapshotRequest) answer {
	name, table := req.Snapshot.GetName(), req.Snapshot.GetTable()
	nonce := Nonce{req.GetNonceGroup(), req.GetNonce()}
	m.nonces = append(m.nonces, nonce)
	resp := &hbpb.SnapshotResponse{ExpectedTimeout: proto.Int64(1000)}
	if id, known := m.byNonce[nonce]; known && !m.zkFlow {
		resp.ProcId = proto.Int64(int64(id))
		return answer{msg: resp}
	}
	switch {
	case m.tables[table] == nil:
		return answer{class: "snapshot.SnapshotCreationException", text: "Table '" + table + "' doesn't exist, can't take snapshot."}
	case m.busy > 0:
		m.busy--
		return answer{class: "snapshot.SnapshotCreationException", text: "we are already running another snapshot on the same table"}
	case len(m.running) > 0:
		return answer{class: "snapshot.SnapshotCreationException", text: "we are already running another snapshot on the same table"}
	case m.of[name] != "":
		return answer{class: "snapshot.SnapshotExistsException", text: name}
	}
	if m.zkFlow {
		m.running[name] = 2
		m.snapshots[name], m.of[name] = *m.tables[table], table
		return answer{msg: resp}
	}
	id := m.start(nonce, func() *hbpb.ForeignExceptionMessage {
		if m.flaws > 0 {
			m.flaws--
			return &hbpb.ForeignExceptionMessage{GenericException: &hbpb.GenericExceptionMessage{
				ClassName: proto.String("org.apache.hadoop.hbase.snapshot.HBaseSnapshotException"), Message: proto.String("a region moved")}}
		}
		m.snapshots[name], m.of[name] = *m.tables[table], table
		return nil
	})
	resp.ProcId = proto.Int64(int64(id))
	return answer{msg: resp}
}

func (m *model) done(name string) answer {
	if left, runs := m.running[name]; runs {
		if left > 0 {
			m.running[name]--
			return answer{msg: &hbpb.IsSnapshotDoneResponse{Done: proto.Bool(false)}}
		}
		delete(m.running, name)
		if m.flaws > 0 {
			m.flaws--
			delete(m.snapshots, name)
			delete(m.of, name)
			return answer{class: "snapshot.HBaseSnapshotException", text: "a region moved"}
		}
	}
	if m.of[name] == "" {
		return answer{class: "snapshot.UnknownSnapshotException", text: name}
	}
	return answer{msg: &hbpb.IsSnapshotDoneResponse{Done: proto.Bool(true)}}
}

func mustTable(s string) hbackup.TableName {
	t, err := hbackup.ParseTableName(s)
	if err != nil {
		panic(fmt.Sprint("a test's table name: ", err))
	}
	return t
}
