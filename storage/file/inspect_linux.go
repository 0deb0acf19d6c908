package file

import "golang.org/x/sys/unix"

// inMemory reports a file system that does not outlive the machine's power.
func inMemory(fs unix.Statfs_t) bool {
	return int64(fs.Type) == unix.TMPFS_MAGIC || int64(fs.Type) == unix.RAMFS_MAGIC
}
