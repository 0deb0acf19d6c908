package union

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hbackup"
	"hbackup/catalog"
	"hbackup/storage"
	"hbackup/storage/mem"
	"hbackup/storage/metered"
)

var (
	ctx    = context.Background()
	quiet  = slog.New(slog.DiscardHandler)
	orders = hbackup.TableName{Namespace: "ns", Qualifier: "orders"}
	clone  = hbackup.TableName{Namespace: "ns", Qualifier: "clone"}
	start  = time.UnixMilli(1796079901000).UTC()
)

// file makes the file number n of a table.
func file(t hbackup.TableName, n int) catalog.File {
	return catalog.File{Table: t, Region: hbackup.EncodedRegion(fmt.Sprintf("%032x", n/7)), Family: "f", Name: fmt.Sprintf("%032x", n*31%1000), Size: int64(n * 10), Digest: storage.Digest(n), Cells: int64(n)}
}

// commit writes the manifest of an image; files need not be in order.
func commit(t testing.TB, s storage.Store, table hbackup.TableName, id hbackup.ImageID, files []catalog.File) {
	t.Helper()
	backup, err := id.Backup()
	if err != nil {
		t.Fatal(err)
	}
	im := &catalog.Image{Header: catalog.Header{ID: id, Backup: backup, Cluster: "prod", Table: table}, Files: files}
	for _, f := range files {
		im.Totals.Files++
		im.Totals.Bytes += f.Size
	}
	b, err := im.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := storage.PutBytes(ctx, s, catalog.ImageKey(table, id), b, true); err != nil {
		t.Fatal(err)
	}
}

// named is the model: the images of each file, by key, size and digest.
type named map[catalog.File][]hbackup.ImageID

func (m named) add(id hbackup.ImageID, files []catalog.File) {
	for _, f := range files {
		m[f] = append(m[f], id)
		slices.Sort(m[f])
	}
}

func (m named) remove(id hbackup.ImageID) {
	for f, ids := range m {
		if m[f] = slices.DeleteFunc(ids, func(i hbackup.ImageID) bool { return i == id }); len(m[f]) == 0 {
			delete(m, f)
		}
	}
}

func (m named) totals() (t Totals) {
	for f, ids := range m {
		t.Files++
		t.Bytes += f.Size
		if len(ids) > 1 {
			t.SharedFiles++
			t.SharedBytes += f.Size
		}
	}
	return t
}

func (m named) sorted() []catalog.File {
	var files []catalog.File
	for f := range m {
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b catalog.File) int { return compare(&a, &b) })
	return files
}

func of(t testing.TB, c *Cache, s storage.Store, table hbackup.TableName) *Union {
	t.Helper()
	u, err := c.Of(ctx, s, "l1", table)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	return u
}

func (m named) same(t testing.TB, u *Union) {
	t.Helper()
	if u.Totals() != m.totals() {
		t.Fatalf("totals %+v, want %+v", u.Totals(), m.totals())
	}
	var got []catalog.File
	for e, err := range u.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.File)
		if ids := u.ImagesOf(e); !slices.Equal(ids, m[e.File]) {
			t.Fatalf("%s is named by %v, want %v", e.Key(), ids, m[e.File])
		}
	}
	if want := m.sorted(); !slices.Equal(got, want) {
		t.Fatalf("%d files, want %d", len(got), len(want))
	}
}

// Images come, go and come late, in any number: the union names what they name, and
// is found by questions.
func TestAUnionIsWhatTheManifestsSay(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(base, "")
		if err != nil {
			rt.Fatal(err)
		}
		s, model := mem.New("prod"), named{}
		var there []hbackup.ImageID
		c := Open(dir, quiet)
		c.bounds = bounds{lists: rapid.IntRange(1, 5).Draw(rt, "lists"), bytes: usual.bytes, runs: rapid.IntRange(1, 3).Draw(rt, "runs")}
		for range rapid.IntRange(1, 6).Draw(rt, "rounds") {
			for range rapid.IntRange(0, 8).Draw(rt, "new") {
				id := hbackup.NewBackupID(start.Add(time.Duration(rapid.IntRange(0, 500).Draw(rt, "hour")) * time.Hour)).Image(0)
				first, count := rapid.IntRange(0, 60).Draw(rt, "first"), rapid.IntRange(0, 40).Draw(rt, "files")
				var files []catalog.File
				for n := first; n < first+count; n++ {
					f := file(orders, n)
					if n%13 == 0 {
						f.Table = clone // a link to another table's file
					}
					files = append(files, f)
				}
				commit(t, s, orders, id, files)
				model.add(id, files)
				there = append(there, id)
			}
			for range rapid.IntRange(0, 4).Draw(rt, "gone") {
				if len(there) == 0 {
					break
				}
				i := rapid.IntRange(0, len(there)-1).Draw(rt, "which")
				if err := s.Delete(ctx, catalog.ImageKey(orders, there[i])); err != nil {
					rt.Fatal(err)
				}
				model.remove(there[i])
				there = slices.Delete(there, i, i+1)
			}
			u, err := c.Of(ctx, s, "l1", orders)
			if err != nil {
				rt.Fatal(err)
			}
			slices.Sort(there)
			if !slices.Equal(u.Images(), there) {
				rt.Fatalf("images %v, want %v", u.Images(), there)
			}
			model.same(t, u)
			for _, id := range there {
				var want Totals
				for f, ids := range model {
					if slices.Contains(ids, id) && len(ids) > 1 {
						want.SharedFiles++
						want.SharedBytes += f.Size
					}
				}
				if files, bytes, err := u.SharedBy(id); err != nil || files != want.SharedFiles || bytes != want.SharedBytes {
					rt.Fatalf("%s shares %d files of %d bytes, want %+v (%v)", id, files, bytes, want, err)
				}
			}
			asked := model.sorted()
			asked = slices.DeleteFunc(asked, func(catalog.File) bool { return rapid.Bool().Draw(rt, "asked") })
			var answers []catalog.File
			for e, err := range u.Named(withStrangers(asked)) {
				if err != nil {
					rt.Fatal(err)
				}
				answers = append(answers, e.File)
			}
			if !slices.Equal(answers, asked) {
				rt.Fatalf("%d answers to %d questions", len(answers), len(asked))
			}
			u.Close()
		}
		if leftovers, _ := filepath.Glob(filepath.Join(dir, "l1", "ns", newPrefix+"*")); len(leftovers) > 0 {
			rt.Fatalf("left over: %v", leftovers)
		}
		os.RemoveAll(dir)
	})
}

// withStrangers puts files that no image names among the questions.
func withStrangers(files []catalog.File) iter.Seq[catalog.File] {
	var all []catalog.File
	for _, f := range files {
		stranger := f
		stranger.Name += "x"
		all = append(all, f, stranger)
	}
	return slices.Values(all)
}

func TestOnlyNewManifestsAreRead(t *testing.T) {
	s := mem.New("prod")
	model := named{}
	add := func(n int) {
		id := hbackup.NewBackupID(start.Add(time.Duration(n) * time.Hour)).Image(0)
		var files []catalog.File
		for i := n; i < n+10; i++ {
			files = append(files, file(orders, i))
		}
		commit(t, s, orders, id, files)
		model.add(id, files)
	}
	for n := range 5 {
		add(n)
	}
	c := Open(t.TempDir(), quiet)
	for _, want := range []int64{5, 0, 1} {
		if want == 1 {
			add(5)
		}
		m := metered.New(s)
		u := of(t, c, m, orders)
		if got := m.Counts().Get.Calls; got != want {
			t.Errorf("%d manifests were read, not %d", got, want)
		}
		model.same(t, u)
	}
}

// A reader of the old union goes on with it while a new one is made.
func TestAnOldUnionIsReadToItsEnd(t *testing.T) {
	s, c := mem.New("prod"), Open(t.TempDir(), quiet)
	before := named{}
	files := []catalog.File{file(orders, 1), file(orders, 2)}
	id := hbackup.NewBackupID(start).Image(0)
	commit(t, s, orders, id, files)
	before.add(id, files)
	old := of(t, c, s, orders)
	commit(t, s, orders, hbackup.NewBackupID(start.Add(time.Hour)).Image(0), []catalog.File{file(orders, 3)})
	if u := of(t, c, s, orders); u.Totals().Files != 3 {
		t.Errorf("%+v", u.Totals())
	}
	before.same(t, old)
}

// Damage is found, whatever byte it is in, and heals; it never makes another answer.
func TestADamagedUnionIsMadeAnew(t *testing.T) {
	s, model := mem.New("prod"), named{}
	for n := range 4 {
		id := hbackup.NewBackupID(start.Add(time.Duration(n) * time.Hour)).Image(0)
		var files []catalog.File
		for i := n; i < n+20; i++ {
			files = append(files, file(orders, i))
		}
		commit(t, s, orders, id, files)
		model.add(id, files)
	}
	dir := t.TempDir()
	c := Open(dir, quiet)
	of(t, c, s, orders)
	path := filepath.Join(dir, "l1", "ns", "orders.union")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	late := hbackup.NewBackupID(start.Add(100 * time.Hour)).Image(0)
	lateFiles := []catalog.File{file(orders, 5), file(orders, 500)}
	withLate := named{}
	for f, ids := range model {
		withLate[f] = slices.Clone(ids)
	}
	withLate.add(late, lateFiles)
	for at := 0; at < len(whole); at += max(1, len(whole)/150) {
		b := slices.Clone(whole)
		b[at] ^= 1 << (at % 8)
		if at%3 == 0 {
			b = b[:at]
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		// As long as nobody reads the damaged block nothing is wrong with the answer.
		u := of(t, c, s, orders)
		if u.Totals() != model.totals() {
			t.Fatalf("byte %d: %+v", at, u.Totals())
		}
		for e, err := range u.Entries() {
			if err != nil {
				if !hbackup.IsKind(err, hbackup.KindCorrupt) {
					t.Fatal(err)
				}
				break
			}
			if !slices.Equal(u.ImagesOf(e), model[e.File]) {
				t.Fatalf("byte %d: another answer about %s", at, e.Key())
			}
		}
		commit(t, s, orders, late, lateFiles)
		withLate.same(t, of(t, c, s, orders))
		if err := s.Delete(ctx, catalog.ImageKey(orders, late)); err != nil {
			t.Fatal(err)
		}
	}
	model.same(t, of(t, c, s, orders))
}

// A manifest that cannot be read would hide files: there is no union without it.
func TestAManifestThatCannotBeReadIsAnError(t *testing.T) {
	s, c := mem.New("prod"), Open(t.TempDir(), quiet)
	id := hbackup.NewBackupID(start).Image(0)
	if _, err := storage.PutBytes(ctx, s, catalog.ImageKey(orders, id), []byte("x"), true); err != nil {
		t.Fatal(err)
	}
	commit(t, s, orders, hbackup.NewBackupID(start).Image(0), nil)
	if _, err := c.Of(ctx, s, "l1", orders); !hbackup.IsKind(err, hbackup.KindCorrupt) {
		t.Errorf("%v", err)
	}
}

func TestImagesThatDisagreeGiveAnEntryEach(t *testing.T) {
	s, c, model := mem.New("prod"), Open(t.TempDir(), quiet), named{}
	for n := range 2 {
		f := file(orders, 1)
		f.Digest += storage.Digest(n)
		id := hbackup.NewBackupID(start.Add(time.Duration(n) * time.Hour)).Image(0)
		commit(t, s, orders, id, []catalog.File{f})
		model.add(id, []catalog.File{f})
	}
	u := of(t, c, s, orders)
	if want := (Totals{Files: 1, Bytes: 10}); u.Totals() != want {
		t.Errorf("%+v", u.Totals())
	}
	var digests []storage.Digest
	for e, err := range u.Named(slices.Values([]catalog.File{file(orders, 1)})) {
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, e.Digest)
	}
	if !slices.Equal(digests, []storage.Digest{1, 2}) {
		t.Errorf("%v", digests)
	}
}

// Files that tables share, as clones do, are stored once.
func TestWhatALocationStores(t *testing.T) {
	s, c := mem.New("prod"), Open(t.TempDir(), quiet)
	other := hbackup.TableName{Namespace: "ns", Qualifier: "other"}
	all := named{}
	put := func(table hbackup.TableName, n int, files ...catalog.File) {
		id := hbackup.NewBackupID(start.Add(time.Duration(n) * time.Hour)).Image(0)
		commit(t, s, table, id, files)
		all.add(id, files)
	}
	elsewhere := file(orders, 9)
	elsewhere.Location = "0123456789abcdef0123456789abcdef"
	put(orders, 1, file(orders, 1), file(orders, 2))
	put(orders, 2, file(orders, 2), file(orders, 3))
	put(orders, 3, file(orders, 2), file(orders, 3))
	put(clone, 4, file(orders, 1), file(clone, 4))
	put(clone, 5, file(orders, 7), file(clone, 4))
	put(other, 6, file(other, 5))
	want := all.totals()
	var unions []*Union
	for _, table := range []hbackup.TableName{orders, clone, other} {
		unions = append(unions, of(t, c, s, table))
	}
	got, err := Stored(unions)
	if err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if got := unions[1].Totals(); got.Files != 3 || got.SharedFiles != 1 {
		t.Errorf("the clone: %+v", got)
	}
}

func TestRenumbering(t *testing.T) {
	images := func(names ...string) (all []image) {
		for _, n := range names {
			all = append(all, image{ID: hbackup.ImageID(n)})
		}
		return all
	}
	if r := renumbering(images("a", "b"), images("a", "b", "c")); r != nil {
		t.Errorf("only new ones: %v", r)
	}
	r := renumbering(images("b", "c", "d", "e"), images("a", "b", "cc", "d", "e"))
	if want := (renumber{1, -1, 3, 4}); !reflect.DeepEqual(r, want) {
		t.Errorf("%v, want %v", r, want)
	}
	if got := r.appendTo(nil, []span{{0, 3}}); !slices.Equal(got, []span{{1, 1}, {3, 4}}) {
		t.Errorf("%v", got)
	}
	if got := joined([]span{{5, 6}, {1, 2}, {3, 3}, {6, 9}}); !slices.Equal(got, []span{{1, 3}, {5, 9}}) {
		t.Errorf("%v", got)
	}
}

func TestLocationsNobodyAsksForAreForgotten(t *testing.T) {
	s, dir := mem.New("prod"), t.TempDir()
	commit(t, s, orders, hbackup.NewBackupID(start).Image(0), nil)
	of(t, Open(dir, quiet), s, orders)
	c := Open(dir, quiet)
	c.forgetUnused(time.Now().Add(unusedFor - time.Hour))
	if _, err := os.Stat(filepath.Join(dir, "l1")); err != nil {
		t.Error(err)
	}
	c.forgetUnused(time.Now().Add(unusedFor + time.Hour))
	if _, err := os.Stat(filepath.Join(dir, "l1")); !os.IsNotExist(err) {
		t.Error(err)
	}
}
