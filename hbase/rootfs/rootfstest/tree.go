package rootfstest

import (
	"path"
	"strings"
	"testing"

	"hbackup"
)

// Names, directories, and what is not there.

func (s suite) listing(t *testing.T, dir string) {
	names := []string{"B", "a", "a.b", "a-b", "a=b", ".hidden", "z z", "é", "_SeqId_4_", "00", "t2=abc-def", "100%", "a+b&c"}
	for _, n := range names {
		s.write(t, path.Join(dir, n), []byte(n), 100)
	}
	must(t, s.fs.MkdirAll(s.ctx, path.Join(dir, "sub", "deep")))
	got, err := s.fs.ReadDir(s.ctx, dir)
	must(t, err)
	if len(got) != len(names)+1 {
		t.Fatalf("%d entries listed, not %d: %+v", len(got), len(names)+1, got)
	}
	for i, e := range got {
		if i > 0 && got[i-1].Name >= e.Name {
			t.Errorf("%q is listed before %q", got[i-1].Name, e.Name)
		}
		stat, err := s.fs.Stat(s.ctx, e.Path)
		must(t, err)
		if stat != e {
			t.Errorf("listed as %+v, Stat gives %+v", e, stat)
		}
		if e.Name == "sub" != e.Dir || !e.Dir && e.Size != int64(len(e.Name)) {
			t.Errorf("%+v", e)
		}
	}
	must(t, s.fs.MkdirAll(s.ctx, path.Join(dir, "sub", "deep"))) // again
	empty, err := s.fs.ReadDir(s.ctx, path.Join(dir, "sub", "deep"))
	must(t, err)
	if len(empty) != 0 {
		t.Errorf("an empty directory lists %+v", empty)
	}
}

func (s suite) missing(t *testing.T, dir string) {
	p := path.Join(dir, "nothing")
	_, err := s.fs.Stat(s.ctx, p)
	wantKind(t, err, hbackup.KindNotFound)
	if !strings.Contains(err.Error(), s.fs.URI()+p) {
		t.Errorf("the error does not name the file: %v", err)
	}
	_, _, err = s.fs.Open(s.ctx, p, 0)
	wantKind(t, err, hbackup.KindNotFound)
	_, err = s.fs.ReadDir(s.ctx, p)
	wantKind(t, err, hbackup.KindNotFound)
	_, err = s.fs.Create(s.ctx, path.Join(p, "child"))
	wantKind(t, err, hbackup.KindNotFound)
	must(t, s.fs.Remove(s.ctx, p))
	must(t, s.fs.RemoveAll(s.ctx, p))
	must(t, s.fs.Remove(s.ctx, path.Join(p, "child")))
}

func (s suite) mixUps(t *testing.T, dir string) {
	p := path.Join(dir, "f")
	s.write(t, p, []byte("x"), 10)
	_, _, err := s.fs.Open(s.ctx, dir, 0)
	wantKind(t, err, hbackup.KindConflict)
	_, err = s.fs.ReadDir(s.ctx, p)
	wantKind(t, err, hbackup.KindConflict)
	if err := s.fs.MkdirAll(s.ctx, p); err == nil || hbackup.IsKind(err, hbackup.KindNotFound) {
		t.Errorf("making a directory over a file gave %v", err)
	}
	if _, err := s.fs.Create(s.ctx, path.Join(p, "child")); err == nil || hbackup.IsKind(err, hbackup.KindNotFound) {
		t.Errorf("creating a file below a file gave %v", err)
	}
	_, err = s.fs.Create(s.ctx, dir)
	wantKind(t, err, hbackup.KindExists)
	got, _ := s.read(t, p, 0)
	equal(t, p, []byte("x"), got)
}

func (s suite) removing(t *testing.T, dir string) {
	must(t, s.fs.MkdirAll(s.ctx, path.Join(dir, "a/b")))
	s.write(t, path.Join(dir, "a/b/f"), []byte("x"), 10)
	err := s.fs.Remove(s.ctx, path.Join(dir, "a"))
	wantKind(t, err, hbackup.KindConflict)
	got, _ := s.read(t, path.Join(dir, "a/b/f"), 0)
	equal(t, "f", []byte("x"), got)
	must(t, s.fs.Remove(s.ctx, path.Join(dir, "a/b/f")))
	must(t, s.fs.Remove(s.ctx, path.Join(dir, "a/b")))
	s.write(t, path.Join(dir, "a/g"), []byte("x"), 10)
	must(t, s.fs.RemoveAll(s.ctx, path.Join(dir, "a")))
	left, err := s.fs.ReadDir(s.ctx, dir)
	must(t, err)
	if len(left) != 0 {
		t.Errorf("left over: %+v", left)
	}
}

func (s suite) paths(t *testing.T, dir string) {
	for _, p := range []string{"", "relative", dir + "/", dir + "//f", dir + "/../f", dir + "/./f", dir + "/f\x00"} {
		_, err := s.fs.Stat(s.ctx, p)
		wantKind(t, err, hbackup.KindUsage)
		_, err = s.fs.Create(s.ctx, p)
		wantKind(t, err, hbackup.KindUsage)
		wantKind(t, s.fs.RemoveAll(s.ctx, p), hbackup.KindUsage)
	}
	wantKind(t, s.fs.RemoveAll(s.ctx, "/"), hbackup.KindRefused)
	wantKind(t, s.fs.Remove(s.ctx, "/"), hbackup.KindRefused)
	root, err := s.fs.Stat(s.ctx, "/")
	must(t, err)
	if !root.Dir || root.Path != "/" {
		t.Errorf("the root is %+v", root)
	}
}
