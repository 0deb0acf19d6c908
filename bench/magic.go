package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"hbackup"
	"hbackup/engine"
)

// magicPool is how many lists of a job S3A's committers work on at a time
// (fs.s3a.committer.threads), and how many records a task loads.
const magicPool = 8

// magic is S3A's magic committer. A file is uploaded to its final path and not
// completed; an empty marker and a record of the upload are written beside. A
// task's commit collects its records into one list, and the job's commit
// completes the uploads of all lists: several lists at a time, those of one list
// one after the other.
type magic struct {
	*job
	target  Target
	fs      FS
	uploads Uploads
	out     string
}

// pendingUpload is a record of S3A's, with the fields that it has.
type pendingUpload struct {
	Version     int      `json:"version"`
	URI         string   `json:"uri"`
	UploadID    string   `json:"uploadId"`
	Created     int64    `json:"created"`
	Saved       int64    `json:"saved"`
	Date        string   `json:"date"`
	JobID       string   `json:"jobId"`
	TaskID      string   `json:"taskId"`
	Notes       string   `json:"text"`
	Destination string   `json:"destinationKey"`
	Length      int64    `json:"length"`
	Tags        []string `json:"etags"`
}

// pendingSet is the list of a task.
type pendingSet struct {
	Version int             `json:"version"`
	JobID   string          `json:"jobId"`
	Commits []pendingUpload `json:"commits"`
}

func (p *magic) magicDir() string   { return p.out + "/__magic_job-0001" }
func (p *magic) jobAttempt() string { return p.magicDir() + "/job_0001/00" }
func (p *magic) taskAttempt(task int) string {
	return fmt.Sprintf("%s/tasks/attempt_%06d_0/__base", p.jobAttempt(), task)
}

func (p *magic) setup(ctx context.Context) error { return p.fs.Mkdirs(ctx, p.jobAttempt()) }

func (p *magic) write(ctx context.Context, task int) error {
	if err := p.fs.Delete(ctx, p.taskAttempt(task)); err != nil {
		return err
	}
	if err := p.fs.Mkdirs(ctx, p.taskAttempt(task)); err != nil {
		return err
	}
	for _, i := range p.filesOf(task) {
		if err := p.upload(ctx, task, i); err != nil {
			return err
		}
	}
	return nil
}

func (p *magic) upload(ctx context.Context, task, i int) error {
	final, work, data := p.out+"/"+p.name(i), p.taskAttempt(task)+"/"+p.name(i), p.data(i)
	id, err := p.uploads.Begin(ctx, final)
	if err != nil {
		return err
	}
	tag, err := p.uploads.Part(ctx, final, id, data)
	if err != nil {
		return err
	}
	now := time.Now()
	record, err := json.Marshal(pendingUpload{
		Version: 2, URI: string(p.target.Store().Location()) + "/" + final, UploadID: id, Created: now.UnixMilli(), Saved: now.UnixMilli(),
		Date: now.UTC().Format(time.RFC1123), Destination: final, Length: int64(len(data)), Tags: []string{tag},
	})
	if err != nil {
		return err
	}
	if err := p.fs.Put(ctx, work, nil); err != nil {
		return err
	}
	return p.fs.Put(ctx, work+".pending", record)
}

func (p *magic) commitTask(ctx context.Context, task int) error {
	attempt := p.taskAttempt(task)
	all, err := p.fs.Walk(ctx, attempt)
	if err != nil {
		return err
	}
	var pending []Status
	for _, f := range all {
		if strings.HasSuffix(f.Path, ".pending") {
			pending = append(pending, f)
		}
	}
	set := pendingSet{Version: 2, JobID: "job_0001", Commits: make([]pendingUpload, len(pending))}
	err = engine.Local(ctx, p.poolOf(magicPool), engine.Each(numbers(len(pending))), func(ctx context.Context, i int) error {
		text, err := p.fs.Read(ctx, pending[i].Path)
		if err == nil {
			err = decode(pending[i].Path, text, &set.Commits[i])
		}
		if err != nil {
			return err
		}
		set.Commits[i].JobID, set.Commits[i].TaskID = set.JobID, fmt.Sprintf("attempt_%06d_0", task)
		return nil
	})
	if err != nil {
		return err
	}
	list, err := json.Marshal(set)
	if err != nil {
		return err
	}
	if err := p.fs.Put(ctx, fmt.Sprintf("%s/task_%06d.pendingset", p.jobAttempt(), task), list); err != nil {
		return err
	}
	return p.fs.Delete(ctx, attempt)
}

// decode reads what a committer has written.
func decode(path string, text []byte, v any) error {
	if err := json.Unmarshal(text, v); err != nil {
		return hbackup.E("read", path, hbackup.KindCorrupt, err)
	}
	return nil
}

func (p *magic) commitJob(ctx context.Context) error {
	found, err := p.fs.Walk(ctx, p.jobAttempt())
	if err != nil {
		return err
	}
	var lists []Status
	for _, f := range found {
		if strings.HasSuffix(f.Path, ".pendingset") {
			lists = append(lists, f)
		}
	}
	err = engine.Local(ctx, p.poolOf(magicPool), engine.Each(lists), func(ctx context.Context, list Status) error {
		var set pendingSet
		text, err := p.fs.Load(ctx, list.Path)
		if err == nil {
			err = decode(list.Path, text, &set)
		}
		if err != nil {
			return err
		}
		for _, u := range set.Commits {
			if len(u.Tags) != 1 {
				return hbackup.Errorf("read", list.Path, hbackup.KindCorrupt, "an upload has %d parts", len(u.Tags))
			}
			if err := p.uploads.Complete(ctx, u.Destination, u.UploadID, u.Tags[0]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	names := make([]string, 0, 100)
	for i := range min(p.Files, cap(names)) { // S3A names up to a hundred
		names = append(names, "/"+p.out+"/"+p.name(i))
	}
	success, err := json.Marshal(map[string]any{"name": "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1", "committer": "magic", "filenames": names})
	if err != nil {
		return err
	}
	if err := p.fs.Put(ctx, p.out+"/"+successFile, success); err != nil {
		return err
	}
	left, err := p.uploads.Open(ctx, p.out)
	if err != nil {
		return err
	}
	for _, u := range left {
		if err := p.uploads.Abort(ctx, u.Path, u.ID); err != nil {
			return err
		}
	}
	if err := p.fs.Delete(ctx, p.magicDir()); err != nil {
		return err
	}
	return p.fs.Delete(ctx, p.out+"/_temporary") // which was never there
}

func (p *magic) verify(ctx context.Context) error {
	left, err := p.uploads.Open(ctx, p.out)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return hbackup.Errorf("verify", left[0].Path, hbackup.KindCorrupt, "its upload is still open, one of %d", len(left))
	}
	return p.verifyFiles(ctx, p.target, p.out)
}

// numbers gives 0 to n-1.
func numbers(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
