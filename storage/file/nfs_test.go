//go:build unix

package file

import (
	"testing"

	"golang.org/x/sys/unix"

	"hbackup"
	"hbackup/storage"
)

// lose makes the named calls do their work and then fail with what a client of NFS
// gets: the server's answer to its second try, or nothing.
func lose(t *testing.T, errno unix.Errno) {
	t.Helper()
	link, rename := linkat, renameat
	t.Cleanup(func() { linkat, renameat = link, rename })
	taken, missing := errno, errno
	if errno == 0 {
		taken, missing = unix.EEXIST, unix.ENOENT
	}
	linkat = func(from int, old string, to int, name string, flags int) error {
		if err := link(from, old, to, name, flags); err != nil {
			return err
		}
		return taken
	}
	renameat = func(from int, old string, to int, name string) error {
		if err := rename(from, old, to, name); err != nil {
			return err
		}
		return missing
	}
}

// TestLostAnswers: a link or rename that was done and whose answer was lost, as
// happens on NFS, is known by the file that has the name.
func TestLostAnswers(t *testing.T) {
	for name, errno := range map[string]unix.Errno{"asked again": 0, "no answer": unix.ETIMEDOUT, "stale": unix.ESTALE} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, t.TempDir())
			s.named = true // NFS has no files without a name
			lose(t, errno)
			for _, step := range []struct {
				text     string
				ifAbsent bool
				kind     hbackup.Kind
				want     string
			}{{"1", true, "", "1"}, {"2", true, hbackup.KindExists, "1"}, {"3", false, "", "3"}, {"4", false, "", "4"}} {
				_, err := storage.PutBytes(t.Context(), s, "d/a", []byte(step.text), step.ifAbsent)
				if hbackup.KindOf(err) != step.kind || (err == nil) != (step.kind == "") {
					t.Errorf("put %q gave %v", step.text, err)
				}
				if data, _, err := storage.ReadAll(t.Context(), s, "d/a", 10); err != nil || string(data) != step.want {
					t.Errorf("after %q there is %q, %v", step.text, data, err)
				}
			}
			in, err := s.openTempDir(rootOf(t, s))
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			if names, err := in.Readdirnames(-1); err != nil || len(names) > 0 {
				t.Errorf("left over: %q, %v", names, err)
			}
		})
	}
}

func rootOf(t *testing.T, s *Store) dir {
	t.Helper()
	root, err := s.makeRoot()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}
