package snapshot

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"strings"

	"hbackup"
)

// indirect is the set of targets that links and references lead to. Only these
// can be named by more than one entry. A table that was cloned consists of links,
// so the set holds positions, not targets: a million of them must not cost much.
type indirect struct {
	m       *Manifest
	seed    maphash.Seed
	slots   []slot // open addressing, a power of two, at most two thirds full
	entries []indirectEntry
}

type slot struct {
	tag   uint32 // some bits of the hash
	index uint32 // in entries, counted from 1; 0: empty
}

type indirectEntry struct {
	named position // the entry that named the target first, by which it is known
	first position // the first entry that leads to it, plain or not
	size  int64
}

// newIndirect makes room for all links and references of the manifest.
func newIndirect(m *Manifest) *indirect {
	n := 0
	for ri := range m.Regions {
		for fi := range m.Regions[ri].Families {
			for _, f := range m.Regions[ri].Families[fi].Files {
				if strings.ContainsAny(f.Name, "=.") {
					n++
				}
			}
		}
	}
	x := &indirect{m: m}
	if n > 0 {
		x.seed = maphash.MakeSeed()
		x.entries = make([]indirectEntry, 0, n)
		x.slots = make([]slot, 1<<bits.Len(uint(n+n/2)))
	}
	return x
}

func (x *indirect) hash(t *Target) uint64 {
	h := maphash.String(x.seed, t.File)
	for _, part := range [...]string{string(t.Region), string(t.Family), t.Table.Qualifier, t.Table.Namespace} {
		h = h*0x9E3779B97F4A7C15 ^ maphash.String(x.seed, part)
	}
	return h
}

// lookup finds the target's entry or, when there is none, the slot for it.
func (x *indirect) lookup(t *Target) (*indirectEntry, *slot) {
	h := x.hash(t)
	mask := uint64(len(x.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := &x.slots[i]
		if s.index == 0 {
			s.tag = uint32(h >> 32)
			return nil, s
		}
		if s.tag != uint32(h>>32) {
			continue
		}
		e := &x.entries[s.index-1]
		r := &x.m.Regions[e.named.region]
		ff := &r.Families[e.named.family]
		if n, err := ParseFileName(ff.Files[e.named.file].Name); err == nil && n.target(r, ff.Family) == *t {
			return e, s
		}
	}
}

func (x *indirect) add(p position, t Target, size int64) error {
	e, s := x.lookup(&t)
	if e != nil {
		return e.merge(t, size)
	}
	x.entries = append(x.entries, indirectEntry{named: p, first: p, size: size})
	s.index = uint32(len(x.entries))
	return nil
}

// find gives the entry of a target that some link or reference leads to, or nil.
func (x *indirect) find(t Target) *indirectEntry {
	if len(x.entries) == 0 {
		return nil
	}
	e, _ := x.lookup(&t)
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
