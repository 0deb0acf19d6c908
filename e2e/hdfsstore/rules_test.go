package hdfsstore

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/internal/files"
	client "hbackup/internal/hdfs"
	"hbackup/storage"
	"hbackup/storage/hdfs"
)

// webhdfs makes a call over HTTP, for what the native client cannot do, and gives
// the answer.
func webhdfs(t *testing.T, method, path, query string) string {
	t.Helper()
	url := fmt.Sprintf("http://%s/webhdfs/v1%s?user.name=%s&%s", cluster.HTTPAddress(), path, cluster.User(), query)
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	must(t, err)
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	must(t, err)
	if resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s %s", method, url, resp.Status, answer)
	}
	return string(answer)
}

// raw gives HDFS itself, without the rules of a store.
func raw(t *testing.T) *client.FS {
	t.Helper()
	fs, err := client.New(client.Config{NameNodes: []string{cluster.Address()}, User: cluster.User()})
	must(t, err)
	t.Cleanup(func() { fs.Close() })
	return fs
}

func pathOf(t testing.TB) string { return strings.TrimPrefix(directory(t), cluster.URI()) }

// leave makes a file that is whole, or still open as a killed writer leaves it.
func leave(t *testing.T, fs *client.FS, path string, whole bool) {
	t.Helper()
	w, err := fs.Create(t.Context(), path)
	must(t, err)
	_, err = w.Write([]byte("half"))
	must(t, err)
	if whole {
		must(t, w.Close())
	}
}

// TestSweep: what dead processes left in the directory of temporary files goes
// when it is old, also a file that is still open. It is never seen as an object.
func TestSweep(t *testing.T) {
	fs := raw(t)
	temp := pathOf(t) + "/.hbackup-tmp"
	must(t, fs.MkdirAll(t.Context(), temp))
	old := time.Now().Add(-49 * time.Hour).UnixMilli()
	for _, name := range []string{"old-whole", "old-open", "new-whole", "new-open"} {
		leave(t, fs, temp+"/"+name, strings.HasSuffix(name, "whole"))
		if strings.HasPrefix(name, "old") {
			webhdfs(t, "PUT", temp+"/"+name, fmt.Sprintf("op=SETTIMES&modificationtime=%d&accesstime=%d", old, old))
		}
	}
	s := openAt(t, directory(t), hdfs.Config{User: cluster.User()})
	put(t, s, "a", "1")
	infos, err := fs.ReadDir(t.Context(), temp)
	must(t, err)
	var left []string
	for _, info := range infos {
		left = append(left, info.Name)
	}
	if want := []string{"new-open", "new-whole"}; !slices.Equal(left, want) {
		t.Errorf("left are %q; want %q", left, want)
	}
	for obj, err := range s.List(t.Context(), "", storage.ListOptions{}) {
		must(t, err)
		if obj.Key != "a" {
			t.Errorf("%s is listed", obj.Key)
		}
	}
}

// TestOpenFileUnderAKey: a file that another program is writing at a key cannot
// be read as an object.
func TestOpenFileUnderAKey(t *testing.T) {
	fs := raw(t)
	s := openAt(t, directory(t), hdfs.Config{User: cluster.User()})
	put(t, s, "a", "1")
	leave(t, fs, pathOf(t)+"/b", false)
	_, _, err := s.Get(t.Context(), "b", storage.Range{})
	wantKind(t, err, hbackup.KindUnsupported)
	if !errors.Is(err, client.ErrOpenForWriting) || hbackup.HintOf(err) == "" {
		t.Errorf("%v; hint %q", err, hbackup.HintOf(err))
	}
	_, err = storage.PutBytes(t.Context(), s, "b", []byte("2"), true)
	wantKind(t, err, hbackup.KindExists)
}

// TestListOrder has more names than a page, which the name node orders otherwise
// than keys are: directories beside files, and names beyond ASCII.
func TestListOrder(t *testing.T) {
	fs := raw(t)
	at := pathOf(t) + "/d"
	var want []storage.Key
	add := func(name string) { want = append(want, storage.Key("d/"+name)) }
	for i := range files.PageSize + 10 {
		add(fmt.Sprintf("n%04d", i))
	}
	for _, name := range []string{"a/x", "a-/x", "a--/x", "a-b", "a.b", "a0", "aä", "ab", "ä", "é/x", "é-", "Ω", "z", "日本", "n0500-/x", "n0500/x"} {
		if name != "n0500/x" {
			add(name)
		}
	}
	slices.Sort(want)
	s := openAt(t, directory(t), hdfs.Config{User: cluster.User()})
	work := make(chan storage.Key, len(want))
	for _, key := range want {
		work <- key
	}
	close(work)
	done := make(chan error, 16)
	for range cap(done) {
		go func() {
			for key := range work {
				if _, err := storage.PutBytes(t.Context(), s, key, nil, true); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range cap(done) {
		must(t, <-done)
	}
	list := func(prefix string, opts storage.ListOptions) (keys []storage.Key) {
		t.Helper()
		for obj, err := range s.List(t.Context(), prefix, opts) {
			must(t, err)
			keys = append(keys, obj.Key)
		}
		return keys
	}
	if got := list("", storage.ListOptions{}); !slices.Equal(got, want) {
		t.Errorf("got %d keys in another order, or others; want %d", len(got), len(want))
	}
	for _, after := range []int{0, 1, 7, 500, len(want) - 3} {
		if got := list("d/", storage.ListOptions{After: want[after], Limit: 40}); !slices.Equal(got, want[after+1:min(after+41, len(want))]) {
			t.Errorf("after %s: %q", want[after], got)
		}
	}
	// The pages themselves: everything once.
	seen := map[string]bool{}
	for after := ""; ; {
		page, err := fs.ReadDirPage(t.Context(), at, after)
		must(t, err)
		for _, info := range page {
			if seen[info.Name] {
				t.Errorf("%q is in two pages", info.Name)
			}
			seen[info.Name] = true
		}
		if len(page) < files.PageSize {
			break
		}
		after = page[len(page)-1].Name
	}
	whole, err := fs.ReadDir(t.Context(), at)
	if err != nil || len(whole) != len(seen) {
		t.Errorf("%d names in pages, %d in all, %v", len(seen), len(whole), err)
	}
}

// TestDenied: a user without rights is told which, and by which name the place
// goes.
func TestDenied(t *testing.T) {
	owner := openAt(t, directory(t), hdfs.Config{User: cluster.User()})
	put(t, owner, "d/a", "1")
	s := openAt(t, directory(t), hdfs.Config{User: "somebody-else"})
	_, putErr := storage.PutBytes(t.Context(), s, "d/b", []byte("x"), true)
	_, statErr := s.Stat(t.Context(), "d/a")
	_, _, getErr := s.Get(t.Context(), "d/a", storage.Range{})
	var listErr error
	for _, listErr = range s.List(t.Context(), "d/", storage.ListOptions{}) {
	}
	for op, err := range map[string]error{"Put": putErr, "Stat": statErr, "Get": getErr, "List": listErr, "Delete": s.Delete(t.Context(), "d/a")} {
		if !hbackup.IsKind(err, hbackup.KindDenied) || !strings.Contains(err.Error(), directory(t)+"/d/") || !strings.Contains(hbackup.HintOf(err), pathOf(t)) {
			t.Errorf("%s gave %v; hint %q", op, err, hbackup.HintOf(err))
		}
	}
	data, _, err := storage.ReadAll(t.Context(), owner, "d/a", 10)
	if err != nil || string(data) != "1" {
		t.Errorf("afterwards: %q, %v", data, err)
	}
}

// TestFileAttributes: rights, replication and block size of what is made.
func TestFileAttributes(t *testing.T) {
	s := openAt(t, directory(t), hdfs.Config{User: cluster.User(), Replication: 2, BlockSize: 2 << 20})
	put(t, s, "d/a", "1")
	for path, want := range map[string]string{
		"": `"permission":"700"`, "/d": `"permission":"700"`, "/.hbackup-tmp": `"permission":"700"`,
		"/d/a": `"blockSize":2097152,"childrenNum":0,"fileId":[0-9]+,"group":"[^"]*","length":1,"modificationTime":[0-9]+,"owner":"[^"]*","pathSuffix":"","permission":"600","replication":2`,
	} {
		got := webhdfs(t, "GET", pathOf(t)+path, "op=GETFILESTATUS")
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%q: %s; want %s", path, got, want)
		}
	}
}

// TestNotTheOwner: who may write in the location can prune directories, too,
// though the rights are those of an ordinary user.
func TestNotTheOwner(t *testing.T) {
	fs := raw(t)
	must(t, fs.MkdirAll(t.Context(), pathOf(t)))
	webhdfs(t, "PUT", pathOf(t), "op=SETPERMISSION&permission=777")
	s := openAt(t, directory(t), hdfs.Config{User: "somebody-else"})
	put(t, s, "d/e/a", "1")
	must(t, s.Delete(t.Context(), "d/e/a"))
	_, err := fs.Stat(t.Context(), pathOf(t)+"/d")
	wantKind(t, err, hbackup.KindNotFound)
}

// TestFileInTheWay: the location, or its directory of temporary files, is a file.
func TestFileInTheWay(t *testing.T) {
	fs := raw(t)
	must(t, fs.MkdirAll(t.Context(), pathOf(t)))
	leave(t, fs, pathOf(t)+"/location", true)
	leave(t, fs, pathOf(t)+"/.hbackup-tmp", true)
	for _, at := range []string{directory(t), directory(t) + "/location", directory(t) + "/location/below"} {
		s := openAt(t, at, hdfs.Config{User: cluster.User()})
		_, err := storage.PutBytes(t.Context(), s, "a", []byte("x"), true)
		wantKind(t, err, hbackup.KindConflict)
		if !strings.Contains(err.Error(), at+"/a") {
			t.Errorf("%v", err)
		}
	}
}

// TestQuota: a quota of names and one of space that are used up.
func TestQuota(t *testing.T) {
	fs := raw(t)
	for _, quota := range []string{"namespacequota=3", "storagespacequota=1000"} {
		dir := pathOf(t) + "/" + strings.Split(quota, "=")[0]
		must(t, fs.MkdirAll(t.Context(), dir))
		webhdfs(t, "PUT", dir, "op=SETQUOTA&"+quota)
		s := openAt(t, cluster.URI()+dir, hdfs.Config{User: cluster.User()})
		var err error
		for i := 0; i < 10 && err == nil; i++ {
			_, err = storage.PutBytes(t.Context(), s, storage.Key(fmt.Sprintf("%d", i)), make([]byte, 600), true)
		}
		wantKind(t, err, hbackup.KindNoSpace)
		if hbackup.HintOf(err) == "" {
			t.Errorf("%v has no hint", err)
		}
	}
}
