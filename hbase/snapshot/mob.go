package snapshot

import (
	"cmp"
	"slices"

	"hbackup"
)

// FamilyOf is a family in which files of another table were found.
type FamilyOf struct {
	Family hbackup.Family
	Table  hbackup.TableName
}

// ForeignMOB gives the MOB families that hold links to another table's files,
// each with the tables, in order: what a clone or a restored table has. Cells in
// those files may name MOB files of that table, and the snapshot need not list
// them. HBase 2.4 lists them as links in the MOB region, 2.5 as well, 2.6 leaves
// them out. So neither the snapshot nor a backup made from it alone is known to be
// whole.
//
// An empty answer is no proof: a compaction turns the links into own files whose
// cells still name the other table's MOB files. Only the HFiles themselves tell,
// in MOB_FILE_REFS of their file info.
func ForeignMOB(m *Manifest) []FamilyOf {
	found := map[FamilyOf]struct{}{}
	for i := range m.Schema.Families {
		family := &m.Schema.Families[i]
		if !family.IsMOB() {
			continue
		}
		for ri := range m.Regions {
			r := &m.Regions[ri]
			for _, ff := range r.Families {
				if ff.Family != family.Name || r.IsMOB() {
					continue
				}
				for _, f := range ff.Files {
					if n, err := ParseFileName(f.Name); err == nil && n.IsLink() && n.Table != r.Table {
						found[FamilyOf{ff.Family, n.Table}] = struct{}{}
					}
				}
			}
		}
	}
	var out []FamilyOf
	for f := range found {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b FamilyOf) int {
		return cmp.Or(cmp.Compare(a.Family, b.Family), a.Table.Compare(b.Table))
	})
	return out
}

// writeMOB takes the MOB region over as it is. The names of MOB files must stay.
// Links to those of HBase 2.4, which look like HFiles, are followed and held by a
// clone; links to those of later versions are not known as links to HBase.
func (c *composer) writeMOB(out *Composition) error {
	for _, f := range ForeignMOB(c.m) {
		const text = "family %q keeps big values in MOB files and has files of table %s: HBase's snapshot does not name the MOB files that those need"
		if !c.o.ForeignMOB {
			return c.fail(hbackup.KindUnsupported, text, string(f.Family), f.Table).
				WithHint("the table was cloned or restored; copy its rows into a new table and back that up")
		}
		c.note(text, string(f.Family), f.Table)
	}
	if c.mob == nil {
		for i := range c.m.Schema.Families {
			if f := &c.m.Schema.Families[i]; f.IsMOB() {
				c.note("family %q keeps big values in MOB files, but the snapshot has no MOB region", string(f.Name))
			}
		}
		return nil
	}
	r := *c.mob
	r.Families = nil
	for _, ff := range c.mob.Families {
		if c.m.Schema.Family(ff.Family) == nil {
			if len(ff.Files) == 0 {
				continue
			}
			return c.fail(hbackup.KindUnsupported, "the MOB region holds files of family %q, which the schema lacks", string(ff.Family)).
				WithHint("HBase would try to clone it for ever; take a new backup, now that the family is gone")
		}
		for _, f := range ff.Files {
			n, err := ParseFileName(f.Name)
			if err != nil {
				return c.fail(hbackup.KindCorrupt, "MOB region, family %q: %w", string(ff.Family), err)
			}
			if n.IsReference() || n.IsLink() && n.IsMOB() {
				return c.fail(hbackup.KindUnsupported, "MOB region %s, family %q, file %s: HBase does not take that for a link and cannot clone it", r.Encoded, string(ff.Family), f.Name).
					WithHint("the table is itself a clone that still uses the MOB files of %s; restore that table's backup, or copy the rows into a new table and back that up", n.Table)
			}
			t := n.target(&r, ff.Family)
			out.Staged = append(out.Staged, Staged{From: t, Size: f.Size, Region: r.Encoded, Family: ff.Family, Name: f.Name, Path: t.ArchivePath()})
		}
		r.Families = append(r.Families, ff)
	}
	out.Manifest.Regions = append(out.Manifest.Regions, r)
	return nil
}
