package snapshot

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"hbackup"
	"hbackup/hbase/hbpb"

	"google.golang.org/protobuf/proto"
)

// A model of a table in HBase, small enough to ask for every row which cells are
// shown. Files are sets of cells; a cell is a row and a number of its own.
// Regions split, merge and compact as HBase does it, so that the manifests that
// come out have references, links and split parents as real ones do.

type cell struct {
	row string
	id  int
}

type cells map[cell]bool

func (c cells) rows() (first, last string, some bool) {
	for x := range c {
		if !some || x.row < first {
			first = x.row
		}
		if !some || x.row > last {
			last = x.row
		}
		some = true
	}
	return first, last, some
}

type modelEntry struct {
	name FileName
	ref  *Reference
}

type modelRegion struct {
	start, end string
	id         uint64
	split      bool
	files      map[hbackup.Family][]modelEntry
}

type model struct {
	t        *rapid.T
	table    hbackup.TableName
	families []hbackup.Family
	regions  []*modelRegion // in no order
	store    map[Target]cells
	clock    uint64
	cells    int
	names    int

	linksOnSplit bool // HBase 2.6 links a file that lies in one daughter alone
	compacted    bool // something was compacted since the table was made
	lostParents  bool // a clone has lost a split parent that is still referred to
}

const modelRows = "abcdefghijkl"

func newModel(t *rapid.T) *model {
	w := &model{
		t: t, table: hbackup.TableName{Namespace: "default", Qualifier: "t"}, families: []hbackup.Family{"x", "y"},
		store: map[Target]cells{}, clock: 1000, linksOnSplit: rapid.Bool().Draw(t, "links on split"),
	}
	starts := rapid.SampledFrom([][]string{{""}, {"", "g"}, {"", "d", "h"}}).Draw(t, "first regions")
	for i, s := range starts {
		end := ""
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		w.regions = append(w.regions, w.region(s, end, w.clock))
	}
	return w
}

func (w *model) region(start, end string, id uint64) *modelRegion {
	return &modelRegion{start: start, end: end, id: id, files: map[hbackup.Family][]modelEntry{}}
}

func (w *model) encoded(r *modelRegion) hbackup.EncodedRegion {
	return EncodeRegionName(w.table, []byte(r.start), r.id, 0)
}

func (r *modelRegion) has(row string) bool { return row >= r.start && (r.end == "" || row < r.end) }

func (r *modelRegion) hasReferences() bool {
	for _, list := range r.files {
		for _, e := range list {
			if e.name.IsReference() {
				return true
			}
		}
	}
	return false
}

func (w *model) target(r *modelRegion, f hbackup.Family, n FileName) Target {
	return n.target(&Region{Encoded: w.encoded(r), Table: w.table, ID: r.id}, f)
}

// shown gives the cells of one entry that its region shows.
func (w *model) shown(r *modelRegion, f hbackup.Family, e modelEntry) cells {
	content, there := w.store[w.target(r, f, e.name)]
	if !there {
		panic("the model has lost " + e.name.String())
	}
	if e.ref == nil {
		return content
	}
	row, err := e.ref.SplitRow()
	if err != nil {
		panic(err)
	}
	out := cells{}
	for c := range content {
		if (c.row >= string(row)) == e.ref.Top {
			out[c] = true
		}
	}
	return out
}

// leaves are the regions that serve rows, in the order of their keys.
func (w *model) leaves() []*modelRegion {
	var out []*modelRegion
	for _, r := range w.regions {
		if !r.split {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *modelRegion) int { return bytes.Compare([]byte(a.start), []byte(b.start)) })
	return out
}

func (w *model) add(r *modelRegion, f hbackup.Family, suffix string, content cells) {
	w.names++
	n := FileName{File: hexOf(fmt.Sprint("file ", w.names)) + suffix}
	w.store[w.target(r, f, n)] = content
	r.files[f] = append(r.files[f], modelEntry{name: n})
}

// step does one thing that happens to tables.
func (w *model) step() {
	w.clock += uint64(rapid.IntRange(1, 3).Draw(w.t, "time"))
	leaves := w.leaves()
	i := rapid.IntRange(0, len(leaves)-1).Draw(w.t, "region")
	r := leaves[i]
	f := rapid.SampledFrom(w.families).Draw(w.t, "family")
	switch rapid.SampledFrom([]string{"write", "write", "split", "split", "merge", "compact", "janitor", "clone"}).Draw(w.t, "step") {
	case "write":
		var rows []string
		for _, row := range modelRows {
			if r.has(string(row)) {
				rows = append(rows, string(row))
			}
		}
		if len(rows) == 0 {
			return
		}
		content := cells{}
		for _, row := range rapid.SliceOfN(rapid.SampledFrom(rows), 1, 6).Draw(w.t, "rows") {
			w.cells++
			content[cell{row, w.cells}] = true
		}
		w.add(r, f, rapid.SampledFrom([]string{"", "_SeqId_9_"}).Draw(w.t, "suffix"), content)
	case "split":
		w.split(r)
	case "merge":
		w.merge(leaves[i:min(len(leaves), i+rapid.IntRange(2, 3).Draw(w.t, "merged"))])
	case "compact":
		w.compact(r, f)
	case "janitor":
		w.janitor()
	case "clone":
		w.clone()
	}
}

func (w *model) split(r *modelRegion) {
	at := string(rapid.SampledFrom([]rune(modelRows)).Draw(w.t, "split row"))
	if r.hasReferences() || !r.has(at) || at == r.start {
		return
	}
	parent := w.encoded(r)
	low, top := w.region(r.start, at, w.clock), w.region(at, r.end, w.clock)
	for f, list := range r.files {
		for _, e := range list {
			first, last, some := w.shown(r, f, e).rows()
			if !some {
				continue
			}
			whole := modelEntry{name: e.name}
			if !e.name.IsLink() {
				whole.name.Table, whole.name.Region = w.table, parent
			}
			if last < at && w.linksOnSplit {
				low.files[f] = append(low.files[f], whole)
				continue
			}
			if first >= at && w.linksOnSplit {
				top.files[f] = append(top.files[f], whole)
				continue
			}
			n := e.name
			n.Parent = parent
			if first < at {
				low.files[f] = append(low.files[f], modelEntry{n, &Reference{Top: false, SplitKey: SplitKeyOf([]byte(at))}})
			}
			if last >= at {
				top.files[f] = append(top.files[f], modelEntry{n, &Reference{Top: true, SplitKey: SplitKeyOf([]byte(at))}})
			}
		}
	}
	r.split = true
	w.regions = append(w.regions, low, top)
}

func (w *model) merge(parents []*modelRegion) {
	if len(parents) < 2 || slices.ContainsFunc(parents, (*modelRegion).hasReferences) {
		return
	}
	id := uint64(0)
	for _, p := range parents {
		id = max(id, p.id+1)
	}
	if rapid.Bool().Draw(w.t, "merged region has the time as id") {
		id = w.clock
	}
	merged := w.region(parents[0].start, parents[len(parents)-1].end, id)
	for _, p := range parents {
		for f, list := range p.files {
			for _, e := range list {
				n := e.name
				n.Parent = w.encoded(p)
				merged.files[f] = append(merged.files[f], modelEntry{n, &Reference{Top: true, SplitKey: SplitKeyOf([]byte(p.start))}})
			}
		}
	}
	w.regions = slices.DeleteFunc(w.regions, func(r *modelRegion) bool { return slices.Contains(parents, r) })
	w.regions = append(w.regions, merged)
}

// compact replaces some files of a store by one and drops some of their cells for
// good, as deletes, versions and times to live do.
func (w *model) compact(r *modelRegion, f hbackup.Family) {
	var kept []modelEntry
	content, n := cells{}, 0
	for _, e := range r.files[f] {
		if rapid.IntRange(0, 3).Draw(w.t, "kept") == 0 {
			kept = append(kept, e)
			continue
		}
		n++
		maps.Copy(content, w.shown(r, f, e))
	}
	if n == 0 {
		return
	}
	w.compacted = true
	ids := slices.SortedFunc(maps.Keys(content), func(a, b cell) int { return a.id - b.id })
	for _, c := range ids {
		if rapid.IntRange(0, 3).Draw(w.t, "dropped") == 0 {
			delete(content, c)
		}
	}
	r.files[f] = kept
	if len(content) > 0 {
		w.add(r, f, "", content)
	}
}

// referred reports whether any region still refers to r.
func (w *model) referred(r *modelRegion) bool {
	for _, other := range w.regions {
		for _, list := range other.files {
			for _, e := range list {
				if e.name.Parent == w.encoded(r) || e.name.Region == w.encoded(r) && e.name.Table == w.table {
					return true
				}
			}
		}
	}
	return false
}

func (w *model) janitor() {
	w.regions = slices.DeleteFunc(w.regions, func(r *modelRegion) bool { return r.split && !w.referred(r) })
}

// clone replaces the table by a clone of its snapshot: all files become links,
// and a reference speaks of the clone's region where the snapshot had the parent.
func (w *model) clone() {
	old, encoded := *w, map[hbackup.EncodedRegion]*modelRegion{}
	for _, r := range w.regions {
		encoded[w.encoded(r)] = r
	}
	w.table.Qualifier += "c"
	w.regions = nil
	for _, r := range old.regions {
		c := w.region(r.start, r.end, r.id)
		c.split = r.split
		for f, list := range r.files {
			for _, e := range list {
				target, n := old.target(r, f, e.name), e.name
				n.Table, n.Region = target.Table, target.Region
				if p := encoded[n.Parent]; p != nil {
					n.Parent = w.encoded(p)
				}
				c.files[f] = append(c.files[f], modelEntry{n, e.ref})
			}
		}
		w.regions = append(w.regions, c)
	}
	if rapid.IntRange(0, 2).Draw(w.t, "loses parents") == 0 {
		before := len(w.regions)
		w.regions = slices.DeleteFunc(w.regions, func(r *modelRegion) bool { return r.split })
		w.lostParents = w.lostParents || len(w.regions) < before
	}
}

// manifest takes a snapshot.
func (w *model) manifest() *Manifest {
	tn := &hbpb.TableName{Namespace: []byte(w.table.Namespace), Qualifier: []byte(w.table.Qualifier)}
	msg := &hbpb.SnapshotDataManifest{TableSchema: &hbpb.TableSchema{TableName: tn}}
	for _, f := range w.families {
		msg.TableSchema.ColumnFamilies = append(msg.TableSchema.ColumnFamilies, &hbpb.ColumnFamilySchema{Name: []byte(f)})
	}
	for _, r := range rapid.Permutation(w.regions).Draw(w.t, "order") {
		rm := &hbpb.SnapshotRegionManifest{RegionInfo: &hbpb.RegionInfo{
			RegionId: proto.Uint64(r.id), TableName: tn, StartKey: []byte(r.start), EndKey: []byte(r.end),
			Split: proto.Bool(r.split), Offline: proto.Bool(r.split),
		}}
		for _, f := range w.families {
			ff := &hbpb.SnapshotRegionManifest_FamilyFiles{FamilyName: []byte(f)}
			for _, e := range r.files[f] {
				sf := &hbpb.SnapshotRegionManifest_StoreFile{Name: proto.String(e.name.String()), FileSize: proto.Uint64(uint64(len(w.store[w.target(r, f, e.name)])))}
				if e.ref != nil {
					half := hbpb.Reference_BOTTOM
					if e.ref.Top {
						half = hbpb.Reference_TOP
					}
					sf.Reference = &hbpb.Reference{Splitkey: e.ref.SplitKey, Range: half.Enum()}
				}
				ff.StoreFiles = append(ff.StoreFiles, sf)
			}
			rm.FamilyFiles = append(rm.FamilyFiles, ff)
		}
		msg.RegionManifests = append(msg.RegionManifests, rm)
	}
	m, err := DecodeManifest(mustMarshal(w.t, msg))
	if err != nil {
		w.t.Fatal(err)
	}
	m.Description = Description{Name: "source", Table: w.table, Version: 2}
	return m
}

// look gives the first and last row of a file, as a reader of HFiles would.
func (w *model) look(t Target) (first, last []byte, ok bool) {
	f, l, some := w.store[t].rows()
	return []byte(f), []byte(l), some
}
