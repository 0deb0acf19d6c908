package backup

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hbackup"
	"hbackup/catalog"
	"hbackup/hbase/snapshot"
	"hbackup/storage"
)

// model is a location in the planner's eyes, as a test makes it.
type model struct {
	name    string
	objects map[string]int64 // by path
	albums  map[hbackup.TableName][]*album
	lists   int // calls that a store would see
	opens   int
	broken  bool // does not answer
}

// album is a committed image.
type album struct {
	ref   catalog.ImageRef
	files []catalog.File // in order
	good  int            // so many of them can be read; -1: not even the head
}

func (m *model) id() string { return m.name }

var errAway = hbackup.Errorf("list", "", hbackup.KindUnavailable, "the store does not answer")

func (m *model) stored(_ context.Context, owner hbackup.TableName) iter.Seq2[storage.Object, error] {
	m.lists++
	return func(yield func(storage.Object, error) bool) {
		if m.broken {
			yield(storage.Object{}, errAway)
			return
		}
		prefix := catalog.ArchivePrefix(owner)
		for _, path := range slices.Sorted(maps.Keys(m.objects)) {
			if strings.HasPrefix(path, prefix) && !yield(storage.Object{Key: storage.Key(path), Size: m.objects[path]}, nil) {
				return
			}
		}
	}
}

func (m *model) images(_ context.Context, t hbackup.TableName) (refs []catalog.ImageRef, err error) {
	m.lists++
	if m.broken {
		return nil, errAway
	}
	for _, a := range m.albums[t] {
		refs = append(refs, a.ref)
	}
	return refs, nil
}

func (m *model) open(_ context.Context, t hbackup.TableName, ref catalog.ImageRef) (fileList, error) {
	m.opens++
	for _, a := range m.albums[t] {
		if a.ref == ref && a.good >= 0 {
			return a, nil
		}
	}
	return nil, hbackup.Errorf("read image", "", hbackup.KindCorrupt, "damaged")
}

func (a *album) FilesIn(prefix string) iter.Seq2[catalog.File, error] {
	return func(yield func(catalog.File, error) bool) {
		for i, f := range a.files {
			if i >= a.good {
				yield(catalog.File{}, hbackup.Errorf("read image", "", hbackup.KindCorrupt, "damaged"))
				return
			}
			if strings.HasPrefix(string(f.Key()), prefix) && !yield(f, nil) {
				return
			}
		}
	}
}

// names gives what the readable part of the image says of a path.
func (a *album) names(path string) *catalog.File {
	for i := range a.files[:max(a.good, 0)] {
		if string(a.files[i].Key()) == path {
			return &a.files[i]
		}
	}
	return nil
}

// newest gives the newest image that can be opened.
func (m *model) newest(t hbackup.TableName) *album {
	for _, a := range slices.Backward(m.albums[t]) {
		if a.good >= 0 {
			return a
		}
	}
	return nil
}

var (
	base  = hbackup.TableName{Namespace: "ns", Qualifier: "base"}
	clone = hbackup.TableName{Namespace: "ns", Qualifier: "base-1"} // '-' sorts before '/'
	quiet = slog.New(slog.DiscardHandler)
)

// fileAt makes the file number n of a table; its size is its own.
func fileAt(owner hbackup.TableName, n int) catalog.File {
	return catalog.File{Table: owner, Region: hbackup.EncodedRegion(fmt.Sprintf("%032x", n%3)), Family: "f", Name: fmt.Sprintf("%032x", n),
		Size: int64(100 + n), Digest: storage.Digest(n), Cells: 1}
}

func needOf(f catalog.File) need {
	t := snapshot.Target{Table: f.Table, Region: f.Region, Family: f.Family, File: f.Name}
	return need{t, f.Size}
}

// world of one random history: two tables, one of which may be a clone, backed up
// to one location and, before that, to an earlier one.
type past struct {
	*rand.Rand
	live  map[hbackup.TableName]map[string]catalog.File // what the cluster's tables consist of, by path
	made  int
	stamp int64
	here  *model
	old   *model
}

func newPast(seed uint64) *past {
	p := &past{Rand: rand.New(rand.NewPCG(seed, 1)), live: map[hbackup.TableName]map[string]catalog.File{base: {}, clone: {}},
		here: &model{name: strings.Repeat("a", 32), objects: map[string]int64{}, albums: map[hbackup.TableName][]*album{}},
		old:  &model{name: strings.Repeat("b", 32), objects: map[string]int64{}, albums: map[hbackup.TableName][]*album{}}}
	for range 1 + p.IntN(14) {
		p.step()
	}
	return p
}

func (p *past) table() hbackup.TableName {
	if p.IntN(2) == 0 {
		return base
	}
	return clone
}

// place is where the history goes on: the earlier location's part comes first.
func (p *past) place() *model {
	if p.IntN(3) == 0 {
		return p.old
	}
	return p.here
}

func (p *past) step() {
	t := p.table()
	files := p.live[t]
	switch p.IntN(10) {
	case 0, 1: // a flush
		p.made++
		f := fileAt(t, p.made)
		files[string(f.Key())] = f
	case 2: // a compaction
		for path := range files {
			if p.IntN(2) == 0 {
				delete(files, path)
			}
		}
		p.made++
		f := fileAt(t, p.made)
		files[string(f.Key())] = f
	case 3: // one is cloned from the other
		maps.Copy(p.live[clone], p.live[base])
	case 4: // the table is restored to what an image has, or dropped
		clear(files)
		if all := p.here.albums[t]; len(all) > 0 {
			for _, f := range all[p.IntN(len(all))].files {
				f.Location = ""
				files[string(f.Key())] = f
			}
		}
	case 5, 6: // a backup
		p.backUp(p.place(), t, true)
	case 7: // one that dies
		p.backUp(p.place(), t, false)
	case 8: // somebody deletes or shortens objects
		m := p.place()
		for _, path := range slices.Sorted(maps.Keys(m.objects)) {
			switch p.IntN(4) {
			case 0:
				delete(m.objects, path)
			case 1:
				m.objects[path] /= 2
			}
		}
	case 9: // an image is damaged, or cannot be read at all
		if all := p.place().albums[t]; len(all) > 0 {
			a := all[p.IntN(len(all))]
			a.good = p.IntN(len(a.files)+2) - 1
		}
	}
}

func (p *past) backUp(m *model, t hbackup.TableName, commits bool) {
	a := &album{ref: catalog.ImageRef{ID: hbackup.ImageID(fmt.Sprintf("%06d", p.stamp)), Size: 100}}
	p.stamp++
	for _, path := range slices.Sorted(maps.Keys(p.live[t])) {
		f := p.live[t][path]
		if !commits && p.IntN(2) == 0 {
			continue
		}
		if _, there := p.old.objects[path]; there && m == p.here && p.IntN(3) == 0 && m.objects[path] == 0 {
			f.Location = p.old.name // reference: any
		} else {
			m.objects[path] = f.Size
		}
		a.files = append(a.files, f)
	}
	if a.good = len(a.files); commits {
		m.albums[t] = append(m.albums[t], a)
	}
}

// needs gives what a backup of the table needs now. Some sizes are not known, and
// rarely the cluster's own file is not what it was.
func (p *past) needs(t hbackup.TableName) (needs []need, spoilt bool) {
	for _, path := range slices.Sorted(maps.Keys(p.live[t])) {
		n := needOf(p.live[t][path])
		switch p.IntN(20) {
		case 0:
			n.size = -1
		case 1:
			if p.IntN(2) == 0 {
				n.size++
				spoilt = true
			}
		}
		needs = append(needs, n)
	}
	return needs, spoilt
}

// says is what images say of a path: those that the planner opens first, and all
// that can be read; own is set when it is an image of the table itself that does.
type says struct {
	first, any *catalog.File
	own        bool
}

// told looks through everything, without any order.
func (p *past) told(m *model, table hbackup.TableName, n need) (s says) {
	tables := []hbackup.TableName{table, n.target.Table}
	for _, t := range tables {
		if a := m.newest(t); a != nil && s.first == nil {
			if f := a.names(string(n.key())); f != nil && f.Location == "" {
				s.first, s.own = f, t == table
			}
		}
		if a := p.here.newest(t); a != nil && m != p.here && s.first == nil {
			if f := a.names(string(n.key())); f != nil && f.Location == m.name {
				s.first, s.own = f, t == table
			}
		}
		for _, a := range m.albums[t] {
			if f := a.names(string(n.key())); f != nil && f.Location == "" {
				s.any = f
			}
		}
	}
	if s.any == nil {
		s.any = s.first
	}
	return s
}

// mob says that the file may need others.
func mob(n need) bool { return n.target.File[31]%4 == 0 }

// outcome is what the planner has decided for one path.
type outcome struct {
	list string
	file catalog.File
}

// hold compares a plan with the model; thorough says that proving costs so much that
// every image is looked at.
func (p *past) hold(table hbackup.TableName, needs []need, out plan, err error, thorough, borrows bool) error {
	got := map[string]outcome{}
	note := func(list, path string, f catalog.File) error {
		if _, twice := got[path]; twice {
			return fmt.Errorf("%s is in the plan twice", path)
		}
		got[path] = outcome{list, f}
		return nil
	}
	for list, files := range map[string][]need{"copy": out.copy, "replace": out.replace, "recheck": out.recheck} {
		for _, n := range files {
			if err := note(list, string(n.key()), catalog.File{}); err != nil {
				return err
			}
		}
	}
	for _, f := range out.reuse {
		if err := note("reuse", string(f.Key()), f); err != nil {
			return err
		}
	}
	conflicts := false
	for _, n := range needs {
		s := p.told(p.here, table, n)
		stored, there := p.here.objects[string(n.key())]
		word := s.first
		if there && word == nil && (thorough || n.size >= 0 && stored != n.size) {
			word = s.any
		}
		if word != nil && n.size >= 0 && n.size != word.Size {
			conflicts = true
			continue
		}
		if err != nil {
			continue
		}
		o := got[string(n.key())]
		want := []string{"copy"}
		switch {
		case !there && borrows:
			old := p.told(p.old, table, n)
			lent, has := p.old.objects[string(n.key())]
			fits := func(f *catalog.File) bool {
				return has && f != nil && lent == f.Size && (n.size < 0 || n.size == f.Size)
			}
			switch {
			case fits(old.first) && mob(n) && table != n.target.Table && !old.own:
				want = []string{"copy"}
			case fits(old.first):
				want = []string{"reuse"}
			case fits(old.any) && old.first == nil:
				want = []string{"reuse", "copy"} // as it was worth
			}
			if o.list == "reuse" && o.file.Location != p.old.name {
				return fmt.Errorf("%s is reused, and not from the earlier location: %+v", string(n.key()), o.file)
			}
		case !there:
		case word != nil && stored == word.Size && mob(n) && table != n.target.Table && s.first == nil:
			want = []string{"reuse", "recheck"} // as the image that was found is this table's or not
		case word != nil && stored == word.Size && mob(n) && table != n.target.Table && !s.own:
			want = []string{"recheck"}
		case word != nil && stored == word.Size:
			want = []string{"reuse"}
			if o.file.Location != "" {
				return fmt.Errorf("%s is said to lie elsewhere: %+v", string(n.key()), o.file)
			}
		case word != nil:
			want = []string{"replace"}
		case n.size >= 0 && stored != n.size:
			want = []string{"replace"}
		default:
			want = []string{"recheck"}
			if s.any != nil { // an older image was looked at for another file
				want = append(want, "reuse", "replace")
			}
		}
		if !slices.Contains(want, o.list) {
			return fmt.Errorf("%s: %q and not %q (needed %d, stored %d %v, images %+v)", string(n.key()), o.list, want, n.size, stored, there, s)
		}
		if o.list == "reuse" && (o.file.Digest != p.live[table][string(n.key())].Digest || o.file.Size != p.live[table][string(n.key())].Size) {
			return fmt.Errorf("%s is reused as %+v", string(n.key()), o.file)
		}
		delete(got, string(n.key()))
	}
	switch {
	case conflicts && hbackup.IsKind(err, hbackup.KindConflict):
		return nil
	case conflicts:
		return fmt.Errorf("the cluster's file is not as an image says: %v", err)
	case err != nil && (thorough || !hbackup.IsKind(err, hbackup.KindConflict)):
		return err
	case len(got) > 0:
		return fmt.Errorf("nobody needs %v", got)
	}
	return nil
}

// Random histories of tables, clones, backups that end well or not, damage of
// objects and of images, seen by the planner and by a model that looks at everything.
func TestThePlannerAgreesWithAModel(t *testing.T) {
	cases := uint64(100_000)
	if testing.Short() {
		cases = 10_000
	}
	const workers = 2
	seen := make([]map[string]int, workers)
	t.Run("histories", func(t *testing.T) {
		for w := range uint64(workers) {
			seen[w] = map[string]int{}
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				for seed := w; seed < cases; seed += workers {
					p := newPast(seed)
					table := p.table()
					needs, spoilt := p.needs(table)
					thorough, borrows := seed%4 < 2, seed%8 < 4
					cost := int64(0)
					if thorough {
						cost = 1 << 40
					}
					pl := planner{table: table, here: p.here, log: quiet, closely: mob, proof: func(found) int64 { return cost }}
					if borrows {
						pl.lenders = []*lender{{library: p.old}}
					}
					out, err := pl.plan(context.Background(), needs)
					if err := p.hold(table, needs, out, err, thorough, borrows); err != nil {
						t.Fatalf("history %d: %v", seed, err)
					}
					count(seen[w], out, err, spoilt)
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	for _, what := range []string{"copy", "replace", "recheck", "reuse", "borrowed", "conflict"} {
		n := 0
		for _, s := range seen {
			n += s[what]
		}
		if uint64(n) < cases/200 {
			t.Errorf("only %d of %d cases have met %q: the histories are too tame", n, cases, what)
		}
	}
}

func count(seen map[string]int, out plan, err error, spoilt bool) {
	if spoilt && err != nil {
		seen["conflict"]++
	}
	for what, n := range map[string]int{"copy": len(out.copy), "replace": len(out.replace), "recheck": len(out.recheck), "reuse": len(out.reuse)} {
		if n > 0 {
			seen[what]++
		}
	}
	if slices.ContainsFunc(out.reuse, func(f catalog.File) bool { return f.Location != "" }) {
		seen["borrowed"]++
	}
}
