package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/mem"
	"hbackup/storage/storetest"
)

// A process that does not die has a store like any other.
func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storage.Store { return New(mem.New("test"), Plan{}) }, storetest.HeapLimit(-1), storetest.LargeSize(8<<20))
}

func TestHolder(t *testing.T) {
	storetest.RunHolder(t, func(*testing.T) storage.Store { return New(mem.New("test"), Plan{}) }, nil)
}

func put(s storage.Store, key storage.Key, data string) error {
	_, err := s.Put(context.Background(), key, strings.NewReader(data), storage.PutOptions{Size: int64(len(data)), IfAbsent: true})
	return err
}

// content gives all objects as "key=data key=data".
func content(s *mem.Store) string {
	var all []string
	for obj := range s.List(context.Background(), "", storage.ListOptions{}) {
		all = append(all, fmt.Sprintf("%s=%s", obj.Key, s.Snapshot()[obj.Key]))
	}
	return strings.Join(all, " ")
}

func TestFatesOfAPut(t *testing.T) {
	for fate, want := range map[Fate][3]string{ // after the crash, after the next one's second step, and its third
		Undone: {"a=1", "a=1", "a=1 c=3"},
		Torn:   {"a=1", "a=1", "a=1 c=3"},
		Done:   {"a=1 b=22", "a=1 b=22", "a=1 b=22 c=3"},
		Late:   {"a=1", "a=1", "a=1 b=22 c=3"},
	} {
		s := New(mem.New("test"), Plan{Step: 2, Fate: fate, Lands: 3})
		if err := put(s, "a", "1"); err != nil {
			t.Fatal(err)
		}
		body := strings.NewReader("22")
		_, err := s.Put(context.Background(), "b", body, storage.PutOptions{Size: 2, IfAbsent: true})
		if !errors.Is(err, ErrDead) || !hbackup.IsKind(err, hbackup.KindInterrupted) || !s.Dead() {
			t.Errorf("%s: %v", fate, err)
		}
		if left, want := body.Len(), map[Fate]int{Undone: 2, Torn: 1}[fate]; left != want {
			t.Errorf("%s: %d bytes of the body were not sent; want %d", fate, left, want)
		}
		if err := put(s, "later", "x"); !errors.Is(err, ErrDead) {
			t.Errorf("%s: the dead wrote: %v", fate, err)
		}
		next := s.Reopen(Plan{})
		var got [3]string
		got[0] = content(next.place)
		next.Stat(context.Background(), "a")
		next.Stat(context.Background(), "a")
		got[1] = content(next.place)
		if err := put(next, "c", "3"); err != nil {
			t.Fatal(err)
		}
		got[2] = content(next.place)
		if got != want {
			t.Errorf("%s: %q; want %q", fate, got, want)
		}
	}
}

// What comes late meets what is there by then, and comes at last when nobody asks.
func TestLateCalls(t *testing.T) {
	s := New(mem.New("test"), Plan{Step: 1, Fate: Late, Lands: 2})
	put(s, "a", "late")
	next := s.Reopen(Plan{Step: 3, Fate: Late})
	if err := put(next, "a", "first"); err != nil {
		t.Fatal(err)
	}
	next.Stat(context.Background(), "a") // the late one lands before it
	if err := next.Delete(context.Background(), "a"); !errors.Is(err, ErrDead) {
		t.Error(err)
	}
	third := next.Reopen(Plan{})
	if got := content(third.place); got != "a=first" {
		t.Errorf("got %q", got)
	}
	if got := content(third.Place()); got != "" {
		t.Errorf("after the late deletion: %q", got)
	}
	// A process that is dead when it is to land hands it on.
	s = New(mem.New("test"), Plan{Step: 1, Fate: Late, Lands: 5})
	put(s, "a", "late")
	next = s.Reopen(Plan{Step: 1, Fate: Undone})
	next.Stat(context.Background(), "a")
	if got := content(next.Reopen(Plan{}).Place()); got != "a=late" {
		t.Errorf("got %q", got)
	}
}

func TestNothingIsHeardOfTheStoreAfterTheDeath(t *testing.T) {
	place := mem.New("test")
	for _, key := range []storage.Key{"a", "b", "c"} {
		if err := put(place, key, "0123456789"); err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	s := New(place, Plan{Step: 3, Fate: Done})
	s.OnChange(func(*mem.Store) { seen++ })
	body, _, err := s.Get(context.Background(), "a", storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if n, err := body.Read(make([]byte, 4)); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	n := 0
	for _, err := range s.List(context.Background(), "", storage.ListOptions{}) {
		switch n++; {
		case n == 1 && err != nil:
			t.Fatal(err)
		case n == 1:
			s.Delete(context.Background(), "b") // the third step
		case !errors.Is(err, ErrDead):
			t.Errorf("the listing went on with %v", err)
		}
	}
	_, read := io.ReadAll(body)
	_, stat := s.Stat(context.Background(), "a")
	_, _, get := s.Get(context.Background(), "a", storage.Range{})
	_, clock := s.ServerTime(context.Background())
	_, batch := s.DeleteBatch(context.Background(), []storage.Key{"a"})
	_, open := s.OpenUpload(context.Background(), "a", "STAMP")
	for what, err := range map[string]error{"read": read, "stat": stat, "get": get, "clock": clock, "batch": batch, "open": open} {
		if !errors.Is(err, ErrDead) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n != 2 || s.Steps() != 3 || seen != 1 || content(s.Reopen(Plan{}).Place()) != "a=0123456789 c=0123456789" {
		t.Errorf("%d elements, %d steps, %d changes seen, left is %q", n, s.Steps(), seen, content(place))
	}
}

func TestATornBatchIsDoneInPart(t *testing.T) {
	s := New(mem.New("test"), Plan{Step: 3, Fate: Torn})
	put(s, "a", "1")
	put(s, "b", "2")
	if _, err := s.DeleteBatch(context.Background(), []storage.Key{"a", "b"}); !errors.Is(err, ErrDead) {
		t.Error(err)
	}
	if got := content(s.Reopen(Plan{}).Place()); got != "b=2" {
		t.Errorf("left is %q", got)
	}
}

// A put that is under way while another call kills the process is acknowledged to
// nobody.
func TestWhatIsUnderWayIsNotAcknowledged(t *testing.T) {
	s := New(mem.New("test"), Plan{Step: 2, Fate: Done})
	killing := io.MultiReader(bytes.NewReader([]byte("x")), readerFunc(func() { s.Stat(context.Background(), "other") }))
	if _, err := s.Put(context.Background(), "a", killing, storage.PutOptions{Size: 1}); !errors.Is(err, ErrDead) {
		t.Errorf("got %v", err)
	}
}

type readerFunc func()

func (f readerFunc) Read([]byte) (int, error) { f(); return 0, io.EOF }
