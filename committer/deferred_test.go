package committer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"hbackup"
	"hbackup/committer"
	"hbackup/storage"
	"hbackup/storage/concurrency"
	"hbackup/storage/faulty"
	"hbackup/storage/mem"
	"hbackup/storage/metered"
)

const folder = "jobs/r/uploads/i/"

// fileSet gives the store files of a test image, the content by key.
func fileSet(n int) map[storage.Key]string {
	files := map[storage.Key]string{}
	for i := range n {
		files[storage.Key(fmt.Sprintf("archive/data/ns/t/r/f/%04d", i))] = strings.Repeat(fmt.Sprint(i), i%7+1)
	}
	return files
}

func keysOf(files map[storage.Key]string) []storage.Key {
	var keys []storage.Key
	for k := range files {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func deferred(t testing.TB, s storage.Store) committer.Committer {
	t.Helper()
	c, err := committer.Choice{Protocol: committer.ProtocolDeferred}.For(s, folder)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func yes(context.Context) (bool, error) { return true, nil }

// makeImage does all that a backup does for an image, as a process that takes up
// what an earlier one may have left. Unless it dies, it ends the image.
func makeImage(s storage.Store, files map[storage.Key]string, dies bool) (err error) {
	ctx := context.Background()
	tidied, err := committer.Tidy(ctx, s, []committer.Leftover{{Folder: folder, Resume: true}}, yes)
	if err != nil {
		return err
	}
	c, err := committer.Choice{Protocol: committer.ProtocolDeferred}.For(s, folder)
	if err != nil {
		return err
	}
	im := c.Begin(alone)
	earlier, err := im.TakeOver(ctx, tidied.Accounted)
	if err != nil {
		return err
	}
	defer func() {
		if !dies || err == nil {
			err = errors.Join(err, im.End(ctx))
		}
	}()
	var todo []storage.Key
	for _, k := range keysOf(files) {
		if f, ok := earlier[k]; ok {
			if f.Digest != storage.DigestOf([]byte(files[k])) || f.Cells != int64(len(files[k])) {
				return fmt.Errorf("%s was taken over as %+v", k, f)
			}
			im.Adopt(k)
			continue
		}
		todo = append(todo, k)
	}
	im.Expect(todo)
	var wg sync.WaitGroup
	errs := make([]error, len(todo))
	next := make(chan int)
	for range 4 {
		wg.Go(func() {
			for i := range next {
				key, data := todo[i], files[todo[i]]
				o, err := im.PutFile(ctx, key, int64(len(data)), strings.NewReader(data))
				if err == nil && o.Digest != storage.DigestOf([]byte(data)) {
					err = fmt.Errorf("%s was put as %+v", key, o)
				}
				if errs[i] = err; err == nil {
					im.Passed(ctx, key, int64(len(data)))
				}
			}
		})
	}
	for i := range todo {
		next <- i
	}
	close(next)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := im.Publish(ctx); err != nil {
		return err
	}
	if err := im.PutSnapshotFiles(ctx, snapshotFiles("data", "info")...); err != nil {
		return err
	}
	return im.Commit(ctx, manifestKey, []byte("manifest"))
}

// whole fails unless the store holds exactly the image, and no upload.
func whole(t *testing.T, what string, s *mem.Store, files map[storage.Key]string) {
	t.Helper()
	want := map[storage.Key]string{dataKey: "data", infoKey: "info", manifestKey: "manifest"}
	for k, v := range files {
		want[k] = v
	}
	got := s.Snapshot()
	for k, v := range want {
		if string(got[k]) != v {
			t.Errorf("%s: %s holds %q; want %q", what, k, got[k], v)
		}
	}
	for k := range got {
		attempt, _ := path.Split(string(k))
		if _, ok := want[k]; !ok && got[storage.Key(attempt+"closed.json")] == nil {
			t.Errorf("%s: %s is left", what, k)
		}
	}
	if left := s.Uploads(); len(left) > 0 {
		t.Errorf("%s: uploads are left: %v", what, left)
	}
}

func TestHeldFilesAreSeenWhenThePublicationComes(t *testing.T) {
	s, ctx := mem.New("held"), t.Context()
	im := deferred(t, s).Begin(alone)
	if err := put(t, im, fileKey, "bytes"); err != nil {
		t.Fatal(err)
	}
	if got := content(t, s, fileKey); got != "<none>" {
		t.Errorf("the file is there before the publication: %q", got)
	}
	for range 2 {
		if err := im.Publish(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if got := content(t, s, fileKey); got != "bytes" {
		t.Errorf("the file holds %q", got)
	}
	if err := put(t, im, "archive/data/ns/t/r/f/late", "late"); !hbackup.IsKind(err, hbackup.KindRefused) {
		t.Errorf("a file after the publication: %v", err)
	}
	if err := im.PutSnapshotFiles(ctx, snapshotFiles("data", "info")...); err != nil {
		t.Fatal(err)
	}
	if err := im.Commit(ctx, manifestKey, []byte("manifest")); err != nil {
		t.Fatal(err)
	}
	if err := im.End(ctx); err != nil {
		t.Fatal(err)
	}
	whole(t, "at the end", s, map[storage.Key]string{fileKey: "bytes"})
}

// Without an image there is nothing: not an object, not an upload.
func TestAFailedImageLeavesNothing(t *testing.T) {
	s, ctx := mem.New("failed"), t.Context()
	im := deferred(t, s).Begin(alone)
	im.Expect(keysOf(fileSet(10)))
	for k, v := range fileSet(5) {
		if err := put(t, im, k, v); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.Uploads()); n != 10 {
		t.Errorf("%d uploads are open; want 10", n)
	}
	if err := im.End(ctx); err != nil {
		t.Fatal(err)
	}
	if got, left := s.Snapshot(), s.Uploads(); len(got) > 0 || len(left) > 0 {
		t.Errorf("left are %v and the uploads %v", got, left)
	}
}

// TestEveryCallFails fails each call of an image once, done or not done, in a
// process that dies of it and in one that tidies up, and makes the image again.
func TestEveryCallFails(t *testing.T) {
	files := fileSet(9)
	s, err := faulty.New(mem.New("count"), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := makeImage(s, files, false); err != nil {
		t.Fatal(err)
	}
	calls := s.Calls()["any"]
	if calls < 25 || s.Calls()["open"] != 9 || s.Calls()["fill"] != 9 || s.Calls()["finish"] != 9 || s.Calls()["drop"] != 0 {
		t.Fatalf("the calls are %v", s.Calls())
	}
	for n := 1; n <= calls+2; n++ {
		for _, fault := range []string{"fail", "lost", "fail=denied", "lost=conflict"} {
			for _, dies := range []bool{false, true} {
				what := fmt.Sprintf("call %d, %s, dies: %v", n, fault, dies)
				inner := mem.New("faults")
				s, err := faulty.New(inner, fmt.Sprintf("any#%d:%s", n, fault))
				if err != nil {
					t.Fatal(err)
				}
				first := makeImage(s, files, dies)
				_, committed := inner.Snapshot()[manifestKey]
				if !committed && first == nil {
					t.Errorf("%s: committed: %v, and the error was %v", what, committed, first)
				}
				if err := makeImage(inner, files, false); err != nil {
					t.Errorf("%s: again: %v (first: %v)", what, err, first)
				}
				whole(t, what, inner, files)
				if t.Failed() {
					t.FailNow()
				}
			}
		}
	}
}

// What a dead process has put on record is not sent again.
func TestTheNextProcessGoesOn(t *testing.T) {
	files := fileSet(200)
	inner := mem.New("goes on")
	s, err := faulty.New(inner, "finish#50:fail=denied")
	if err != nil {
		t.Fatal(err)
	}
	if err := makeImage(s, files, true); !hbackup.IsKind(err, hbackup.KindDenied) {
		t.Fatalf("got %v", err)
	}
	if inner.Snapshot()[manifestKey] != nil || len(inner.Uploads()) == 0 {
		t.Fatal("there is an image, or no upload")
	}
	counted := metered.New(inner)
	if err := makeImage(counted, files, false); err != nil {
		t.Fatal(err)
	}
	if n := counted.Counts().FillUpload.Calls; n != 0 {
		t.Errorf("%d files were sent again", n)
	}
	whole(t, "at the end", inner, files)
}

// The record costs a request for many files, not one for each.
func TestRequestsOfDeferred(t *testing.T) {
	files := fileSet(640)
	s := metered.New(mem.New("requests"))
	if err := makeImage(s, files, false); err != nil {
		t.Fatal(err)
	}
	c := s.Counts()
	if c.OpenUpload.Calls != 640 || c.FillUpload.Calls != 640 || c.FinishUpload.Calls != 640 || c.DropUpload.Calls != 0 || c.OpenUploads.Calls != 0 {
		t.Errorf("uploads: %s", c)
	}
	if puts := c.Put.Calls - 3; puts > 640/32 {
		t.Errorf("%d requests put the record; want one for at least 32 files", puts)
	}
	t.Log(c)
}

// Dead runs are tidied without a look at neighbours whose keys begin alike.
func TestTidyLeavesNeighboursAlone(t *testing.T) {
	inner, ctx := mem.New("neighbours"), t.Context()
	files := map[storage.Key]string{"archive/x": "mine", "archive/x/y": "mine"}
	s, err := faulty.New(inner, "open[archive/x]#1:lost; fill#1:fail=denied")
	if err != nil {
		t.Fatal(err)
	}
	if err := makeImage(s, files, true); err == nil {
		t.Fatal("it succeeded")
	}
	h, _ := storage.HolderOf(inner)
	var theirs []storage.Receipt
	for _, key := range []storage.Key{"archive/x0", "archive/x-", "archive/x/y0", "archive/x/yz"} {
		u, err := h.OpenUpload(ctx, key, "NEIGHBOUR")
		if err != nil {
			t.Fatal(err)
		}
		r, err := h.FillUpload(ctx, u, strings.NewReader("theirs"), storage.PutOptions{Size: 6})
		if err != nil {
			t.Fatal(err)
		}
		theirs = append(theirs, r)
	}
	other := deferred2(t, inner, "jobs/r0/uploads/i/")
	if _, err := other.PutFile(ctx, "archive/x", 6, strings.NewReader("theirs")); err != nil {
		t.Fatal(err)
	}
	before := len(inner.Uploads())

	// While somebody else is at work, what has no ticket stays.
	busy := func(context.Context) (bool, error) { return false, nil }
	done, err := committer.Tidy(ctx, inner, []committer.Leftover{{Folder: folder}}, busy)
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Accounted) != 0 || len(inner.Uploads()) >= before {
		t.Errorf("%+v; uploads are %v", done, inner.Uploads())
	}
	// The neighbour's upload of the same key is on record in the neighbour's job.
	done, err = committer.Tidy(ctx, inner, []committer.Leftover{{Folder: folder}, {Folder: "jobs/r0/uploads/i/", Resume: true}}, yes)
	if err != nil || len(done.Accounted) != 2 {
		t.Errorf("%+v, %v", done, err)
	}
	if got := inner.Uploads(); len(got) != 5 {
		t.Errorf("the uploads are %v; want those of the neighbours", got)
	}
	for _, r := range theirs {
		if _, err := h.FinishUpload(ctx, r); err != nil {
			t.Error(err)
		}
	}
	if err := other.Publish(ctx); err != nil {
		t.Error(err)
	}
	for k := range inner.Snapshot() {
		if strings.HasPrefix(string(k), folder) {
			t.Errorf("%s is left", k)
		}
	}
}

func deferred2(t *testing.T, s storage.Store, folder string) *committer.Image {
	t.Helper()
	c, err := committer.Choice{Protocol: committer.ProtocolDeferred}.For(s, folder)
	if err != nil {
		t.Fatal(err)
	}
	return c.Begin(alone)
}

// An upload that became an object stays one whatever is tidied.
func TestTidyNeverTouchesWhatWasFinished(t *testing.T) {
	inner := mem.New("finished")
	files := fileSet(9)
	// All is committed, and the process dies before the record is closed.
	s, err := faulty.New(inner, "batch#1:fail; put[closed]#1:fail")
	if err != nil {
		t.Fatal(err)
	}
	if err := makeImage(s, files, false); err == nil || inner.Snapshot()[manifestKey] == nil {
		t.Fatalf("got %v", err)
	}
	done, err := committer.Tidy(t.Context(), inner, []committer.Leftover{{Folder: folder}}, yes)
	if err != nil || len(done.Accounted) != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	whole(t, "after tidying", inner, files)
}

// Where records cannot be deleted they are closed.
func TestRecordsThatStayAreClosed(t *testing.T) {
	inner := mem.New("keeps", mem.WithPermanence(storage.Locked))
	files := fileSet(3)
	choice, err := committer.Choose(t.Context(), inner, committer.Auto)
	if err != nil || choice.Protocol != committer.ProtocolDeferred {
		t.Fatalf("%+v, %v", choice, err)
	}
	c, err := choice.For(inner, folder)
	if err != nil {
		t.Fatal(err)
	}
	im := c.Begin(alone)
	for k, v := range files {
		if err := put(t, im, k, v); err != nil {
			t.Fatal(err)
		}
	}
	if err := im.Commit(t.Context(), manifestKey, []byte("m")); err != nil {
		t.Fatal(err)
	}
	if err := im.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	closed := 0
	for k := range inner.Snapshot() {
		if strings.HasPrefix(string(k), folder) && committer.Closes(string(k[strings.LastIndexByte(string(k), '/')+1:])) {
			closed++
		}
	}
	if closed != 1 {
		t.Errorf("%d records are closed", closed)
	}
	counted := metered.New(inner)
	done, err := committer.Tidy(t.Context(), counted, []committer.Leftover{{Folder: folder}}, yes)
	if err != nil || done.Dropped != 0 || counted.Counts().Get.Calls != 0 || counted.Counts().DropUpload.Calls != 0 {
		t.Errorf("%+v, %v; %s", done, err, counted.Counts())
	}
}

// A record that cannot be understood is left alone, and so are its uploads.
func TestADamagedRecordIsLeftAlone(t *testing.T) {
	for what, change := range map[string]func([]byte) []byte{
		"damaged": func(b []byte) []byte { return b[:len(b)/2] },
		"newer":   func(b []byte) []byte { return bytes.Replace(b, []byte(`"format":1`), []byte(`"format":9`), 1) },
		"foreign": func(b []byte) []byte { return bytes.Replace(b, []byte(`"attempt":"`), []byte(`"attempt":"X`), 1) },
	} {
		inner := mem.New("damaged")
		s, err := faulty.New(inner, "fill#2:fail=denied")
		if err != nil {
			t.Fatal(err)
		}
		if err := makeImage(s, fileSet(5), true); err == nil {
			t.Fatal("it succeeded")
		}
		for k := range inner.Snapshot() {
			if strings.HasPrefix(string(k), folder) {
				// Past the store's own digest, as a writer of another version would have it.
				data := change(inner.Snapshot()[k])
				if _, err := storage.PutBytes(t.Context(), inner, k, data, false); err != nil {
					t.Fatal(err)
				}
			}
		}
		uploads := inner.Uploads()
		if _, err := committer.Tidy(t.Context(), inner, []committer.Leftover{{Folder: folder}}, yes); err == nil {
			t.Errorf("%s: tidied", what)
		}
		if got := inner.Uploads(); !slices.Equal(got, uploads) {
			t.Errorf("%s: of the uploads %v only %v are left", what, uploads, got)
		}
	}
}

// Somebody else's object under the key is as good with the same bytes, and damage
// with others.
func TestAKeyThatIsTakenMeanwhile(t *testing.T) {
	for data, kind := range map[string]hbackup.Kind{"bytes": "", "other": hbackup.KindConflict, "longer": hbackup.KindConflict} {
		inner := mem.New("taken")
		s := unsure{inner}
		im := deferred(t, s).Begin(alone)
		if err := put(t, im, fileKey, "bytes"); err != nil {
			t.Fatal(err)
		}
		if _, err := storage.PutBytes(t.Context(), inner, fileKey, []byte(data), true); err != nil {
			t.Fatal(err)
		}
		err := im.Publish(t.Context())
		if kind == "" && err != nil || kind != "" && !hbackup.IsKind(err, kind) {
			t.Errorf("with %q the publication gave %v", data, err)
		}
		if kind != "" {
			if err := im.Commit(t.Context(), manifestKey, []byte("m")); !hbackup.IsKind(err, kind, hbackup.KindRefused) {
				t.Errorf("with %q the commit gave %v", data, err)
			}
		}
		if err := im.End(t.Context()); err != nil {
			t.Error(err)
		}
		if left := inner.Uploads(); len(left) > 0 {
			t.Errorf("uploads are left: %v", left)
		}
		if got := content(t, inner, fileKey); got != data {
			t.Errorf("the object holds %q; want %q", got, data)
		}
	}
}

// unsure is a store that keeps no digests, so that it cannot tell whether an object
// has the bytes of an upload.
type unsure struct{ *mem.Store }

func (s unsure) FinishUpload(ctx context.Context, r storage.Receipt) (storage.Object, error) {
	if _, err := s.Stat(ctx, r.Key); err == nil {
		return storage.Object{}, hbackup.Errorf("finish upload", s.Location().At(r.Key), hbackup.KindExists, "the key is taken")
	}
	return s.Store.FinishUpload(ctx, r)
}

// An upload that was taken away, by a rule of the bucket perhaps, fails the image;
// the next try does not trust the record again.
func TestAnUploadThatIsGone(t *testing.T) {
	inner, ctx := mem.New("gone"), t.Context()
	h, _ := storage.HolderOf(inner)
	im := deferred(t, inner).Begin(alone)
	if err := put(t, im, fileKey, "bytes"); err != nil {
		t.Fatal(err)
	}
	open, err := h.OpenUploads(ctx, fileKey)
	if err != nil || len(open) != 1 {
		t.Fatal(open, err)
	}
	if err := h.DropUpload(ctx, open[0]); err != nil {
		t.Fatal(err)
	}
	if err := im.Publish(ctx); !hbackup.IsKind(err, hbackup.KindConflict) {
		t.Errorf("the publication gave %v", err)
	}
	if err := im.End(ctx); err != nil {
		t.Error(err)
	}
	if err := makeImage(inner, map[storage.Key]string{fileKey: "bytes"}, false); err != nil {
		t.Error(err)
	}
	whole(t, "again", inner, map[storage.Key]string{fileKey: "bytes"})
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		want       committer.Protocol
		permanence storage.Permanence
		got        committer.Protocol
		unsure     bool
	}{
		{"", storage.Deletable, committer.ProtocolDirect, false},
		{committer.Auto, storage.Deletable, committer.ProtocolDirect, false},
		{committer.Auto, storage.Versioned, committer.ProtocolDeferred, false},
		{committer.Auto, storage.Locked, committer.ProtocolDeferred, false},
		{committer.Auto, storage.PermanenceUnknown, committer.ProtocolDirect, true},
		{committer.ProtocolDirect, storage.Locked, committer.ProtocolDirect, false},
		{committer.ProtocolDeferred, storage.Deletable, committer.ProtocolDeferred, false},
	} {
		got, err := committer.Choose(t.Context(), mem.New("choose", mem.WithPermanence(c.permanence)), c.want)
		if err != nil || got.Protocol != c.got || got.Unsure() != c.unsure || got.Reason == "" {
			t.Errorf("%s and %s: %+v, %v; want %s", c.want, c.permanence, got, err, c.got)
		}
	}
	bare := struct{ storage.Store }{mem.New("bare")}
	if got, err := committer.Choose(t.Context(), bare, committer.Auto); err != nil || got.Protocol != committer.ProtocolDirect {
		t.Errorf("a store that cannot hold uploads: %+v, %v", got, err)
	}
	if _, err := committer.Choose(t.Context(), bare, committer.ProtocolDeferred); !hbackup.IsKind(err, hbackup.KindUnsupported) || hbackup.HintOf(err) == "" {
		t.Errorf("deferred in such a store: %v", err)
	}
	if _, err := committer.Choose(t.Context(), mem.New("x"), "magic"); !hbackup.IsKind(err, hbackup.KindUsage) {
		t.Errorf("an unknown one: %v", err)
	}
}

// An object that is there with the same bytes is read to its end before its upload
// is dropped: a location that allows one call at a time is enough. (In a bubble a
// call that waits for ever is found at once.)
func TestOneCallAtATimeIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files, inner := fileSet(3), mem.New("narrow")
		if _, err := storage.PutBytes(t.Context(), inner, keysOf(files)[0], []byte(files[keysOf(files)[0]]), true); err != nil {
			t.Fatal(err)
		}
		bad, err := faulty.New(inner, "finish["+string(keysOf(files)[0])+"]#1:fail=exists")
		if err != nil {
			t.Fatal(err)
		}
		if err := makeImage(concurrency.New(bad, 1), files, false); err != nil || bad.Hits() != 1 {
			t.Errorf("%v, %d faults", err, bad.Hits())
		}
		whole(t, "one at a time", inner, files)
	})
}
