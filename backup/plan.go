package backup

import (
	"slices"

	"hbackup"
	"hbackup/catalog"
	"hbackup/committer"
	"hbackup/hbase/snapshot"
	"hbackup/storage"
)

// need is a store file that an image needs: where its bytes belong and how many
// there should be (-1 when the snapshot does not say).
type need struct {
	target snapshot.Target
	size   int64
}

func (n need) key() storage.Key { return storage.Key(n.target.ArchivePath()) }

func (n need) file() catalog.File {
	t := n.target
	return catalog.File{Table: t.Table, Region: t.Region, Family: t.Family, Name: t.File, Size: n.size, Cells: -1}
}

// plan says what becomes of each needed file.
type plan struct {
	parents []hbackup.ImageID // images that the needs were compared with
	copy    []need            // not in the location
	replace []need            // in the location, damaged: the cluster's file is put in its place
	recheck []need            // in the location, but no manifest at hand says with which digest
	reuse   []catalog.File    // in the location, as a committed image says, or in another one that the image shall name
	adopt   []catalog.File    // held by the location, or in it by now, as an earlier try of this image has left them
}

// takeOver moves to adopt what an earlier try has left, but for files that must be
// read to know what they need.
func (p *plan) takeOver(earlier map[storage.Key]committer.Filled, closely func(need) bool) {
	if len(earlier) == 0 {
		return
	}
	left := func(n need) bool {
		e, ok := earlier[n.key()]
		if !ok || n.size >= 0 && e.Size != n.size || closely(n) {
			return false
		}
		f := n.file()
		f.Size, f.Digest, f.Cells = e.Size, e.Digest, e.Cells
		p.adopt = append(p.adopt, f)
		return true
	}
	p.copy = slices.DeleteFunc(p.copy, left)
	p.recheck = slices.DeleteFunc(p.recheck, left)
}

// verdict is what becomes of a file that the location holds.
type verdict int

const (
	unproven verdict = iota // no image names it
	odd                     // no image names it, and its size is not the cluster's
	reuse                   // as an image says
	replace                 // not as an image says, but the cluster has it so
	conflict                // the cluster's own file is not as an image says
)

// judge compares a needed file with the object under its name and with what an
// image says of it, if one does. A name never stands for other bytes. So an object
// that is not as image and cluster say is damaged; but if it is the cluster's file
// that is not as an image says, nobody knows which of the two is right.
func judge(n need, stored int64, named *catalog.File) verdict {
	switch {
	case named == nil && n.size >= 0 && stored != n.size:
		return odd
	case named == nil:
		return unproven
	case n.size >= 0 && n.size != named.Size:
		return conflict
	case stored != named.Size:
		return replace
	}
	return reuse
}

// needsOf gives the unique files of a snapshot in the order of their keys.
func needsOf(m *snapshot.Manifest) ([]need, error) {
	targets, err := snapshot.Targets(m)
	if err != nil {
		return nil, err
	}
	count := 0
	for i := range m.Regions {
		for _, f := range m.Regions[i].Families {
			count += len(f.Files)
		}
	}
	out := make([]need, 0, count)
	for t, size := range targets {
		out = append(out, need{t, size})
	}
	byKey := func(a, b need) int { return catalog.CompareTargets(&a.target, &b.target) }
	if !slices.IsSortedFunc(out, byKey) {
		slices.SortFunc(out, byKey)
	}
	return out, nil
}

// byOwner gives runs of needs that lie under one table: the table itself, or one
// that it was cloned from while it still reads its files. The needs are in order.
func byOwner(needs []need, yield func(owner hbackup.TableName, needs []need) error) error {
	for len(needs) > 0 {
		owner := needs[0].target.Table
		n := slices.IndexFunc(needs, func(n need) bool { return n.target.Table != owner })
		if n < 0 {
			n = len(needs)
		}
		if err := yield(owner, needs[:n]); err != nil {
			return err
		}
		needs = needs[n:]
	}
	return nil
}

// bytesOf adds up sizes as far as they are known.
func bytesOf(needs []need) (sum int64) {
	for _, n := range needs {
		sum += max(n.size, 0)
	}
	return sum
}

// conflictOf says that the cluster's file is not what an image says.
func conflictOf(n need, named *catalog.File) error {
	return hbackup.Errorf("plan", string(n.key()), hbackup.KindConflict, "the cluster's file has %d bytes; an image says that the file of this name has %d", n.size, named.Size).
		WithHint("a store file never changes, so one of the two is damaged: look at the cluster's (hdfs fsck, hbase hfile -m) and at the location's (hbackup verify). Once a compaction has replaced the file on the cluster the table can be backed up again")
}
