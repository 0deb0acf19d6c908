package snapshot

import (
	"bytes"

	"hbackup"
)

// leaf is a region that serves rows, with its files sorted out.
type leaf struct {
	*Region
	index int
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

// parentRefs is what is known of a region from the references to it.
type parentRefs struct {
	leaves []*leaf // that refer to it, each once
	tops   []*piece
	lows   []*piece
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
	rows, known := c.rowsOf(l, p)
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

// rowsOf gives a range that is known to hold all rows of a referenced file.
func (c *composer) rowsOf(l *leaf, p *piece) (keyRange, bool) {
	if c.o.Rows != nil {
		if first, last, ok := c.o.Rows(p.target); ok {
			return keyRange{first, append(bytes.Clone(last), 0)}, true
		}
	}
	if span, ok := c.span(p.parent); ok {
		return span, true
	}
	if c.isMerged(l, p) {
		return keyRange{p.shows.start, l.EndKey}, true
	}
	return keyRange{}, false
}

// span gives the key range of a region that is referred to: from the snapshot, or
// from two references that meet. HBase splits a region only while it has no
// references, so two regions that show the lower and the upper half of a file
// are the very daughters and together the parent.
func (c *composer) span(parent hbackup.EncodedRegion) (keyRange, bool) {
	if r := c.known[parent]; r != nil {
		return r.keys(), true
	}
	pr := c.refs[parent]
	if len(pr.leaves) != 2 || len(pr.lows) == 0 || len(pr.tops) == 0 {
		return keyRange{}, false
	}
	low, top := pr.leaves[0], pr.leaves[1] // in the order of keys
	for _, p := range pr.lows {
		if !bytes.Equal(p.shows.end, low.EndKey) {
			return keyRange{}, false
		}
	}
	for _, p := range pr.tops {
		if !bytes.Equal(p.shows.start, top.StartKey) {
			return keyRange{}, false
		}
	}
	if !bytes.Equal(low.EndKey, top.StartKey) {
		return keyRange{}, false
	}
	return keyRange{low.StartKey, top.EndKey}, true
}

// isMerged reports whether the region was certainly merged from the parent and
// others, so that the parent's range lies within it. HBase writes such a
// reference as the upper half from the parent's own start key on. It looks the
// same as that of an upper daughter when the parent was the first of the merged
// regions; an upper daughter whose parent is not in the snapshot should not be,
// but clones made by HBase before 2.5.12 and 2.6.3 could lose the parent
// (HBASE-29111). So then there must be a proof.
func (c *composer) isMerged(l *leaf, p *piece) bool {
	pr := c.refs[p.parent]
	if len(pr.leaves) != 1 || len(pr.lows) > 0 {
		return false
	}
	for _, q := range pr.tops {
		if !bytes.Equal(q.shows.start, p.shows.start) {
			return false
		}
	}
	if len(p.shows.start) == 0 {
		return len(l.StartKey) == 0 // a split never happens at the first row
	}
	if _, inside := l.keys().intersect(keyRange{start: p.shows.start}); !inside || bytes.Compare(p.shows.start, l.StartKey) < 0 {
		return false
	}
	if !bytes.Equal(p.shows.start, l.StartKey) {
		return true // an upper daughter begins where it was split
	}
	return c.hasLaterParent(l) || c.provesStart(l, p)
}

// hasLaterParent reports whether another reference of the region begins inside
// it: then the region was merged. Only at its making does a region get
// references, so the others are of the same merge.
func (c *composer) hasLaterParent(l *leaf) bool {
	for fi := range l.Families {
		for _, f := range l.Families[fi].Files {
			if f.Ref == nil || !f.Ref.Top {
				continue
			}
			if row, err := f.Ref.SplitRow(); err == nil && bytes.Compare(row, l.StartKey) > 0 {
				return true
			}
		}
	}
	return false
}

// provesStart tries to compute the parent's encoded name from the region's own
// start key. A match proves that the parent began there. The parent's region id
// is one less than the merged region's when it was the youngest of the parents,
// and often that of other regions, as a table's first regions share one.
func (c *composer) provesStart(l *leaf, p *piece) bool {
	tables := []hbackup.TableName{l.Table, p.target.Table} // in a clone the parent is the other table's
	ids := map[uint64]struct{}{l.ID - 1: {}}
	for i := range c.m.Regions {
		ids[c.m.Regions[i].ID] = struct{}{}
	}
	for _, t := range tables {
		for id := range ids {
			if EncodeRegionName(t, l.StartKey, id, 0) == p.parent {
				return true
			}
		}
	}
	return false
}

// refuse names the region, the family and the file that cannot be composed.
func (c *composer) refuse(l *leaf, p *piece, why string) *hbackup.Error {
	return c.fail(hbackup.KindUnsupported, "region %s %s, family %q, file %s needs a part of a file: %s",
		l.Encoded, l.keys(), string(p.family), p.name, why).
		WithHint("a split or merge was not compacted yet: run major_compact '%s', wait until it is done and take a new backup", c.m.Schema.Table)
}
