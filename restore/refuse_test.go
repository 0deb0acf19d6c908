package restore

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hbackup"
	"hbackup/catalog"
	"hbackup/hbase/rpc"
	"hbackup/hbase/snapshot"
	"hbackup/storage"
)

// everything lists what is in the location and on the cluster's file system.
func (w *world) everything() []string {
	var out []string
	for o, err := range w.store.List(context.Background(), "", storage.ListOptions{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, string(o.Key))
	}
	filepath.WalkDir(w.c.root, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, p)
		return nil
	})
	return out
}

func TestRefusals(t *testing.T) {
	foreign := func(w *world) { w.c.tables[restored] = &table{state: rpc.TableEnabled} }
	for _, c := range []struct {
		name  string
		world func(w *world)
		ask   func(q *Request)
		kind  hbackup.Kind
		says  string // in error or hint
	}{
		{"table exists", foreign, nil, hbackup.KindRefused, "--as"},
		{"table exists, disabled", func(w *world) { w.c.tables[restored] = &table{state: rpc.TableDisabled} }, nil, hbackup.KindRefused, "drop the table first"},
		{"own name exists", func(w *world) { w.c.tables[ordersTable] = &table{state: rpc.TableEnabled} },
			func(q *Request) { q.As = hbackup.TableName{} }, hbackup.KindRefused, "shop:orders"},
		{"no name space", func(w *world) { delete(w.c.namespaces, "shop") }, nil, hbackup.KindNotFound, "--create-namespace"},
		{"older line", func(w *world) { w.c.version = "2.5.13-hadoop3" }, nil, hbackup.KindRefused, "--allow-older-hbase"},
		{"older major", func(w *world) { w.c.version = "1.7.2" }, nil, hbackup.KindRefused, "1.7.2"},
		{"system table", nil, func(q *Request) { q.As = hbackup.TableName{Namespace: "hbase", Qualifier: "acl"} }, hbackup.KindRefused, "HBase's own"},
		{"staging name space", nil, func(q *Request) { q.As = hbackup.TableName{Namespace: "hbk", Qualifier: "t"} }, hbackup.KindRefused, "hbk"},
		{"bad name", nil, func(q *Request) { q.As = hbackup.TableName{Namespace: "shop", Qualifier: "a/b"} }, hbackup.KindUsage, "not allowed"},
		{"bad request id", nil, func(q *Request) { q.ID = "a/b" }, hbackup.KindUsage, "request id"},
		{"no such image", nil, func(q *Request) { q.Image.ID = "20261130T230501.123Z-7f3k2m9q4x.0009" }, hbackup.KindIncomplete, "0009"},
		{"wrong root", func(w *world) { os.RemoveAll(w.c.root) }, nil, hbackup.KindUsage, "hbase.rootdir"},
		{"damaged manifest", func(w *world) {
			storage.PutBytes(context.Background(), w.store, catalog.SnapshotKey(imageID, catalog.DataManifestFile), []byte("x"), false)
		}, nil, hbackup.KindCorrupt, "data.manifest"},
		{"missing snapshot file", func(w *world) {
			w.store.Delete(context.Background(), catalog.SnapshotKey(imageID, catalog.SnapshotInfoFile))
		}, nil, hbackup.KindIncomplete, ".snapshotinfo"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if c.world != nil {
				c.world(w)
			}
			req := w.request()
			if c.ask != nil {
				c.ask(&req)
			}
			var before []string
			if c.name != "wrong root" {
				before = w.everything()
			}
			_, err := Run(context.Background(), req, w.target(), w.options())
			if !hbackup.IsKind(err, c.kind) || !strings.Contains(err.Error()+hbackup.HintOf(err), c.says) {
				t.Fatalf("error %v (%s), kind %s", err, hbackup.HintOf(err), hbackup.KindOf(err))
			}
			if before != nil && !slices.Equal(before, w.everything()) {
				t.Fatalf("something was written: %q, before %q", w.everything(), before)
			}
			o, perr := Plan(context.Background(), req, w.target(), w.options())
			if perr == nil && len(o.Conflicts) == 0 {
				t.Fatalf("the dry run finds nothing wrong: %+v", o)
			}
		})
	}
}

// TestAllRefusalsAtOnce: a person fixes all of them in one go.
func TestAllRefusalsAtOnce(t *testing.T) {
	w := newWorld(t)
	delete(w.c.namespaces, "shop")
	w.c.version = "2.4.18"
	o, err := Plan(context.Background(), w.request(), w.target(), w.options())
	if err != nil || len(o.Conflicts) != 2 {
		t.Fatalf("%v, conflicts %v", err, o.Conflicts)
	}
}

func TestCreateNamespace(t *testing.T) {
	for _, as := range []string{"shop:orders_r", "other:orders_r"} {
		w := newWorld(t)
		delete(w.c.namespaces, "shop")
		req := w.request()
		req.CreateNamespace = true
		req.As, _ = hbackup.ParseTableName(as)
		res, err := Run(context.Background(), req, w.target(), w.options())
		if err != nil {
			t.Fatal(err)
		}
		w.c.checkTable(req.As, w.image)
		config, made := w.c.namespaces[req.As.Namespace]
		if want := req.As.Namespace == "shop"; !made || (config["hbase.namespace.quota.maxtables"] == "5") != want {
			t.Fatalf("%s: name space made %v with %v", as, made, config)
		}
		if len(res.Notes) == 0 || !strings.Contains(strings.Join(res.Notes, "\n"), "name space") {
			t.Fatalf("notes %q", res.Notes)
		}
	}
}

func TestOlderHBaseAllowed(t *testing.T) {
	w := newWorld(t)
	w.c.version = "2.5.13"
	req := w.request()
	req.AllowOlderHBase = true
	res, err := Run(context.Background(), req, w.target(), w.options())
	if err != nil || !strings.Contains(strings.Join(res.Notes, "\n"), "older") {
		t.Fatalf("%+v, %v", res, err)
	}
	w.checkDone()
}

func TestNotes(t *testing.T) {
	b := ordersImage(t)
	b.image.Disabled = true
	b.attribute("coprocessor$1", "hdfs:///x.jar|org.example.Audit|1001|a=b")
	w := newWorldOf(t, b)
	o, err := Plan(context.Background(), w.request(), w.target(), w.options())
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(o.Notes, "\n")
	if !strings.Contains(notes, "disabled") || !strings.Contains(notes, `"org.example.Audit"`) {
		t.Fatalf("notes %q", o.Notes)
	}
	if o.Regions != 4 || o.Files != 7 || o.Bytes != w.image.image.Totals.Bytes || o.Snapshot == "" || len(o.Conflicts) != 0 {
		t.Fatalf("%+v", o)
	}
}

func TestPlanWritesNothing(t *testing.T) {
	w := newWorld(t)
	before := w.everything()
	w.g.before = func(_ int, op string) error {
		for _, verb := range []string{"create", "put", "mkdir", "remove", "delete", "clone"} {
			if strings.HasPrefix(op, verb+" ") || op == verb {
				t.Errorf("the dry run does %q", op)
			}
		}
		return nil
	}
	if _, err := Plan(context.Background(), w.request(), w.target(), w.options()); err != nil {
		t.Fatal(err)
	}
	if after := w.everything(); !slices.Equal(before, after) {
		t.Fatalf("%q, before %q", after, before)
	}
}

// TestRequestIDUsedTwice: a request id stands for one restore.
func TestRequestIDUsedTwice(t *testing.T) {
	w := newWorld(t)
	if _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	req := w.request()
	req.As.Qualifier = "orders_s"
	if _, err := Run(context.Background(), req, w.target(), w.options()); !hbackup.IsKind(err, hbackup.KindConflict) {
		t.Fatalf("error %v", err)
	}
	w.checkDone()
}

func FuzzParseSnapshotName(f *testing.F) {
	f.Add("hbackup-restore.nightly.5f0c1d2e3a4b5c6d")
	f.Add("hbackup-restore..5f0c1d2e3a4b5c6d")
	f.Add(SnapshotPrefix)
	f.Fuzz(func(t *testing.T, name string) {
		request, ok := ParseSnapshotName(name)
		if !ok {
			return
		}
		if err := snapshot.ValidateName(name); err != nil && len(name) < 250 {
			t.Fatalf("%q gives request %q and is no snapshot name: %v", name, request, err)
		}
		if !strings.HasPrefix(name, SnapshotPrefix+string(request)+".") {
			t.Fatalf("%q gives request %q", name, request)
		}
	})
}
