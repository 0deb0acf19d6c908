package file

import (
	"bytes"
	"os"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"hbackup"
	"hbackup/storage"
)

// onTmpfs runs f on a thread that alone sees a memory file system of the given
// size at path. The mount goes away with the thread.
func onTmpfs(t *testing.T, options string, f func(path string)) {
	t.Helper()
	path := t.TempDir()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err == nil {
			err = unix.Mount("tmpfs", path, "tmpfs", 0, options)
		}
		if err == nil {
			f(path)
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Skipf("no mount of our own can be had here: %v", err)
	}
}

func TestDiskFull(t *testing.T) {
	for _, named := range []bool{false, true} {
		onTmpfs(t, "size=4m", func(path string) {
			s := openStore(t, path)
			s.named = named
			first := bytes.Repeat([]byte("x"), 3<<20)
			if _, err := storage.PutBytes(t.Context(), s, "first", first, true); err != nil {
				t.Errorf("Put: %v", err)
			}
			body := &countingReader{}
			_, err := s.Put(t.Context(), "second", body, storage.PutOptions{Size: 2 << 20})
			if !hasKind(err, hbackup.KindNoSpace) || hbackup.HintOf(err) == "" || body.n > 0 {
				t.Errorf("Put on a full disk gave %v, hint %q, after %d bytes", err, hbackup.HintOf(err), body.n)
			}
			// The room goes while the file is written.
			filler := path + "/filler"
			_, err = s.Put(t.Context(), "third", readerFunc(func(p []byte) (int, error) {
				os.WriteFile(filler, bytes.Repeat([]byte("f"), 1<<20), 0o600)
				return len(p), nil
			}), storage.PutOptions{Size: 900 << 10})
			if !hasKind(err, hbackup.KindNoSpace) {
				t.Errorf("Put on a disk that fills up gave %v", err)
			}
			os.Remove(filler)
			if data, _, err := storage.ReadAll(t.Context(), s, "first", 4<<20); err != nil || !bytes.Equal(data, first) {
				t.Errorf("the earlier object is damaged: %v", err)
			}
			n := 0
			for range s.List(t.Context(), "", storage.ListOptions{}) {
				n++
			}
			if n != 1 {
				t.Errorf("%d objects are visible; want 1", n)
			}
		})
	}
}

func TestReadOnlyDisk(t *testing.T) {
	onTmpfs(t, "size=4m", func(path string) {
		s := openStore(t, path)
		if _, err := storage.PutBytes(t.Context(), s, "a", []byte("x"), true); err != nil {
			t.Errorf("Put: %v", err)
		}
		if err := unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Errorf("remount: %v", err)
			return
		}
		_, putErr := storage.PutBytes(t.Context(), s, "b", []byte("x"), true)
		for op, err := range map[string]error{"Put": putErr, "Delete": s.Delete(t.Context(), "a")} {
			if !hasKind(err, hbackup.KindReadOnly) || hbackup.HintOf(err) == "" {
				t.Errorf("%s gave %v, hint %q; want read only", op, err, hbackup.HintOf(err))
			}
		}
		if _, err := s.ServerTime(t.Context()); err != nil {
			t.Errorf("ServerTime: %v", err)
		}
		if data, _, err := storage.ReadAll(t.Context(), s, "a", 10); err != nil || string(data) != "x" {
			t.Errorf("ReadAll gave %q, %v", data, err)
		}
	})
}

// TestDenied works as a user who may not.
func TestDenied(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	path := t.TempDir()
	s := openStore(t, path)
	for _, key := range []storage.Key{"a/1", "b/1", "c/1"} {
		if _, err := storage.PutBytes(t.Context(), s, key, []byte("x"), true); err != nil {
			t.Fatal(err)
		}
	}
	for dir, mode := range map[string]os.FileMode{path: 0o755, path + "/a": 0o755, path + "/c": 0o755} {
		if err := os.Chmod(dir, mode); err != nil { // b stays closed
			t.Fatal(err)
		}
	}
	for dir := path; dir != os.TempDir() && dir != "/"; {
		dir = dir[:len(dir)-len("/")-len(lastSegment(dir))]
		if dir == "" {
			break
		}
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&1 == 0 {
			if err := os.Chmod(dir, info.Mode().Perm()|0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), 65534, ^uintptr(0)); errno != 0 {
			t.Errorf("setresuid: %v", errno)
			return
		}
		_, putErr := storage.PutBytes(t.Context(), s, "a/2", []byte("x"), true)
		_, statErr := s.Stat(t.Context(), "b/1")
		_, _, getErr := s.Get(t.Context(), "a/1", storage.Range{})
		var listErr error
		listed := 0
		for _, err := range s.List(t.Context(), "", storage.ListOptions{}) {
			if listed++; err != nil {
				listErr = err
			}
		}
		for op, err := range map[string]error{"Put": putErr, "Stat": statErr, "Get": getErr, "List": listErr, "Delete": s.Delete(t.Context(), "a/1")} {
			if !hasKind(err, hbackup.KindDenied) || hbackup.HintOf(err) == "" {
				t.Errorf("%s gave %v, hint %q; want denied", op, err, hbackup.HintOf(err))
			}
		}
		if listed != 2 { // a/1, then the error at b
			t.Errorf("List gave %d elements", listed)
		}
	}()
	<-done
}

func lastSegment(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}

type countingReader struct{ n int }

func (r *countingReader) Read(p []byte) (int, error) { r.n += len(p); return len(p), nil }

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
