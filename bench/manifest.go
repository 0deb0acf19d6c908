package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"hbackup"
	"hbackup/engine"
)

// manifestPool is how many renames of a job the manifest committer has under way
// (mapreduce.manifest.committer.io.threads).
const manifestPool = 64

// manifest is Hadoop's manifest committer. A task's commit writes a list of its
// files and renames the list into place; the job's commit loads all lists and
// renames every file, many at a time. The job makes its directories first, so
// nothing looks whether a destination is free but the rename itself.
type manifest struct {
	*job
	target Target
	fs     FS
	out    string
}

// taskManifest is the list of a task, with the fields that Hadoop's has.
type taskManifest struct {
	Type    string      `json:"type"`
	Version int         `json:"version"`
	JobID   string      `json:"jobId"`
	TaskID  string      `json:"taskID"`
	Attempt string      `json:"taskAttemptID"`
	Dir     string      `json:"taskAttemptDir"`
	Files   []fileEntry `json:"files"`
}

type fileEntry struct {
	Source string `json:"s"`
	Dest   string `json:"d"`
	Size   int64  `json:"l"`
}

func (p *manifest) jobDir() string      { return p.out + "/_temporary/manifest_job_0001" }
func (p *manifest) jobAttempt() string  { return p.jobDir() + "/0" }
func (p *manifest) tasksDir() string    { return p.jobAttempt() + "/tasks" }
func (p *manifest) manifestDir() string { return p.jobAttempt() + "/manifests" }
func (p *manifest) taskAttempt(task int) string {
	return fmt.Sprintf("%s/attempt_%06d_0", p.tasksDir(), task)
}

func (p *manifest) setup(ctx context.Context) error {
	for _, dir := range []string{p.jobAttempt(), p.manifestDir()} {
		if err := p.fs.Mkdirs(ctx, dir); err != nil {
			return err
		}
	}
	return nil
}

func (p *manifest) write(ctx context.Context, task int) error {
	if err := p.fs.Mkdirs(ctx, p.taskAttempt(task)); err != nil {
		return err
	}
	for _, i := range p.filesOf(task) {
		if err := p.fs.Create(ctx, p.taskAttempt(task)+"/"+p.name(i), p.data(i)); err != nil {
			return err
		}
	}
	return nil
}

func (p *manifest) commitTask(ctx context.Context, task int) error {
	files, err := p.fs.List(ctx, p.taskAttempt(task))
	if err != nil {
		return err
	}
	m := taskManifest{
		Type: "org.apache.hadoop.mapreduce.lib.output.committer.manifest.files.TaskManifest/1", Version: 1,
		JobID: "job_0001", TaskID: fmt.Sprintf("task_%06d", task), Attempt: base(p.taskAttempt(task)), Dir: p.taskAttempt(task),
	}
	for _, f := range files {
		m.Files = append(m.Files, fileEntry{Source: f.Path, Dest: p.out + "/" + base(f.Path), Size: f.Size})
	}
	return p.saveByRename(ctx, m, p.manifestDir()+"/"+m.Attempt+"-manifest.json.tmp", fmt.Sprintf("%s/%s-manifest.json", p.manifestDir(), m.TaskID))
}

// saveByRename writes a file under a name of the writer's own and renames it into
// place.
func (p *manifest) saveByRename(ctx context.Context, v any, temporary, path string) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := p.fs.Delete(ctx, temporary); err != nil {
		return err
	}
	if err := p.fs.Save(ctx, temporary, text); err != nil {
		return err
	}
	if _, err := p.fs.Status(ctx, temporary); err != nil {
		return err
	}
	if _, err := p.fs.Status(ctx, path); !hbackup.IsKind(err, hbackup.KindNotFound) {
		return orExists(err, path)
	}
	return p.fs.Rename(ctx, temporary, path)
}

func (p *manifest) commitJob(ctx context.Context) error {
	files, err := p.loadAll(ctx)
	if err != nil {
		return err
	}
	err = engine.Local(ctx, p.poolOf(manifestPool), engine.Each(files), func(ctx context.Context, f fileEntry) error {
		return p.fs.Rename(ctx, f.Source, f.Dest)
	})
	if err != nil {
		return err
	}
	success := map[string]any{"name": "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1", "committer": "manifest", "success": true}
	if err := p.saveByRename(ctx, success, p.jobAttempt()+"/"+successFile+".tmp", p.out+"/"+successFile); err != nil {
		return err
	}
	return p.clean(ctx)
}

// loadAll reads the lists of all tasks.
func (p *manifest) loadAll(ctx context.Context) ([]fileEntry, error) {
	found, err := p.fs.List(ctx, p.manifestDir())
	if err != nil {
		return nil, err
	}
	var lists []Status
	for _, f := range found {
		if strings.HasSuffix(f.Path, "-manifest.json") {
			lists = append(lists, f)
		}
	}
	loaded := make([]taskManifest, len(lists))
	err = engine.Local(ctx, p.poolOf(manifestPool), engine.Each(numbers(len(lists))), func(ctx context.Context, i int) error {
		text, err := p.fs.Load(ctx, lists[i].Path)
		if err != nil {
			return err
		}
		return decode(lists[i].Path, text, &loaded[i])
	})
	var files []fileEntry
	for _, m := range loaded {
		files = append(files, m.Files...)
	}
	return files, err
}

// clean removes the tasks' directories side by side, then everything.
func (p *manifest) clean(ctx context.Context) error {
	temporary := p.out + "/_temporary"
	if _, err := p.fs.Status(ctx, temporary); err != nil {
		return err
	}
	dirs, err := p.fs.List(ctx, p.tasksDir())
	if err != nil {
		return err
	}
	err = engine.Local(ctx, p.poolOf(manifestPool), engine.Each(dirs), func(ctx context.Context, d Status) error {
		return p.fs.Delete(ctx, d.Path)
	})
	if err != nil {
		return err
	}
	return p.fs.Delete(ctx, temporary)
}

func (p *manifest) verify(ctx context.Context) error { return p.verifyFiles(ctx, p.target, p.out) }
