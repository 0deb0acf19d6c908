package servers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"hbackup"
)

// archiveFile names a class archive in its cache entry. With one the JVM maps
// classes that are parsed and checked already, which halves the start.
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

// Progress gets a line per step of Prepare.
type Progress func(format string, args ...any)

// Prepare fetches and builds whatever the servers of these versions need, so
// that later starts are quick and need no network.
func Prepare(ctx context.Context, say Progress, versions ...Version) error {
	root, err := CacheDir()
	if err != nil {
		return err
	}
	say("cache: %s", root)
	if err := checkCommands(); err != nil {
		return err
	}
	for _, v := range versions {
		started := time.Now()
		say("HBase %s: jars and classes", v)
		j, err := jarsOf(ctx, v)
		if err != nil {
			return err
		}
		say("HBase %s: %s (%.1f s)", v, j.dir, time.Since(started).Seconds())
		started = time.Now()
		say("HBase %s: class archive", v)
		options, err := j.classArchive(ctx)
		switch {
		case err != nil:
			return err
		case options == nil:
			say("HBase %s: no class archive; starts will be slower. See %s", v, filepath.Join(root, j.archiveEntry()))
		default:
			say("HBase %s: %s (%.1f s)", v, strings.TrimPrefix(options[0], "-XX:SharedArchiveFile="), time.Since(started).Seconds())
		}
	}
	started := time.Now()
	say("S3 gateway: build")
	binary, err := gatewayBinary(ctx)
	if err != nil {
		return err
	}
	say("S3 gateway: %s (%.1f s)", binary, time.Since(started).Seconds())
	return nil
}

func checkCommands() error {
	var missing []string
	for _, name := range []string{"java", "javac", "jar", "mvn", "go"} {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, name)
		}
	}
	if missing == nil {
		return nil
	}
	return hbackup.Errorf("find commands", "", hbackup.KindUnsupported, "not on PATH: %s", strings.Join(missing, ", ")).
		WithHint("install a JDK of version 17 or later, Maven and Go")
}
