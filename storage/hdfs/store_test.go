package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/internal/files"
	client "hbackup/internal/hdfs"
	"hbackup/storage"
	"hbackup/storage/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storage.Store { return openFake(t, newFake()) },
		storetest.NoNesting(),
		storetest.HeapLimit(-1), // the fake keeps its files in this process
		storetest.FolderMarker(func(ctx context.Context, s storage.Store, name string) error {
			return s.(*Store).fs.MkdirAll(ctx, "/l/"+strings.TrimSuffix(name, "/"))
		}))
}

func put(t testing.TB, s *Store, key storage.Key, text string) {
	t.Helper()
	if _, err := storage.PutBytes(t.Context(), s, key, []byte(text), false); err != nil {
		t.Fatal(err)
	}
}

// content gives what a key holds, "" when it is absent.
func content(t testing.TB, s *Store, key storage.Key) string {
	t.Helper()
	data, _, err := storage.ReadAll(t.Context(), s, key, 1<<20)
	if err != nil && !hbackup.IsKind(err, hbackup.KindNotFound) {
		t.Fatal(err)
	}
	return string(data)
}

// TestPutFailsAnywhere fails a put at each of its calls, once as if nothing had
// been done and once when it had been. What was there before is there then, or the
// new object whole when its publishing was done; and no temporary file stays,
// unless its very making was unknown.
func TestPutFailsAnywhere(t *testing.T) {
	for _, op := range []string{"stat", "mkdir", "create", "write", "close", "publish"} {
		for _, done := range []bool{false, true} {
			for _, ifAbsent := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s done %v if absent %v", op, done, ifAbsent), func(t *testing.T) {
					f := newFake()
					s := openFake(t, f)
					if !ifAbsent {
						put(t, s, "d/a", "old")
					}
					failing := func(at, path string) error {
						if at == op {
							return fail(hbackup.KindUnavailable, at, path)
						}
						return nil
					}
					if done {
						f.after = failing
					} else {
						f.before = failing
					}
					fresh := openFake(t, f) // knows no directories yet
					data := "new"
					if op == "stat" {
						data = strings.Repeat("n", lookFrom) // worth a look beforehand
					}
					_, err := storage.PutBytes(t.Context(), fresh, "d/a", []byte(data), ifAbsent)
					f.before, f.after = nil, nil
					want := map[bool]string{false: "old"}[ifAbsent]
					if op == "stat" && !ifAbsent {
						// Only the sweep asks, and goes on without an answer.
						if got := content(t, s, "d/a"); err != nil || got != data {
							t.Fatalf("%v; %d bytes", err, len(got))
						}
						return
					}
					if op == "stat" && done { // an absent key has no answer to lose
						if err != nil {
							t.Fatal(err)
						}
						return
					}
					if !hbackup.IsKind(err, hbackup.KindUnavailable) || !strings.Contains(err.Error(), "hdfs://nn:8020/l/d/a") {
						t.Errorf("%v (kind %q)", err, hbackup.KindOf(err))
					}
					if op == "publish" && done {
						want = "new"
					}
					if got := content(t, s, "d/a"); got != want {
						t.Errorf("the key holds %q; want %q", got, want)
					}
					if left := f.left(); len(left) > 0 && !(op == "create" && done) {
						t.Errorf("left over: %q", left)
					}
				})
			}
		}
	}
}

// TestWrongSize: what HDFS says of the closed file is believed.
func TestWrongSize(t *testing.T) {
	f := newFake()
	s := openFake(t, f)
	f.infoOf = func(i files.Info) files.Info { i.Size--; return i }
	_, err := storage.PutBytes(t.Context(), s, "a", []byte("xyz"), true)
	if !hbackup.IsKind(err, hbackup.KindCorrupt) || content(t, s, "a") != "" || len(f.left()) > 0 {
		t.Errorf("%v; %q; left %q", err, content(t, s, "a"), f.left())
	}
}

// TestTakenMeanwhile: the key is free when the put begins, and taken, by a file or
// by keys below it, when it ends.
func TestTakenMeanwhile(t *testing.T) {
	for _, ifAbsent := range []bool{true, false} {
		for _, dir := range []bool{true, false} {
			f := newFake()
			s := openFake(t, f)
			f.before = func(op, p string) error {
				if op == "close" {
					f.mu.Lock()
					defer f.mu.Unlock()
					f.add("/l/a", dir, []byte("other"))
				}
				return nil
			}
			_, err := storage.PutBytes(t.Context(), s, "a", []byte("mine"), ifAbsent)
			f.before = nil
			want, kind := "other", hbackup.KindExists
			switch {
			case dir:
				want, kind = "", hbackup.KindConflict
			case !ifAbsent:
				want, kind = "mine", hbackup.KindOther
			}
			if hbackup.KindOf(err) != kind || content(t, s, "a") != want || len(f.left()) > 0 {
				t.Errorf("if absent %v, directory %v: %v; %q; left %q", ifAbsent, dir, err, content(t, s, "a"), f.left())
			}
		}
	}
}

// TestDirectoriesGo: somebody prunes each directory as soon as it is made, a few
// times.
func TestDirectoriesGo(t *testing.T) {
	f := newFake()
	s := openFake(t, f)
	times := map[string]int{}
	f.after = func(op, p string) error {
		if times[p]++; op == "mkdir" && times[p] < 3 {
			f.mu.Lock()
			defer f.mu.Unlock()
			delete(f.nodes, p)
		}
		return nil
	}
	put(t, s, "d/e/a", "1")
	if got := content(t, s, "d/e/a"); got != "1" {
		t.Errorf("%q", got)
	}
	// And is told so by the making itself, which looks behind itself.
	mkdirs := 0
	f.before, f.after = func(op, p string) error {
		if op == "mkdir" && p == "/l/x" {
			if mkdirs++; mkdirs < 4 {
				return fail(hbackup.KindNotFound, op, p)
			}
		}
		return nil
	}, nil
	put(t, s, "x/a", "1")
	if mkdirs != 4 {
		t.Errorf("%d tries to make the directory", mkdirs)
	}
	// The temporary file itself is not waited for.
	f.after = func(op, p string) error {
		if op == "close" {
			f.mu.Lock()
			defer f.mu.Unlock()
			delete(f.nodes, p)
		}
		return nil
	}
	_, err := storage.PutBytes(t.Context(), s, "d/e/b", []byte("2"), true)
	if !hbackup.IsKind(err, hbackup.KindConflict) || hbackup.HintOf(err) == "" && !strings.Contains(err.Error(), "removed") {
		t.Errorf("%v", err)
	}
}

// TestPruneLeavesFiles: a file has taken the name of a directory that was to be
// pruned.
func TestPruneLeavesFiles(t *testing.T) {
	f := newFake()
	s := openFake(t, f)
	put(t, s, "d/a", "1")
	f.before = func(op, p string) error {
		if op == "rmdir" {
			f.mu.Lock()
			defer f.mu.Unlock()
			delete(f.nodes, p)
			f.add(p, false, []byte("file"))
		}
		return nil
	}
	if err := s.Delete(t.Context(), "d/a"); err != nil {
		t.Fatal(err)
	}
	if got := content(t, s, "d"); got != "file" {
		t.Errorf("the file holds %q", got)
	}
}

// TestReplacedWhileOpened: a file that is replaced is opened anew, but not for ever.
func TestReplacedWhileOpened(t *testing.T) {
	f := newFake()
	s := openFake(t, f)
	put(t, s, "a", "1")
	n := 0
	f.before = func(op, p string) error {
		if n++; op == "open" && n < 5 {
			return hbackup.E("open", p, hbackup.KindConflict, files.ErrReplaced)
		}
		return nil
	}
	if got := content(t, s, "a"); got != "1" {
		t.Errorf("%q", got)
	}
	n = -1 << 60
	if _, _, err := s.Get(t.Context(), "a", storage.Range{}); !hbackup.IsKind(err, hbackup.KindUnavailable) {
		t.Errorf("%v", err)
	}
}

// TestShortFile: fewer bytes come than the file has.
func TestShortFile(t *testing.T) {
	f := newFake()
	s := openFake(t, f)
	put(t, s, "a", "1234")
	short := &shortened{f}
	_, _, err := storage.ReadAll(t.Context(), open(short, storage.Place{Scheme: "hdfs", Host: "nn:8020", Path: "/l"}), "a", 100)
	if !hbackup.IsKind(err, hbackup.KindIncomplete) {
		t.Errorf("%v", err)
	}
}

// shortened announces one byte more than there is.
type shortened struct{ *fake }

func (s *shortened) Open(ctx context.Context, p string, offset int64) (io.ReadCloser, files.Info, error) {
	r, i, err := s.fake.Open(ctx, p, offset)
	i.Size++
	return r, i, err
}

func TestSealedIsRefused(t *testing.T) {
	f := newFake()
	f.sealed = true
	s := openFake(t, f)
	body := strings.NewReader("x")
	_, err := s.Put(t.Context(), "a", body, storage.PutOptions{Size: 1})
	if !hbackup.IsKind(err, hbackup.KindUnsupported) || hbackup.HintOf(err) == "" || body.Len() != 1 || len(f.left()) > 0 {
		t.Errorf("%v; hint %q; left %q", err, hbackup.HintOf(err), f.left())
	}
}

func TestSweep(t *testing.T) {
	f := newFake()
	s := openFake(t, f)
	put(t, openFake(t, f), "first", "") // which makes the directory
	for i := range files.PageSize + 5 {
		n := f.add(fmt.Sprintf("/l/%s/%d", tempDir, i), false, []byte("half"))
		if i != 7 {
			n.modified = n.modified.Add(-abandonedAfter - time.Second)
		}
	}
	put(t, s, "a", "1")
	if left := f.left(); len(left) != 1 || left[0] != "/l/"+tempDir+"/7" {
		t.Errorf("%d are left, one is %q", len(left), left[:min(1, len(left))])
	}
}

func TestServerTimeWithoutRights(t *testing.T) {
	f := newFake()
	s := openFake(t, f)
	f.before = func(op, p string) error { return fail(hbackup.KindDenied, op, p) }
	before := time.Now()
	if got, err := s.ServerTime(t.Context()); err != nil || got.Before(before) || got.After(time.Now()) {
		t.Errorf("%v, %v", got, err)
	}
	f.before = func(op, p string) error { return fail(hbackup.KindUnavailable, op, p) }
	if _, err := s.ServerTime(t.Context()); !hbackup.IsKind(err, hbackup.KindUnavailable) {
		t.Errorf("%v", err)
	}
}

func TestReservedNames(t *testing.T) {
	f := newFake()
	s := openFake(t, f)
	put(t, s, "d/"+tempDir+"/a", "1") // only at the top
	for _, key := range []storage.Key{tempDir, tempDir + "/a", ".snapshot", "d/.snapshot/x"} {
		_, putErr := storage.PutBytes(t.Context(), s, key, nil, true)
		_, statErr := s.Stat(t.Context(), key)
		for op, err := range map[string]error{"Put": putErr, "Stat": statErr, "Delete": s.Delete(t.Context(), key)} {
			if !hbackup.IsKind(err, hbackup.KindUsage) {
				t.Errorf("%s %s gave %v", op, key, err)
			}
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, at := range []string{"hdfs://nn", "hdfs://nn/a:b", "hdfs://nn/.reserved/x", "hdfs://nn/a/.snapshot/x", "file:///a", "s3://bucket/a"} {
		place, err := storage.ParseLocation(at)
		if err == nil {
			_, err = Open(place, Config{User: "u"})
		}
		if !hbackup.IsKind(err, hbackup.KindUsage) {
			t.Errorf("%s gave %v", at, err)
		}
	}
	place := storage.Place{Scheme: storage.SchemeHDFS, Host: "nn", Path: "/a"}
	if _, err := Open(place, Config{User: "u", NameNodes: []string{"a:b:c"}}); !hbackup.IsKind(err, hbackup.KindUsage) {
		t.Errorf("a wrong address gave %v", err)
	}
	s, err := Open(place, Config{User: "u"})
	if err != nil || s.Location() != "hdfs://nn/a" || s.Close() != nil {
		t.Errorf("%v", err)
	}
}

// TestHints: what the operator is told is about the place of the backups.
func TestHints(t *testing.T) {
	s := openFake(t, newFake())
	for cause, want := range map[error]string{
		client.ErrEncrypted:    "encryption zones",
		client.ErrErasureCoded: "-path /l",
	} {
		err := s.err("put", "a", hbackup.E("create", "x", hbackup.KindUnsupported, cause).WithHint("about HBase's root"))
		if hint := hbackup.HintOf(err); !strings.Contains(hint, want) || !errors.Is(err, cause) || !hbackup.IsKind(err, hbackup.KindUnsupported) {
			t.Errorf("%v: %q", err, hint)
		}
	}
}

// TestLostCreate: an answer to the making of a temporary file is lost, whether or not
// it was made: the put goes on under another name.
func TestLostCreate(t *testing.T) {
	lost := hbackup.E("create", "hdfs://nn:8020/l", hbackup.KindUnavailable, files.ErrAnswerLost)
	for _, made := range []bool{false, true} {
		f := newFake()
		left := 2
		fault := func(op, _ string) error {
			if op != "create" || left == 0 {
				return nil
			}
			left--
			return lost
		}
		if made {
			f.after = fault
		} else {
			f.before = fault
		}
		s := openFake(t, f)
		put(t, s, "a/key", "body")
		if left != 0 {
			t.Errorf("made %v: %d answers were not lost", made, left)
		}
		got, _, err := storage.ReadAll(t.Context(), s, "a/key", 100)
		if err != nil || string(got) != "body" {
			t.Errorf("made %v: %q, %v", made, got, err)
		}
	}
}
