package retry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/faulty"
	"hbackup/storage/mem"
	"hbackup/storage/storetest"
)

// quick are pauses that cost a test no time.
var quick = Options{For: time.Hour, First: time.Nanosecond, Most: time.Microsecond}

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storage.Store { return New(mem.New("test"), quick) }, storetest.HeapLimit(-1), storetest.LargeSize(8<<20))
}

func TestHolder(t *testing.T) {
	storetest.RunHolder(t, func(*testing.T) storage.Store { return New(mem.New("test"), quick) }, nil)
}

// On a store of which every third call fails in one way or another, the whole
// contract holds: nothing is lost and every race has one winner.
func TestContractOnAStoreThatFails(t *testing.T) {
	const script = `any#%3:fail; put#%4:lost; put#%11:half; get#%2:half; get#%5:reset=0.9; get#%7:lost;
		list#%2:half; list#%5:lost; stat#%4:fail=throttled; batch#%2:some; batch#%3:lost; delete#%2:lost; time#%2:fail`
	storetest.Run(t, func(t *testing.T) storage.Store {
		s, err := faulty.New(mem.New("test"), script)
		if err != nil {
			t.Fatal(err)
		}
		return seekable{New(s, quick)}
	}, storetest.HeapLimit(-1), storetest.LargeSize(1<<20), storetest.Keys(300),
		storetest.Except("BodyThatFails", "a body that breaks cannot be read again, and the store fails before it does"),
		storetest.Except("OverwriteWhileRead", "a reader that broke off does not go on in another object"),
		storetest.Except("InvalidKeys", "this test reads bodies ahead"),
		storetest.Except("IfAbsent", "of two creates with the same bytes both may be told that they won, when an answer was lost"))
}

// seekable gives every body that can be read in a form that can be read again.
type seekable struct{ *Store }

func (s seekable) Put(ctx context.Context, key storage.Key, body io.Reader, opts storage.PutOptions) (storage.Object, error) {
	data, err := io.ReadAll(io.LimitReader(body, max(opts.Size, 0)+1))
	if body = bytes.NewReader(data); err != nil {
		body = io.MultiReader(body, iotest.ErrReader(err))
	}
	return s.Store.Put(ctx, key, body, opts)
}

// with gives a store that fails by the script, under one that repeats.
func with(t *testing.T, inner storage.Store, script string) (*Store, *faulty.Store) {
	t.Helper()
	bad, err := faulty.New(inner, script)
	if err != nil {
		t.Fatal(err)
	}
	return New(bad, quick), bad
}

func TestPausesGrowAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, bad := with(t, mem.New("test"), "stat#*:fail")
		s.o = Options{For: time.Minute, First: time.Second, Most: 8 * time.Second}.withDefaults()
		began := time.Now()
		if _, err := s.Stat(t.Context(), "a"); !hbackup.IsKind(err, hbackup.KindUnavailable) {
			t.Errorf("got %v", err)
		}
		// 1, 2, 4 and then 8 seconds, each between its half and its whole.
		took, calls := time.Since(began), bad.Calls()["stat"]
		if took > time.Minute || took < 52*time.Second || calls < 10 || calls > 17 {
			t.Errorf("%d calls in %s", calls, took)
		}
	})
}

func TestNoPauseBeyondTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := with(t, mem.New("test"), "any#*:fail")
		s.o = Options{For: time.Hour, First: time.Minute, Most: time.Minute}.withDefaults()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := s.Delete(ctx, "a"); !hbackup.IsKind(err, hbackup.KindUnavailable) || time.Since(began) != 0 {
			t.Errorf("after %s: %v; there was no time for another try", time.Since(began), err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := s.ServerTime(ctx); !hbackup.IsKind(err, hbackup.KindInterrupted) || time.Since(began) != time.Second {
			t.Errorf("after %s: %v; the context ended after a second", time.Since(began), err)
		}
	})
}

func TestOnlyWhatMayPassIsRepeated(t *testing.T) {
	for _, kind := range []hbackup.Kind{hbackup.KindDenied, hbackup.KindNoSpace, hbackup.KindCorrupt, hbackup.KindReadOnly, hbackup.KindConflict, hbackup.KindBusy} {
		s, bad := with(t, mem.New("test"), "any#1-6:fail="+string(kind))
		_, put := storage.PutBytes(t.Context(), s, "a", []byte("x"), true)
		_, stat := s.Stat(t.Context(), "a")
		_, _, get := s.Get(t.Context(), "a", storage.Range{})
		_, batch := s.DeleteBatch(t.Context(), []storage.Key{"a"})
		var list error
		for _, list = range s.List(t.Context(), "", storage.ListOptions{}) {
		}
		for op, err := range map[string]error{"put": put, "stat": stat, "get": get, "list": list, "delete": s.Delete(t.Context(), "a"), "batch": batch} {
			if !hbackup.IsKind(err, kind) || bad.Calls()[op] != 1 {
				t.Errorf("%s gave %v after %d calls; want %s after one", op, err, bad.Calls()[op], kind)
			}
		}
	}
}

// A create of which the answer is lost is ours when it was done, and not when
// somebody else has the key.
func TestALostCreateIsSettled(t *testing.T) {
	for script, want := range map[string]string{
		"put#1:lost":             "ours",
		"put#1:lost=unavailable": "ours",
		"put#1-3:lost":           "ours",
		"put#1:late":             "ours", // it lands before the repetition
		"put#1:late=2":           "ours", // and after it
		"put#1:fail=timeout; put#2:fail=throttled": "ours", // never done
		"put#1:lost; stat#1-2:fail":                "ours",
		"put#1:lost; put#2:fail=denied":            "open",
		"put#1:late=9; put#2:fail=denied":          "open",
		"put#1:lost; stat#*:fail=denied":           "open",
		"put#1:fail=denied":                        "denied",
	} {
		for _, kind := range []string{"mem", "file"} {
			inner := mem.New("test")
			var s storage.Store = inner
			if kind == "file" {
				s = forgetful{inner}
			}
			r, _ := with(t, s, script)
			obj, err := storage.PutBytes(t.Context(), r, "a", []byte("mine"), true)
			switch want {
			case "ours":
				if err != nil || string(inner.Snapshot()["a"]) != "mine" || obj.Size != 4 || !obj.HasDigest || obj.Digest != storage.DigestOf([]byte("mine")) {
					t.Errorf("%s on %s: %+v, %v", script, kind, obj, err)
				}
			case "open":
				if !hbackup.IsKind(err, hbackup.KindTimeout) || !errors.Is(err, faulty.ErrInjected) {
					t.Errorf("%s on %s: %v; want the error that leaves it open", script, kind, err)
				}
			default:
				if !hbackup.IsKind(err, hbackup.KindDenied) || len(inner.Snapshot()) > 0 {
					t.Errorf("%s on %s: %v", script, kind, err)
				}
			}
		}
	}
}

// forgetful keeps no digests, as directories and HDFS do not.
type forgetful struct{ *mem.Store }

func (f forgetful) Stat(ctx context.Context, key storage.Key) (storage.Object, error) {
	obj, err := f.Store.Stat(ctx, key)
	obj.Digest, obj.HasDigest = 0, false
	return obj, err
}

func (f forgetful) Get(ctx context.Context, key storage.Key, r storage.Range) (io.ReadCloser, storage.Object, error) {
	body, obj, err := f.Store.Get(ctx, key, r)
	obj.Digest, obj.HasDigest = 0, false
	return body, obj, err
}

func TestAnothersObjectIsNoWin(t *testing.T) {
	for _, theirs := range []string{"them", "somebody"} { // of the same size, and of another
		for _, keeps := range []bool{true, false} {
			inner := mem.New("test")
			var s storage.Store = inner
			if !keeps {
				s = forgetful{inner}
			}
			// The first attempt times out and is never done; the other is faster then.
			hooked := &hook{Store: s, after: func() { storage.PutBytes(context.Background(), inner, "a", []byte(theirs), true) }}
			if _, err := storage.PutBytes(t.Context(), New(hooked, quick), "a", []byte("mine"), true); !hbackup.IsKind(err, hbackup.KindExists) {
				t.Errorf("%s, %v: %v; want exists", theirs, keeps, err)
			}
			if got := inner.Snapshot()["a"]; string(got) != theirs {
				t.Errorf("the other's object is %q now", got)
			}
		}
	}
}

// hook reads the first body and times out; after runs before the next call.
type hook struct {
	storage.Store
	once  sync.Once
	after func()
}

func (h *hook) Put(ctx context.Context, key storage.Key, body io.Reader, o storage.PutOptions) (storage.Object, error) {
	first := false
	h.once.Do(func() { first = true })
	if !first {
		return h.Store.Put(ctx, key, body, o)
	}
	io.Copy(io.Discard, body)
	h.after()
	return storage.Object{}, hbackup.Errorf("put", h.Location().At(key), hbackup.KindTimeout, "no answer")
}

// What was there before the call, and what an attempt that was not sent whole met,
// is nobody's doing here.
func TestATakenKeyIsTaken(t *testing.T) {
	for _, script := range []string{"", "put#1:fail", "put#1:fail=throttled", "put#1:half"} {
		inner := mem.New("test")
		if _, err := storage.PutBytes(t.Context(), inner, "a", []byte("mine"), true); err != nil {
			t.Fatal(err)
		}
		s, _ := with(t, inner, script)
		if _, err := storage.PutBytes(t.Context(), s, "a", []byte("mine"), true); !hbackup.IsKind(err, hbackup.KindExists) {
			t.Errorf("%q: %v; want exists", script, err)
		}
	}
}

func TestABodyThatCannotBeReadAgain(t *testing.T) {
	inner := mem.New("test")
	s, bad := with(t, inner, "put#1:lost; put#2:fail")
	for range 2 {
		_, err := s.Put(t.Context(), "a", io.MultiReader(strings.NewReader("x")), storage.PutOptions{Size: 1})
		if !errors.Is(err, faulty.ErrInjected) {
			t.Errorf("got %v", err)
		}
	}
	if n := bad.Calls()["put"]; n != 2 {
		t.Errorf("%d calls; want one for each", n)
	}
	// One that starts in its middle goes back to there and not to its start.
	s, _ = with(t, inner, "put#1:half; put#2:lost")
	body := strings.NewReader("0123456789")
	body.Seek(4, io.SeekStart)
	if _, err := s.Put(t.Context(), "b", body, storage.PutOptions{Size: 6}); err != nil || string(inner.Snapshot()["b"]) != "456789" {
		t.Errorf("stored is %q, %v", inner.Snapshot()["b"], err)
	}
	// The source's own failures are its own, whatever their kind.
	s, bad = with(t, inner, "")
	away := hbackup.Errorf("read block", "hdfs://nn/f", hbackup.KindUnavailable, "away")
	if _, err := s.Put(t.Context(), "c", &breaking{strings.NewReader("0123"), away}, storage.PutOptions{Size: 6}); !errors.Is(err, away) || bad.Calls()["put"] != 1 {
		t.Errorf("%v after %d calls", err, bad.Calls()["put"])
	}
}

// breaking can be read again, and breaks each time.
type breaking struct {
	*strings.Reader
	err error
}

func (b *breaking) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = b.err
	}
	return n, err
}

func TestAReaderGoesOnWhereItBrokeOff(t *testing.T) {
	inner := mem.New("test")
	data := bytes.Repeat([]byte("0123456789"), 1000)
	if _, err := storage.PutBytes(t.Context(), inner, "a", data, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []storage.Range{{}, {Offset: 17}, {Offset: 100, Length: 5000}, {Length: 1}} {
		offset, length, err := want.Of(int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		s, _ := with(t, inner, "get#1-3:half; get#4:reset=0; get#5:reset=0.99; get#6:fail")
		body, _, err := s.Get(t.Context(), "a", want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(body)
		if err := errors.Join(err, body.Close()); err != nil || !bytes.Equal(got, data[offset:offset+length]) {
			t.Errorf("%+v gave %d bytes, %v", want, len(got), err)
		}
	}
	// A quiet end is no end.
	s, _ := with(t, inner, "get#1:cut")
	if got, _, err := storage.ReadAll(t.Context(), s, "a", 1<<20); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// Bytes of two objects never mix.
func TestAnObjectThatIsReplacedWhileItIsRead(t *testing.T) {
	for name, change := range map[string]func(*mem.Store) error{
		"replaced by one of the same size": func(s *mem.Store) error {
			_, err := storage.PutBytes(context.Background(), s, "a", []byte("abcdefghij"), false)
			return err
		},
		"replaced by a shorter one": func(s *mem.Store) error {
			_, err := storage.PutBytes(context.Background(), s, "a", []byte("abc"), false)
			return err
		},
		"deleted": func(s *mem.Store) error { return s.Delete(context.Background(), "a") },
	} {
		for _, keeps := range []bool{true, false} {
			now := time.Unix(1_800_000_000, 0)
			inner := mem.New("test", mem.WithClock(func() time.Time { now = now.Add(time.Second); return now }))
			if _, err := storage.PutBytes(t.Context(), inner, "a", []byte("0123456789"), true); err != nil {
				t.Fatal(err)
			}
			var s storage.Store = inner
			if !keeps {
				s = forgetful{inner}
			}
			r, _ := with(t, s, "get#1:half")
			body, _, err := r.Get(t.Context(), "a", storage.Range{})
			if err != nil {
				t.Fatal(err)
			}
			head := make([]byte, 5)
			if _, err := io.ReadFull(body, head); err != nil {
				t.Fatal(err)
			}
			if err := change(inner); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(body); len(rest) > 0 || !hbackup.IsKind(err, hbackup.KindIncomplete) {
				t.Errorf("%s: the reader went on with %q, %v", name, rest, err)
			}
			body.Close()
		}
	}
}

func TestClosingEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := mem.New("test")
		if _, err := storage.PutBytes(t.Context(), inner, "a", []byte("0123456789"), true); err != nil {
			t.Fatal(err)
		}
		s, _ := with(t, inner, "get#1:half; get#2+:fail")
		s.o = Options{For: time.Hour, First: time.Minute, Most: time.Minute}
		s.o = s.o.withDefaults()
		body, _, err := s.Get(t.Context(), "a", storage.Range{})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		done := make(chan error)
		go func() {
			_, err := io.ReadAll(body)
			done <- err
		}()
		synctest.Wait() // it waits for its next try
		body.Close()
		if err := <-done; err == nil || time.Since(began) != 0 {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

func keysOf(t *testing.T, list iter.Seq2[storage.Object, error]) (keys []storage.Key, failure error) {
	t.Helper()
	for obj, err := range list {
		if failure != nil {
			t.Error("something came after the error")
		}
		if err != nil {
			failure = err
			continue
		}
		keys = append(keys, obj.Key)
	}
	return keys, failure
}

func TestAListingGoesOnBehindItsLastKey(t *testing.T) {
	inner := mem.New("test")
	var all []storage.Key
	for _, c := range "abcdefghijklmnopqrst" {
		all = append(all, storage.Key("l/"+string(c)))
		if _, err := storage.PutBytes(t.Context(), inner, all[len(all)-1], nil, true); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		opts storage.ListOptions
		want []storage.Key
	}{
		{storage.ListOptions{}, all}, {storage.ListOptions{After: "l/c"}, all[3:]}, {storage.ListOptions{Limit: 7}, all[:7]},
		{storage.ListOptions{After: "l/c", Limit: 10}, all[3:13]}, {storage.ListOptions{Limit: 20}, all},
	} {
		s, bad := with(t, inner, "list#1:fail; list#2-4:half; list#5:lost; list#6:reset=0.1")
		got, err := keysOf(t, s.List(t.Context(), "l/", c.opts))
		if err != nil || !slices.Equal(got, c.want) || bad.Hits() < 3 {
			t.Errorf("%+v gave %q, %v, after %d faults", c.opts, got, err, bad.Hits())
		}
	}
	s, _ := with(t, inner, "list#1:half; list#2:repeat")
	if got, err := keysOf(t, s.List(t.Context(), "l/", storage.ListOptions{})); !hbackup.IsKind(err, hbackup.KindCorrupt) || !slices.Equal(got, all[:11]) {
		t.Errorf("a store that repeats keys gave %q, %v", got, err)
	}
}

func TestOfABatchOnlyWhatFailedIsRepeated(t *testing.T) {
	inner := mem.New("test")
	keys := []storage.Key{"a", "b", "c", "d", "e", "../x"}
	for _, key := range keys[:5] {
		if _, err := storage.PutBytes(t.Context(), inner, key, nil, true); err != nil {
			t.Fatal(err)
		}
	}
	asked := &batches{Store: inner}
	s, _ := with(t, asked, "batch#1:fail; batch#2:some; batch#3:lost; batch#4:some=throttled")
	failures, err := s.DeleteBatch(t.Context(), keys)
	if err != nil || len(failures) != 1 || failures[0].Key != "../x" || !hbackup.IsKind(failures[0].Err, hbackup.KindUsage) {
		t.Errorf("got %v, %v", failures, err)
	}
	if len(inner.Snapshot()) != 0 {
		t.Errorf("left are %q", inner.Snapshot())
	}
	// Of a, c and e, which stayed the first time, a and e stay once more.
	if want := [][]storage.Key{{"b", "d", "../x"}, {"a", "c", "e"}, {"c"}, {"a", "e"}}; !slices.EqualFunc(asked.keys, want, slices.Equal) {
		t.Errorf("the store was asked for %q", asked.keys)
	}
	// What stays for good is reported.
	if _, err := storage.PutBytes(t.Context(), inner, "a", nil, true); err != nil {
		t.Fatal(err)
	}
	s, _ = with(t, inner, "batch#1:some; batch#2:fail=denied")
	failures, err = s.DeleteBatch(t.Context(), []storage.Key{"a", "b"})
	if err != nil || len(failures) != 1 || failures[0].Key != "a" || !hbackup.IsKind(failures[0].Err, hbackup.KindDenied) {
		t.Errorf("got %v, %v", failures, err)
	}
	s, _ = with(t, inner, "batch#1:fail=denied")
	if failures, err := s.DeleteBatch(t.Context(), keys); !hbackup.IsKind(err, hbackup.KindDenied) || failures != nil {
		t.Errorf("got %v, %v", failures, err)
	}
}

// batches notes which keys a store is asked to delete.
type batches struct {
	storage.Store
	keys [][]storage.Key
}

func (b *batches) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	b.keys = append(b.keys, keys)
	return b.Store.DeleteBatch(ctx, keys)
}
