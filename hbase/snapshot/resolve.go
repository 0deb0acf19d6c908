package snapshot

import (
	"fmt"
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
// walked several times and keeps no memory for plain names; each link or
// reference costs some 50 bytes.
//
// The error is KindCorrupt: a name of no known form, or entries that give
// different sizes for the same file. It comes before anything is yielded.
func Targets(m *Manifest) (iter.Seq2[Target, int64], error) {
	const op = "list files of snapshot"
	shared := newIndirect(m)
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
