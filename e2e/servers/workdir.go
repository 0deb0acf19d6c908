package servers

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"hbackup"
)

// workDir is where the servers of one start keep their files.
type workDir struct {
	dir  string
	temp bool
}

func newWorkDir(dir, name string) (workDir, error) {
	if dir != "" {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return workDir{}, err
		}
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return workDir{}, hbackup.E("make the directory", dir, hbackup.KindOther, err)
		}
		return workDir{dir: dir}, nil
	}
	dir, err := os.MkdirTemp("", "hbackup-"+name+"-")
	return workDir{dir: dir, temp: true}, err
}

func (w workDir) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

func (w workDir) remove() error {
	if !w.temp {
		return nil
	}
	return os.RemoveAll(w.dir)
}

// removeAfter ends a start that failed. The directory is kept for a look at the
// logs unless the caller gave up.
func (w workDir) removeAfter(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return errors.Join(err, w.remove())
}

// newFile makes an empty file whose name has something unique for the "*".
func newFile(pattern string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(pattern), filepath.Base(pattern))
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}
