package snapshot

import (
	"bytes"
	"cmp"
	"slices"

	"hbackup"
)

// parentRefs is what is known of a region from the references to it.
type parentRefs struct {
	leaves []*leaf // that refer to it, each once
	tops   []*piece
	lows   []*piece

	decided bool // whether the rest is set
	rows    keyRange
	ok      bool
}

// rowsOf gives a range that is known to hold all rows of a referenced file.
func (c *composer) rowsOf(p *piece) (keyRange, bool) {
	if c.o.Rows != nil {
		if first, last, ok := c.o.Rows(p.target); ok {
			return keyRange{first, append(bytes.Clone(last), 0)}, true
		}
	}
	return c.span(p.parent)
}

// span gives a key range that holds all rows of a region that is referred to: its
// own range, when the region is in the snapshot or its daughters show it, or the
// part of a merged region from the parent's start on.
func (c *composer) span(parent hbackup.EncodedRegion) (keyRange, bool) {
	if r := c.known[parent]; r != nil {
		return r.keys(), true
	}
	pr := c.refs[parent]
	if !pr.decided {
		pr.decided = true
		if pr.rows, pr.ok = pr.daughters(); !pr.ok && c.isMerged(parent, pr) {
			pr.rows, pr.ok = keyRange{pr.tops[0].shows.start, pr.leaves[0].EndKey}, true
		}
	}
	return pr.rows, pr.ok
}

// daughters puts the parent's range together from two references that meet. HBase
// splits a region only while it has no references, so two regions that show the
// lower and the upper half of a file are the very daughters and together the
// parent.
func (pr *parentRefs) daughters() (keyRange, bool) {
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
	return keyRange{low.StartKey, top.EndKey}, bytes.Equal(low.EndKey, top.StartKey)
}

// isMerged reports whether the one region that refers to the parent was certainly
// merged from it and others, so that the parent's range lies within it. HBase
// writes such a reference as the upper half from the parent's own start key on. It
// looks the same as that of an upper daughter when the parent was the first of the
// merged regions; an upper daughter whose parent is not in the snapshot should not
// be, but clones made by HBase before 2.5.12 and 2.6.3 could lose the parent
// (HBASE-29111). So then there must be a proof.
func (c *composer) isMerged(parent hbackup.EncodedRegion, pr *parentRefs) bool {
	if len(pr.leaves) != 1 || len(pr.lows) > 0 {
		return false
	}
	l, start := pr.leaves[0], pr.tops[0].shows.start
	for _, q := range pr.tops {
		if !bytes.Equal(q.shows.start, start) {
			return false
		}
	}
	if len(start) == 0 {
		return len(l.StartKey) == 0 // a split never happens at the first row
	}
	if bytes.Compare(start, l.StartKey) < 0 || compareEnd(start, l.EndKey) >= 0 {
		return false
	}
	if !bytes.Equal(start, l.StartKey) {
		return true // an upper daughter begins where it was split
	}
	return l.laterParent || c.provesStart(l, parent, pr.tops)
}

// commonIDs is how many region ids provesStart tries.
const commonIDs = 1000

// provesStart tries to compute the parent's encoded name from the region's own
// start key. A match proves that the parent began there. The parent's region id
// is one less than the merged region's when it was the youngest of the parents,
// and often that of other regions, as a table's first regions share one.
func (c *composer) provesStart(l *leaf, parent hbackup.EncodedRegion, refs []*piece) bool {
	if c.ids == nil {
		c.ids = c.frequentIDs()
	}
	// In a clone the parent may still be the region of the table it was cloned from.
	tables := map[hbackup.TableName]struct{}{l.Table: {}}
	for _, p := range refs {
		tables[p.target.Table] = struct{}{}
	}
	for t := range tables {
		if EncodeRegionName(t, l.StartKey, l.ID-1, 0) == parent {
			return true
		}
		for _, id := range c.ids {
			if EncodeRegionName(t, l.StartKey, id, 0) == parent {
				return true
			}
		}
	}
	return false
}

// frequentIDs gives the region ids of the snapshot, those of many regions first.
func (c *composer) frequentIDs() []uint64 {
	count := map[uint64]int{}
	for i := range c.m.Regions {
		count[c.m.Regions[i].ID]++
	}
	ids := make([]uint64, 0, len(count))
	for id := range count {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b uint64) int { return cmp.Or(count[b]-count[a], cmp.Compare(b, a)) })
	return ids[:min(len(ids), commonIDs)]
}
