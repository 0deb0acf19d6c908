package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"testing/iotest"
	"time"

	"hbackup"
	"hbackup/storage"
)

// heldCases are the promises of storage.Holder.
var heldCases = []heldCase{
	{"InvisibleUntilFinished", brief, heldInvisible},
	{"FinishedAgain", brief, heldFinishedAgain},
	{"FinishedByMany", full, heldFinishedByMany},
	{"Dropped", brief, heldDropped},
	{"DroppedAfterFinish", full, heldDroppedAfterFinish},
	{"TwoUploadsOfOneKey", brief, heldTwins},
	{"TwoUploadsFinishAtOnce", full, heldTwinsAtOnce},
	{"KeyTaken", brief, heldKeyTaken},
	{"WrongReceipt", brief, heldWrongReceipt},
	{"BodyThatIsNot", full, heldBadBody},
	{"FilledAgain", full, heldFilledAgain},
	{"Neighbours", full, heldNeighbours},
	{"Unusable", full, heldUnusable},
	{"Cancelled", full, heldCancelled},
}

type heldCase struct {
	name  string
	brief bool
	run   func(*heldEnv)
}

// heldEnv is what a case of a Holder works with. Other is the same place as
// another process has it.
type heldEnv struct {
	*env
	h, other storage.Holder
	stamps   int
}

// RunHolder checks that the stores that open gives keep the contract of
// storage.Holder. Again opens the place of a store once more, as another process
// would; nil means that the store itself does.
func RunHolder[R runner[R]](t R, open func(t R) storage.Store, again func(t R, s storage.Store) storage.Store, opts ...Option) {
	t.Helper()
	o := defaults(opts)
	for _, c := range heldCases {
		t.Run(c.name, func(t R) {
			if reason, left := o.except[c.name]; left {
				t.Skip(reason)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			s := open(t)
			defer s.Close()
			twin := s
			if again != nil {
				twin = again(t, s)
				defer twin.Close()
			}
			h, ok := storage.HolderOf(s)
			other, ok2 := storage.HolderOf(twin)
			if !ok || !ok2 {
				t.Fatalf("the store of %s is no Holder", s.Location())
			}
			c.run(&heldEnv{env: &env{T: t, ctx: ctx, s: s, o: o}, h: h, other: other})
		})
	}
}

// HeldCases gives the promises of storage.Holder as cases, for stores that are one.
func HeldCases() []Case {
	var all []Case
	for _, c := range heldCases {
		all = append(all, Case{c.name, OnHeld, c.brief, func(e *env) {
			h, ok := storage.HolderOf(e.s)
			if !ok {
				e.Skip("the store is no Holder")
			}
			c.run(&heldEnv{env: e, h: h, other: h})
		}})
	}
	return all
}

// open opens an upload under a fresh stamp.
func (e *heldEnv) open(key storage.Key) storage.Ticket {
	e.Helper()
	e.stamps++
	stamp := fmt.Sprintf("STAMP%d", e.stamps)
	t, err := e.h.OpenUpload(e.ctx, key, stamp)
	if err != nil {
		e.Fatalf("OpenUpload %s: %v", short(key), err)
	}
	if t.Key != key || t.ID == "" || t.Stamp != stamp || t.Doubtful {
		e.Fatalf("OpenUpload %s with the stamp %s gave %+v", short(key), stamp, t)
	}
	return t
}

func (e *heldEnv) fill(t storage.Ticket, data []byte) storage.Receipt {
	e.Helper()
	r, err := e.h.FillUpload(e.ctx, t, bytes.NewReader(data), storage.PutOptions{Size: int64(len(data))})
	if err != nil {
		e.Fatalf("FillUpload %s, %d bytes: %v", short(t.Key), len(data), err)
	}
	if r.Ticket != t || r.Size != int64(len(data)) || r.Digest != storage.DigestOf(data) {
		e.Fatalf("FillUpload %s gave %+v; want size %d and digest %s", short(t.Key), r, len(data), storage.DigestOf(data))
	}
	return r
}

func (e *heldEnv) finish(h storage.Holder, r storage.Receipt, data []byte) {
	e.Helper()
	obj, err := h.FinishUpload(e.ctx, r)
	if err != nil {
		e.Fatalf("FinishUpload %s, %d bytes: %v", short(r.Key), r.Size, err)
	}
	e.checkPut(obj, r.Key, data)
}

// held checks how many uploads of a key are open.
func (e *heldEnv) held(key storage.Key, want ...storage.Ticket) {
	e.Helper()
	got, err := e.h.OpenUploads(e.ctx, key)
	if err != nil {
		e.Fatalf("OpenUploads %s: %v", short(key), err)
	}
	ids := map[string]bool{}
	for _, t := range got {
		if ids[t.ID] = true; t.Key != key {
			e.Fatalf("OpenUploads %s gave %+v", short(key), t)
		}
	}
	for _, t := range want {
		if !ids[t.ID] {
			e.Fatalf("OpenUploads %s gave %v; %s is missing", short(key), got, t.ID)
		}
	}
	if len(got) != len(want) {
		e.Fatalf("OpenUploads %s gave %d uploads; want %d", short(key), len(got), len(want))
	}
}

// recorded gives what another process reads of a record.
func recorded[T any](e *heldEnv, v T) T {
	e.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		e.Fatal(err)
	}
	var out T
	if err := json.Unmarshal(text, &out); err != nil {
		e.Fatal(err)
	}
	return out
}

func heldInvisible(e *heldEnv) {
	for i, n := range e.heldSizes() {
		key := storage.Key(fmt.Sprintf("held/%d", n))
		data := content(uint64(i), n)
		t := e.open(key)
		e.absent(key)
		e.held(key, t)
		r := e.fill(recorded(e, t), data)
		e.absent(key)
		e.held(key, t)
		e.finish(e.other, recorded(e, r), data)
		e.has(key, data)
		e.held(key)
	}
}

// heldSizes are sizes at which a store may change its ways.
func (e *heldEnv) heldSizes() []int64 {
	if e.o.brief {
		return []int64{1, max(70_000, e.o.partSize+1)}
	}
	sizes := []int64{0, 1, 70_000}
	if p := e.o.partSize; p > 0 {
		sizes = append(sizes, p-1, p, p+1, 2*p-1, 2*p, 2*p+1)
	}
	return sizes
}

func heldFinishedAgain(e *heldEnv) {
	data := content(1, 10_000)
	r := e.fill(e.open("a/key"), data)
	for range 3 {
		e.finish(e.h, r, data)
		e.finish(e.other, recorded(e, r), data)
	}
	e.has("a/key", data)
	e.held("a/key")
}

func heldFinishedByMany(e *heldEnv) {
	data := content(1, 10_000)
	r := e.fill(e.open("a/key"), data)
	var wg sync.WaitGroup
	for i := range 8 {
		h := e.h
		if i%2 == 1 {
			h = e.other
		}
		wg.Go(func() {
			if obj, err := h.FinishUpload(e.ctx, r); err != nil || obj.Digest != r.Digest {
				e.Errorf("FinishUpload gave %+v, %v", obj, err)
			}
		})
	}
	wg.Wait()
	e.has("a/key", data)
	e.held("a/key")
}

func heldDropped(e *heldEnv) {
	data := content(1, 10_000)
	for i, drops := range []int{1, 2} {
		key := storage.Key(fmt.Sprintf("d/%d", i))
		empty, full := e.open(key), e.open(key)
		r := e.fill(full, data)
		for range drops {
			for _, t := range []storage.Ticket{empty, recorded(e, full)} {
				if err := e.other.DropUpload(e.ctx, t); err != nil {
					e.Fatalf("DropUpload: %v", err)
				}
			}
		}
		e.absent(key)
		e.held(key)
		_, err := e.h.FinishUpload(e.ctx, r)
		e.wantKind("FinishUpload of what was dropped", err, hbackup.KindConflict)
		_, err = e.h.FillUpload(e.ctx, empty, bytes.NewReader(data), storage.PutOptions{Size: int64(len(data))})
		e.wantKind("FillUpload of what was dropped", err, hbackup.KindConflict)
		e.absent(key)
	}
}

func heldDroppedAfterFinish(e *heldEnv) {
	data := content(1, 10_000)
	r := e.fill(e.open("a/key"), data)
	e.finish(e.h, r, data)
	if err := e.other.DropUpload(e.ctx, recorded(e, r.Ticket)); err != nil {
		e.Fatalf("DropUpload of what was finished: %v", err)
	}
	e.has("a/key", data)
	e.finish(e.h, r, data)
}

// heldTwins has two uploads of the same bytes: the one that comes late is no failure
// and leaves nothing.
func heldTwins(e *heldEnv) {
	data := content(1, 10_000)
	first, second := e.fill(e.open("a/key"), data), e.fill(e.open("a/key"), data)
	e.finish(e.h, first, data)
	e.held("a/key", second.Ticket)
	e.finish(e.other, second, data)
	e.has("a/key", data)
	e.held("a/key")
	e.finish(e.h, first, data)
}

func heldTwinsAtOnce(e *heldEnv) {
	data := content(1, 10_000)
	var wg sync.WaitGroup
	for range 8 {
		r := e.fill(e.open("a/key"), data)
		wg.Go(func() {
			if obj, err := e.h.FinishUpload(e.ctx, r); err != nil || obj.Digest != r.Digest {
				e.Errorf("FinishUpload gave %+v, %v", obj, err)
			}
		})
	}
	wg.Wait()
	e.has("a/key", data)
	e.held("a/key")
}

func heldKeyTaken(e *heldEnv) {
	data, theirs := content(1, 10_000), content(2, 10_000)
	r := e.fill(e.open("a/key"), data)
	e.put("a/key", theirs)
	_, err := e.h.FinishUpload(e.ctx, r)
	e.wantKind("FinishUpload under a taken key", err, hbackup.KindExists)
	e.has("a/key", theirs)
	e.held("a/key", r.Ticket)
	if err := e.h.DropUpload(e.ctx, r.Ticket); err != nil {
		e.Fatalf("DropUpload: %v", err)
	}
	e.held("a/key")
	e.has("a/key", theirs)
}

func heldWrongReceipt(e *heldEnv) {
	data := content(1, 10_000)
	r := e.fill(e.open("a/key"), data)
	digest, size, tag := r, r, recorded(e, r)
	digest.Digest ^= 1
	size.Size++
	other := e.fill(e.open("a/other"), content(2, 10_000))
	tag.Parts = other.Parts
	for what, wrong := range map[string]storage.Receipt{"digest": digest, "size": size, "parts": tag} {
		_, err := e.h.FinishUpload(e.ctx, wrong)
		e.wantKind("FinishUpload with another "+what, err, hbackup.KindCorrupt)
		e.absent("a/key")
	}
	e.finish(e.h, r, data)
	e.has("a/key", data)
	if err := e.h.DropUpload(e.ctx, other.Ticket); err != nil {
		e.Fatalf("DropUpload: %v", err)
	}
}

func heldBadBody(e *heldEnv) {
	data := content(1, 10_000)
	t := e.open("a/key")
	wrong := storage.DigestOf(data) ^ 1
	right := storage.DigestOf(data)
	for what, c := range map[string]struct {
		body io.Reader
		opts storage.PutOptions
		kind hbackup.Kind
	}{
		"too short":    {bytes.NewReader(data[1:]), storage.PutOptions{Size: 10_000}, hbackup.KindCorrupt},
		"too long":     {bytes.NewReader(data), storage.PutOptions{Size: 9_999}, hbackup.KindCorrupt},
		"another one":  {bytes.NewReader(data), storage.PutOptions{Size: 10_000, Digest: &wrong}, hbackup.KindCorrupt},
		"broken":       {iotest.ErrReader(hbackup.Errorf("read block", "", hbackup.KindDenied, "no")), storage.PutOptions{Size: 10_000}, hbackup.KindDenied},
		"of no length": {bytes.NewReader(data), storage.PutOptions{Size: -1}, hbackup.KindUsage},
	} {
		_, err := e.h.FillUpload(e.ctx, t, c.body, c.opts)
		e.wantKind("FillUpload with a body that is "+what, err, c.kind)
		e.absent("a/key")
		e.held("a/key", t)
	}
	r, err := e.h.FillUpload(e.ctx, t, bytes.NewReader(data), storage.PutOptions{Size: 10_000, Digest: &right})
	if err != nil {
		e.Fatalf("FillUpload after failures: %v", err)
	}
	e.finish(e.h, r, data)
	e.has("a/key", data)
}

func heldFilledAgain(e *heldEnv) {
	large, small := content(1, max(1, e.o.partSize)+50_000), content(2, 100)
	t := e.open("a/key")
	e.fill(t, large)
	r := e.fill(t, small)
	e.finish(e.h, r, small)
	e.has("a/key", small)
	e.held("a/key")
}

// heldNeighbours has keys that begin alike.
func heldNeighbours(e *heldEnv) {
	keys := []storage.Key{"n/x", "n/x0", "n/x-", "n/xx"}
	var receipts []storage.Receipt
	for i, key := range keys {
		receipts = append(receipts, e.fill(e.open(key), content(uint64(i), 1000)))
	}
	for i, key := range keys {
		e.held(key, receipts[i].Ticket)
	}
	e.held("n")
	if err := e.other.DropUpload(e.ctx, receipts[0].Ticket); err != nil {
		e.Fatalf("DropUpload: %v", err)
	}
	for i, key := range keys[1:] {
		e.finish(e.h, receipts[i+1], content(uint64(i+1), 1000))
		e.has(key, content(uint64(i+1), 1000))
	}
	e.absent("n/x")
}

func heldUnusable(e *heldEnv) {
	for _, key := range []storage.Key{"", "/a", "a/", "../a"} {
		_, err := e.h.OpenUpload(e.ctx, key, "S")
		e.wantKind(fmt.Sprintf("OpenUpload of %q", key), err, hbackup.KindUsage)
		e.wantKind(fmt.Sprintf("DropUpload of %q", key), e.h.DropUpload(e.ctx, storage.Ticket{Key: key, ID: "1"}), hbackup.KindUsage)
	}
	_, err := e.h.OpenUpload(e.ctx, "a", "")
	e.wantKind("OpenUpload without a stamp", err, hbackup.KindUsage)
	_, err = e.h.FillUpload(e.ctx, storage.Ticket{Key: "a"}, bytes.NewReader(nil), storage.PutOptions{})
	e.wantKind("FillUpload of no upload", err, hbackup.KindUsage)
	e.wantKind("DropUpload of no upload", e.h.DropUpload(e.ctx, storage.Ticket{Key: "a"}), hbackup.KindUsage)
	_, err = e.h.FinishUpload(e.ctx, storage.Receipt{Ticket: storage.Ticket{Key: "a", ID: "1", Stamp: "S"}})
	e.wantKind("FinishUpload of nothing", err, hbackup.KindUsage)
	e.lists("", storage.ListOptions{})
}

func heldCancelled(e *heldEnv) {
	data := content(1, 100_000)
	t := e.open("a/key")
	ctx, cancel := context.WithCancel(e.ctx)
	body := io.MultiReader(bytes.NewReader(data[:50_000]), doing(cancel), bytes.NewReader(data[50_000:]))
	_, err := e.h.FillUpload(ctx, t, body, storage.PutOptions{Size: 100_000})
	e.wantKind("FillUpload that was cancelled", err, hbackup.KindInterrupted)
	e.absent("a/key")
	_, err = e.h.OpenUpload(ctx, "a/other", "S")
	e.wantKind("OpenUpload after a cancellation", err, hbackup.KindInterrupted)
	r := e.fill(t, data)
	_, err = e.h.FinishUpload(ctx, r)
	e.wantKind("FinishUpload after a cancellation", err, hbackup.KindInterrupted)
	e.absent("a/key")
	e.wantKind("DropUpload after a cancellation", e.h.DropUpload(ctx, t), hbackup.KindInterrupted)
	e.finish(e.h, r, data)
	e.has("a/key", data)
	e.held("a/key")
	e.held("a/other")
}
