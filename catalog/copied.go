package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"hbackup"
	"hbackup/storage"
)

// CopiedFormat is the version of records of copied files that is written, and the
// newest that is read.
const CopiedFormat = 1

// Copied says of files that a run has brought into the location what they are, so
// that the same run, continued after a kill, need not read them again. It is a help
// and no truth: nothing but the run itself looks at it, and without it the files are
// proven.
type Copied struct {
	Files []CopiedFile
	// Unchecked says that the HFiles' checksums were not looked at.
	Unchecked bool
}

// CopiedFile is one file: whole, and judged good when it was put.
type CopiedFile struct {
	Key    storage.Key    `json:"key"`
	Size   int64          `json:"size"`
	Digest storage.Digest `json:"digest"`
	Cells  int64          `json:"cells"`
}

// copiedRecord is a Copied as it is stored.
type copiedRecord struct {
	Format    int             `json:"format"`
	Request   string          `json:"request_digest"` // Job.Digest of the request that it is for
	Unchecked bool            `json:"unchecked,omitempty"`
	Digest    storage.Digest  `json:"digest"` // of the bytes of files
	Files     json.RawMessage `json:"files"`
}

// CopiedPrefix is where all records of copied files of a request are, with a
// trailing '/'.
func CopiedPrefix(r hbackup.RequestID) string { return jobsPrefix + string(r) + "/copied/" }

// CopiedFolder is where those of one image are.
func CopiedFolder(r hbackup.RequestID, id hbackup.ImageID) string {
	return CopiedPrefix(r) + string(id) + "/"
}

// WriteCopied puts a record for the job.
func WriteCopied(ctx context.Context, s storage.Store, key storage.Key, j Job, c Copied) error {
	files, err := json.Marshal(c.Files)
	if err != nil {
		return err
	}
	data, err := json.Marshal(copiedRecord{Format: CopiedFormat, Request: j.RequestDigest(), Unchecked: c.Unchecked, Digest: storage.DigestOf(files), Files: files})
	if err != nil {
		return err
	}
	if _, err := storage.PutBytes(ctx, s, key, append(data, '\n'), true); err != nil {
		return hbackup.E("record copied files", s.Location().At(key), hbackup.KindOther, err)
	}
	return nil
}

// ReadCopied reads a record. One that is damaged, or for another request, is
// KindCorrupt.
func ReadCopied(ctx context.Context, s storage.Store, key storage.Key, j Job) (c Copied, err error) {
	var r copiedRecord
	if err := read(ctx, s, key, &r, &r.Format, CopiedFormat); err != nil {
		return c, err
	}
	if r.Request != j.RequestDigest() {
		return c, hbackup.E("read copied files", s.Location().At(key), hbackup.KindCorrupt, fmt.Errorf("they are of another request"))
	}
	if storage.DigestOf(r.Files) != r.Digest {
		return c, hbackup.E("read copied files", s.Location().At(key), hbackup.KindCorrupt, fmt.Errorf("the record is damaged"))
	}
	c.Unchecked = r.Unchecked
	if err := json.Unmarshal(r.Files, &c.Files); err != nil {
		return c, hbackup.E("read copied files", s.Location().At(key), hbackup.KindCorrupt, err)
	}
	return c, nil
}

// RequestDigest is the SHA-256, in hexadecimal, of what was asked and of the run that
// it is bound to: the same for each process that works on it.
func (j *Job) RequestDigest() string {
	data, err := json.Marshal(struct {
		Request       hbackup.RequestID
		Verb          string
		Backup        hbackup.BackupID
		Cluster       hbackup.ClusterName
		Tables        []hbackup.TableName `json:",omitempty"` // empty or nil: it is the same when it was stored and read
		Selection     *hbackup.Selection
		FromSnapshot  string `json:",omitempty"`
		Image         hbackup.ImageID
		TargetCluster hbackup.ClusterName
		TargetTable   hbackup.TableName
	}{j.Request, j.Verb, j.Backup, j.Cluster, j.Tables, j.Selection, j.FromSnapshot, j.Image, j.TargetCluster, j.TargetTable})
	if err != nil {
		panic(err) // strings alone
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
