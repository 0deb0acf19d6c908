package servers

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestACacheEntryIsBuiltOnceAndWhole(t *testing.T) {
	t.Setenv("HBACKUP_CACHE", t.TempDir())
	root, err := CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	// A process that died while building left this.
	if err := os.MkdirAll(filepath.Join(root, "thing.building", "half"), 0o777); err != nil {
		t.Fatal(err)
	}
	var built atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			dir, err := entry(context.Background(), "thing", func(dir string) error {
				built.Add(1)
				return os.WriteFile(filepath.Join(dir, "whole"), nil, 0o666)
			})
			if err != nil {
				t.Error(err)
				return
			}
			names, err := os.ReadDir(dir)
			if err != nil || len(names) != 1 || names[0].Name() != "whole" {
				t.Errorf("entry holds %v, %v", names, err)
			}
		})
	}
	all.Wait()
	if n := built.Load(); n != 1 {
		t.Errorf("built %d times", n)
	}
}

func TestACacheEntryThatCannotBeBuiltIsTriedAgain(t *testing.T) {
	t.Setenv("HBACKUP_CACHE", t.TempDir())
	broken := errors.New("broken")
	if _, err := entry(t.Context(), "thing", func(string) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if _, err := entry(t.Context(), "thing", func(string) error { return nil }); err != nil {
		t.Error(err)
	}
}

func TestWaitingForALockEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lockFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := lockFile(ctx, path); !errors.Is(err, gone) {
		t.Errorf("error %v", err)
	}
	unlock()
	if _, err := lockFile(t.Context(), path); err != nil {
		t.Error(err)
	}
}

// TestDiffShowsWhatIsInOneTextOnly compares with sets: the texts are subsequences
// of one list of different lines, as two dumps of nearly the same table are.
func TestDiffShowsWhatIsInOneTextOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(t, "lines")
		var want, got, missing, added []string
		for i := range n {
			line := fmt.Sprintf("row%03d", i)
			switch rapid.SampledFrom([]string{"both", "both", "both", "want", "got", "changed"}).Draw(t, line) {
			case "both":
				want, got = append(want, line), append(got, line)
			case "want":
				want, missing = append(want, line), append(missing, line)
			case "got":
				got, added = append(got, line), append(added, line)
			case "changed":
				want, missing = append(want, line+" old"), append(missing, line+" old")
				got, added = append(got, line+" new"), append(added, line+" new")
			}
		}
		text, err := diffLines(strings.NewReader(strings.Join(want, "\n")), strings.NewReader(strings.Join(got, "\n")), 1000)
		if err != nil {
			t.Fatal(err)
		}
		var shownMissing, shownAdded []string
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if rest, ok := strings.CutPrefix(line, "- "); ok {
				shownMissing = append(shownMissing, rest)
			} else if rest, ok := strings.CutPrefix(line, "+ "); ok {
				shownAdded = append(shownAdded, rest)
			} else {
				t.Fatalf("line %q", line)
			}
		}
		if !slices.Equal(shownMissing, missing) || !slices.Equal(shownAdded, added) {
			t.Fatalf("shown:\n%s\nmissing %q\nadded %q", text, missing, added)
		}
	})
}

func TestDiffCountsWhatItDoesNotShow(t *testing.T) {
	text, err := diffLines(strings.NewReader("a\nb\nc\n"), strings.NewReader("d\n"), 2)
	if err != nil {
		t.Fatal(err)
	}
	if want := "- a\n- b\n… and 2 more lines\n"; text != want {
		t.Errorf("%q, want %q", text, want)
	}
}

func TestAuditLines(t *testing.T) {
	const line = "time=2026-11-30T23:36:50.345+0000\tallowed=true\tugi=alice (auth:SIMPLE)\tip=/127.0.0.1\tcmd=rename (options=[OVERWRITE])\tsrc=/a b\tdst=/c=d\tperm=alice:g:rw-r--r--\tproto=rpc"
	got, err := parseAudit(line)
	if err != nil {
		t.Fatal(err)
	}
	want := NameNodeCall{Time: time.Date(2026, 11, 30, 23, 36, 50, 345e6, time.UTC), User: "alice", Allowed: true,
		Command: "rename", Path: "/a b", Destination: "/c=d"}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, bad := range []string{"", "time=yesterday\tcmd=open", "allowed=true\tugi=x"} {
		if c, err := parseAudit(bad); err == nil {
			t.Errorf("%q gave %+v", bad, c)
		}
	}
}

func TestAccessLogLinesThatAreDamaged(t *testing.T) {
	for _, bad := range []string{"", "a b", "o b [30/Movember/2026:23:41:39 +0000] 127.0.0.1 r id s3_GetObject k /u 200 - 0 0 0",
		"o b [30/November/2026:23:41:39 +0000] 127.0.0.1 r id s3_GetObject k /u OK - 0 0 0"} {
		if r, err := parseRequest(bad); err == nil {
			t.Errorf("%q gave %+v", bad, r)
		}
	}
}

func TestHexSplitsDivideTheKeySpace(t *testing.T) {
	if s := HexSplits(1); s != nil {
		t.Errorf("one region: %q", s)
	}
	if s := fmt.Sprintf("%s", HexSplits(4)); s != "[40000000 80000000 c0000000]" {
		t.Errorf("four regions: %s", s)
	}
}

func TestSettingsBecomeXMLThatSaysTheSame(t *testing.T) {
	s := Settings{"a.b": "1 < 2 & \"3\"", "c": ""}.with(nil, Settings{"a.b": "<x>"})
	var read struct {
		Property []struct {
			Name  string `xml:"name"`
			Value string `xml:"value"`
		} `xml:"property"`
	}
	if err := xml.Unmarshal(s.xml(), &read); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(read.Property); got != "[{a.b <x>} {c }]" {
		t.Errorf("read %s", got)
	}
}

func TestAMissingCommandIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := Prepare(t.Context(), t.Logf)
	if err == nil || !strings.Contains(err.Error(), "java, javac, jar, mvn, go") {
		t.Errorf("error %v", err)
	}
}

func TestUnusedCacheEntriesArePruned(t *testing.T) {
	root := t.TempDir()
	t.Setenv("HBACKUP_CACHE", root)
	build := func(string) error { return nil }
	long := time.Now().Add(-48 * time.Hour)
	for _, name := range []string{"used", "unused"} {
		dir, err := entry(t.Context(), name, build)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, long, long); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := entry(t.Context(), "used", build); err != nil {
		t.Fatal(err)
	}
	if err := prune(root, 24*time.Hour, t.Logf); err != nil {
		t.Fatal(err)
	}
	if !isDir(filepath.Join(root, "used")) || isDir(filepath.Join(root, "unused")) {
		t.Error("the wrong entry was removed")
	}
}
