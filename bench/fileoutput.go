package bench

import (
	"context"
	"fmt"

	"hbackup"
)

// fileOutput is Hadoop's FileOutputCommitter. A task writes into a directory of
// its own. With algorithm 1 its commit renames that directory, and the job's
// commit merges all of them into the output, one file after the other. With
// algorithm 2 each task merges its files itself and the job only tidies up.
type fileOutput struct {
	*job
	target    Target
	fs        FS
	out       string
	algorithm Protocol
}

func (p *fileOutput) temporary() string { return p.out + "/_temporary" }
func (p *fileOutput) jobAttempt() string {
	return p.temporary() + "/0"
}
func (p *fileOutput) taskAttempt(task int) string {
	return fmt.Sprintf("%s/_temporary/attempt_%06d_0", p.jobAttempt(), task)
}
func (p *fileOutput) committedTask(task int) string {
	return fmt.Sprintf("%s/task_%06d", p.jobAttempt(), task)
}

func (p *fileOutput) setup(ctx context.Context) error { return p.fs.Mkdirs(ctx, p.jobAttempt()) }

func (p *fileOutput) write(ctx context.Context, task int) error {
	for _, i := range p.filesOf(task) {
		if err := p.fs.Create(ctx, p.taskAttempt(task)+"/"+p.name(i), p.data(i)); err != nil {
			return err
		}
	}
	return nil
}

func (p *fileOutput) commitTask(ctx context.Context, task int) error {
	attempt := p.taskAttempt(task)
	for range 2 { // needsTaskCommit, and commitTask itself
		if _, err := p.fs.Status(ctx, attempt); err != nil {
			return err
		}
	}
	if p.algorithm == V2 {
		return p.merge(ctx, attempt)
	}
	committed := p.committedTask(task)
	if _, err := p.fs.Status(ctx, committed); !hbackup.IsKind(err, hbackup.KindNotFound) {
		return orExists(err, committed)
	}
	return p.fs.Rename(ctx, attempt, committed)
}

// merge moves all files of a directory into the output: mergePaths of Hadoop.
func (p *fileOutput) merge(ctx context.Context, dir string) error {
	if _, err := p.fs.Status(ctx, p.out); err != nil {
		return err
	}
	files, err := p.fs.List(ctx, dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := p.fs.Merge(ctx, f.Path, p.out+"/"+base(f.Path)); err != nil {
			return err
		}
	}
	return nil
}

func (p *fileOutput) commitJob(ctx context.Context) error {
	if p.algorithm == V1 {
		tasks, err := p.fs.List(ctx, p.jobAttempt())
		if err != nil {
			return err
		}
		for _, t := range tasks {
			if base(t.Path) == "_temporary" {
				continue
			}
			if err := p.merge(ctx, t.Path); err != nil {
				return err
			}
		}
	}
	if err := p.fs.Delete(ctx, p.temporary()); err != nil {
		return err
	}
	return p.fs.Save(ctx, p.out+"/"+successFile, nil)
}

func (p *fileOutput) verify(ctx context.Context) error { return p.verifyFiles(ctx, p.target, p.out) }

// successFile is what Hadoop's committers leave in the output when they are done.
const successFile = "_SUCCESS"

// orExists gives the error of a look at a path that should be free.
func orExists(err error, path string) error {
	if err != nil {
		return err
	}
	return hbackup.Errorf("commit", path, hbackup.KindExists, "it is there already")
}
