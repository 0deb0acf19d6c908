package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"hbackup"
)

// StageNamespace is the name space under which restores keep files in a
// cluster's archive. Neither it nor the tables below it exist: HBase only
// follows link names to archive/data/<name space>/<job>/….
const StageNamespace = "hbk"

func stageTable(job string) hbackup.TableName {
	return hbackup.TableName{Namespace: StageNamespace, Qualifier: job}
}

// StageTarget gives the place of a job's own file for a region of a composed
// manifest. Its Link is the name to write into the manifest, its ArchivePath where
// the bytes go.
func StageTarget(job string, region hbackup.EncodedRegion, family hbackup.Family, file string) Target {
	return Target{Table: stageTable(job), Region: region, Family: family, File: file}
}

// Link gives the name by which any other region of any table lists the target.
func (t Target) Link() string { return LinkName(t.Table, t.Region, t.File) }

// StageName gives the fresh name under which a job stages a file: HBase's
// cleaners compare bare names over all snapshots, so a name that is used
// elsewhere would keep files for ever. The same job and file give the same name.
// The suffix of a bulk-loaded file stays, as HBase orders cells by it.
func StageName(job string, from Target) string {
	sum := sha256.Sum256([]byte(job + "\x00" + from.relPath()))
	suffix := ""
	if i := strings.IndexByte(from.File, '_'); i >= 0 {
		suffix = from.File[i:]
	}
	return hex.EncodeToString(sum[:16]) + suffix
}

// write lists the groups' files under their staged names.
func (c *composer) write(groups []*group) (*Composition, error) {
	out := &Composition{Manifest: &Manifest{
		Description: c.m.Description.As(c.o.Name, 0),
		Schema:      c.m.Schema,
		Regions:     make([]Region, 0, len(groups)+1),
	}}
	out.Manifest.Description.Table = c.m.Schema.Table
	out.Manifest.Description.Version = layoutVersion
	for _, g := range groups {
		r, err := c.region(g)
		if err != nil {
			return nil, c.fail(hbackup.KindCorrupt, "region %s: %w", g.leaves[0].Encoded, err)
		}
		if len(g.leaves) > 1 {
			names := make([]string, len(g.leaves))
			for i, l := range g.leaves {
				names[i] = string(l.Encoded)
			}
			c.note("regions %s, split and not compacted yet, become one region %s %s", strings.Join(names, " and "), r.Encoded, r.keys())
		}
		c.stage(out, &r, g)
		out.Manifest.Regions = append(out.Manifest.Regions, r)
	}
	if err := c.writeMOB(out); err != nil {
		return nil, err
	}
	if size := EncodedSize(out.Manifest); size > manifestSizeLimit {
		c.note("the manifest has %d bytes: the master reads it only when snapshot.manifest.size.limit is raised above its default of %d", size, int64(manifestSizeLimit))
	}
	out.Notes = c.notes
	return out, nil
}

// stage lists each file of the group once, in the schema's order of families.
func (c *composer) stage(out *Composition, r *Region, g *group) {
	listed := map[Target]bool{}
	for i := range c.m.Schema.Families {
		ff := FamilyFiles{Family: c.m.Schema.Families[i].Name}
		for _, l := range g.leaves {
			for _, pieces := range [2][]*piece{l.whole, l.half} {
				for _, p := range pieces {
					if p.family != ff.Family || listed[p.target] {
						continue
					}
					listed[p.target] = true
					to := StageTarget(c.o.Job, r.Encoded, p.family, StageName(c.o.Job, p.target))
					ff.Files = append(ff.Files, StoreFile{Name: to.Link(), Size: p.size})
					out.Staged = append(out.Staged, Staged{From: p.target, Size: p.size, Region: r.Encoded, Family: p.family, Name: to.Link(), Path: to.ArchivePath()})
				}
			}
		}
		r.Families = append(r.Families, ff)
	}
}
