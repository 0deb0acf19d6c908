package backup_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/backup"
	"hbackup/catalog"
	"hbackup/catalog/verify"
	"hbackup/hbase/hbpb"
	"hbackup/hbase/rootfs"
	"hbackup/hbase/rpc"
	"hbackup/hbase/snapshot"
	"hbackup/storage"
	"hbackup/storage/mem"
	"hbackup/storage/prefixed"
)

// world is a stand-in for a cluster: a root directory with real HFiles, and a
// master that takes snapshots of what lies there.
type world struct {
	root   string
	fs     rootfs.FS
	now    time.Time
	tables map[hbackup.TableName]*table
	store  storage.Store
	told   *stages // what runFor's reporter hears

	mu        sync.Mutex
	snapshots map[string]rpc.SnapshotInfo
	calls     int
	failCall  int // the call to the master that fails, counted from 1
	onTaken   func()
	shape     func(*snapshot.Manifest) // what becomes of a snapshot's manifest
}

// table is one region of one family, and the samples that its files are.
type table struct {
	region hbackup.EncodedRegion
	files  []string
}

var orders = hbackup.TableName{Namespace: "ns", Qualifier: "orders"}

func newWorld(t testing.TB, opts ...mem.Option) *world {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "hbackup-backup-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &world{root: dir, fs: rootfs.Local(), now: time.UnixMilli(1796079901000), tables: map[hbackup.TableName]*table{}, told: &stages{}, snapshots: map[string]rpc.SnapshotInfo{}}
	w.store = mem.New("backups", append(opts, mem.WithClock(w.clock))...)
	w.add(t, orders, "2.6-none.hfile", "2.6-gz_diff.hfile", "2.6-snappy_rowindex.hfile")
	return w
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// advance lets the store's clock go on, also while a run is at work.
func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// add makes a table of sample files.
func (w *world) add(t testing.TB, name hbackup.TableName, samples ...string) {
	t.Helper()
	tb := &table{region: snapshot.EncodeRegionName(name, nil, 1, 0)}
	w.tables[name] = tb
	for _, s := range samples {
		w.addFile(t, name, s)
	}
}

func (w *world) addFile(t testing.TB, name hbackup.TableName, sample string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "hbase", "hfile", "testdata", sample))
	if err != nil {
		t.Fatal(err)
	}
	tb := w.tables[name]
	file := fmt.Sprintf("%032x", binary.BigEndian.Uint32([]byte(name.Qualifier + "....")[:4])+uint32(len(tb.files)))
	tb.files = append(tb.files, file)
	path := w.path(name, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// clone makes a table that consists of links to the files of another.
func (w *world) clone(t testing.TB, of hbackup.TableName, name string) hbackup.TableName {
	t.Helper()
	made := hbackup.TableName{Namespace: of.Namespace, Qualifier: name}
	w.add(t, made)
	for _, f := range w.tables[of].files {
		w.tables[made].files = append(w.tables[made].files, snapshot.LinkName(of, w.tables[of].region, f))
	}
	return made
}

// path is where the file lies while the region uses it.
func (w *world) path(name hbackup.TableName, file string) string {
	return snapshot.DataPath(w.root, snapshot.Target{Table: name, Region: w.tables[name].region, Family: "f", File: file})
}

func (w *world) call() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls++; w.calls == w.failCall {
		return hbackup.Errorf("call", "master", hbackup.KindUnavailable, "injected")
	}
	return nil
}

func (w *world) ClusterID() string { return "the-cluster" }

func (w *world) Version(context.Context) (rpc.Version, error) {
	if err := w.call(); err != nil {
		return rpc.Version{}, err
	}
	return rpc.ParseVersion("2.6.4")
}

func (w *world) TableNames(context.Context, rpc.TableFilter) ([]hbackup.TableName, error) {
	return slices.SortedFunc(maps.Keys(w.tables), hbackup.TableName.Compare), w.call()
}

func (w *world) TableState(_ context.Context, t hbackup.TableName) (rpc.TableState, error) {
	if err := w.call(); err != nil {
		return "", err
	}
	if w.tables[t] == nil {
		return "", hbackup.Errorf("look up table", t.String(), hbackup.KindNotFound, "no such table")
	}
	return rpc.TableEnabled, nil
}

func (w *world) Namespaces(context.Context) ([]rpc.Namespace, error) {
	return []rpc.Namespace{{Name: "ns", Config: map[string]string{"quota": "7"}}}, w.call()
}

func (w *world) Snapshot(_ context.Context, r rpc.SnapshotRequest) error {
	if err := w.call(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, there := w.snapshots[r.Name]; there {
		return hbackup.Errorf("snapshot", r.Name, hbackup.KindExists, "it is there")
	}
	tb := w.tables[r.Table]
	info := rpc.SnapshotInfo{Name: r.Name, Table: r.Table, Created: w.now}
	m := &snapshot.Manifest{
		Description: snapshot.Description{Name: r.Name, Table: r.Table, Created: w.now, Type: snapshot.TypeFlush, Version: 2},
		Schema:      snapshot.Schema{Table: r.Table, Families: []snapshot.FamilySchema{{Name: "f"}}, Raw: schema(r.Table)},
		Regions: []snapshot.Region{{Encoded: tb.region, ID: 1, Table: r.Table, Families: []snapshot.FamilyFiles{{Family: "f"}},
			RawInfo: snapshot.EncodeRegionInfo(r.Table, nil, nil, 1)}},
	}
	for _, f := range tb.files {
		size := int64(-1)
		target, err := snapshot.Resolve(&m.Regions[0], "f", snapshot.StoreFile{Name: f})
		if err != nil {
			return err
		}
		for _, p := range snapshot.Candidates(w.root, target) {
			if st, err := os.Stat(p); err == nil {
				size = st.Size()
			}
		}
		m.Regions[0].Families[0].Files = append(m.Regions[0].Families[0].Files, snapshot.StoreFile{Name: f, Size: size})
	}
	if w.shape != nil {
		w.shape(m)
	}
	data, err := snapshot.EncodeManifest(m)
	if err != nil {
		return err
	}
	desc, err := m.Description.Encode()
	if err != nil {
		return err
	}
	dir := snapshot.SnapshotDir(w.root, r.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, b := range map[string][]byte{"data.manifest": data, ".snapshotinfo": desc} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return err
		}
	}
	w.snapshots[r.Name] = info
	if w.onTaken != nil {
		w.onTaken()
	}
	return nil
}

func schema(t hbackup.TableName) []byte {
	b, err := proto.Marshal(&hbpb.TableSchema{
		TableName:      &hbpb.TableName{Namespace: []byte(t.Namespace), Qualifier: []byte(t.Qualifier)},
		ColumnFamilies: []*hbpb.ColumnFamilySchema{{Name: []byte("f")}},
	})
	if err != nil {
		panic(err)
	}
	return b
}

func (w *world) Snapshots(context.Context) ([]rpc.SnapshotInfo, error) {
	if err := w.call(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []rpc.SnapshotInfo
	for _, s := range w.snapshots {
		out = append(out, s)
	}
	return out, nil
}

func (w *world) DeleteSnapshot(_ context.Context, name string) error {
	if err := w.call(); err != nil {
		return err
	}
	w.drop(name)
	return nil
}

func (w *world) drop(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.snapshots, name)
	os.RemoveAll(snapshot.SnapshotDir(w.root, name))
}

func (w *world) names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for n := range w.snapshots {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

func (w *world) run(id string, store storage.Store, tables ...hbackup.TableName) (backup.Result, error) {
	if len(tables) == 0 {
		tables = []hbackup.TableName{orders}
	}
	return backup.Run(context.Background(), backup.Request{ID: hbackup.RequestID(id), Cluster: "prod", Tables: tables},
		backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: store, Name: "main"}, backup.Options{Files: 2, Host: "test", Writer: "test"})
}

func (w *world) folder() storage.Store { return prefixed.New(w.store, "prod") }

// images gives every committed image and fails when one does not verify, or has not
// all files that its table has.
func (w *world) images(t *testing.T) []catalog.Found {
	t.Helper()
	all := w.verified(t)
	for _, f := range all {
		im, err := catalog.ReadImage(context.Background(), f.Place.Store, f.Table, f.ID)
		if err != nil || im.Totals.Files != len(w.tables[f.Table].files) || im.Totals.Cells <= 0 {
			t.Fatalf("the image holds %+v, the table has %d files (%v)", im.Totals, len(w.tables[f.Table].files), err)
		}
	}
	return all
}

// verified gives every committed image and fails when one does not verify.
func (w *world) verified(t *testing.T) []catalog.Found {
	t.Helper()
	ctx, place := context.Background(), catalog.Place{Name: "main", Store: w.folder()}
	var all []catalog.Found
	for o, err := range w.folder().List(ctx, "images/", storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(string(o.Key))
		id := hbackup.ImageID(name[:len(name)-len(".image")])
		tn := hbackup.TableName{Namespace: "ns", Qualifier: filepath.Base(filepath.Dir(string(o.Key)))}
		f := catalog.Found{Place: place, Table: tn, ID: id}
		all = append(all, f)
		r, err := verify.Images(ctx, []catalog.Found{f}, verify.Options{Concurrency: 2})
		if err != nil || len(r.Faults) > 0 {
			t.Fatalf("the committed image %s does not verify: %+v, %v", id, r.Faults, err)
		}
	}
	return all
}

// jobs gives the records of all requests.
func (w *world) jobs(t *testing.T) []catalog.Job {
	t.Helper()
	var all []catalog.Job
	for o, err := range w.folder().List(context.Background(), "jobs/", storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if name, ok := strings.CutSuffix(string(o.Key), "/job.json"); ok {
			j, err := catalog.ReadJob(context.Background(), w.folder(), hbackup.RequestID(filepath.Base(name)))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, j)
		}
	}
	return all
}

// keys counts the objects of the location.
func (w *world) keys(t *testing.T) int {
	t.Helper()
	n := 0
	for _, err := range w.store.List(context.Background(), "", storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func runWith(ctx context.Context, w *world, id string) (backup.Result, error) {
	return backup.Run(ctx, backup.Request{ID: hbackup.RequestID(id), Cluster: "prod", Tables: []hbackup.TableName{orders}},
		backup.Source{Master: w, FS: w.fs, Root: w.root}, backup.Target{Location: w.store, Name: "main"}, backup.Options{Files: 2, Host: "test", Writer: "test"})
}
