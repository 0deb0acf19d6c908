package committer

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hbackup"
	"hbackup/internal/failpoint"
	"hbackup/storage"
)

// Deferred is the committer for places where an object that nobody wants could
// not be deleted again. Store files are held by the store as uploads that nobody
// sees; they become objects when the image is about to be committed, and a run
// that fails or dies before leaves nothing but uploads, which can be dropped.
//
// Every upload is on record in the location before its first byte is sent, so
// that whoever comes later finds it: the same request, to go on from there, or
// another run, to drop it.
type Deferred struct {
	store  storage.Store
	holder storage.Holder
	folder string
	keeps  bool
}

// NewDeferred gives the committer of one image. The folder of its job record ends
// in '/'; keeps says that records cannot be deleted.
func NewDeferred(s storage.Store, h storage.Holder, folder string, keeps bool) *Deferred {
	return &Deferred{store: s, holder: h, folder: folder, keeps: keeps}
}

// Protocol says ProtocolDeferred.
func (*Deferred) Protocol() Protocol { return ProtocolDeferred }

// Begin starts an attempt at the image. Nothing is written yet.
func (d *Deferred) Begin(guard Guard) *Image {
	return &Image{store: d.store, guard: guard, files: &heldFiles{
		Deferred: d, attempt: rand.Text(), receipts: map[storage.Key]storage.Receipt{}, opened: map[string]storage.Ticket{},
		fresh: map[storage.Key]storage.Ticket{}, tickets: map[storage.Key]storage.Ticket{},
		intended: map[storage.Key]bool{}, doubtful: map[storage.Key]bool{}, earlier: map[storage.Key]Filled{},
	}}
}

const (
	openAhead  = 64      // uploads opened and recorded together
	openBeside = 8       // requests at a time for that
	flushAfter = 64      // receipts that wait for the record at most
	flushBytes = 1 << 30 // bytes that they stand for at most
	finishers  = 16      // uploads that are finished at a time
	finishTrys = 3
)

// heldFiles are the store files of one attempt.
type heldFiles struct {
	*Deferred
	attempt string

	opening sync.Mutex // held while uploads are opened and put on record

	mu       sync.Mutex
	queue    []storage.Key                   // expected keys that are not opened yet, in order
	opened   map[string]storage.Ticket       // all, by upload id
	fresh    map[storage.Key]storage.Ticket  // not on record yet
	tickets  map[storage.Key]storage.Ticket  // on record
	receipts map[storage.Key]storage.Receipt // what is to be finished
	intended map[storage.Key]bool            // on record, without a ticket
	doubtful map[storage.Key]bool            // of which an upload may exist without a ticket
	pending  segment                         // not on record yet
	bytes    int64                           // that pending receipts stand for
	segments int
	earlier  map[storage.Key]Filled // of earlier attempts
	attempts []*attempt             // the earlier ones
	settled  Accounted              // of them
	finished bool
}

// expect puts the keys in line. They are opened in this order.
func (h *heldFiles) expect(keys []storage.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue = append(h.queue, keys...)
}

// put fills the upload of the key.
func (h *heldFiles) put(ctx context.Context, key storage.Key, size int64, body io.Reader) (storage.Object, error) {
	t, err := h.ticket(ctx, key)
	if err != nil {
		return storage.Object{}, err
	}
	r, err := h.holder.FillUpload(ctx, t, body, storage.PutOptions{Size: size})
	if err != nil {
		if hbackup.IsKind(err, hbackup.KindConflict) { // the upload is gone
			h.forget(key)
		}
		return storage.Object{}, err
	}
	h.mu.Lock()
	h.receipts[key] = r
	h.mu.Unlock()
	failpoint.Hit(StepUploadFilled)
	return r.Object(time.Time{}), nil
}

func (h *heldFiles) forget(key storage.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.tickets, key)
	delete(h.receipts, key)
}

// ticket gives the recorded ticket of a key, and opens its upload, together with
// those of the keys that come next, when it has none.
func (h *heldFiles) ticket(ctx context.Context, key storage.Key) (storage.Ticket, error) {
	if t, ok := h.known(key); ok {
		return t, nil
	}
	h.opening.Lock()
	defer h.opening.Unlock()
	if t, ok := h.known(key); ok {
		return t, nil
	}
	if err := h.open(ctx, key); err != nil {
		return storage.Ticket{}, err
	}
	t, _ := h.known(key)
	return t, nil
}

func (h *heldFiles) known(key storage.Key) (storage.Ticket, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := h.tickets[key]
	return t, ok
}

// open opens the upload of the key and those of the next keys in line, and gives
// their tickets out once they are on record. The keys are on record before.
func (h *heldFiles) open(ctx context.Context, key storage.Key) error {
	batch := h.nextBatch(key)
	if err := h.intend(ctx, batch); err != nil {
		return err
	}
	failpoint.Hit(StepUploadsIntended)
	var mu sync.Mutex
	var opened []storage.Ticket
	var failure error
	var g errgroup.Group
	g.SetLimit(openBeside)
	for _, k := range batch {
		if h.isFresh(k) { // it could not be recorded before
			continue
		}
		g.Go(func() error {
			t, err := h.holder.OpenUpload(ctx, k, h.attempt)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				h.doubt(k)
				if k == key {
					failure = err
				}
				return nil // it is asked for again when its turn comes
			}
			t.Doubtful = t.Doubtful || h.doubted(k)
			opened = append(opened, t)
			failpoint.Hit(StepUploadOpened)
			return nil
		})
	}
	g.Wait() // every failure is noted
	// Also those of a batch that has failed go on record, and also when the run is
	// being interrupted: they are there.
	h.mu.Lock()
	for _, t := range opened {
		h.opened[t.ID], h.fresh[t.Key] = t, t
	}
	h.mu.Unlock()
	if err := h.record(context.WithoutCancel(ctx), segment{Opened: opened, Intended: h.lookAhead()}); err != nil {
		return errors.Join(failure, err)
	}
	h.mu.Lock()
	maps.Copy(h.tickets, h.fresh)
	clear(h.fresh)
	h.mu.Unlock()
	failpoint.Hit(StepUploadsRecorded)
	return failure
}

// nextBatch takes the key and what comes next out of the line.
func (h *heldFiles) nextBatch(key storage.Key) []storage.Key {
	h.mu.Lock()
	defer h.mu.Unlock()
	batch := []storage.Key{key}
	if i := slices.Index(h.queue[:min(len(h.queue), 2*openAhead)], key); i >= 0 {
		h.queue = slices.Delete(h.queue, i, i+1)
	}
	for len(batch) < openAhead && len(h.queue) > 0 {
		next := h.queue[0]
		h.queue = h.queue[1:]
		if _, open := h.tickets[next]; !open && next != key && h.fresh[next] == (storage.Ticket{}) {
			batch = append(batch, next)
		}
	}
	return batch
}

// lookAhead gives the keys that the next batch will open, so that one segment
// records both them and the tickets of this one.
func (h *heldFiles) lookAhead() []storage.Key {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.queue[:min(len(h.queue), openAhead)])
}

// intend puts those of the keys on record that are not yet.
func (h *heldFiles) intend(ctx context.Context, keys []storage.Key) error {
	var fresh []storage.Key
	h.mu.Lock()
	for _, k := range keys {
		if !h.intended[k] {
			fresh = append(fresh, k)
		}
	}
	h.mu.Unlock()
	if fresh == nil {
		return nil
	}
	return h.record(ctx, segment{Intended: fresh})
}

func (h *heldFiles) isFresh(key storage.Key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.fresh[key]
	return ok
}

func (h *heldFiles) doubt(key storage.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.doubtful[key] = true
}

func (h *heldFiles) doubted(key storage.Key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.doubtful[key]
}

// passed says that the file under the key was judged good: it waits for the
// record, and once there, a later process need not copy it again. When the record
// cannot be written now the next segment says it, and publish insists.
func (h *heldFiles) passed(ctx context.Context, key storage.Key, cells int64) {
	h.mu.Lock()
	r, ok := h.receipts[key]
	if !ok {
		h.mu.Unlock()
		return
	}
	h.pending.Filled = append(h.pending.Filled, Filled{Receipt: r, Cells: cells})
	h.bytes += r.Size
	full := len(h.pending.Filled) >= flushAfter || h.bytes >= flushBytes
	h.mu.Unlock()
	if !full {
		return
	}
	h.opening.Lock()
	defer h.opening.Unlock()
	_ = h.record(ctx, segment{})
}

// record writes a segment with what is given and what waits. The caller holds
// opening, so that segments are written one after the other.
func (h *heldFiles) record(ctx context.Context, add segment) error {
	h.mu.Lock()
	h.pending.Intended = append(h.pending.Intended, add.Intended...)
	h.pending.Opened = append(h.pending.Opened, add.Opened...)
	g := h.pending
	h.pending, h.bytes = segment{}, 0
	if len(g.Intended)+len(g.Opened)+len(g.Filled) == 0 {
		h.mu.Unlock()
		return nil
	}
	h.segments++
	n := h.segments
	h.mu.Unlock()
	g.Attempt = h.attempt
	err := g.write(ctx, h.store, h.folder, n)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil { // the next one says it
		h.pending.Intended = append(g.Intended, h.pending.Intended...)
		h.pending.Opened = append(g.Opened, h.pending.Opened...)
		h.pending.Filled = append(g.Filled, h.pending.Filled...)
		return err
	}
	for _, k := range g.Intended {
		h.intended[k] = true
	}
	return nil
}

// takeOver reads what earlier attempts at the image have left.
func (h *heldFiles) takeOver(ctx context.Context, settled Accounted) (map[storage.Key]Filled, error) {
	all, err := readAttempts(ctx, h.store, h.folder)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settled = settled
	for _, a := range all {
		if a.closed || a.damaged != nil {
			continue
		}
		h.attempts = append(h.attempts, a)
		maps.Copy(h.earlier, a.filled)
	}
	return maps.Clone(h.earlier), nil
}

// adopt makes an upload of an earlier attempt one of this image's.
func (h *heldFiles) adopt(key storage.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f, ok := h.earlier[key]; ok {
		h.receipts[key] = f.Receipt
	}
}

// publish finishes every upload.
func (h *heldFiles) publish(ctx context.Context) error {
	h.opening.Lock()
	err := h.record(ctx, segment{})
	h.opening.Unlock()
	if err != nil {
		return err
	}
	failpoint.Hit(StepUploadsSealed)
	h.mu.Lock()
	keys := slices.Sorted(maps.Keys(h.receipts))
	h.mu.Unlock()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(finishers)
	for _, key := range keys {
		g.Go(func() error {
			if gctx.Err() != nil {
				return context.Cause(gctx)
			}
			if err := h.finish(gctx, h.receipts[key]); err != nil {
				return err
			}
			failpoint.Hit(StepUploadFinished)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	h.mu.Lock()
	h.finished = true
	h.mu.Unlock()
	failpoint.Hit(StepUploadsFinished)
	return nil
}

// finish makes one upload visible. An object of somebody else's under the key is
// read: with the same bytes it is as good.
func (h *heldFiles) finish(ctx context.Context, r storage.Receipt) error {
	for try := 1; ; try++ {
		_, err := h.holder.FinishUpload(ctx, r)
		switch {
		case err == nil:
			return nil
		case hbackup.IsKind(err, hbackup.KindExists):
			return h.sameBytes(ctx, r, err)
		case !hbackup.Retryable(err) || try == finishTrys || ctx.Err() != nil:
			return err
		}
	}
}

// sameBytes fails unless the object under the key has the bytes of the receipt;
// then the upload is of no more use.
func (h *heldFiles) sameBytes(ctx context.Context, r storage.Receipt, cause error) error {
	if err := h.compare(ctx, r, cause); err != nil {
		return err
	}
	return h.holder.DropUpload(ctx, r.Ticket)
}

// compare reads the object. It is closed when this returns: a store may be allowed
// one call at a time.
func (h *heldFiles) compare(ctx context.Context, r storage.Receipt, cause error) error {
	body, o, err := h.store.Get(ctx, r.Key, storage.Range{})
	if err != nil {
		return err
	}
	defer body.Close() // only read from
	if o.Size != r.Size {
		return hbackup.E("finish upload", h.store.Location().At(r.Key), hbackup.KindConflict, cause)
	}
	if _, err := io.Copy(io.Discard, storage.VerifyReader(body, r.Size, r.Digest)); err != nil {
		if hbackup.IsKind(err, hbackup.KindCorrupt, hbackup.KindIncomplete) {
			return hbackup.E("finish upload", h.store.Location().At(r.Key), hbackup.KindConflict, errors.Join(cause, err))
		}
		return err
	}
	return nil
}

// end drops what was not finished and closes the record of this attempt and of
// those before it.
func (h *heldFiles) end(ctx context.Context) error {
	h.opening.Lock()
	defer h.opening.Unlock()
	h.mu.Lock()
	done := map[string]bool{} // uploads that were finished
	if h.finished {
		for _, r := range h.receipts {
			done[r.ID] = true
		}
	}
	mine := &attempt{name: h.attempt, intended: h.intended, opened: h.opened}
	for n := range h.segments {
		mine.keys = append(mine.keys, segmentKey(h.folder, h.attempt, n+1))
	}
	all := append(slices.Clone(h.attempts), mine)
	h.mu.Unlock()
	var errs []error
	for _, a := range all {
		if len(a.keys) == 0 {
			continue
		}
		errs = append(errs, h.settle(ctx, a, done))
	}
	failpoint.Hit(StepRecordClosed)
	return errors.Join(errs...)
}

// settle drops the uploads of an attempt that were not finished and closes its
// record. An attempt of which there may be an upload without a ticket stays open
// for a later run, which can tell whether anybody else is at work.
func (h *heldFiles) settle(ctx context.Context, a *attempt, done map[string]bool) error {
	if err := dropAll(ctx, h.holder, a.opened, done); err != nil {
		return err
	}
	lost := false
	for _, k := range a.unaccounted() {
		if h.mayBeOpen(a, k) {
			lost = true
		}
	}
	if lost {
		return nil
	}
	return closeRecord(ctx, h.store, h.folder, a.name, a.keys, h.keeps)
}

// mayBeOpen reports whether an upload of an unaccounted key can exist: of this
// attempt's own keys that were never asked for none can.
func (h *heldFiles) mayBeOpen(a *attempt, k storage.Key) bool {
	if a.name != h.attempt {
		return !h.settled[a.name]
	}
	t, ticket := h.known(k)
	return ticket && t.Doubtful || h.doubted(k)
}

// dropAll drops uploads, but for those that were finished.
func dropAll(ctx context.Context, h storage.Holder, tickets map[string]storage.Ticket, done map[string]bool) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(finishers)
	for id, t := range tickets {
		if !done[id] {
			g.Go(func() error { return h.DropUpload(gctx, t) })
		}
	}
	return g.Wait()
}
