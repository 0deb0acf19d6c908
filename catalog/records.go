package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"hbackup"
	"hbackup/storage"
)

// The stores of this file and of history.go are the cluster's folder in a
// location (<location>/<cluster>), not the location itself.

// CreateJob records a request before anything else is written. When the request
// was recorded before, that record is returned and existed is true; a record
// that asks for something else is KindConflict.
func CreateJob(ctx context.Context, s storage.Store, j Job) (recorded Job, existed bool, err error) {
	j.Format, j.Digest = RunFormat, j.RequestDigest()
	err = create(ctx, s, JobKey(j.Request), j)
	if err == nil {
		return j, false, nil
	}
	if !hbackup.IsKind(err, hbackup.KindExists) {
		return j, false, hbackup.E("record request", string(s.Location())+"/"+string(JobKey(j.Request)), hbackup.KindOther, err)
	}
	old, err := ReadJob(ctx, s, j.Request)
	if err != nil {
		return old, true, err
	}
	return old, true, SameRequest(s, old, j)
}

// SameRequest fails with KindConflict when a recorded request id is used again
// for something else.
func SameRequest(s storage.Store, recorded, wanted Job) error {
	if recorded.Verb == wanted.Verb && recorded.Cluster == wanted.Cluster && sameTables(recorded, wanted) && recorded.FromSnapshot == wanted.FromSnapshot &&
		recorded.Image == wanted.Image && recorded.TargetCluster == wanted.TargetCluster && recorded.TargetTable == wanted.TargetTable {
		return nil
	}
	return hbackup.Errorf("record request", string(s.Location())+"/"+string(JobKey(wanted.Request)), hbackup.KindConflict,
		"the request id %q was used before for something else (%s), and now: %s", string(wanted.Request), describeJob(recorded), difference(recorded, wanted)).
		WithHint("choose another request id, or leave it out")
}

// sameTables compares what was asked: a selection stays the same when it comes to
// other tables by now.
func sameTables(recorded, wanted Job) bool {
	if recorded.Selection == nil || wanted.Selection == nil {
		return recorded.Selection == wanted.Selection && slices.Equal(recorded.Tables, wanted.Tables)
	}
	return recorded.Selection.Equal(*wanted.Selection)
}

// difference says what of a request is not as it was recorded.
func difference(recorded, wanted Job) string {
	var d []string
	differ := func(what, was, is string) {
		if was != is {
			d = append(d, fmt.Sprintf("%s %s instead of %s", what, cmp.Or(is, "none"), cmp.Or(was, "none")))
		}
	}
	differ("verb", recorded.Verb, wanted.Verb)
	differ("cluster", string(recorded.Cluster), string(wanted.Cluster))
	if !sameTables(recorded, wanted) {
		d = append(d, tableDifference(recorded, wanted))
	}
	differ("from the snapshot", recorded.FromSnapshot, wanted.FromSnapshot)
	differ("image", string(recorded.Image), string(wanted.Image))
	differ("target cluster", string(recorded.TargetCluster), string(wanted.TargetCluster))
	if recorded.TargetTable != wanted.TargetTable {
		d = append(d, fmt.Sprintf("target table %s instead of %s", wanted.TargetTable, recorded.TargetTable))
	}
	return strings.Join(d, "; ")
}

func tableDifference(recorded, wanted Job) string {
	switch {
	case wanted.Selection != nil:
		return "tables by " + wanted.Selection.String()
	case recorded.Selection != nil:
		return "the tables " + hbackup.FirstTables(wanted.Tables, 5)
	}
	without := func(a, b []hbackup.TableName) (rest []hbackup.TableName) {
		for _, t := range a {
			if !slices.Contains(b, t) {
				rest = append(rest, t)
			}
		}
		return rest
	}
	var d []string
	if more := without(wanted.Tables, recorded.Tables); len(more) > 0 {
		d = append(d, "with "+hbackup.FirstTables(more, 5))
	}
	if fewer := without(recorded.Tables, wanted.Tables); len(fewer) > 0 {
		d = append(d, "without "+hbackup.FirstTables(fewer, 5))
	}
	if d == nil {
		return "the tables in another order"
	}
	return strings.Join(d, ", ")
}

func describeJob(j Job) string {
	s := j.Verb + " of"
	if j.FromSnapshot != "" {
		return s + " the snapshot " + j.FromSnapshot
	}
	if j.Selection != nil {
		return s + " " + j.Selection.String()
	}
	for i, t := range j.Tables {
		if i == 3 {
			s += " and more"
			break
		}
		s += " " + t.String()
	}
	if !j.TargetTable.IsZero() {
		s += " to " + j.TargetTable.String()
	}
	return s
}

// ReadJob reads the record of a request.
func ReadJob(ctx context.Context, s storage.Store, r hbackup.RequestID) (Job, error) {
	var j Job
	if err := read(ctx, s, JobKey(r), &j, &j.Format, RunFormat); err != nil {
		return j, err
	}
	if j.Digest != "" && j.Digest != j.RequestDigest() {
		return j, hbackup.Errorf("read record", s.Location().At(JobKey(r)), hbackup.KindCorrupt, "what it says was asked is not what its digest stands for")
	}
	return j, nil
}

// FinishJob records that the request has reached its end. Doing so twice is fine.
func FinishJob(ctx context.Context, s storage.Store, d JobDone) error {
	d.Format = RunFormat
	err := create(ctx, s, JobDoneKey(d.Request), d)
	if err == nil || hbackup.IsKind(err, hbackup.KindExists) {
		return nil
	}
	return hbackup.E("record end of request", string(s.Location())+"/"+string(JobDoneKey(d.Request)), hbackup.KindOther, err)
}

// ReadJobDone reads the end of a request; KindNotFound while it has none.
func ReadJobDone(ctx context.Context, s storage.Store, r hbackup.RequestID) (JobDone, error) {
	var d JobDone
	err := read(ctx, s, JobDoneKey(r), &d, &d.Format, RunFormat)
	return d, err
}

// CommitRun writes the record of a run that has reached its end. When there is
// one already, that one counts and is returned.
func CommitRun(ctx context.Context, s storage.Store, r Run) (Run, error) {
	r.Format = RunFormat
	err := create(ctx, s, BackupKey(r.ID), r)
	if err == nil {
		return r, nil
	}
	if hbackup.IsKind(err, hbackup.KindExists) {
		return ReadRun(ctx, s, r.ID)
	}
	return r, hbackup.E("commit backup", string(s.Location())+"/"+string(BackupKey(r.ID)), hbackup.KindOther, err)
}

// ReadRun reads the record of a run; KindNotFound when it has not reached its end.
func ReadRun(ctx context.Context, s storage.Store, id hbackup.BackupID) (Run, error) {
	var r Run
	if err := read(ctx, s, BackupKey(id), &r, &r.Format, RunFormat); err != nil {
		return r, err
	}
	return r, r.mustBe(id, s)
}

// mustBe fails when the record is that of another run.
func (r *Run) mustBe(id hbackup.BackupID, s storage.Store) error {
	if r.ID == id {
		return nil
	}
	return hbackup.Errorf("read record", s.Location().At(BackupKey(id)), hbackup.KindCorrupt, "it is the record of %s", r.ID)
}

// LastRunOf reads the newest record of a run over the same set of the cluster's
// tables, or over the cluster's own selection when the name is empty; KindNotFound
// when there is none among the newest lookBack runs. A record that cannot be read
// is passed over.
func LastRunOf(ctx context.Context, s storage.Store, set string) (Run, error) {
	var ids []hbackup.BackupID
	for o, err := range s.List(ctx, backupsPrefix, storage.ListOptions{}) {
		if err != nil {
			return Run{}, hbackup.E("list backups in", string(s.Location()), hbackup.KindOther, err)
		}
		if id, err := parseBackupKey(o.Key); err == nil {
			ids = append(ids, id)
		}
	}
	ids = ids[max(0, len(ids)-lookBack):]
	for _, id := range slices.Backward(ids) {
		r, err := ReadRun(ctx, s, id)
		if err != nil && !isDamage(err) && !hbackup.IsKind(err, hbackup.KindNotFound) {
			return Run{}, err
		}
		if err == nil && r.Selection != nil && r.Selection.Set == set {
			return r, nil
		}
	}
	return Run{}, hbackup.Errorf("find last run in", string(s.Location()), hbackup.KindNotFound, "there is none")
}

// lookBack bounds how many records are read for a run that may never have been.
const lookBack = 200

// maxImageBytes bounds a manifest: 30 million files and more.
const maxImageBytes = 2 << 30

// ReadImage reads and checks the manifest of a committed image. KindNotFound
// means that no such image was committed.
func ReadImage(ctx context.Context, s storage.Store, t hbackup.TableName, id hbackup.ImageID) (*Image, error) {
	key := ImageKey(t, id)
	path := string(s.Location()) + "/" + string(key)
	b, _, err := storage.ReadAll(ctx, s, key, maxImageBytes)
	if err != nil {
		return nil, hbackup.E("read image", path, hbackup.KindOther, err)
	}
	im, err := DecodeImage(b)
	if err != nil {
		return nil, imageError(path, err)
	}
	if im.ID != id || im.Table != t {
		return nil, hbackup.Errorf("read image", path, hbackup.KindCorrupt, "it is the manifest of image %s of table %s", im.ID, im.Table)
	}
	return im, nil
}
