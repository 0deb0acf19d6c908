package storetest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/mem"
	"hbackup/storage/storetest"
)

// sabotage is a store with one promise broken, and a case that must notice.
type sabotage struct {
	notices string
	wrap    func(*mem.Store) storage.Store
}

// sabotages are what real stores, and real wrappers, have been seen to do.
var sabotages = map[string]sabotage{
	"create-if-absent looks first": {"IfAbsentRace", func(s *mem.Store) storage.Store { return putter{s, looksFirst} }},
	"create-if-absent overwrites":  {"IfAbsent", func(s *mem.Store) storage.Store { return putter{s, overwrites} }},
	"wrong sizes are taken":        {"BodyOfWrongSize", func(s *mem.Store) storage.Store { return putter{s, anySize} }},
	"longer bodies are cut":        {"BodyOfWrongSize", func(s *mem.Store) storage.Store { return putter{s, cutsLonger} }},
	"digests are not compared":     {"ExpectedDigest", func(s *mem.Store) storage.Store { return putter{s, noDigest} }},
	"broken bodies are half there": {"BodyThatFails", func(s *mem.Store) storage.Store { return putter{s, keepsHalf} }},
	"a failed put deletes":         {"BodyThatFails", func(s *mem.Store) storage.Store { return putter{s, deletesFirst} }},
	"visible before it is whole":   {"NothingVisibleDuringPut", func(s *mem.Store) storage.Store { return putter{s, visibleEarly} }},
	"a cancel is not noticed":      {"CancelledDuringPut", func(s *mem.Store) storage.Store { return putter{s, deaf} }},
	"keys are cleaned":             {"InvalidKeys", func(s *mem.Store) storage.Store { return putter{s, cleansKeys} }},
	"one page of a listing":        {"ListMany", func(s *mem.Store) storage.Store { return lister{s, onePage} }},
	"prefix means folder":          {"ListPrefixIsAString", func(s *mem.Store) storage.Store { return lister{s, folders} }},
	"order of a walk":              {"ListOrder", func(s *mem.Store) storage.Store { return lister{s, walkOrder} }},
	"after is included":            {"ListOrder", func(s *mem.Store) storage.Store { return lister{s, fromAfter} }},
	"listing lags":                 {"ListAfterChange", func(s *mem.Store) storage.Store { return &lagging{Store: s} }},
	"missing is denied":            {"NotFound", func(s *mem.Store) storage.Store { return denier{s} }},
	"quiet end of a body":          {"CancelledDuringRead", func(s *mem.Store) storage.Store { return getter{s} }},
	"deleting the missing fails":   {"Delete", func(s *mem.Store) storage.Store { return deleter{s} }},
	"batch forgets the last":       {"DeleteBatch", func(s *mem.Store) storage.Store { return batcher{s} }},
	"clock is off":                 {"ServerTime", func(*mem.Store) storage.Store { return mem.New("test", mem.WithClock(wrongClock)) }},
}

// TestSuiteNotices proves that the suite is worth something, and the short
// selection of it as well.
func TestSuiteNotices(t *testing.T) {
	opts := []storetest.Option{storetest.HeapLimit(-1), storetest.LargeSize(1 << 20)}
	for name, s := range sabotages {
		t.Run(name, func(t *testing.T) {
			c := caseNamed(t, s.notices)
			if got := c.Try(t.Context(), s.wrap(mem.New("test")), opts...); len(got) == 0 {
				t.Errorf("the case %s passed", s.notices)
			}
			if c.Brief && len(c.Try(t.Context(), s.wrap(mem.New("test")), append(opts, storetest.Brief())...)) == 0 {
				t.Errorf("the case %s passed in brief", s.notices)
			}
		})
	}
}

// TestSuitePasses proves that Try finds no fault where there is none.
func TestSuitePasses(t *testing.T) {
	for _, c := range append(storetest.Cases(), storetest.HeldCases()...) {
		for _, opts := range [][]storetest.Option{nil, {storetest.Brief(), storetest.AnyNesting(), storetest.PartSize(1 << 20)}} {
			if got := c.Try(t.Context(), mem.New("test"), append(opts, storetest.HeapLimit(-1), storetest.LargeSize(1<<20))...); len(got) > 0 {
				t.Errorf("%s: %q", c.Name, got)
			}
		}
	}
}

// TestTryEnds shows what becomes of a case that does not come to its end.
func TestTryEnds(t *testing.T) {
	if got := caseNamed(t, "RoundTrip").Try(t.Context(), panicking{mem.New("test")}); len(got) != 1 || !strings.Contains(got[0], "out of luck") {
		t.Errorf("after a panic of the store: %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := caseNamed(t, "RoundTrip").Try(ctx, mem.New("test")); len(got) != 1 {
		t.Errorf("after a cancel: %q", got)
	}
}

func caseNamed(t *testing.T, name string) storetest.Case {
	t.Helper()
	for _, c := range storetest.Cases() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no case %s", name)
	return storetest.Case{}
}

type panicking struct{ *mem.Store }

func (panicking) Stat(context.Context, storage.Key) (storage.Object, error) { panic("out of luck") }

// putter does a Put in its own way.
type putter struct {
	*mem.Store
	how func(s *mem.Store, ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error)
}

func (p putter) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	return p.how(p.Store, ctx, key, body, opts)
}

func looksFirst(s *mem.Store, ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	if _, err := s.Stat(ctx, key); err == nil && opts.IfAbsent {
		return storage.Object{}, hbackup.Errorf("put", s.Location().At(key), hbackup.KindExists, "taken")
	}
	time.Sleep(time.Millisecond)
	opts.IfAbsent = false
	return s.Put(ctx, key, body, opts)
}

func overwrites(s *mem.Store, ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	opts.IfAbsent = false
	return s.Put(ctx, key, body, opts)
}

func anySize(s *mem.Store, ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	data, err := io.ReadAll(body)
	if err != nil {
		return storage.Object{}, hbackup.E("put", s.Location().At(key), hbackup.KindOther, err)
	}
	opts.Size = int64(len(data))
	return s.Put(ctx, key, bytes.NewReader(data), opts)
}

func cutsLonger(s *mem.Store, ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	return s.Put(ctx, key, io.LimitReader(body, opts.Size), opts)
}

func noDigest(s *mem.Store, ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	opts.Digest = nil
	return s.Put(ctx, key, body, opts)
}

func keepsHalf(s *mem.Store, ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	data, err := io.ReadAll(body)
	if err != nil {
		storage.PutBytes(ctx, s, key, data, false)
		return storage.Object{}, hbackup.E("put", s.Location().At(key), hbackup.KindOther, err)
	}
	return s.Put(ctx, key, bytes.NewReader(data), opts)
}

func deletesFirst(s *mem.Store, ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	if !opts.IfAbsent {
		s.Delete(ctx, key)
	}
	return s.Put(ctx, key, body, opts)
}

func visibleEarly(s *mem.Store, ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	storage.PutBytes(ctx, s, key, nil, true)
	return s.Put(ctx, key, body, opts)
}

func deaf(s *mem.Store, ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	return s.Put(context.WithoutCancel(ctx), key, body, opts)
}

func cleansKeys(s *mem.Store, ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	return s.Put(ctx, storage.Key(strings.Trim(strings.ReplaceAll(string(key), "//", "/"), "/")), body, opts)
}

// lister changes a listing.
type lister struct {
	*mem.Store
	how func(s *mem.Store, ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error]
}

func (l lister) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	return l.how(l.Store, ctx, prefix, opts)
}

func onePage(s *mem.Store, ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	if opts.Limit == 0 {
		opts.Limit = 1000
	}
	return s.List(ctx, prefix, opts)
}

func folders(s *mem.Store, ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	return s.List(ctx, prefix, opts)
}

// walkOrder gives "a/b" before "a-b", as a walk by sorted directories does.
func walkOrder(s *mem.Store, ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	return func(yield func(storage.Object, error) bool) {
		var held []storage.Object
		for obj, err := range s.List(ctx, prefix, opts) {
			if err == nil && strings.Contains(string(obj.Key), "-") {
				held = append(held, obj)
			} else if !yield(obj, err) {
				return
			}
		}
		for _, obj := range held {
			if !yield(obj, nil) {
				return
			}
		}
	}
}

func fromAfter(s *mem.Store, ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	if n := len(opts.After); n > 0 {
		opts.After = opts.After[:n-1] + storage.Key(opts.After[n-1]-1) + "\u00ff"
	}
	return s.List(ctx, prefix, opts)
}

// lagging lists what was there before the last put.
type lagging struct {
	*mem.Store
	before *mem.Store
}

func (l *lagging) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	l.before = l.Clone()
	return l.Store.Put(ctx, key, body, opts)
}

func (l *lagging) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	return l.before.List(ctx, prefix, opts)
}

// denier says "denied" where it must say "not found", as S3 does to those who
// may not list.
type denier struct{ *mem.Store }

func (d denier) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	obj, err := d.Store.Stat(ctx, key)
	if hbackup.IsKind(err, hbackup.KindNotFound) {
		err = hbackup.E("stat", d.Location().At(key), hbackup.KindDenied, fmt.Errorf("no"))
	}
	return obj, err
}

// getter gives readers that end early without an error.
type getter struct{ *mem.Store }

func (g getter) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	body, obj, err := g.Store.Get(ctx, key, r)
	return quiet{body}, obj, err
}

type quiet struct{ io.ReadCloser }

func (q quiet) Read(p []byte) (int, error) {
	n, err := q.ReadCloser.Read(p)
	if err != nil {
		err = io.EOF
	}
	return n, err
}

type deleter struct{ *mem.Store }

func (d deleter) Delete(ctx context.Context, key storage.Key) error {
	if _, err := d.Stat(ctx, key); err != nil {
		return err
	}
	return d.Store.Delete(ctx, key)
}

type batcher struct{ *mem.Store }

func (b batcher) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	return b.Store.DeleteBatch(ctx, keys[:max(0, len(keys)-4)])
}

func wrongClock() time.Time { return time.Now().Add(2 * time.Minute) }
