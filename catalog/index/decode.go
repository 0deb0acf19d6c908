package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/catalog"
	"hbackup/catalog/index/indexpb"
)

// errBlock is about a block whose columns do not fit together.
var errBlock = errors.New("a block of the index makes no sense")

func timeOf(n int64) time.Time {
	if n == noTime {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// unmarshalRuns decodes a block: the runs, and the sizes of their records.
func unmarshalRuns(b []byte) ([]catalog.Entry, []int64, error) {
	pb := &indexpb.Runs{}
	if err := proto.Unmarshal(b, pb); err != nil {
		return nil, nil, err
	}
	runs, err := decodeRuns(pb)
	return runs, pb.Size, err
}

// fits reports whether the columns have as many entries as they should.
func fits(pb *indexpb.Runs) bool {
	n, tables := len(pb.Size), len(pb.Table)
	if len(pb.Ids) != n*idBytes || len(pb.RequestLength) != n || len(pb.Started) != n || len(pb.Finished) != n ||
		len(pb.Format) != n || len(pb.Head) != n || len(pb.Tables) != n {
		return false
	}
	for _, column := range [][]int64{pb.SnapshotStarted, pb.SnapshotFinished, pb.Regions, pb.Files, pb.Bytes, pb.Cells, pb.CopiedFiles, pb.CopiedBytes} {
		if len(column) != tables {
			return false
		}
	}
	return len(pb.Image) == tables
}

// decodeRuns turns columns into runs. Strings are shared with the block.
func decodeRuns(pb *indexpb.Runs) ([]catalog.Entry, error) {
	if !fits(pb) {
		return nil, errBlock
	}
	heads, err := decodeHeads(pb)
	if err != nil {
		return nil, err
	}
	tables, err := decodeTables(pb)
	if err != nil {
		return nil, err
	}
	runs := make([]catalog.Entry, len(pb.Size))
	requests := pb.Requests
	suffixes := imageSuffixes{}
	entry := 0 // of the tables
	for i := range runs {
		r := &runs[i]
		length, count := int(pb.RequestLength[i]), int(pb.Tables[i])
		if int(pb.Head[i]) >= len(heads) || length > len(requests) || count > len(tables)-entry {
			return nil, errBlock
		}
		r.Run = heads[pb.Head[i]]
		r.Format = int(pb.Format[i])
		r.ID = hbackup.BackupID(pb.Ids[i*idBytes : (i+1)*idBytes])
		r.Request, requests = hbackup.RequestID(requests[:length]), requests[length:]
		r.Started, r.Finished = timeOf(pb.Started[i]), timeOf(pb.Finished[i])
		if count == 0 {
			continue
		}
		r.Tables = tables[entry : entry+count : entry+count]
		start := r.Started.UnixNano()
		for n := range r.Tables {
			t := &r.Tables[n]
			if pb.Image[entry+n] != 0 {
				t.Image = hbackup.ImageID(string(r.ID) + suffixes.of(int(pb.Image[entry+n])-1))
			}
			if at := pb.SnapshotStarted[entry+n]; at != noTime {
				t.SnapshotStarted = time.Unix(0, start+at).UTC()
			}
			if at := pb.SnapshotFinished[entry+n]; at != noTime {
				t.SnapshotFinished = time.Unix(0, start+at).UTC()
			}
		}
		entry += count
	}
	if entry != len(tables) || requests != "" {
		return nil, errBlock
	}
	return runs, decodeOdd(pb, runs)
}

// imageSuffixes are the ends of image ids, by the image's number.
type imageSuffixes []string

func (s *imageSuffixes) of(n int) string {
	if n > 100_000 {
		return fmt.Sprintf(".%04d", n)
	}
	for len(*s) <= n {
		*s = append(*s, fmt.Sprintf(".%04d", len(*s)))
	}
	return (*s)[n]
}

// words looks words up and remembers whether all of them were there.
type words struct {
	list []string
	bad  bool
}

func (w *words) at(n uint32) string {
	if int(n) >= len(w.list) {
		w.bad = true
		return ""
	}
	return w.list[n]
}

func decodeHeads(pb *indexpb.Runs) ([]catalog.Run, error) {
	w := &words{list: pb.Words}
	heads := make([]catalog.Run, len(pb.Heads))
	for i, h := range pb.Heads {
		r := &heads[i]
		r.Cluster, r.ClusterID, r.HBaseVersion = hbackup.ClusterName(w.at(h.Cluster)), w.at(h.ClusterId), w.at(h.HbaseVersion)
		r.State, r.Host, r.Writer, r.Committer = catalog.State(w.at(h.State)), w.at(h.Host), w.at(h.Writer), w.at(h.Committer)
		if text := w.at(h.Selection); text != "" {
			if err := json.Unmarshal([]byte(text), &r.Selection); err != nil {
				return nil, err
			}
		}
		if text := w.at(h.Gone); text != "" {
			if err := json.Unmarshal([]byte(text), &r.Gone); err != nil {
				return nil, err
			}
		}
	}
	if w.bad {
		return nil, errBlock
	}
	return heads, nil
}

// decodeTables gives the tables of all runs; what depends on the run is missing.
func decodeTables(pb *indexpb.Runs) ([]catalog.TableRun, error) {
	names := make([]hbackup.TableName, len(pb.Words)) // parsed when first needed
	tables := make([]catalog.TableRun, len(pb.Table))
	for i, word := range pb.Table {
		if int(word) >= len(names) {
			return nil, errBlock
		}
		if names[word].IsZero() && pb.Words[word] != "" {
			name, err := hbackup.ParseTableName(pb.Words[word])
			if err != nil {
				return nil, err
			}
			names[word] = name
		}
		tables[i] = catalog.TableRun{Table: names[word],
			Totals:      catalog.Totals{Regions: int(pb.Regions[i]), Files: int(pb.Files[i]), Bytes: pb.Bytes[i], Cells: pb.Cells[i]},
			CopiedFiles: int(pb.CopiedFiles[i]), CopiedBytes: pb.CopiedBytes[i]}
	}
	for _, f := range pb.Failures {
		if int(f.Table) >= len(tables) {
			return nil, errBlock
		}
		t := &tables[f.Table]
		if err := json.Unmarshal([]byte(f.Caveat), &t.Caveat); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(f.Failure), &t.Failure); err != nil {
			return nil, err
		}
	}
	return tables, nil
}

func decodeOdd(pb *indexpb.Runs, runs []catalog.Entry) error {
	for _, o := range pb.Odd {
		if int(o.Run) >= len(runs) {
			return errBlock
		}
		r := &runs[o.Run]
		r.Run = catalog.Run{}
		if err := json.Unmarshal([]byte(o.Json), &r.Run); err != nil {
			return err
		}
	}
	return nil
}

// unmarshalJobs decodes a block.
func unmarshalJobs(b []byte) ([]catalog.RememberedJob, error) {
	pb := &indexpb.Jobs{}
	if err := proto.Unmarshal(b, pb); err != nil {
		return nil, err
	}
	n := len(pb.Verb)
	if len(pb.RequestLength) != n || len(pb.BackupLength) != n {
		return nil, errBlock
	}
	jobs := make([]catalog.RememberedJob, n)
	requests, backups := pb.Requests, pb.Backups
	for i := range jobs {
		request, backup := int(pb.RequestLength[i]), int(pb.BackupLength[i])
		if request > len(requests) || backup > len(backups) || int(pb.Verb[i]) >= len(pb.Verbs) {
			return nil, errBlock
		}
		jobs[i] = catalog.RememberedJob{Request: hbackup.RequestID(requests[:request]), Verb: pb.Verbs[pb.Verb[i]], Backup: hbackup.BackupID(backups[:backup])}
		requests, backups = requests[request:], backups[backup:]
	}
	if requests != "" || backups != "" {
		return nil, errBlock
	}
	return jobs, nil
}
