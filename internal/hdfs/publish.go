package hdfs

import (
	"context"

	"hbackup"
	"hbackup/internal/files"
)

// maxLost is how many answers to one Publish may be lost before it gives up.
const maxLost = 3

// Publish gives a file, as its Writer's Info describes it, another name: in one
// step, which either happens or not. Without replace the name must be free,
// which the name node judges, so of all who publish under one name one wins and
// the others get KindExists; with replace a file that has the name goes in the
// same step. A directory is never replaced (KindConflict). The parent must exist
// (KindNotFound).
//
// When the name node's answer is lost, the file's inode number tells whether it
// was done. Only when that cannot be seen either is the outcome unknown, and the
// error of KindUnavailable, KindTimeout or KindInterrupted.
func (h *FS) Publish(ctx context.Context, file files.Info, to string, replace bool) error {
	const op = "publish"
	if err := h.check(ctx, op, to); err != nil {
		return err
	}
	if err := files.CheckNotRoot(op, h.uri(to), to); err != nil {
		return err
	}
	for lost := 0; ; lost++ {
		unknown := false
		err := h.call(ctx, op, to, once, func(s *session) error {
			s.allowReplacing(replace)
			s.lookAway()
			err := s.client.Rename(file.Path, to)
			unknown = err != nil && s.outcomeUnknown()
			return err
		})
		if err == nil || ctx.Err() != nil {
			return err
		}
		if lost == 0 && !unknown && !hbackup.IsKind(err, hbackup.KindExists, hbackup.KindNotFound, hbackup.KindConflict, hbackup.KindOther) {
			return err // what is there does not matter
		}
		there, statErr := h.Stat(ctx, to)
		switch {
		case statErr == nil && there.ID != 0 && there.ID == file.ID:
			return nil
		case statErr == nil && there.Dir:
			return hbackup.Errorf(op, h.uri(to), hbackup.KindConflict, "there is a directory under this name")
		case statErr == nil && !replace:
			return hbackup.Errorf(op, h.uri(to), hbackup.KindExists, "there is a file under this name")
		case statErr != nil && !hbackup.IsKind(statErr, hbackup.KindNotFound) && (unknown || lost > 0):
			return statErr
		case lost > 0 && hbackup.IsKind(err, hbackup.KindNotFound):
			// An answer was lost, and the file is under neither name any more.
			return hbackup.Errorf(op, h.uri(to), hbackup.KindUnavailable, "it cannot be told whether it was done: the name node's answer was lost and the file is gone")
		case !unknown || lost == maxLost:
			return err
		}
	}
}
