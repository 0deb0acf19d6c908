package check

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/storage"
	"hbackup/storage/faulty"
	"hbackup/storage/file"
	"hbackup/storage/mem"
	"hbackup/storage/prefixed"
	"hbackup/storage/storetest"
)

// item finds one by its name.
func item(t *testing.T, r TargetReport, name string) Item {
	t.Helper()
	for _, i := range r.Items {
		if i.Name == name {
			return i
		}
	}
	t.Errorf("there is no item %q in %+v", name, r.Items)
	return Item{}
}

// checkLeft fails the test when a store holds anything but those keys.
func checkLeft(t *testing.T, s storage.Store, want ...storage.Key) {
	t.Helper()
	var got []storage.Key
	for o, err := range s.List(context.Background(), "", storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, o.Key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("there is %q, want %q", got, want)
	}
}

func TestTargetThatIsSafe(t *testing.T) {
	directory, err := file.Open(storage.Place{Scheme: storage.SchemeFile, Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]storage.Store{"mem": mem.New("main"), "file": directory, "part": prefixed.New(mem.New("main"), "part")} {
		for _, full := range []bool{false, true} {
			if full && (testing.Short() || name == "file") {
				continue // the file store's own tests do that
			}
			t.Run(fmt.Sprintf("%s full %v", name, full), func(t *testing.T) {
				expected, done := 0, 0
				r, err := Target(t.Context(), s, TargetOptions{Full: full, Expect: func(n int) { expected += n }, Done: func(n int) { done += n }})
				if err != nil {
					t.Fatal(err)
				}
				if worst, err := Worst(r.Items); worst == Failed {
					t.Errorf("%v in %+v", err, r.Items)
				}
				for _, topic := range []storetest.Topic{storetest.OnCreation, storetest.OnPuts, storetest.OnListing, storetest.OnDigests} {
					if i := item(t, r, string(topic)); i.Status != OK {
						t.Errorf("%+v", i)
					}
				}
				if i := item(t, r, "leases"); i.Status != OK || !strings.Contains(i.Detail, "create-if-absent alone") {
					t.Errorf("%+v", i)
				}
				if expected < 15 || done != expected || r.Committer.Name == "" || r.Committer.Why == "" || r.Left != "" {
					t.Errorf("%d of %d trials, %+v", done, expected, r)
				}
				checkLeft(t, s)
			})
		}
	}
}

func scripted(t *testing.T, s storage.Store, script string) storage.Store {
	t.Helper()
	f, err := faulty.New(s, script)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// What is wrong with a store is named, and makes it unsafe.
func TestTargetThatIsNotSafe(t *testing.T) {
	for name, c := range map[string]struct {
		store func(*mem.Store) storage.Store
		item  string
		kind  hbackup.Kind
	}{
		"no right to put":    {func(s *mem.Store) storage.Store { return scripted(t, s, "put#*:fail=denied") }, "right write", hbackup.KindDenied},
		"no right to get":    {func(s *mem.Store) storage.Store { return scripted(t, s, "get[probe/]#*:fail=denied") }, "right read", hbackup.KindDenied},
		"no right to list":   {func(s *mem.Store) storage.Store { return scripted(t, s, "list[probe/]#*:fail=denied") }, "right list", hbackup.KindDenied},
		"no create":          {func(s *mem.Store) storage.Store { return overwriting{s} }, string(storetest.OnCreation), hbackup.KindRefused},
		"bytes change":       {func(s *mem.Store) storage.Store { return scripted(t, s, "get[RoundTrip]#*:flip") }, string(storetest.OnPuts), hbackup.KindRefused},
		"listings are short": {func(s *mem.Store) storage.Store { return shortLists{s} }, string(storetest.OnListing), hbackup.KindRefused},
		"no room":            {func(s *mem.Store) storage.Store { return scripted(t, s, "put#*:fail=no_space") }, "use of write", hbackup.KindNoSpace},
		"clock":              {func(*mem.Store) storage.Store { return mem.New("main", mem.WithClock(ahead)) }, "clock", hbackup.KindRefused},
	} {
		t.Run(name, func(t *testing.T) {
			inner := mem.New("main")
			r, err := Target(t.Context(), c.store(inner), TargetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if i := item(t, r, c.item); i.Status != Failed || hbackup.KindOf(i.Err) != c.kind || i.Detail == "" {
				t.Errorf("%+v", i)
			}
			if !strings.HasPrefix(name, "no right to list") {
				checkLeft(t, inner)
			}
		})
	}
}

func ahead() time.Time { return time.Now().Add(20 * time.Minute) }

// shortLists gives no more than the first page.
type shortLists struct{ *mem.Store }

func (s shortLists) List(ctx context.Context, prefix string, opts storage.ListOptions) iter.Seq2[storage.Object, error] {
	if opts.Limit == 0 {
		opts.Limit = 1000
	}
	return s.Store.List(ctx, prefix, opts)
}

// What cannot be cleared away is said, and does not make the store unsafe.
func TestTargetSaysWhatIsLeft(t *testing.T) {
	inner := mem.New("main")
	r, err := Target(t.Context(), stubborn{inner}, TargetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if i := item(t, r, "cleared away"); i.Status != Warning || !strings.Contains(i.Detail, "mem://main/probe/") || r.Left != i.Detail {
		t.Errorf("%+v, %q", i, r.Left)
	}
	if worst, err := Worst(r.Items); worst != Warning {
		t.Errorf("%s, %v", worst, err)
	}
}

// folderOf gives the folder of a case, as probe/RANDOM/CASE.
func folderOf(key storage.Key) string {
	parts := strings.SplitN(string(key), "/", 4)
	return strings.Join(parts[:min(3, len(parts))], "/")
}

// stubborn keeps what the cases have left when all of it is to be cleared away.
type stubborn struct{ *mem.Store }

func (s stubborn) DeleteBatch(ctx context.Context, keys []storage.Key) ([]storage.DeleteFailure, error) {
	if n := len(keys); n > 0 && folderOf(keys[0]) != folderOf(keys[n-1]) {
		return []storage.DeleteFailure{{Key: keys[0], Err: hbackup.Errorf("delete", s.Location().At(keys[0]), hbackup.KindDenied, "it is locked")}}, nil
	}
	return s.Store.DeleteBatch(ctx, keys)
}

// An interruption ends the trial soon and is followed by the clearing away.
func TestTargetInterrupted(t *testing.T) {
	inner := mem.New("main")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := Target(ctx, inner, TargetOptions{Done: func(int) { cancel() }})
	if !hbackup.IsKind(err, hbackup.KindInterrupted) || r.Left != "" {
		t.Errorf("%+v, %v", r, err)
	}
	checkLeft(t, inner)
}

// A location that may be somebody else's is not tried, unless the operator wants it.
func TestTargetThatIsNotOurs(t *testing.T) {
	for name, c := range map[string]struct {
		key  storage.Key
		text string
		kind hbackup.Kind
		init hbackup.Kind
	}{
		"other data":   {"photos/cat.jpg", "x", hbackup.KindRefused, ""},
		"newer format": {catalog.MarkerKey, `{"format":2,"location":"x"}`, hbackup.KindUnsupported, hbackup.KindUnsupported},
		"damaged":      {catalog.MarkerKey, `{`, hbackup.KindCorrupt, hbackup.KindCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			inner := mem.New("main")
			if _, err := storage.PutBytes(t.Context(), inner, c.key, []byte(c.text), true); err != nil {
				t.Fatal(err)
			}
			if _, err := Target(t.Context(), writeless{t, inner}, TargetOptions{}); !hbackup.IsKind(err, c.kind) {
				t.Errorf("%v", err)
			}
			r, err := Target(t.Context(), inner, TargetOptions{Init: true})
			if c.init != "" {
				if !hbackup.IsKind(err, c.init) {
					t.Errorf("with --init: %v", err)
				}
				checkLeft(t, inner, c.key)
				return
			}
			if m, merr := catalog.ReadMarker(t.Context(), inner); err != nil || merr != nil || !strings.Contains(r.Items[0].Detail, m.ID) {
				t.Errorf("with --init: %+v, %v, %v", r, err, merr)
			}
			checkLeft(t, inner, catalog.MarkerKey, c.key)
		})
	}
}

// A location that is not safe does not become hbackup's.
func TestTargetThatIsNotSafeGetsNoMarker(t *testing.T) {
	inner := mem.New("main")
	if _, err := Target(t.Context(), overwriting{inner}, TargetOptions{Init: true}); err != nil {
		t.Fatal(err)
	}
	checkLeft(t, inner)
}

// writeless fails the test when anything is written.
type writeless struct {
	t *testing.T
	*mem.Store
}

func (w writeless) Put(_ context.Context, key storage.Key, _ io.Reader, _ storage.PutOptions) (storage.Object, error) {
	w.t.Errorf("%s was put", key)
	return storage.Object{}, hbackup.Errorf("put", string(key), hbackup.KindReadOnly, "no")
}

func (w writeless) Delete(_ context.Context, key storage.Key) error {
	w.t.Errorf("%s was deleted", key)
	return nil
}

// settled is a store that says of itself what the test wants.
type settled struct {
	*mem.Store
	findings []storage.Finding
	swept    string
	sweepErr error
}

func (s *settled) Inspect(context.Context, string, storage.Terms) []storage.Finding {
	return s.findings
}
func (s *settled) Sweep(_ context.Context, prefix string) error { s.swept = prefix; return s.sweepErr }
func (s *settled) Rights() storage.Rights {
	return storage.Rights{List: "p:List", Get: "p:Get", Put: "p:Put", Delete: "p:Put"}
}

func TestTargetShowsWhatTheStoreFinds(t *testing.T) {
	s := &settled{Store: mem.New("main"), findings: []storage.Finding{
		{Name: "versioning", Verdict: storage.Fine, Detail: "off"},
		{Name: "conditional replace", Verdict: storage.Without, Detail: "no"},
		{Name: "soft delete", Verdict: storage.Caution, Detail: "seven days", Hint: "switch it off"},
		{Name: "lifecycle rules", Verdict: storage.Harmful, Detail: "deletes all", Hint: "take it away"},
	}}
	r, err := Target(t.Context(), s, TargetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Status{"versioning": OK, "conditional replace": Absent, "soft delete": Warning, "lifecycle rules": Failed} {
		if i := item(t, r, name); i.Status != want || want == Failed && !hbackup.IsKind(i.Err, hbackup.KindRefused) {
			t.Errorf("%+v", i)
		}
	}
	if i := item(t, r, "rights"); i.Detail != "p:List, p:Get, p:Put" {
		t.Errorf("%+v", i)
	}
	if !strings.HasPrefix(s.swept, catalog.ProbePrefix) || !strings.HasSuffix(s.swept, "/") {
		t.Errorf("%q was swept", s.swept)
	}
}
