package backup

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/catalog"
	"hbackup/hbase/hbpb"
	"hbackup/hbase/rootfs"
	"hbackup/hbase/rpc"
	"hbackup/hbase/snapshot"
	"hbackup/storage"
	"hbackup/storage/concurrency"
	"hbackup/storage/mem"
	"hbackup/storage/metered"
	"hbackup/storage/prefixed"
)

// paper is a cluster that consists of snapshots alone, and a location that holds all
// of its files and one image of each table: what a second backup needs. Nothing of
// the store files is there, so that 300,000 of them cost no memory: a backup that
// reads one fails.
type paper struct {
	rootfs.FS // has no method: only what is overridden here may be called
	tables    []hbackup.TableName
	regions   int // of each table
	files     int // of each region

	mu        sync.Mutex
	snapshots map[string]rpc.SnapshotInfo
}

func newPaper(tables, regions, files int) *paper {
	p := &paper{regions: regions, files: files, snapshots: map[string]rpc.SnapshotInfo{}}
	for i := range tables {
		p.tables = append(p.tables, hbackup.TableName{Namespace: "ns", Qualifier: fmt.Sprintf("t%05d", i)})
	}
	return p
}

var paperTime = time.UnixMilli(1796079901000).UTC()

// manifest makes the snapshot of a table.
func (p *paper) manifest(t hbackup.TableName, name string) *snapshot.Manifest {
	raw, err := proto.Marshal(&hbpb.TableSchema{TableName: &hbpb.TableName{Namespace: []byte(t.Namespace), Qualifier: []byte(t.Qualifier)},
		ColumnFamilies: []*hbpb.ColumnFamilySchema{{Name: []byte("f")}}})
	if err != nil {
		panic(err)
	}
	m := &snapshot.Manifest{
		Description: snapshot.Description{Name: name, Table: t, Created: paperTime, Type: snapshot.TypeFlush, Version: 2},
		Schema:      snapshot.Schema{Table: t, Families: []snapshot.FamilySchema{{Name: "f"}}, Raw: raw},
	}
	key := func(i int) []byte {
		if i == 0 || i == p.regions {
			return nil
		}
		return fmt.Appendf(nil, "%08d", i)
	}
	for r := range p.regions {
		region := snapshot.Region{Encoded: snapshot.EncodeRegionName(t, key(r), uint64(r+1), 0), ID: uint64(r + 1), Table: t, StartKey: key(r), EndKey: key(r + 1),
			RawInfo: snapshot.EncodeRegionInfo(t, key(r), key(r+1), uint64(r+1)), Families: []snapshot.FamilyFiles{{Family: "f"}}}
		for f := range p.files {
			region.Families[0].Files = append(region.Families[0].Files, snapshot.StoreFile{Name: fmt.Sprintf("%s%04x", string(region.Encoded)[:28], f), Size: paperSize})
		}
		m.Regions = append(m.Regions, region)
	}
	return m
}

const paperSize = 64 << 20

// image gives the files of a table in order.
func (p *paper) image(t hbackup.TableName) (files []catalog.File) {
	needs, err := needsOf(p.manifest(t, "s"))
	if err != nil {
		panic(err)
	}
	for _, n := range needs {
		f := n.file()
		f.Digest, f.Cells = storage.DigestOf([]byte(f.Name)), 1000
		files = append(files, f)
	}
	return files
}

func (p *paper) URI() string { return "paper://" }

func (p *paper) Stat(_ context.Context, at string) (rootfs.Info, error) {
	return rootfs.Info{Path: at, Name: path.Base(at), Dir: !strings.Contains(at, ".hbase-snapshot"), Modified: paperTime.Add(time.Second)}, nil
}

// Open gives the two files of a snapshot.
func (p *paper) Open(_ context.Context, at string, _ int64) (io.ReadCloser, rootfs.Info, error) {
	p.mu.Lock()
	info, there := p.snapshots[path.Base(path.Dir(at))]
	p.mu.Unlock()
	if !there {
		return nil, rootfs.Info{}, hbackup.Errorf("open", at, hbackup.KindNotFound, "there is no such file")
	}
	m := p.manifest(info.Table, info.Name)
	b, err := m.Description.Encode()
	if path.Base(at) == snapshot.ManifestFile {
		b, err = snapshot.EncodeManifest(m)
	}
	return io.NopCloser(bytes.NewReader(b)), rootfs.Info{Path: at, Name: path.Base(at), Size: int64(len(b)), Modified: paperTime.Add(time.Second)}, err
}

func (p *paper) Close() error                                 { return nil }
func (p *paper) ClusterID() string                            { return "paper" }
func (p *paper) Version(context.Context) (rpc.Version, error) { return rpc.ParseVersion("2.6.4") }
func (p *paper) TableNames(context.Context, rpc.TableFilter) ([]hbackup.TableName, error) {
	return p.tables, nil
}
func (p *paper) TableState(context.Context, hbackup.TableName) (rpc.TableState, error) {
	return rpc.TableEnabled, nil
}
func (p *paper) Namespaces(context.Context) ([]rpc.Namespace, error) {
	return []rpc.Namespace{{Name: "ns"}}, nil
}

func (p *paper) Snapshot(_ context.Context, r rpc.SnapshotRequest) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.snapshots[r.Name] = rpc.SnapshotInfo{Name: r.Name, Table: r.Table, Created: paperTime}
	return nil
}

func (p *paper) Snapshots(context.Context) (all []rpc.SnapshotInfo, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.snapshots {
		all = append(all, s)
	}
	return all, nil
}

func (p *paper) DeleteSnapshot(_ context.Context, name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.snapshots, name)
	return nil
}

// paperStore lists store files that are not there, as many as the tables have. All
// else is in memory.
type paperStore struct {
	*mem.Store
	of *paper
	// ready are the objects of the table that is listed next, so that making them up
	// is not measured; nil: they are made then.
	ready []storage.Object
}

// newPaperStore makes the location as the first backup has left it.
func newPaperStore(tb testing.TB, p *paper) *paperStore {
	tb.Helper()
	s := &paperStore{Store: mem.New("backups"), of: p}
	id := hbackup.NewBackupID(paperTime)
	if _, err := catalog.EnsureMarker(context.Background(), s.Store, "test", false); err != nil {
		tb.Fatal(err)
	}
	for i, t := range p.tables {
		im := &catalog.Image{Files: p.image(t), Header: catalog.Header{ID: id.Image(i), Backup: id, Cluster: "prod", Table: t, SnapshotStarted: paperTime, SnapshotFinished: paperTime}}
		for _, f := range im.Files {
			im.Totals.Files++
			im.Totals.Bytes += f.Size
		}
		b, err := im.Encode()
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := storage.PutBytes(context.Background(), s.Store, "prod/"+catalog.ImageKey(t, im.ID), b, true); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

func (s *paperStore) List(ctx context.Context, prefix string, o storage.ListOptions) iter.Seq2[storage.Object, error] {
	const archive = "prod/archive/data/ns/"
	if !strings.HasPrefix(prefix, archive) {
		return s.Store.List(ctx, prefix, o)
	}
	table := hbackup.TableName{Namespace: "ns", Qualifier: strings.Trim(strings.TrimPrefix(prefix, archive), "/")}
	if !slices.Contains(s.of.tables, table) {
		return s.Store.List(ctx, prefix, o)
	}
	return func(yield func(storage.Object, error) bool) {
		all := s.ready
		if all == nil {
			all = s.objects(table)
		}
		for _, o := range all {
			if !yield(o, nil) {
				return
			}
		}
	}
}

func (s *paperStore) objects(t hbackup.TableName) (all []storage.Object) {
	for _, f := range s.of.image(t) {
		all = append(all, storage.Object{Key: "prod/" + f.Key(), Size: f.Size})
	}
	return all
}

func (p *paper) run(tb testing.TB, s storage.Store, tables ...hbackup.TableName) Result {
	tb.Helper()
	r, err := Run(context.Background(), Request{ID: "second", Cluster: "prod", Tables: tables}, Source{Master: p, FS: p, Root: "/hbase"},
		Target{Location: s, Name: "main"}, Options{Host: "test", Writer: "test"})
	if err != nil || r.State != catalog.StateComplete {
		tb.Fatalf("%+v, %v", r.State, err)
	}
	for _, l := range r.Tables {
		if l.CopiedFiles != 0 || l.Totals.Files != p.regions*p.files {
			tb.Fatalf("got %+v", l)
		}
	}
	return r
}

// A second backup of a table that has not changed asks three things to know it: the
// images, the newest one, and the files.
func TestPlanningAsksThreeThings(t *testing.T) {
	p := newPaper(3, 10, 3)
	s := metered.New(newPaperStore(t, p))
	r := &run{opts: Options{}.withDefaults(), store: prefixed.New(s, "prod"), marker: catalog.Marker{ID: strings.Repeat("a", 32)}}
	for n, table := range p.tables {
		m := p.manifest(table, "s")
		needs, err := needsOf(m)
		if err != nil {
			t.Fatal(err)
		}
		out, err := r.planTable(t.Context(), table, needs, newMOBFiles(m, needs))
		if err != nil || len(out.reuse) != 30 {
			t.Fatalf("%+v, %v", out, err)
		}
		c := s.Counts()
		if c.Calls() != int64(3*(n+1)) || c.List.Calls != int64(2*(n+1)) || c.Get.Calls != int64(n+1) || c.Listed != int64(31*(n+1)) || c.OpenReaders != 0 {
			t.Errorf("after %d tables: %+v", n+1, c)
		}
	}
}

// A location may be limited to one call at a time: what planning reads side by side
// must not wait for itself.
func TestPlanningGetsAlongWithOneCallAtATime(t *testing.T) {
	p := newPaper(1, 10, 3)
	r := &run{opts: Options{}.withDefaults(), store: prefixed.New(concurrency.New(newPaperStore(t, p), 1), "prod"), marker: catalog.Marker{ID: strings.Repeat("a", 32)}}
	m := p.manifest(p.tables[0], "s")
	needs, err := needsOf(m)
	if err != nil {
		t.Fatal(err)
	}
	extra := needs[0]
	extra.target.Table = hbackup.TableName{Namespace: "ns", Qualifier: "t00000-origin"} // a second owner, before the first
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := r.planTable(ctx, p.tables[0], append([]need{extra}, needs...), newMOBFiles(m, needs))
	if err != nil || len(out.reuse) != 30 || len(out.copy) != 1 {
		t.Errorf("%d reused, %d copied, %v", len(out.reuse), len(out.copy), err)
	}
}

// Of a whole second backup nothing is written but manifests and records, and each
// table more costs as much as the one before it.
func TestASecondBackupWritesManifestsAlone(t *testing.T) {
	var calls []int64
	for _, n := range []int{1, 2, 5} {
		p := newPaper(n, 4, 3)
		place := newPaperStore(t, p)
		before := place.Snapshot()
		s := metered.New(place)
		p.run(t, s, p.tables...)
		c := s.Counts()
		var written int64
		kinds := map[string]int{}
		for key, b := range place.Snapshot() {
			if _, old := before[key]; !old {
				written += int64(len(b))
				kinds[kindOf(string(key))]++
			}
		}
		want := map[string]int{"image": n, "data.manifest": n, ".snapshotinfo": n, "backups": 1, "jobs": 2, "leases": kinds["leases"]}
		if !maps.Equal(kinds, want) {
			t.Errorf("%d tables: the objects %v are new, and not %v", n, kinds, want)
		}
		if c.BytesWritten != written {
			t.Errorf("%d tables: %d bytes were written, and the new objects have %d", n, c.BytesWritten, written)
		}
		calls = append(calls, c.Calls())
	}
	if each := calls[1] - calls[0]; calls[2]-calls[1] != 3*each || each > 15 {
		t.Errorf("1, 2 and 5 tables took %v requests", calls)
	}
	t.Logf("requests with 1, 2 and 5 tables: %v", calls)
}

func kindOf(key string) string {
	switch {
	case strings.HasSuffix(key, ".image"):
		return "image"
	case strings.HasPrefix(key, "prod/.hbase-snapshot/"):
		return path.Base(key)
	}
	return strings.Split(strings.TrimPrefix(key, "prod/"), "/")[0]
}

// BenchmarkSecondBackup backs up a cluster of 1,000 tables, 100,000 regions and
// 300,000 files that has not changed. The processor time of planning is that of all
// tables one after the other: reading the snapshot's manifest and everything that
// the location is asked. Run it alone: the memory is the highest of the process.
func BenchmarkSecondBackup(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(33)) // as cmd/hbackup does
	p := newPaper(1000, 100, 3)
	place := newPaperStore(b, p)
	b.Run("planning", func(b *testing.B) {
		var cpu time.Duration
		s := metered.New(place)
		for b.Loop() {
			r := &run{opts: Options{}.withDefaults(), store: prefixed.New(s, "prod"), marker: catalog.Marker{ID: strings.Repeat("a", 32)}}
			for batch := range slices.Chunk(p.tables, 20) {
				// What is made up, and its garbage, is not measured.
				var raw []snapshot.Getter
				var objects [][]storage.Object
				for _, table := range batch {
					raw = append(raw, rawSnapshot(b, p, table))
					objects = append(objects, place.objects(table))
				}
				runtime.GC()
				before := cpuTime()
				for i, table := range batch {
					place.ready = objects[i]
					m, err := snapshot.ReadFrom(raw[i])
					if err != nil {
						b.Fatal(err)
					}
					needs, err := needsOf(m)
					if err != nil {
						b.Fatal(err)
					}
					out, err := r.planTable(b.Context(), table, needs, newMOBFiles(m, needs))
					if err != nil || len(out.reuse) != 300 {
						b.Fatal(len(out.reuse), err)
					}
				}
				cpu += cpuTime() - before
			}
		}
		b.ReportMetric(cpu.Seconds()/float64(b.N), "cpu-s")
		b.ReportMetric(float64(s.Counts().Calls())/float64(b.N*len(p.tables)), "requests/table")
	})
	place.ready = nil
	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			s := metered.New(&paperStore{Store: place.Clone(), of: p})
			before := cpuTime()
			p.run(b, s, p.tables...)
			b.ReportMetric((cpuTime() - before).Seconds(), "cpu-s")
			b.ReportMetric(float64(s.Counts().Calls())/float64(len(p.tables)), "requests/table")
			b.ReportMetric(float64(s.Counts().BytesWritten)/1e6, "MB-written")
		}
		b.ReportMetric(peakMiB(b), "peak-MiB")
	})
}

// rawSnapshot gives the files of a table's snapshot as HBase keeps them.
func rawSnapshot(b *testing.B, p *paper, t hbackup.TableName) snapshot.Getter {
	m := p.manifest(t, "s")
	info, err := m.Description.Encode()
	if err != nil {
		b.Fatal(err)
	}
	manifest, err := snapshot.EncodeManifest(m)
	if err != nil {
		b.Fatal(err)
	}
	return func(name string) ([]byte, error) {
		if name == snapshot.InfoFile {
			return info, nil
		}
		return manifest, nil
	}
}

// cpuTime gives the processor time of this process so far.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func peakMiB(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip(err)
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib / 1024
		}
	}
	b.Skip("the kernel does not tell")
	return 0
}
