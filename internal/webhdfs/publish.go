package webhdfs

import (
	"context"
	"net/http"
	"path"
	"strings"

	"hbackup"
	"hbackup/internal/files"
)

// maxLost is how many answers to one Publish may be lost before it gives up.
const maxLost = 3

// Publish gives a file, as its Writer's Info describes it, another name: in one
// step, which either happens or not. Without replace the name must be free, which
// the name node judges, so of all who publish under one name one wins and the
// others get KindExists; with replace a file that has the name goes in the same
// step. A directory is never replaced (KindConflict). The parent must exist
// (KindNotFound).
//
// HttpFS has only the rename of old, which replaces nothing (so replace is
// KindUnsupported when the name is taken), and which moves a file into a directory
// that has the name: should one come into being in that very moment, the file is
// taken out of it again.
//
// When the answer is lost, the file's identity tells whether it was done. Only when
// that cannot be seen either is the outcome unknown, and the error of
// KindUnavailable, KindTimeout or KindInterrupted.
func (h *FS) Publish(ctx context.Context, file files.Info, to string, replace bool) error {
	const op = "publish"
	if err := h.check(ctx, op, to); err != nil {
		return err
	}
	if err := files.CheckNotRoot(op, h.uri(to), to); err != nil {
		return err
	}
	if h.gateway.Load() {
		if strings.TrimSpace(to) != to {
			return hbackup.Errorf(op, h.uri(to), hbackup.KindUnsupported, "HttpFS would drop the space at the end of the name")
		}
		there, err := h.Stat(ctx, to)
		if !hbackup.IsKind(err, hbackup.KindNotFound) {
			if err == nil {
				err = h.inTheWay(there, to, replace)
			}
			return err
		}
	}
	for losses := 0; ; losses++ {
		done, err := h.rename(ctx, file.Path, to, replace)
		unknown := isLost(err)
		if err != nil && ctx.Err() != nil {
			return h.explain(ctx, op, to, err)
		}
		if done == renamed {
			return nil
		}
		if losses == 0 && err != nil && !unknown && !hbackup.IsKind(err, hbackup.KindExists, hbackup.KindNotFound, hbackup.KindConflict, hbackup.KindOther) {
			return err // what is there does not matter
		}
		there, statErr := h.Stat(ctx, to)
		switch {
		case statErr == nil && h.isSame(ctx, file, there):
			return nil
		case statErr == nil && there.Dir && done == renamedOrMoved:
			return h.takeOut(ctx, file, to)
		case statErr == nil && done != renamedOrMoved && (there.Dir || !replace || h.gateway.Load()):
			return h.inTheWay(there, to, replace)
		case statErr != nil && !hbackup.IsKind(statErr, hbackup.KindNotFound) && (unknown || losses > 0 || err == nil):
			return statErr
		case done == renamedOrMoved:
			return hbackup.Errorf(op, h.uri(to), hbackup.KindUnavailable, "it cannot be told whether it was done: HttpFS says so, and the file is not there")
		case losses > 0 && (err == nil || hbackup.IsKind(err, hbackup.KindNotFound)):
			// An answer was lost, and the file is under neither name any more.
			return hbackup.Errorf(op, h.uri(to), hbackup.KindUnavailable, "it cannot be told whether it was done: the name node's answer was lost and the file is gone")
		case err == nil: // HttpFS says no, and nothing is there: so the parent is missing, or the file
			return hbackup.Errorf(op, h.uri(to), hbackup.KindNotFound, "the directory or the file to be published is missing")
		case !unknown || losses == maxLost:
			return err
		}
	}
}

// inTheWay is the error of a name that is taken.
func (h *FS) inTheWay(there files.Info, to string, replace bool) error {
	const op = "publish"
	switch {
	case there.Dir:
		return hbackup.Errorf(op, h.uri(to), hbackup.KindConflict, "there is a directory under this name")
	case replace:
		return hbackup.Errorf(op, h.uri(to), hbackup.KindUnsupported, "HttpFS cannot replace a file in one step").
			WithHint("reach HDFS through WebHDFS of the name nodes, or natively")
	}
	return hbackup.Errorf(op, h.uri(to), hbackup.KindExists, "there is a file under this name")
}

// isSame reports whether what is there is the file that was to be published. Where
// nobody tells numbers, the file is known by its size and time, and by having left
// its old name, which nobody else takes away.
func (h *FS) isSame(ctx context.Context, file, there files.Info) bool {
	if file.ID != 0 && there.ID != 0 {
		return file.ID == there.ID
	}
	if there.Dir || file.Size != there.Size || !file.Modified.Equal(there.Modified) {
		return false
	}
	_, err := h.Stat(ctx, file.Path)
	return hbackup.IsKind(err, hbackup.KindNotFound)
}

// takeOut removes the file from the directory that it was moved into.
func (h *FS) takeOut(ctx context.Context, file files.Info, dir string) error {
	moved := path.Join(dir, path.Base(file.Path))
	if err := h.Remove(ctx, moved); err != nil {
		return err
	}
	return h.inTheWay(files.Info{Dir: true}, dir, false)
}

// outcome is what an answer to a rename says.
type outcome int

const (
	notRenamed     outcome = iota // or nobody knows: see the error
	renamed                       // by the rename with options: just so
	renamedOrMoved                // by the rename of old, into a directory of that name if there is one
)

// rename asks once. Without an error and notRenamed, the answer is a plain no.
func (h *FS) rename(ctx context.Context, from, to string, replace bool) (done outcome, err error) {
	options := "NONE"
	if replace {
		options = "OVERWRITE"
	}
	c := call{op: "publish", method: http.MethodPut, path: from, once: true,
		query: query("RENAME", "destination", to, "renameoptions", options)}
	err = h.ask(ctx, c, func(resp *http.Response) error {
		if err := h.direct(resp); err != nil {
			return err
		}
		if !jsonAnswer(resp) {
			done = renamed
			return nil
		}
		h.gateway.Store(true)
		yes, err := readBool(resp.Body)
		if err == nil && yes {
			done = renamedOrMoved
		}
		return err
	})
	return done, err
}
