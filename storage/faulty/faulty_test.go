package faulty

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/mem"
	"hbackup/storage/storetest"
)

// Without a script the store is a store.
func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storage.Store { return with(t, mem.New("test"), "") }, storetest.HeapLimit(-1))
}

func with(t testing.TB, inner storage.Store, script string) *Store {
	t.Helper()
	s, err := New(inner, script)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(s storage.Store, key storage.Key, data string) error {
	_, err := storage.PutBytes(context.Background(), s, key, []byte(data), true)
	return err
}

func wantKind(t *testing.T, what string, err error, kind hbackup.Kind) {
	t.Helper()
	if !hbackup.IsKind(err, kind) || !errors.Is(err, ErrInjected) {
		t.Errorf("%s gave %v; want the injected kind %s", what, err, kind)
	}
}

func TestPutFaults(t *testing.T) {
	inner := mem.New("test")
	s := with(t, inner, "put#1:fail=denied; put#2:lost; put#3:half; put[images/]#1:fail=no_space; put[images/]#2-3:lost=unavailable")
	for i, want := range []struct {
		key    storage.Key
		kind   hbackup.Kind
		stored bool
	}{
		{"a", hbackup.KindDenied, false}, {"b", hbackup.KindTimeout, true}, {"c", hbackup.KindUnavailable, false},
		{"d", "", true}, {"x/images/1", hbackup.KindNoSpace, false}, {"x/images/2", hbackup.KindUnavailable, true},
		{"x/images/3", hbackup.KindUnavailable, true}, {"x/images/4", "", true}, {"e", "", true},
	} {
		err := put(s, want.key, "content")
		if want.kind == "" && err != nil {
			t.Errorf("put %d gave %v", i+1, err)
		} else if want.kind != "" {
			wantKind(t, fmt.Sprint("put ", i+1), err, want.kind)
		}
		if _, stored := inner.Snapshot()[want.key]; stored != want.stored {
			t.Errorf("after put %d, the object is there: %v; want %v", i+1, stored, want.stored)
		}
	}
	if s.Hits() != 6 || s.Calls()["put"] != 9 || s.Calls()["any"] != 9 {
		t.Errorf("%d hits and the calls %v; want 6, and 9 puts", s.Hits(), s.Calls())
	}
}

func TestGetFaults(t *testing.T) {
	inner := mem.New("test")
	if err := put(inner, "a", "0123456789"); err != nil {
		t.Fatal(err)
	}
	s := with(t, inner, "get#1:fail=throttled; get#2:lost; get#3:half; get#4:cut; get#5:flip")
	read := func(r storage.Range) (string, error) {
		body, _, err := s.Get(t.Context(), "a", r)
		if err != nil {
			return "", err
		}
		defer body.Close()
		b, err := io.ReadAll(body)
		return string(b), err
	}
	_, err := read(storage.Range{})
	wantKind(t, "get 1", err, hbackup.KindThrottled)
	_, err = read(storage.Range{})
	wantKind(t, "get 2", err, hbackup.KindTimeout)
	got, err := read(storage.Range{Offset: 2})
	wantKind(t, "get 3", err, hbackup.KindUnavailable)
	if got != "2345" {
		t.Errorf("get 3 gave %q", got)
	}
	if got, err := read(storage.Range{}); got != "01234" || err != nil {
		t.Errorf("get 4 gave %q, %v", got, err)
	}
	if got, err := read(storage.Range{}); got != "0123446789" || err != nil {
		t.Errorf("get 5 gave %q, %v", got, err)
	}
	if got, err := read(storage.Range{}); got != "0123456789" || err != nil {
		t.Errorf("get 6 gave %q, %v", got, err)
	}
}

func TestListFaults(t *testing.T) {
	inner := mem.New("test")
	for i := range 100 {
		if err := put(inner, storage.Key(fmt.Sprintf("l/%02d", i)), "x"); err != nil {
			t.Fatal(err)
		}
	}
	s := with(t, inner, "list#1:fail; list#2:half; list#3:cut; list#4:truncate=7; list#5:repeat; list#6:drop=0.1; list#7:drop=0; list#8:truncate=0; list#9:lost")
	for i, want := range []struct {
		objects int
		fails   bool
	}{{0, true}, {50, true}, {50, false}, {7, false}, {200, false}, {-1, false}, {100, false}, {0, false}, {0, true}, {100, false}} {
		n := 0
		var failure error
		for _, err := range s.List(t.Context(), "l/", storage.ListOptions{}) {
			if err != nil {
				failure = err
			} else {
				n++
			}
		}
		if n != want.objects && want.objects >= 0 || want.objects < 0 && (n < 70 || n > 99) {
			t.Errorf("list %d gave %d objects; want %d", i+1, n, want.objects)
		}
		if want.fails != errors.Is(failure, ErrInjected) {
			t.Errorf("list %d ended with %v", i+1, failure)
		}
	}
}

func TestOtherFaults(t *testing.T) {
	inner := mem.New("test")
	for _, key := range []storage.Key{"a", "b", "c", "d", "e"} {
		if err := put(inner, key, "x"); err != nil {
			t.Fatal(err)
		}
	}
	s := with(t, inner, "delete#1:fail;delete#2:lost;batch#1:some=denied;batch#2:lost;batch#3:fail;stat#%2:fail=busy;time#1:fail;time#2:hang;time#3:delay=1ms;any#1000:fail")
	wantKind(t, "delete 1", s.Delete(t.Context(), "a"), hbackup.KindUnavailable)
	wantKind(t, "delete 2", s.Delete(t.Context(), "b"), hbackup.KindTimeout)
	failures, err := s.DeleteBatch(t.Context(), []storage.Key{"c", "d", "../x"})
	if err != nil || len(failures) != 2 || failures[0].Key != "c" || failures[1].Key != "../x" {
		t.Fatalf("batch 1 gave %v, %v", failures, err)
	}
	wantKind(t, "the key that stays", failures[0].Err, hbackup.KindDenied)
	if _, err := s.DeleteBatch(t.Context(), []storage.Key{"e"}); !hbackup.IsKind(err, hbackup.KindTimeout) {
		t.Errorf("batch 2 gave %v", err)
	}
	if _, err := s.DeleteBatch(t.Context(), []storage.Key{"a"}); !hbackup.IsKind(err, hbackup.KindUnavailable) {
		t.Errorf("batch 3 gave %v", err)
	}
	left := inner.Snapshot()
	if len(left) != 2 || left["a"] == nil || left["c"] == nil {
		t.Errorf("left are %q; want a and c", left)
	}
	for i := range 4 {
		if _, err := s.Stat(t.Context(), "a"); (i%2 == 1) != hbackup.IsKind(err, hbackup.KindBusy) {
			t.Errorf("stat %d gave %v", i+1, err)
		}
	}
	_, err = s.ServerTime(t.Context())
	wantKind(t, "time 1", err, hbackup.KindUnavailable)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := s.ServerTime(ctx); !hbackup.IsKind(err, hbackup.KindTimeout) {
		t.Errorf("time 2 gave %v", err)
	}
	if _, err := s.ServerTime(t.Context()); err != nil {
		t.Errorf("time 3 gave %v", err)
	}
}

func TestTwice(t *testing.T) {
	inner := mem.New("test")
	s := with(t, inner, "put#1-2:twice; delete#1:twice; batch#1:twice")
	if err := put(s, "a", "x"); !hbackup.IsKind(err, hbackup.KindExists) {
		t.Errorf("the second of two creates gave %v", err)
	}
	if _, err := storage.PutBytes(t.Context(), s, "b", []byte("y"), false); err != nil {
		t.Error(err)
	}
	if got := inner.Snapshot(); string(got["a"]) != "x" || string(got["b"]) != "y" {
		t.Errorf("stored is %q", got)
	}
	failures, err := s.DeleteBatch(t.Context(), []storage.Key{"b"})
	if err := errors.Join(err, s.Delete(t.Context(), "a")); err != nil || len(failures) > 0 || len(inner.Snapshot()) > 0 {
		t.Errorf("%v, %v, left are %q", failures, err, inner.Snapshot())
	}
}

func TestLate(t *testing.T) {
	inner := mem.New("test")
	s := with(t, inner, "put[a/*.x]#1:late=2; delete#1:late; put[c]#1:late=1000")
	for _, key := range []storage.Key{"a/.y", "x/a", "c"} { // the last is never done
		put(s, key, "1")
	}
	wantKind(t, "the late put", put(s, "a/b.x", "1"), hbackup.KindTimeout)
	if s.Stat(t.Context(), "a/b.x"); inner.Snapshot()["a/b.x"] != nil {
		t.Error("it was done one call too early")
	}
	// It takes the key from the next one, which came before it.
	if err := put(s, "a/b.x", "2"); !hbackup.IsKind(err, hbackup.KindExists) || string(inner.Snapshot()["a/b.x"]) != "1" {
		t.Errorf("the next put gave %v, stored is %q", err, inner.Snapshot())
	}
	wantKind(t, "the late deletion", s.Delete(t.Context(), "a/b.x"), hbackup.KindTimeout)
	if inner.Snapshot()["a/b.x"] == nil {
		t.Error("the deletion was not late")
	}
	if _, err := s.Stat(t.Context(), "a/b.x"); !hbackup.IsKind(err, hbackup.KindNotFound) {
		t.Errorf("after the deletion: %v", err)
	}
	if got := inner.Snapshot(); len(got) != 2 || got["c"] != nil {
		t.Errorf("stored is %q", got)
	}
}

func TestResetsAndClocks(t *testing.T) {
	inner := mem.New("test")
	s := with(t, inner, "put#2:reset=0.3; get#1:reset=0.9; list#1:reset=0.25; time#1:skew; time#2:skew=-1h")
	for _, key := range []storage.Key{"a", "broken", "b", "c", "d"} {
		if err := put(s, key, "0123456789"); (key == "broken") != errors.Is(err, ErrInjected) {
			t.Errorf("put of %s: %v", key, err)
		}
	}
	body, _, err := s.Get(t.Context(), "a", storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(body); string(got) != "012345678" || !hbackup.IsKind(err, hbackup.KindUnavailable) {
		t.Errorf("the reader gave %q, %v", got, err)
	}
	n := 0
	for _, err := range s.List(t.Context(), "", storage.ListOptions{}) {
		if n++; (n == 2) != (err != nil) {
			t.Errorf("element %d of the listing: %v", n, err)
		}
	}
	if n != 2 {
		t.Errorf("the listing had %d elements, want an object and an error", n)
	}
	for _, skew := range []time.Duration{20 * time.Minute, -time.Hour, 0} {
		got, err := s.ServerTime(t.Context())
		if off := time.Until(got) - skew; err != nil || off.Abs() > time.Minute {
			t.Errorf("with the skew %s the clock is off by %s, %v", skew, off+skew, err)
		}
	}
}

// TestEveryCallOnce is how users fail each call of a procedure.
func TestEveryCallOnce(t *testing.T) {
	procedure := func(s storage.Store) error {
		if err := put(s, "a", "x"); err != nil {
			return err
		}
		if _, _, err := storage.ReadAll(t.Context(), s, "a", 10); err != nil {
			return err
		}
		return s.Delete(t.Context(), "a")
	}
	s := with(t, mem.New("test"), "")
	if err := procedure(s); err != nil {
		t.Fatal(err)
	}
	n := s.Calls()["any"]
	if n != 3 {
		t.Fatalf("%d calls; want 3", n)
	}
	for i := range n {
		for _, fault := range []string{"fail", "lost"} {
			s := with(t, mem.New("test"), fmt.Sprintf("any#%d:%s", i+1, fault))
			if err := procedure(s); !errors.Is(err, ErrInjected) || s.Hits() != 1 {
				t.Errorf("with the %s of call %d the procedure gave %v, after %d hits", fault, i+1, err, s.Hits())
			}
		}
	}
}

var badScripts = []string{
	"put", "put:fail", "put#:fail", "put#0:fail", "put#-1:fail", "put#2-1:fail", "put#x:fail", "put#1", "put#1:", "put#1:explode", "put[a#1:fail",
	"nothing#1:fail", "put#1:fail=funny", "list#1:drop=2", "list#1:drop=NaN", "list#1:drop=x", "list#1:truncate=-1", "put#1:delay=long", "put#1:hang=1",
	"put#1:late=0", "delete#1:late=x", "get#1:late", "get#1:twice", "put#1:reset=2", "put#1:twice=2", "time#1:skew=far", "put#1:skew", "put#1:flip", "stat#1:half", "get#1:drop", "batch#1:cut", "#1:fail", "put#%0:fail", "put#+:fail",
}

func TestBadScripts(t *testing.T) {
	for _, script := range badScripts {
		if _, err := New(mem.New("test"), script); !hbackup.IsKind(err, hbackup.KindUsage) {
			t.Errorf("the script %q gave %v", script, err)
		}
	}
	// A rule for any passes over what it cannot be for.
	s := with(t, mem.New("test"), "any#1:flip")
	if err := put(s, "a", "x"); err != nil {
		t.Fatal(err)
	}
	data, _, _ := s.Get(t.Context(), "a", storage.Range{})
	if b, err := io.ReadAll(data); err != nil || bytes.Equal(b, []byte("x")) {
		t.Errorf("Get gave %q, %v", b, err)
	}
}

func FuzzScript(f *testing.F) {
	for _, script := range badScripts {
		f.Add(script)
	}
	f.Add("put[images/]#3:lost=denied; list#2+:drop=0.25;; any#%5:delay=3s ;get#1-9:flip")
	f.Fuzz(func(t *testing.T, script string) {
		rules, err := parse(script)
		if err != nil {
			if !hbackup.IsKind(err, hbackup.KindUsage) {
				t.Errorf("parse gave %v", err)
			}
			return
		}
		for _, r := range rules {
			if r.every < 1 || r.from < 0 || !slices.Contains(append(allOps, opAny), r.op) || meaning[r.fault.name] == nil || strings.Contains(strings.Join(r.part, ""), "]") {
				t.Errorf("%q gave the rule %+v", script, r)
			}
			r.applies(r.op, "key")
		}
	})
}

func TestHolder(t *testing.T) {
	storetest.RunHolder(t, func(t *testing.T) storage.Store { return with(t, mem.New("test"), "") }, nil)
}
