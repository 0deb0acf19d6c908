package rpc

import (
	"bytes"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/hbase/hbpb"
	"hbackup/hbase/rpc"
)

func testTables(t *testing.T, w *world) {
	ctx := t.Context()
	table := w.newTable(t, "m")
	wantKind(t, w.CreateTable(ctx, rpc.NewSchema(table, "f"), nil, rpc.Nonce{}), hbackup.KindExists)

	d, err := w.Table(ctx, table)
	must(t, err)
	if d.State != rpc.TableEnabled || !slices.Equal(d.Families(), []hbackup.Family{"f", "g"}) || d.FamilyAttribute("f", "BLOOMFILTER") != "ROW" {
		t.Fatalf("descriptor %v", d)
	}
	var again hbpb.TableSchema
	must(t, proto.Unmarshal(d.Raw, &again))
	if !proto.Equal(&again, d.Schema) {
		t.Fatal("raw and decoded schema differ")
	}
	all, err := w.Tables(ctx, rpc.TableFilter{Regexp: table.Qualifier})
	must(t, err)
	if len(all) != 1 || !bytes.Equal(all[0].Raw, d.Raw) {
		t.Fatalf("tables by pattern: %v", all)
	}
	users, err := w.TableNames(ctx, rpc.TableFilter{})
	must(t, err)
	system, err := w.TableNames(ctx, rpc.TableFilter{System: true})
	must(t, err)
	if slices.ContainsFunc(users, hbackup.TableName.IsSystem) || !slices.ContainsFunc(system, hbackup.TableName.IsSystem) {
		t.Fatalf("users' tables %v, all %v", users, system)
	}
	// A bad pattern is an IOException without the do-not-retry flag: it must not loop.
	if _, err := w.Tables(soon(t), rpc.TableFilter{Regexp: "("}); err == nil || ctx.Err() != nil {
		t.Fatalf("bad pattern: %v", err)
	} else {
		wantKind(t, err, hbackup.KindOther)
	}

	w.rows(t, table, 10, "v")
	if err := w.DeleteTable(ctx, table, rpc.Nonce{}); true {
		wantKind(t, err, hbackup.KindConflict)
	}
	must(t, w.DisableTable(ctx, table, rpc.Nonce{}))
	must(t, w.DisableTable(ctx, table, rpc.Nonce{})) // it is so already
	if regions, err := w.Regions(ctx, table); err != nil || len(regions) != 2 {
		t.Fatalf("a disabled table has %d regions in hbase:meta, %v", len(regions), err)
	}
	must(t, w.EnableTable(ctx, table, rpc.Nonce{}))
	must(t, w.EnableTable(ctx, table, rpc.Nonce{}))
	if n := len(w.read(t, rpc.ScanRequest{Table: table})); n != 10 {
		t.Fatalf("%d rows", n)
	}
	must(t, w.DisableTable(ctx, table, rpc.Nonce{}))
	must(t, w.TruncateTable(ctx, table, true, rpc.Nonce{}))
	if n := len(w.read(t, rpc.ScanRequest{Table: table})); n != 0 {
		t.Fatalf("%d rows after truncation", n)
	}
	must(t, w.DisableTable(ctx, table, rpc.Nonce{}))
	must(t, w.DeleteTable(ctx, table, rpc.Nonce{}))
	must(t, w.DeleteTable(ctx, table, rpc.Nonce{}))
	if there, err := w.TableExists(ctx, table); err != nil || there {
		t.Fatalf("exists %v, %v", there, err)
	}
	_, err = w.Table(ctx, table)
	wantKind(t, err, hbackup.KindNotFound)
	_, err = w.TableState(ctx, table)
	wantKind(t, err, hbackup.KindNotFound)
	_, err = w.Regions(ctx, table)
	wantKind(t, err, hbackup.KindNotFound)
	wantKind(t, w.EnableTable(ctx, table, rpc.Nonce{}), hbackup.KindNotFound)
}

// testNonces: the same nonce is the same procedure, also after its end.
func testNonces(t *testing.T, w *world) {
	ctx := t.Context()
	table := hbackup.TableName{Namespace: "default", Qualifier: "nonces"}
	nonce := rpc.NewNonce()
	must(t, w.CreateTable(ctx, rpc.NewSchema(table, "f"), nil, nonce))
	must(t, w.CreateTable(ctx, rpc.NewSchema(table, "f"), nil, nonce))
	wantKind(t, w.CreateTable(ctx, rpc.NewSchema(table, "f"), nil, rpc.NewNonce()), hbackup.KindExists)

	// A refused call answers OK under its nonce afterwards; only the procedure
	// tells that it failed.
	refused := rpc.NewNonce()
	wantKind(t, w.CreateTable(ctx, rpc.NewSchema(table, "f"), nil, refused), hbackup.KindExists)
	wantKind(t, w.CreateTable(ctx, rpc.NewSchema(table, "f"), nil, refused), hbackup.KindExists)

	err := w.WaitProcedure(ctx, 1<<40)
	if unknown := (*rpc.ProcedureUnknownError)(nil); !asError(err, &unknown) || unknown.ID != 1<<40 {
		t.Fatalf("unknown procedure: %v", err)
	}
}
