package backup

import (
	"context"
	"errors"
	"sync"

	"hbackup"
	"hbackup/catalog"
	"hbackup/committer"
	"hbackup/engine"
	"hbackup/internal/failpoint"
	"hbackup/storage"
)

// planTable looks up what the locations hold of the files that an image needs.
func (r *run) planTable(ctx context.Context, t hbackup.TableName, needs []need, mob *mobFiles) (plan, error) {
	p := planner{table: t, here: &shelf{r.marker.ID, r.store}, lenders: r.lenders, closely: mob.concerns, always: mob.always, log: r.opts.Log}
	keeps := r.store.Capabilities().StoredDigest
	p.proof = func(f found) int64 {
		if keeps && !mob.concerns(f.need) {
			return 2 * requestCost
		}
		return f.stored + requestCost
	}
	return p.plan(ctx, needs)
}

// nameOf gives the qualified name of a location that files of an image lie in.
func (r *run) nameOf(id string) storage.Location {
	for _, l := range r.lenders {
		if l.id() == id {
			return l.name
		}
	}
	return ""
}

// done is what was written for an image.
type done struct {
	copied, replaced int // files; those that were replaced were copied
	copiedBytes      int64
}

// task is a file that a plan does not simply reuse.
type task struct {
	need
	way  way
	said catalog.File // when it is to be proven: what an earlier try of this run has on record of it, or nothing
}

// way is how a file gets into the image.
type way int

const (
	wayCopy    way = iota // from the cluster
	wayProve              // it is in the location, and must be proven
	wayReplace            // from the cluster, over what is in the location
)

// files carries out a plan and gives every file of the image.
func (r *run) files(ctx context.Context, t hbackup.TableName, im *committer.Image, mob *mobFiles, j *journal, p plan) (files []catalog.File, d done, err error) {
	files = append(p.reuse, p.adopt...)
	all := bytesOf(p.copy) + bytesOf(p.recheck) + bytesOf(p.replace)
	for _, f := range files {
		all += f.Size
	}
	r.opts.Reporter.Expect(t, len(p.copy)+len(p.recheck)+len(p.replace)+len(files), all)
	for _, f := range files {
		r.opts.Reporter.Done(t, 1, f.Size, true)
	}
	for _, f := range p.adopt {
		im.Adopt(f.Key())
	}
	var mu sync.Mutex
	err = engine.Local(ctx, r.opts.Files, engine.Each(tasksOf(p, im, j)), func(ctx context.Context, k task) error {
		if err := r.slots.acquire(ctx); err != nil {
			return err
		}
		defer r.slots.release()
		f, as, err := r.bring(ctx, im, mob, k)
		if err != nil {
			return err
		}
		if as != wayProve && !mob.concerns(k.need) {
			im.Passed(ctx, f.Key(), f.Cells)
		}
		if k.said.Name == "" && !mob.concerns(k.need) {
			j.passed(ctx, f)
		}
		failpoint.Hit(StepFileCopied)
		mu.Lock()
		files = append(files, f)
		if as != wayProve {
			d.copied++
			d.copiedBytes += f.Size
		}
		if as == wayReplace {
			d.replaced++
		}
		mu.Unlock()
		r.opts.Reporter.Done(t, 1, f.Size, as == wayProve)
		return nil
	})
	return files, d, err
}

// tasksOf gives the tasks of a plan and tells the committer which files will come.
func tasksOf(p plan, im *committer.Image, j *journal) []task {
	tasks := make([]task, 0, len(p.recheck)+len(p.replace)+len(p.copy))
	for _, n := range p.recheck {
		said, _ := j.knows(n)
		tasks = append(tasks, task{n, wayProve, said})
	}
	for _, n := range p.replace {
		tasks = append(tasks, task{need: n, way: wayReplace})
	}
	keys := make([]storage.Key, 0, len(p.copy))
	for _, n := range p.copy {
		tasks = append(tasks, task{need: n, way: wayCopy})
		keys = append(keys, n.key())
	}
	im.Expect(keys)
	return tasks
}

// bring gets one file into the image, and says how it did in the end: an object that
// was to be proven and is not what it should be is replaced.
func (r *run) bring(ctx context.Context, im *committer.Image, mob *mobFiles, k task) (f catalog.File, as way, err error) {
	there := k.way == wayProve
	if there {
		f, err = r.confirm(ctx, mob, k)
	} else {
		f, there, err = r.copyFile(ctx, im, mob, k.need, k.way == wayReplace)
	}
	switch {
	case err == nil && there:
		return f, wayProve, nil
	case err == nil && k.way == wayReplace:
		r.sayReplaced(k.need, "its size was wrong")
		return f, wayReplace, nil
	case err == nil:
		return f, wayCopy, nil
	}
	var bad damaged
	switch {
	case errors.As(err, &bad):
		if f, _, err = r.copyFile(ctx, im, mob, k.need, true); err == nil {
			r.sayReplaced(k.need, bad.Error())
		}
		return f, wayReplace, err
	case k.way == wayProve && hbackup.IsKind(err, hbackup.KindNotFound): // gone since it was listed
		return r.bring(ctx, im, mob, task{need: k.need, way: wayCopy})
	}
	return f, k.way, err
}

func (r *run) sayReplaced(n need, why string) {
	r.opts.Log.Warn("a damaged file in the location was replaced by the cluster's; hbackup verify shows whether others are damaged", "file", r.store.Location().At(n.key()), "damage", why)
}
