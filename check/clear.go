package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"hbackup"
	"hbackup/storage"
)

// clearFor bounds the clearing away, also after an interruption.
const clearFor = 2 * time.Minute

// clear removes all that the trial wrote, also when the context has ended, and
// says what is left.
func (t *trial) clear(ctx context.Context) (left string) {
	if !t.wrote {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearFor)
	defer cancel()
	err := t.deleteAll(ctx)
	if t.inspector != nil {
		err = errors.Join(err, t.inspector.Sweep(ctx, t.prefix))
	}
	if err == nil {
		t.ok("cleared away", "nothing of the trial is left")
		return ""
	}
	left = fmt.Sprintf("something of the trial may be left below %s: %s", t.s.Location().At(storage.Key(t.prefix)), strings.ReplaceAll(err.Error(), "\n", "; "))
	t.warn("cleared away", left, "remove it by other means; hbackup never looks at it again")
	return left
}

// deleteAll removes the objects below the prefix. It looks again until there are
// none, as a store under trial may list less than it has.
func (t *trial) deleteAll(ctx context.Context) error {
	const most = 1000 // keys at a time
	for {
		var keys []storage.Key
		for o, err := range t.s.List(ctx, t.prefix, storage.ListOptions{}) {
			if err != nil {
				return err
			}
			if keys = append(keys, o.Key); len(keys) == most {
				break
			}
		}
		if len(keys) == 0 {
			return nil
		}
		failures, err := t.s.DeleteBatch(ctx, keys)
		if err != nil {
			return err
		}
		if len(failures) > 0 {
			return hbackup.E(fmt.Sprintf("delete %d objects, one of them", len(failures)), "", hbackup.KindOther, failures[0].Err)
		}
		if still, err := storage.Exists(ctx, t.s, keys[0]); still || err != nil {
			return hbackup.E("delete", t.s.Location().At(keys[0]), hbackup.KindOther, errors.Join(err, errStillThere))
		}
	}
}

var errStillThere = errors.New("it is still there")
