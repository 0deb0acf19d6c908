package backup

import (
	"slices"
	"strings"

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
	copy    []need         // not in the location
	recheck []need         // in the location, but no manifest at hand says with which digest
	reuse   []catalog.File // in the location, as an earlier image says
	adopt   []catalog.File // held by the location, or in it by now, as an earlier try of this image has left them
}

// takeOver moves to adopt what an earlier try has left, but for files that must be
// read to know what they need.
func (p *plan) takeOver(earlier map[storage.Key]committer.Filled, closely func(need) bool) {
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

// makePlan compares what an image needs with what the location holds and what
// the table's newest image says of it. It does no I/O. A name never stands for
// other bytes, so one that is there with another size is damage (KindConflict),
// not a newer version.
func makePlan(needs []need, stored map[storage.Key]int64, known []catalog.File) (plan, error) {
	byKey := make(map[storage.Key]catalog.File, len(known))
	for _, f := range known {
		byKey[f.Key()] = f
	}
	var p plan
	for _, n := range needs {
		key := n.key()
		size, there := stored[key]
		if !there {
			p.copy = append(p.copy, n)
			continue
		}
		if n.size >= 0 && size != n.size {
			return plan{}, hbackup.Errorf("plan", string(key), hbackup.KindConflict, "the location holds %d bytes under this name, the cluster's file has %d", size, n.size).
				WithHint("the object in the location is damaged: hbackup verify shows which backups name it; remove it and run the backup again")
		}
		f, ok := byKey[key]
		if !ok {
			p.recheck = append(p.recheck, n)
			continue
		}
		if f.Size != size {
			return plan{}, hbackup.Errorf("plan", string(key), hbackup.KindConflict, "the location holds %d bytes under this name, its newest image says %d", size, f.Size).
				WithHint("the object in the location is damaged: hbackup verify shows which backups name it; remove it and run the backup again")
		}
		p.reuse = append(p.reuse, f)
	}
	return p, nil
}

// needsOf gives the unique files of a snapshot in the order of their keys.
func needsOf(m *snapshot.Manifest) ([]need, error) {
	targets, err := snapshot.Targets(m)
	if err != nil {
		return nil, err
	}
	var out []need
	for t, size := range targets {
		out = append(out, need{t, size})
	}
	slices.SortFunc(out, func(a, b need) int { return strings.Compare(string(a.key()), string(b.key())) })
	return out, nil
}

// tablesOf names the tables under which the files are kept: the table itself,
// and those it was cloned from while it still reads their files.
func tablesOf(needs []need) []hbackup.TableName {
	var out []hbackup.TableName
	for _, n := range needs {
		if !slices.Contains(out, n.target.Table) {
			out = append(out, n.target.Table)
		}
	}
	return out
}
