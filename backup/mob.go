package backup

import (
	"sync"

	"hbackup"
	"hbackup/hbase/hfile"
	"hbackup/hbase/snapshot"
)

// mobFiles checks that an image holds every MOB file that its HFiles name. A
// snapshot of a clone need not: its cells name MOB files of the table it was
// cloned from, and HBase 2.6 leaves those out of the snapshot. An image of it
// would restore to a table whose big values are gone.
//
// The check is made when a file comes into the location. Files that an earlier
// image of the table names were checked then, and HBase keeps what they name. But a
// table that was dropped or rewound, and made again from a snapshot of itself, is a
// clone, too: links to its own name's files are checked for every image, until a
// compaction has replaced them.
type mobFiles struct {
	families map[hbackup.Family]bool
	have     map[string]bool          // names of the MOB files in the snapshot
	again    map[snapshot.Target]bool // files of the table's own name that it has by links

	mu      sync.Mutex
	missing *hfile.MOBRef
	inFile  need
	unread  int // HFiles that do not say what they name
}

func newMOBFiles(m *snapshot.Manifest, needs []need) *mobFiles {
	c := &mobFiles{families: map[hbackup.Family]bool{}, have: map[string]bool{}, again: map[snapshot.Target]bool{}}
	for i := range m.Schema.Families {
		if f := &m.Schema.Families[i]; f.IsMOB() {
			c.families[f.Name] = true
		}
	}
	for _, n := range needs {
		if n.target.MOB {
			c.have[n.target.File] = true
		}
	}
	for i := range m.Regions {
		c.noteLinks(&m.Regions[i])
	}
	return c
}

// noteLinks notes the files of the table's own name that a region has by links.
func (c *mobFiles) noteLinks(r *snapshot.Region) {
	for _, ff := range r.Families {
		if !c.families[ff.Family] || r.IsMOB() {
			continue
		}
		for _, f := range ff.Files {
			n, err := snapshot.ParseFileName(f.Name)
			if err != nil || !n.IsLink() || n.Table != r.Table {
				continue // that every name is good was seen before
			}
			if t, err := snapshot.Resolve(r, ff.Family, f); err == nil {
				c.again[t] = true
			}
		}
	}
}

// always reports whether no image, not even one of the table itself, vouches for what
// the file names.
func (c *mobFiles) always(n need) bool { return c.again[n.target] }

// concerns reports whether the file may name MOB files.
func (c *mobFiles) concerns(n need) bool { return c.families[n.target.Family] && !n.target.MOB }

// saw takes note of what a file names.
func (c *mobFiles) saw(n need, s hfile.Summary) {
	if !c.concerns(n) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !s.InfoRead {
		c.unread++
	}
	for _, ref := range s.MOBRefs {
		if !c.have[ref.File] && c.missing == nil {
			c.missing, c.inFile = &ref, n
		}
	}
}

// verdict fails when a named MOB file is not part of the snapshot.
func (c *mobFiles) verdict(t hbackup.TableName) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.missing == nil {
		return nil
	}
	return hbackup.Errorf("back up", t.String(), hbackup.KindUnsupported,
		"the HFile %s needs the MOB file %s of table %s, which HBase's snapshot of %s does not name: without it big values would be lost",
		c.inFile.target.File, c.missing.File, c.missing.Table, t).
		WithHint("the table was cloned or restored; compact its MOB families (major_compact '%s', '%s', 'MOB'), or copy its rows into a new table, and back it up again", t, c.inFile.target.Family)
}
