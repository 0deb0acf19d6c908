package snapshot

import (
	"bytes"
	"fmt"
	"slices"

	"hbackup"
)

// group is one region of the composition: a leaf, or daughters put together.
type group struct {
	leaves []*leaf
	parent *Region // whose range it has; nil for a single leaf or a parent not in the snapshot
}

func (g *group) keys() keyRange {
	return keyRange{g.leaves[0].StartKey, g.leaves[len(g.leaves)-1].EndKey}
}

// group puts leaves together that show halves of the same files, and checks that
// the whole files then show the same rows.
func (c *composer) group() ([]*group, error) {
	joined := make([]int, len(c.leaves)) // index of the last leaf to be joined with this one
	for i := range joined {
		joined[i] = i
	}
	for _, l := range c.leaves {
		for _, p := range l.half {
			span, ok := c.span(p.parent)
			if !ok {
				return nil, c.refuse(l, p, "the other half is nowhere in the snapshot")
			}
			first, last, err := c.cover(span)
			if err != nil {
				return nil, c.refuse(l, p, err.Error())
			}
			joined[first] = max(joined[first], last)
		}
	}
	var groups []*group
	for i := 0; i < len(c.leaves); {
		end := joined[i]
		for j := i; j <= end; j++ {
			end = max(end, joined[j])
		}
		g := &group{leaves: c.leaves[i : end+1]}
		if err := c.checkGroup(g); err != nil {
			return nil, err
		}
		groups = append(groups, g)
		i = end + 1
	}
	return groups, nil
}

// cover finds the leaves that make up exactly the range.
func (c *composer) cover(span keyRange) (first, last int, err error) {
	first, found := slices.BinarySearchFunc(c.leaves, span.start, func(l *leaf, key []byte) int { return bytes.Compare(l.StartKey, key) })
	if !found {
		return 0, 0, fmt.Errorf("no region begins where the parent %s did", span)
	}
	for last = first; last < len(c.leaves); last++ {
		switch d := compareEnd(c.leaves[last].EndKey, span.end); {
		case d == 0:
			return first, last, nil
		case d > 0:
			return 0, 0, fmt.Errorf("no region ends where the parent %s did", span)
		}
	}
	return 0, 0, fmt.Errorf("no region ends where the parent %s did", span)
}

// checkGroup refuses a group in which a file, listed whole, would show a row that
// the row's own region does not show of it. That is so when a region has
// compacted its half away: cells that the compaction dropped would come back.
func (c *composer) checkGroup(g *group) error {
	type key struct {
		parent hbackup.EncodedRegion
		target Target
	}
	shown := map[key][]*piece{} // by leaf, nil where the leaf does not refer to it
	for i, l := range g.leaves {
		for _, p := range l.half {
			k := key{p.parent, p.target}
			if shown[k] == nil {
				shown[k] = make([]*piece, len(g.leaves))
			}
			if shown[k][i] != nil {
				return c.refuse(l, p, "the region refers to it twice")
			}
			shown[k][i] = p
		}
	}
	for _, l := range g.leaves {
		for _, p := range l.half {
			if !g.keys().contains(p.rows) {
				return c.refuse(l, p, "its rows "+p.rows.String()+" reach out of the daughters")
			}
			for i, other := range shown[key{p.parent, p.target}] {
				sibling := g.leaves[i]
				need, some := p.rows.intersect(sibling.keys())
				if !some || other != nil && other.shows.contains(need) {
					continue
				}
				return c.refuse(l, p, fmt.Sprintf("region %s %s does not show its rows %s of the file any more", sibling.Encoded, sibling.keys(), need))
			}
		}
	}
	if len(g.leaves) == 1 {
		return nil
	}
	for _, l := range g.leaves {
		for _, p := range l.half {
			if r := c.known[p.parent]; r != nil && r.keys().equal(g.keys()) && (g.parent == nil || r.ID > g.parent.ID) {
				g.parent = r
			}
		}
	}
	return nil
}

// region gives the region that the group becomes, without files.
func (c *composer) region(g *group) (Region, error) {
	l := g.leaves[0]
	if len(g.leaves) == 1 && !l.Offline {
		return Region{Encoded: l.Encoded, ID: l.ID, Table: l.Table, StartKey: l.StartKey, EndKey: l.EndKey, RawInfo: l.RawInfo}, nil
	}
	if len(g.leaves) == 1 {
		g.parent = l.Region
	}
	if p := g.parent; p != nil {
		raw, err := p.online()
		return Region{Encoded: p.Encoded, ID: p.ID, Table: p.Table, StartKey: p.StartKey, EndKey: p.EndKey, RawInfo: raw}, err
	}
	// A region id that no member has, or the region's name would be that of the
	// first daughter, whose range is another.
	id := l.ID
	for _, other := range g.leaves {
		id = max(id, other.ID)
	}
	r := Region{Table: l.Table, StartKey: g.keys().start, EndKey: g.keys().end}
	for taken := true; taken; _, taken = c.known[r.Encoded] {
		id++
		r.ID, r.Encoded = id, EncodeRegionName(l.Table, r.StartKey, id, 0)
	}
	r.RawInfo = EncodeRegionInfo(r.Table, r.StartKey, r.EndKey, r.ID)
	return r, nil
}
