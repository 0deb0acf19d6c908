package snapshot

import (
	"fmt"
	"hash/maphash"
	"iter"

	"hbackup"
)

// Resolve tells where the bytes of a region's store file are. A plain name lies
// in the region itself, a link where the link says, a reference in its parent
// region, and a reference to a link where the link says: that file belongs to the
// link's table, whatever the parent (HBASE-26625, HBASE-28806). The family is
// always the one that lists the name. Errors are KindCorrupt.
func Resolve(r *Region, family hbackup.Family, f StoreFile) (Target, error) {
	n, err := ParseFileName(f.Name)
	if err != nil {
		return Target{}, hbackup.E("resolve store file", string(r.Encoded)+"/"+string(family), hbackup.KindCorrupt, err)
	}
	return n.target(r, family), nil
}

func (n FileName) target(r *Region, family hbackup.Family) Target {
	t := Target{Table: r.Table, Region: r.Encoded, Family: family, File: n.File, MOB: n.IsMOB() || r.IsMOB()}
	switch {
	case n.IsLink():
		t.Table, t.Region = n.Table, n.Region
	case n.IsReference():
		t.Region = n.Parent
	}
	return t
}

// Targets gives every file that the manifest needs, each once, with its size in
// bytes (-1 when no entry says it), in the order of first mention. The regions,
// families and files must stay unchanged while the sequence is used. It may be
// walked several times and keeps no memory for plain names; a manifest of links
// or references costs some 60 bytes for each.
//
// The error is KindCorrupt: a name of no known form, or entries that give
// different sizes for the same file. It comes before anything is yielded.
func Targets(m *Manifest) (iter.Seq2[Target, int64], error) {
	const op = "list files of snapshot"
	shared := indirect{m: m, seed: maphash.MakeSeed(), slots: map[uint64]int32{}, regions: map[hbackup.EncodedRegion]struct{}{}}
	for pass := range 2 {
		if pass == 1 && len(shared.entries) == 0 {
			break
		}
		err := m.eachFile(func(p position, r *Region, family hbackup.Family, f *StoreFile) error {
			n, err := ParseFileName(f.Name)
			if err != nil {
				return fmt.Errorf("region %s, family %q: %w", r.Encoded, string(family), err)
			}
			if f.Size < -1 {
				return fmt.Errorf("region %s, family %q: store file %q has size %d", r.Encoded, string(family), f.Name, f.Size)
			}
			plain := !n.IsLink() && !n.IsReference()
			switch {
			case pass == 0 && !plain:
				return shared.add(p, n.target(r, family), f.Size)
			case pass == 1 && plain:
				return shared.meet(p, n.target(r, family), f.Size)
			}
			return nil
		})
		if err != nil {
			return nil, hbackup.E(op, m.Description.Name, hbackup.KindCorrupt, err)
		}
	}
	return func(yield func(Target, int64) bool) {
		m.eachFile(func(p position, r *Region, family hbackup.Family, f *StoreFile) error {
			n, err := ParseFileName(f.Name)
			if err != nil {
				return err // the manifest was changed meanwhile
			}
			t, size := n.target(r, family), f.Size
			if e := shared.find(t); e != nil {
				if e.first != p {
					return nil
				}
				size = e.size
			}
			if !yield(t, size) {
				return errStop
			}
			return nil
		})
	}, nil
}

var errStop = fmt.Errorf("stop")

// position is the place of an entry: region, family, file.
type position struct{ region, family, file int32 }

func (p position) before(q position) bool {
	if p.region != q.region {
		return p.region < q.region
	}
	if p.family != q.family {
		return p.family < q.family
	}
	return p.file < q.file
}

// eachFile walks the entries in order until fn fails, and gives its error.
func (m *Manifest) eachFile(fn func(position, *Region, hbackup.Family, *StoreFile) error) error {
	for ri := range m.Regions {
		r := &m.Regions[ri]
		for fi := range r.Families {
			ff := &r.Families[fi]
			for i := range ff.Files {
				if err := fn(position{int32(ri), int32(fi), int32(i)}, r, ff.Family, &ff.Files[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// indirect is the set of targets that links and references lead to. Only these
// can be named by more than one entry. It holds positions, not targets: a table
// cloned from a snapshot consists of links.
type indirect struct {
	m       *Manifest
	seed    maphash.Seed
	slots   map[uint64]int32 // hash of the target, probed upwards -> index in entries
	entries []indirectEntry
	regions map[hbackup.EncodedRegion]struct{} // of the targets
}

type indirectEntry struct {
	named position // the entry that named the target first, by which it is known
	first position // the first entry that leads to it, plain or not
	size  int64
}

func (x *indirect) lookup(t Target) (*indirectEntry, uint64) {
	h := maphash.Comparable(x.seed, t)
	for {
		i, found := x.slots[h]
		if !found {
			return nil, h
		}
		e := &x.entries[i]
		r := &x.m.Regions[e.named.region]
		ff := &r.Families[e.named.family]
		n, err := ParseFileName(ff.Files[e.named.file].Name)
		if err == nil && n.target(r, ff.Family) == t {
			return e, h
		}
		h++
	}
}

func (x *indirect) add(p position, t Target, size int64) error {
	e, h := x.lookup(t)
	if e != nil {
		return e.merge(t, size)
	}
	x.slots[h] = int32(len(x.entries))
	x.entries = append(x.entries, indirectEntry{named: p, first: p, size: size})
	x.regions[t.Region] = struct{}{}
	return nil
}

// find gives the entry of a target that some link or reference leads to, or nil.
func (x *indirect) find(t Target) *indirectEntry {
	if len(x.entries) == 0 {
		return nil
	}
	if _, named := x.regions[t.Region]; !named {
		return nil
	}
	e, _ := x.lookup(t)
	return e
}

// meet takes note of a plain entry for a target that is also named elsewhere.
func (x *indirect) meet(p position, t Target, size int64) error {
	e := x.find(t)
	if e == nil {
		return nil
	}
	if p.before(e.first) {
		e.first = p
	}
	return e.merge(t, size)
}

func (e *indirectEntry) merge(t Target, size int64) error {
	if e.size >= 0 && size >= 0 && e.size != size {
		return fmt.Errorf("store file %s is said to be %d bytes long and %d bytes long", t, e.size, size)
	}
	e.size = max(e.size, size)
	return nil
}
