package servers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// CacheDir gives the directory that jars, classes, class archives and the S3
// gateway are kept in: $HBACKUP_CACHE, or hbackup in the user's cache directory.
func CacheDir() (string, error) {
	if dir := os.Getenv("HBACKUP_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory (set HBACKUP_CACHE to choose one): %w", err)
	}
	return filepath.Join(dir, "hbackup"), nil
}

// entry gives the path of a cache entry, a directory, and builds it when it is
// not there. Several processes may ask at once: one builds, in a directory
// beside, and renames it when it is complete; the others wait for it.
func entry(ctx context.Context, name string, build func(dir string) error) (string, error) {
	root, err := CacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, name)
	if isDir(path) {
		os.Chtimes(path, time.Time{}, time.Now()) // in use: see prune; a cache that cannot be written serves as well
		return path, nil
	}
	if err := os.MkdirAll(root, 0o777); err != nil {
		return "", err
	}
	unlock, err := lockFile(ctx, path+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if isDir(path) {
		return path, nil
	}
	building := path + ".building"
	if err := os.RemoveAll(building); err != nil { // left by a process that died
		return "", err
	}
	if err := os.Mkdir(building, 0o777); err != nil {
		return "", err
	}
	if err := build(building); err != nil {
		os.RemoveAll(building)
		return "", err
	}
	return path, os.Rename(building, path)
}

// lockFile takes an exclusive lock that the kernel gives back when the process ends.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("wait for the lock %s: %w", path, context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// hashOf gives twelve hex digits that change when any of the parts does.
func hashOf(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d\n", len(p))
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}
