package index

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"hbackup/catalog"
	"hbackup/catalog/index/indexpb"
)

// Rows of a block.
const (
	blockRuns = 16384
	blockJobs = 16384
)

// idBytes is the length of every backup id.
const idBytes = len("20261130T230501.123Z-7f3k2m9q4x")

// noTime stands for the zero time.
const noTime = math.MinInt64

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return noTime
	}
	return t.UnixNano()
}

// behind is a time told from another one.
func behind(t, start time.Time) int64 {
	if t.IsZero() {
		return noTime
	}
	return t.UnixNano() - start.UnixNano()
}

// runsEncoder puts runs into the columns of a block.
type runsEncoder struct {
	pb       *indexpb.Runs
	words    map[string]uint32
	heads    map[[9]uint32]uint32
	ids      strings.Builder
	requests strings.Builder
}

// sizedRun is a run and the size of its record.
type sizedRun struct {
	*catalog.Run
	size int64
}

func sized(known catalog.Remembered) []sizedRun {
	all := make([]sizedRun, len(known.Runs))
	for i := range all {
		all[i] = sizedRun{&known.Runs[i].Run, known.Sizes[i]}
	}
	return all
}

// encodeRuns gives a block that decodes to exactly these runs.
func encodeRuns(runs []sizedRun) ([]byte, error) {
	e := &runsEncoder{pb: &indexpb.Runs{}, words: map[string]uint32{}, heads: map[[9]uint32]uint32{}}
	for _, r := range runs {
		if err := e.add(r); err != nil {
			return nil, err
		}
	}
	e.pb.Ids, e.pb.Requests = e.ids.String(), e.requests.String()
	// Whatever the columns cannot hold, such as a time with another zone, shows here.
	decoded, err := decodeRuns(e.pb)
	if err != nil {
		return nil, err
	}
	for i, r := range runs {
		if reflect.DeepEqual(&decoded[i].Run, r.Run) {
			continue
		}
		b, err := json.Marshal(r.Run)
		if err != nil {
			return nil, err
		}
		e.pb.Odd = append(e.pb.Odd, &indexpb.Odd{Run: uint32(i), Json: string(b)})
	}
	return proto.Marshal(e.pb)
}

func (e *runsEncoder) word(s string) uint32 {
	n, ok := e.words[s]
	if !ok {
		n = uint32(len(e.pb.Words))
		e.words[s] = n
		e.pb.Words = append(e.pb.Words, s)
	}
	return n
}

// text gives JSON as a word; the empty word for nothing.
func (e *runsEncoder) text(v any, nothing bool) (uint32, error) {
	if nothing {
		return e.word(""), nil
	}
	b, err := json.Marshal(v)
	return e.word(string(b)), err
}

func (e *runsEncoder) add(r sizedRun) error {
	selection, err := e.text(r.Selection, r.Selection == nil)
	if err != nil {
		return err
	}
	gone, err := e.text(r.Gone, r.Gone == nil)
	if err != nil {
		return err
	}
	key := [9]uint32{e.word(string(r.Cluster)), e.word(r.ClusterID), e.word(r.HBaseVersion), e.word(string(r.State)), e.word(r.Host), e.word(r.Writer), e.word(r.Committer), selection, gone}
	head, ok := e.heads[key]
	if !ok {
		head = uint32(len(e.pb.Heads))
		e.heads[key] = head
		e.pb.Heads = append(e.pb.Heads, &indexpb.Head{Cluster: key[0], ClusterId: key[1], HbaseVersion: key[2], State: key[3], Host: key[4],
			Writer: key[5], Committer: key[6], Selection: selection, Gone: gone})
	}
	e.ids.WriteString(string(r.ID))
	e.requests.WriteString(string(r.Request))
	pb := e.pb
	pb.RequestLength = append(pb.RequestLength, uint32(len(r.Request)))
	pb.Size = append(pb.Size, r.size)
	pb.Started = append(pb.Started, nanos(r.Started))
	pb.Finished = append(pb.Finished, nanos(r.Finished))
	pb.Format = append(pb.Format, uint32(r.Format))
	pb.Head = append(pb.Head, head)
	pb.Tables = append(pb.Tables, uint32(len(r.Tables)))
	for n := range r.Tables {
		if err := e.table(r, n); err != nil {
			return err
		}
	}
	return nil
}

func (e *runsEncoder) table(r sizedRun, n int) error {
	t, pb := &r.Tables[n], e.pb
	image := uint32(0)
	if t.Image != "" {
		image = uint32(n) + 1 // an image with another number is odd
	}
	if t.Caveat != nil || t.Failure != nil {
		caveat, err := json.Marshal(t.Caveat)
		if err != nil {
			return err
		}
		failure, err := json.Marshal(t.Failure)
		if err != nil {
			return err
		}
		pb.Failures = append(pb.Failures, &indexpb.Failure{Table: uint32(len(pb.Table)), Caveat: string(caveat), Failure: string(failure)})
	}
	pb.Table = append(pb.Table, e.word(t.Table.String()))
	pb.Image = append(pb.Image, image)
	pb.SnapshotStarted = append(pb.SnapshotStarted, behind(t.SnapshotStarted, r.Started))
	pb.SnapshotFinished = append(pb.SnapshotFinished, behind(t.SnapshotFinished, r.Started))
	pb.Regions = append(pb.Regions, int64(t.Totals.Regions))
	pb.Files = append(pb.Files, int64(t.Totals.Files))
	pb.Bytes = append(pb.Bytes, t.Totals.Bytes)
	pb.Cells = append(pb.Cells, t.Totals.Cells)
	pb.CopiedFiles = append(pb.CopiedFiles, int64(t.CopiedFiles))
	pb.CopiedBytes = append(pb.CopiedBytes, t.CopiedBytes)
	return nil
}

func encodeJobs(jobs []catalog.RememberedJob) ([]byte, error) {
	pb := &indexpb.Jobs{}
	var requests, backups strings.Builder
	verbs := map[string]uint32{}
	for _, j := range jobs {
		verb, ok := verbs[j.Verb]
		if !ok {
			verb = uint32(len(verbs))
			verbs[j.Verb] = verb
			pb.Verbs = append(pb.Verbs, j.Verb)
		}
		requests.WriteString(string(j.Request))
		backups.WriteString(string(j.Backup))
		pb.RequestLength = append(pb.RequestLength, uint32(len(j.Request)))
		pb.BackupLength = append(pb.BackupLength, uint32(len(j.Backup)))
		pb.Verb = append(pb.Verb, verb)
	}
	pb.Requests, pb.Backups = requests.String(), backups.String()
	return proto.Marshal(pb)
}
