package servers

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"hbackup"
)

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
	if err := prune(root, 7*24*time.Hour, say); err != nil {
		return err
	}
	started := time.Now()
	say("S3 gateway: build")
	binary, err := gatewayBinary(ctx)
	if err != nil {
		return err
	}
	say("S3 gateway: %s (%.1f s)", binary, time.Since(started).Seconds())
	started = time.Now()
	say("fake GCS server: build")
	if binary, err = fakeGCSBinary(ctx); err != nil {
		return err
	}
	say("fake GCS server: %s (%.1f s)", binary, time.Since(started).Seconds())
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

// prune removes cache entries that nobody has used for so long. Each change of
// our Java code leaves an archive of its own behind.
func prune(root string, unused time.Duration, say Progress) error {
	names, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, n := range names {
		info, err := n.Info()
		if err != nil || !n.IsDir() || time.Since(info.ModTime()) < unused {
			continue
		}
		path := filepath.Join(root, n.Name())
		say("remove %s, not used since %s", path, info.ModTime().UTC().Format(time.DateOnly))
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}
