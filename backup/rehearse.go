package backup

import (
	"context"
	"crypto/rand"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/committer"
	"hbackup/storage"
)

// longestRun is how long a run is reckoned to take when it is asked what the
// store would do meanwhile. Stores round such moments up to the next day.
const longestRun = 48 * time.Hour

// rehearse begins an upload and gives it up, where the store knows uploads. So a
// right that is missing, and a rule of the store that would drop uploads under the
// run's hands, are found before a byte is sent. All runs do it under one key, so
// that what one that died in between has left is found and given up by the next.
func (r *run) rehearse(ctx context.Context) error {
	h, ok := storage.HolderOf(r.location)
	if !ok {
		return nil
	}
	key := storage.Key(catalog.ProbePrefix + "rehearsal")
	t, err := h.OpenUpload(ctx, key, rand.Text())
	if hbackup.IsKind(err, hbackup.KindUnsupported) && r.choice.Protocol != committer.ProtocolDeferred {
		return nil // small files need no uploads
	}
	if err != nil {
		return hbackup.E("try out an upload", string(r.location.Location()), hbackup.KindOther, err)
	}
	dctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	if err := h.DropUpload(dctx, t); err != nil {
		return hbackup.E("try out giving up an upload", string(r.location.Location()), hbackup.KindOther, err)
	}
	r.dropRehearsals(dctx, h, key)
	return r.mayLast(t)
}

// dropRehearsals gives up what others have begun. One that is at it meanwhile does
// not mind: its own has shown what it should, and may be given up twice.
func (r *run) dropRehearsals(ctx context.Context, h storage.Holder, key storage.Key) {
	left, err := h.OpenUploads(ctx, key)
	for _, t := range left {
		if derr := h.DropUpload(ctx, t); err == nil {
			err = derr
		}
	}
	if err != nil {
		r.opts.Log.Debug("uploads that were only tried out may be left", "key", key, "error", err)
	}
}

// mayLast looks whether the store keeps an upload as long as the run may need it.
func (r *run) mayLast(t storage.Ticket) error {
	if t.Expires.IsZero() || time.Until(t.Expires) > longestRun {
		return nil
	}
	const hint = "let the rule of the bucket (AbortIncompleteMultipartUpload) wait longer than the longest backup, a week is good"
	if r.choice.Protocol == committer.ProtocolDeferred {
		return hbackup.Errorf("try out an upload", string(r.location.Location()), hbackup.KindRefused,
			"a lifecycle rule would drop it at %s, and this backup holds its uploads until it commits", hbackup.FormatTime(t.Expires)).WithHint(hint)
	}
	r.opts.Log.Warn("a lifecycle rule of the bucket drops uploads soon after they begin", "at", hbackup.FormatTime(t.Expires), "hint", hint)
	return nil
}
