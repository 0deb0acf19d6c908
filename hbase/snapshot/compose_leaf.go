package snapshot

import (
	"bytes"

	"hbackup"
)

// leaf is a region that serves rows, with its files sorted out.
type leaf struct {
	*Region
	index int
	// laterParent: a reference begins inside of the region, so it was merged. Only
	// at its making does a region get references, so all are of that merge.
	laterParent bool

	whole []*piece // files of which the region shows everything
	half  []*piece // files of which other regions must show the rest
}

// piece is what one region shows of one file.
type piece struct {
	family hbackup.Family
	target Target
	size   int64
	name   string                // in the source manifest
	parent hbackup.EncodedRegion // of a reference
	shows  keyRange              // of a reference
	rows   keyRange              // that hold all rows of the file; set in half
}

// readLeaves resolves the files of every leaf and decides for each reference
// whether it shows the whole file, nothing, or a true half.
func (c *composer) readLeaves() error {
	c.refs = map[hbackup.EncodedRegion]*parentRefs{}
	references := make([][]*piece, len(c.leaves))
	for i, l := range c.leaves {
		l.index = i
		for fi := range l.Families {
			ff := &l.Families[fi]
			if len(ff.Files) > 0 && c.m.Schema.Family(ff.Family) == nil {
				return c.fail(hbackup.KindUnsupported, "region %s holds files of family %q, which the schema lacks", l.Encoded, string(ff.Family)).
					WithHint("HBase would try to clone it for ever; take a new backup, now that the family is gone")
			}
			for _, f := range ff.Files {
				n, err := ParseFileName(f.Name)
				if err != nil {
					return c.fail(hbackup.KindCorrupt, "region %s, family %q: %w", l.Encoded, string(ff.Family), err)
				}
				if n.IsMOB() {
					return c.fail(hbackup.KindCorrupt, "region %s, family %q lists the MOB file %s", l.Encoded, string(ff.Family), f.Name)
				}
				p := &piece{family: ff.Family, target: n.target(l.Region, ff.Family), size: f.Size, name: f.Name, parent: n.Parent}
				if !n.IsReference() {
					l.whole = append(l.whole, p)
					continue
				}
				if f.Ref == nil {
					return c.refuse(l, p, "the manifest does not say which half the reference shows")
				}
				if p.shows, err = f.Ref.half(); err != nil {
					return c.fail(hbackup.KindCorrupt, "region %s, family %q, %s: %w", l.Encoded, string(ff.Family), f.Name, err)
				}
				references[i] = append(references[i], p)
				c.refer(l, p, f.Ref.Top)
			}
		}
	}
	if err := c.checkWhole(references); err != nil {
		return err
	}
	for i, l := range c.leaves {
		for _, p := range references[i] {
			if err := c.decide(l, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *composer) refer(l *leaf, p *piece, top bool) {
	pr := c.refs[p.parent]
	if pr == nil {
		pr = &parentRefs{}
		c.refs[p.parent] = pr
	}
	if n := len(pr.leaves); n == 0 || pr.leaves[n-1] != l {
		pr.leaves = append(pr.leaves, l)
	}
	if top {
		pr.tops = append(pr.tops, p)
		l.laterParent = l.laterParent || bytes.Compare(p.shows.start, l.StartKey) > 0
	} else {
		pr.lows = append(pr.lows, p)
	}
}

// checkWhole refuses a file that one region lists whole and another in half:
// then the first would show rows that are not its own.
func (c *composer) checkWhole(references [][]*piece) error {
	halves := map[Target]*piece{}
	for _, ps := range references {
		for _, p := range ps {
			halves[p.target] = p
		}
	}
	if len(halves) == 0 {
		return nil
	}
	for _, l := range c.leaves {
		for _, p := range l.whole {
			if other := halves[p.target]; other != nil {
				return c.refuse(l, p, "another region shows only a part of the same file, as "+other.name)
			}
		}
	}
	return nil
}

// decide sorts a reference into whole or half, or drops it when it shows nothing.
func (c *composer) decide(l *leaf, p *piece) error {
	rows, known := c.rowsOf(p)
	if !known {
		return c.refuse(l, p, "it cannot be told which rows the file holds, as region "+string(p.parent)+" is not in the snapshot")
	}
	shown, some := rows.intersect(p.shows)
	if !some {
		return nil
	}
	if !l.keys().contains(shown) {
		return c.refuse(l, p, "the reference shows rows "+shown.String()+" outside of the region")
	}
	if p.shows.contains(rows) {
		l.whole = append(l.whole, p)
		return nil
	}
	p.rows = rows
	l.half = append(l.half, p)
	return nil
}

// refuse names the region, the family and the file that cannot be composed.
func (c *composer) refuse(l *leaf, p *piece, why string) *hbackup.Error {
	return c.fail(hbackup.KindUnsupported, "region %s %s, family %q, file %s needs a part of a file: %s",
		l.Encoded, l.keys(), string(p.family), p.name, why).
		WithHint("a split or merge was not compacted yet: run major_compact '%s', wait until it is done and take a new backup", c.m.Schema.Table)
}
