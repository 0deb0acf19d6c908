package servers

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDirectoriesOfDeadProcessesAreSwept(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	mine, err := newWorkDir("", "mine")
	if err != nil {
		t.Fatal(err)
	}
	dead, err := newWorkDir("", "dead")
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.owner.Close(); err != nil { // as the kernel does at the end of a process
		t.Fatal(err)
	}
	kept, err := newWorkDir("", "kept")
	if err != nil {
		t.Fatal(err)
	}
	if err := kept.keep(); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(temp, "hbackup-foreign")
	if err := os.Mkdir(foreign, 0o777); err != nil {
		t.Fatal(err)
	}
	sweep(temp)
	for dir, want := range map[string]bool{mine.dir: true, dead.dir: false, kept.dir: true, foreign: true} {
		if isDir(dir) != want {
			t.Errorf("%s is there: %v, want %v", dir, !want, want)
		}
	}
	if err := mine.remove(); err != nil || isDir(mine.dir) {
		t.Errorf("remove: %v", err)
	}
	if err := kept.remove(); err != nil || !isDir(kept.dir) {
		t.Errorf("a kept directory was removed: %v", err)
	}
}

func TestAGivenDirectoryStays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	w, err := newWorkDir(dir, "x")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.remove(); err != nil || !isDir(dir) {
		t.Errorf("remove: %v", err)
	}
	if err := w.keep(); err != nil || !isDir(dir) {
		t.Errorf("keep: %v", err)
	}
}
