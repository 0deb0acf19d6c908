package servers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// archiveFile names a class archive in its cache entry. With one the JVM maps
// classes that are parsed and checked already, which saves about a third of the start.
const archiveFile = "classes.jsa"

// classArchive gives the JVM options that use the jar set's class archive. The
// first use makes it, in about half a minute, by running the servers once. That
// may fail: everything works without, so a failure is written to the entry, not
// reported, and not tried again.
func (j *jarSet) classArchive(ctx context.Context) ([]string, error) {
	if os.Getenv("HBACKUP_CDS") == "off" {
		return nil, nil
	}
	dir, err := entry(ctx, j.archiveEntry(), func(dir string) error {
		err := j.train(ctx, dir)
		if err != nil && ctx.Err() == nil {
			err = os.WriteFile(filepath.Join(dir, "failure.txt"), []byte(err.Error()), 0o666)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, archiveFile)
	if _, err := os.Stat(path); err != nil {
		return nil, nil
	}
	// At the address that it was made for the archive is shared between processes and needs no patching.
	return []string{"-XX:SharedArchiveFile=" + path,
		"-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0"}, nil
}

func (j *jarSet) archiveEntry() string { return fmt.Sprintf("cds-%s-%s", j.version, j.key) }

// train runs HDFS, HBase and a little work in one JVM that writes the archive at its end.
func (j *jarSet) train(ctx context.Context, dir string) error {
	work, err := os.MkdirTemp("", "hbackup-train-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	where := &workDir{dir: work}
	fs := &HDFS{jars: j, dir: where}
	db := &HBase{jars: j, dir: where, options: HBaseOptions{RegionServers: 1}}
	conf := where.path("conf")
	if err := writeConf(conf, "", fs.coreSite(), fs.hdfsSite(), db.site()); err != nil {
		return err
	}
	made := filepath.Join(dir, archiveFile)
	cmd, err := j.command(conf, "900m", []string{"-XX:ArchiveClassesAtExit=" + made}, "hbackup.e2e.Host", "train", where.path("dump.tsv"))
	if err != nil {
		return err
	}
	log := filepath.Join(dir, "train.log")
	p, _, err := spawnReady(ctx, "class archive", log, cmd, nil)
	if err != nil {
		return err
	}
	select {
	case <-p.ended:
	case <-time.After(3 * time.Minute):
	case <-ctx.Done():
	}
	p.kill()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if _, err := os.Stat(made); err != nil {
		return p.failure("make")
	}
	return nil
}
