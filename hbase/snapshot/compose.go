package snapshot

import (
	"bytes"
	"fmt"
	"slices"

	"hbackup"
)

// ComposeOptions say how a snapshot is made ready to be cloned.
type ComposeOptions struct {
	Name string // of the snapshot to be made
	Job  string // of the restore; the table qualifier of its staging paths

	// ForeignMOB lets a table through that function ForeignMOB reports. Set it when
	// it is known, from the HFiles, that the snapshot names every MOB file they
	// need, or that the cluster still has them.
	ForeignMOB bool

	// Rows gives the first and the last row of a file, when the caller can look
	// into it; nil when it cannot. It is asked only about files that a reference
	// leads to, and only lets more be composed: with it a half that is in truth
	// the whole file, or none of it, is seen as such.
	Rows func(Target) (first, last []byte, ok bool)
}

// Composition is a snapshot that may be cloned safely and what it is made from.
type Composition struct {
	// Manifest has the regions in the order of their keys, the MOB region last.
	// No file in it is a reference, and all but MOB files are links into the
	// staging paths of the job.
	Manifest *Manifest
	Staged   []Staged
	Notes    []string // what the operator should know
}

// Staged is a file that must be in the cluster's archive before the clone.
type Staged struct {
	From   Target                // whose bytes
	Size   int64                 // -1 when the snapshot does not say
	Region hbackup.EncodedRegion // of Manifest
	Family hbackup.Family
	Name   string // in Manifest
	Path   string // below the cluster's root directory
}

// manifestSizeLimit is the default of snapshot.manifest.size.limit.
const manifestSizeLimit = 64 << 20

// Compose turns a snapshot into one that HBase may clone and then forget: every
// row shows the same cells, but there is no reference and no split parent in it,
// because a clone does not hold the files of those once the snapshot is deleted.
//
//   - A file that a merged region refers to is listed there whole.
//   - The daughters of a split whose references together are all of each parent
//     file become one region with the parent's range.
//   - Split parents, offline regions and replicas are left out.
//   - MOB files keep their names and their table, as cells speak of both. A table
//     that may need MOB files which the snapshot does not name is refused.
//   - Other files get fresh names in a place of the job's own.
//
// What would need half a file is refused with KindUnsupported, and so is a family
// that the schema lacks (its files make HBase's procedure retry for ever), by
// name. Regions that do not cover the whole key space are KindIncomplete or
// KindCorrupt. Compose reads nothing and changes nothing.
func Compose(m *Manifest, o ComposeOptions) (*Composition, error) {
	c := &composer{m: m, o: o, known: map[hbackup.EncodedRegion]*Region{}}
	if err := c.checkInput(); err != nil {
		return nil, err
	}
	if err := c.sortOut(); err != nil {
		return nil, err
	}
	if err := c.readLeaves(); err != nil {
		return nil, err
	}
	groups, err := c.group()
	if err != nil {
		return nil, err
	}
	return c.write(groups)
}

// Composable reports why Compose would refuse the snapshot, as long as nobody can
// look into its files: nil when it would not.
func Composable(m *Manifest) error {
	_, err := Compose(m, ComposeOptions{Name: "composable", Job: "composable"})
	return err
}

// composer is one run of Compose. Leaves are the regions that serve rows, in the
// order of their keys.
type composer struct {
	m      *Manifest
	o      ComposeOptions
	known  map[hbackup.EncodedRegion]*Region // every region but MOB and replicas
	leaves []*leaf
	mob    *Region
	refs   map[hbackup.EncodedRegion]*parentRefs
	ids    []uint64 // see frequentIDs
	notes  []string
}

const composeOp = "compose snapshot"

func (c *composer) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// fail makes an error about a part of the table.
func (c *composer) fail(kind hbackup.Kind, format string, args ...any) *hbackup.Error {
	return hbackup.Errorf(composeOp, c.m.Schema.Table.String(), kind, format, args...)
}

func (c *composer) checkInput() error {
	if err := ValidateName(c.o.Name); err != nil {
		return hbackup.E(composeOp, c.o.Name, hbackup.KindUsage, err)
	}
	if err := stageTable(c.o.Job).Validate(); err != nil {
		return hbackup.E(composeOp, c.o.Job, hbackup.KindUsage, err)
	}
	if c.m.Schema.Raw == nil {
		return hbackup.Errorf(composeOp, c.m.Description.Name, hbackup.KindIncomplete, "the snapshot has no table schema: it was not finished")
	}
	if err := c.m.describe(c.m.Description, composeOp, c.m.Description.Name); err != nil {
		return err
	}
	if err := c.m.check(); err != nil {
		return hbackup.E(composeOp, c.m.Description.Name, hbackup.KindCorrupt, err)
	}
	// Also finds names of no known form and files with two sizes.
	_, err := Targets(c.m)
	return err
}

// sortOut finds the leaves and checks that they cover the key space.
func (c *composer) sortOut() error {
	var serving, offline []*Region
	for i := range c.m.Regions {
		r := &c.m.Regions[i]
		switch {
		case r.Replica > 0:
			if r.NumFiles() > 0 {
				return c.fail(hbackup.KindUnsupported, "replica %s lists files of its own", r.Encoded)
			}
			continue
		case r.IsMOB():
			c.mob = r
			continue
		case r.Split:
			c.note("split parent %s %s is left out", r.Encoded, r.keys())
		case r.Offline:
			offline = append(offline, r)
		default:
			serving = append(serving, r)
		}
		c.known[r.Encoded] = r
	}
	err := c.checkTiling(serving)
	if err != nil && len(offline) > 0 {
		if all := append(slices.Clone(serving), offline...); c.checkTiling(all) == nil {
			c.note("%d regions that were marked offline are included: without them the table has holes", len(offline))
			serving, offline, err = all, nil, nil
		}
	}
	if err != nil {
		return err
	}
	for _, r := range offline {
		c.note("offline region %s %s is left out: others cover its rows", r.Encoded, r.keys())
	}
	for _, r := range serving {
		c.leaves = append(c.leaves, &leaf{Region: r})
	}
	return nil
}

// checkTiling sorts the regions by key and reports the first hole or overlap.
// HBase would clone either without a word.
func (c *composer) checkTiling(regions []*Region) error {
	const hint = "repair the table's regions (HBCK2) and take a new backup"
	if len(regions) == 0 {
		return c.fail(hbackup.KindIncomplete, "no region serves any row").WithHint(hint)
	}
	slices.SortFunc(regions, func(a, b *Region) int {
		if d := bytes.Compare(a.StartKey, b.StartKey); d != 0 {
			return d
		}
		return compareEnd(a.EndKey, b.EndKey)
	})
	first, last := regions[0], regions[len(regions)-1]
	if len(first.StartKey) > 0 {
		return c.fail(hbackup.KindIncomplete, "no region holds the rows before %q, where %s begins", first.StartKey, first.Encoded).WithHint(hint)
	}
	for i, r := range regions[1:] {
		prev := regions[i]
		switch d := compareEnd(prev.EndKey, r.StartKey); {
		case len(prev.EndKey) == 0 || d > 0:
			return c.fail(hbackup.KindCorrupt, "regions %s %s and %s %s overlap", prev.Encoded, prev.keys(), r.Encoded, r.keys()).WithHint(hint)
		case d < 0:
			return c.fail(hbackup.KindIncomplete, "no region holds the rows from %q to %q, between %s and %s", prev.EndKey, r.StartKey, prev.Encoded, r.Encoded).WithHint(hint)
		}
	}
	for _, r := range regions {
		if len(r.EndKey) > 0 && bytes.Compare(r.StartKey, r.EndKey) >= 0 {
			return c.fail(hbackup.KindCorrupt, "region %s %s can hold no row", r.Encoded, r.keys()).WithHint(hint)
		}
	}
	if len(last.EndKey) > 0 {
		return c.fail(hbackup.KindIncomplete, "no region holds the rows from %q, where %s ends", last.EndKey, last.Encoded).WithHint(hint)
	}
	return nil
}
