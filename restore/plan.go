package restore

import (
	"path"

	"hbackup"
	"hbackup/catalog"
	"hbackup/hbase/snapshot"
)

// plan is what one attempt puts on the cluster. Making it reads and changes
// nothing.
type plan struct {
	attempt attempt
	table   hbackup.TableName // to be made

	manifest []byte // content of data.manifest
	info     []byte // content of .snapshotinfo
	regions  []snapshot.Region

	folders []folder
	files   int
	bytes   int64
	notes   []string
}

// folder is a directory below the root with the files that must be in it.
type folder struct {
	dir   string // relative to the root
	files []file
	// aside is set when the place is not the attempt's own: MOB files keep their
	// name and their table's folder, where the table itself, another clone or
	// another restore may use the same file. They are written here first, under the
	// same name, by which the cleaners know them.
	aside string
}

func (f *folder) shared() bool { return f.aside != "" }

// file is one file to be brought to the cluster.
type file struct {
	from   *catalog.File
	target snapshot.Target // of the bytes at the source
	name   string
}

// makePlan composes what may be cloned and looks up the size and digest of every
// file that it needs in the image.
func makePlan(im *catalog.Image, m *snapshot.Manifest, a attempt, table hbackup.TableName) (*plan, error) {
	c, err := snapshot.Compose(m, snapshot.ComposeOptions{Name: a.id.snapshot(), Job: a.job()})
	if err != nil {
		return nil, err
	}
	// The time names the attempt; see attempt.
	c.Manifest.Description.Created = a.created
	for i := range c.Manifest.Regions {
		renew(&c.Manifest.Regions[i], a)
	}
	p := &plan{attempt: a, table: table, regions: c.Manifest.Regions, files: len(c.Staged), notes: c.Notes}
	if p.manifest, err = snapshot.EncodeManifest(c.Manifest); err != nil {
		return nil, err
	}
	if p.info, err = c.Manifest.Description.Encode(); err != nil {
		return nil, err
	}
	for _, s := range c.Staged {
		f, err := im.File(s.From, s.Size)
		if err != nil {
			return nil, err
		}
		dir, name := path.Split(s.Path)
		dir = path.Clean(dir)
		if n := len(p.folders); n == 0 || p.folders[n-1].dir != dir {
			f := folder{dir: dir}
			if s.From.MOB {
				f.aside = path.Join(p.stage(), string(s.From.Region), string(s.From.Family))
			}
			p.folders = append(p.folders, f)
		}
		last := &p.folders[len(p.folders)-1]
		last.files = append(last.files, file{from: f, target: s.From, name: name})
		p.bytes += f.Size
	}
	return p, nil
}

// renew gives a region the attempt's time as its id, as if the table were new,
// which it is. A clone keeps the ids, so they tell the attempt's table from every
// other, also when compactions have replaced all staged files; and the regions of
// a table that is restored to its own name do not bear the names of the lost
// ones, under which logs and archive still hold other edits and files. The MOB
// region's id is always 0.
func renew(r *snapshot.Region, a attempt) {
	if r.IsMOB() {
		return
	}
	r.ID = a.regionID()
	r.RawInfo = snapshot.EncodeRegionInfo(r.Table, r.StartKey, r.EndKey, r.ID)
	r.Encoded = snapshot.EncodeRegionName(r.Table, r.StartKey, r.ID, 0)
}

// serving gives the regions of the table, without the one that holds MOB files.
func (p *plan) serving() []*snapshot.Region {
	var out []*snapshot.Region
	for i := range p.regions {
		if r := &p.regions[i]; !r.IsMOB() {
			out = append(out, r)
		}
	}
	return out
}

// stage is the attempt's own folder below the root.
func (p *plan) stage() string {
	return "archive/data/" + snapshot.StageNamespace + "/" + p.attempt.job()
}

// task is one file to be copied, with its place.
type task struct {
	dir   string
	aside string // see folder
	file
}

// tasks walks the files.
func (p *plan) tasks(yield func(task, error) bool) {
	for i := range p.folders {
		for _, f := range p.folders[i].files {
			if !yield(task{p.folders[i].dir, p.folders[i].aside, f}, nil) {
				return
			}
		}
	}
}
