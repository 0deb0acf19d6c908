package rpc

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"hbackup"
	"hbackup/hbase/hbpb"
)

var tbl = hbackup.TableName{Namespace: "ns", Qualifier: "t"}

// A procedure's end: finished is not success, and an unknown one says nothing.
func TestProcedureOutcomes(t *testing.T) {
	state := hbpb.TableState_ENABLED
	result := &hbpb.GetProcedureResultResponse{}
	f := newMaster(t, func(c *fakeCall) {
		switch c.method {
		case "DisableTable":
			c.reply(&hbpb.DisableTableResponse{ProcId: proto.Uint64(7)})
		case "getProcedureResult":
			c.reply(result)
		case "GetTableState":
			c.reply(&hbpb.GetTableStateResponse{TableState: &hbpb.TableState{State: &state}})
		}
	})
	c := connect(t, func(cfg *Config) { cfg.ProcedureTimeout = 50 * time.Millisecond }, f)
	disable := func() error { return c.DisableTable(t.Context(), tbl, Nonce{}) }
	is := func(s hbpb.GetProcedureResultResponse_State) { result.State = &s }

	is(hbpb.GetProcedureResultResponse_FINISHED)
	if err := disable(); err != nil {
		t.Fatal(err)
	}
	result.Exception = &hbpb.ForeignExceptionMessage{GenericException: &hbpb.GenericExceptionMessage{
		ClassName: proto.String("org.apache.hadoop.hbase.TableNotFoundException"),
		Message:   proto.String("org.apache.hadoop.hbase.TableNotFoundException: ns:t\n\tat Some.java"),
	}}
	err := disable()
	wantKind(t, err, hbackup.KindNotFound)
	var ended *ProcedureError
	if !errors.As(err, &ended) || ended.ID != 7 || ended.Remote.Message != "ns:t" {
		t.Fatalf("%#v", err)
	}
	result.Exception = nil

	// Forgotten by the master: the real state decides.
	is(hbpb.GetProcedureResultResponse_NOT_FOUND)
	err = disable()
	wantKind(t, err, hbackup.KindTimeout)
	var unknown *ProcedureUnknownError
	if !errors.As(err, &unknown) {
		t.Fatalf("%#v", err)
	}
	state = hbpb.TableState_DISABLED
	if err := disable(); err != nil {
		t.Fatal(err)
	}

	// One that never ends.
	is(hbpb.GetProcedureResultResponse_RUNNING)
	err = disable()
	wantKind(t, err, hbackup.KindTimeout)
	var still *ProcedureRunningError
	if !errors.As(err, &still) || still.ID != 7 {
		t.Fatalf("%#v", err)
	}
}

// "Already so" is success only when the state says the same.
func TestAlreadyDisabled(t *testing.T) {
	state := hbpb.TableState_DISABLED
	f := newMaster(t, func(c *fakeCall) {
		if c.method == "DisableTable" {
			c.fail("TableNotEnabledException", "ns:t", true)
			return
		}
		c.reply(&hbpb.GetTableStateResponse{TableState: &hbpb.TableState{State: &state}})
	})
	c := connect(t, nil, f)
	if err := c.DisableTable(t.Context(), tbl, Nonce{}); err != nil {
		t.Fatal(err)
	}
	state = hbpb.TableState_DISABLING
	wantKind(t, c.DisableTable(t.Context(), tbl, Nonce{}), hbackup.KindConflict)
}

func TestNonces(t *testing.T) {
	seen := map[Nonce]bool{}
	rapid.Check(t, func(t *rapid.T) {
		n := NewNonce()
		for i := range rapid.IntRange(1, 20).Draw(t, "attempts") {
			a := n.attempt(i)
			if a.Group == 0 || a.Value == 0 || seen[a] || a.orNew() != a {
				t.Fatalf("nonce %v", a)
			}
			seen[a] = true
			if a != n.attempt(i) {
				t.Fatal("not the same again")
			}
		}
	})
	if (Nonce{}).orNew().IsZero() {
		t.Fatal("no nonce")
	}
}
