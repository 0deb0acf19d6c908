package backup

import (
	"context"
	"io"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/committer"
	"hbackup/hbase/hfile"
	"hbackup/hbase/snapshot"
)

// attempts bounds how often a file is tried when the cluster or the store is
// unreachable for a moment.
const attempts = 3

// copyFile brings one file from the cluster into the location, over what is there
// or not, and says what it was: size, digest and number of cells. A file that is
// there by now, good, is used.
func (r *run) copyFile(ctx context.Context, im *committer.Image, mob *mobFiles, n need, over bool) (catalog.File, bool, error) {
	var err error
	for try := range attempts {
		if try > 0 {
			if werr := wait(ctx, time.Duration(try)*time.Second); werr != nil {
				return catalog.File{}, false, err
			}
			r.opts.Log.Warn("copying a file again", "file", n.key(), "after", err)
		}
		var f catalog.File
		var there bool
		f, there, err = r.copyOnce(ctx, im, mob, n, over)
		if err == nil || !hbackup.Retryable(err) || ctx.Err() != nil {
			return f, there, err
		}
	}
	return catalog.File{}, false, err
}

// copyOnce puts the file under its name, or over what is there.
func (r *run) copyOnce(ctx context.Context, im *committer.Image, mob *mobFiles, n need, over bool) (f catalog.File, there bool, err error) {
	f = n.file()
	body, info, err := snapshot.Open(ctx, r.src.FS, r.src.Root, n.target, 0)
	if err != nil {
		return f, false, err
	}
	defer body.Close() // only read from
	if n.size >= 0 && info.Size != n.size {
		return f, false, hbackup.Errorf("read store file", r.src.FS.URI()+info.Path, hbackup.KindCorrupt, "it has %d bytes, the snapshot's manifest says %d", info.Size, n.size)
	}
	checked := r.check(body, info.Size, r.src.FS.URI()+info.Path, mob.concerns(n))
	put := im.PutFile
	if over {
		put = im.Replace
	}
	o, err := put(ctx, n.key(), info.Size, checked)
	if hbackup.IsKind(err, hbackup.KindExists) {
		// Somebody, or an earlier try whose answer was lost, has put it there.
		f, err = r.prove(ctx, mob, n)
		return f, true, err
	}
	if err != nil {
		return f, false, err
	}
	cells, err := checked.cells()
	if err != nil {
		return f, false, err
	}
	mob.saw(n, checked.summary)
	f.Size, f.Digest, f.Cells = info.Size, o.Digest, cells
	return f, false, nil
}

// onlyReader hides WriteTo, so that the buffer's size is ours.
type onlyReader struct{ io.Reader }

// checkedBody lets a store file's bytes pass and checks them as an HFile. The
// verdict comes before the last byte is given away: a store that waits for the
// end of the body never publishes a damaged file.
type checkedBody struct {
	r       io.Reader
	left    int64
	v       *hfile.Verifier
	path    string
	summary hfile.Summary
	done    bool
	err     error
}

// check makes the body of a store file. One that may name MOB files is always
// read closely.
func (r *run) check(body io.Reader, size int64, path string, closely bool) *checkedBody {
	v := hfile.NewVerifier(size)
	if r.opts.SkipChecksums && !closely {
		v.SkipChecksums()
	}
	return &checkedBody{r: body, left: size, v: v, path: path}
}

func (c *checkedBody) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.r.Read(p)
	if n > 0 && int64(n) <= c.left {
		if _, verr := c.v.Write(p[:n]); verr != nil {
			return 0, c.fail(verr)
		}
		c.left -= int64(n)
	}
	if c.left == 0 && !c.done {
		c.done = true
		var verr error
		if c.summary, verr = c.v.Close(); verr != nil {
			return 0, c.fail(verr)
		}
	}
	return n, err
}

func (c *checkedBody) fail(err error) error {
	c.err = hbackup.E("check store file", c.path, hbackup.KindCorrupt, err).
		WithHint("the file is damaged where it lies: look at the data node's disks (hdfs fsck), compact or restore the region")
	return c.err
}

// cells gives the number of entries once the whole body has passed.
func (c *checkedBody) cells() (int64, error) {
	if !c.done {
		return 0, hbackup.Errorf("check store file", c.path, hbackup.KindIncomplete, "%d bytes never passed", c.left)
	}
	return c.summary.Entries, nil
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
