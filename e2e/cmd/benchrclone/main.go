// Command benchrclone copies a directory to one S3 gateway with hbackup's store,
// with the stock SDK and with rclone, in turn, and shows what each costs. The
// contenders are processes of their own, so that their processor time is theirs
// alone.
package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"hbackup/e2e/servers"
)

const bucket = "bench"

// load is what is copied.
type load struct {
	name    string
	files   int
	size    int64 // bytes of each
	workers int   // connections, or files at once
}

var loads = []load{
	{"small", 4000, 1 << 10, 16},
	{"large", 4, 256 << 20, 4},
}

func main() {
	rounds := flag.Int("rounds", 3, "runs of each contender; the medians are shown")
	only := flag.String("load", "", "copy small or large files only")
	as := flag.String("as", "", "be this contender: ours or sdk")
	dir := flag.String("dir", "", "the directory to copy, with -as")
	prefix := flag.String("prefix", "", "where to, with -as")
	workers := flag.Int("workers", 1, "files at once, with -as")
	flag.Parse()
	ctx := context.Background()
	var err error
	switch *as {
	case "":
		err = compare(ctx, *rounds, *only)
	case "ours":
		err = copyAll(*dir, *workers, ours(ctx, *prefix))
	case "sdk":
		err = copyAll(*dir, *workers, stock(ctx, *prefix))
	default:
		err = fmt.Errorf("there is no contender %q", *as)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchrclone:", err)
		os.Exit(1)
	}
}

// compare runs everybody on every load.
func compare(ctx context.Context, rounds int, only string) error {
	if _, err := exec.LookPath("rclone"); err != nil {
		return fmt.Errorf("rclone is not installed: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	gateway, err := servers.StartS3(ctx, servers.S3Options{Buckets: []string{bucket}})
	if err != nil {
		return err
	}
	defer gateway.Stop()
	for _, l := range loads {
		if only != "" && only != l.name {
			continue
		}
		dir, err := l.make()
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		contenders := []contender{
			{"hbackup", func(to string) *exec.Cmd { return itself(self, "ours", dir, to, l.workers) }},
			{"SDK", func(to string) *exec.Cmd { return itself(self, "sdk", dir, to, l.workers) }},
			{"rclone", func(to string) *exec.Cmd { return rclone(gateway, dir, to, l.workers) }},
		}
		took := make([][]time.Duration, len(contenders))
		for round := range rounds {
			for i, c := range contenders {
				cmd := c.command(fmt.Sprintf("%s/%s/%d", l.name, c.name, round))
				if cmd.Env == nil {
					cmd.Env = append(os.Environ(), gateway.Environment()...)
				}
				cmd.Stderr = os.Stderr
				if err := cmd.Run(); err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
				took[i] = append(took[i], cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
			}
		}
		l.report(contenders, took)
	}
	return nil
}

type contender struct {
	name    string
	command func(to string) *exec.Cmd
}

func itself(self, as, dir, to string, workers int) *exec.Cmd {
	return exec.Command(self, "-as", as, "-dir", dir, "-prefix", to, "-workers", strconv.Itoa(workers))
}

// rclone copies with the settings that serve it best: no look at the target and no
// request to check what was sent.
func rclone(g *servers.S3, dir, to string, workers int) *exec.Cmd {
	n := strconv.Itoa(workers)
	cmd := exec.Command("rclone", "copy", dir, "gateway:"+bucket+"/"+to, "--config", os.DevNull,
		"--transfers", n, "--checkers", n, "--no-check-dest", "--s3-no-head", "--s3-no-check-bucket", "--s3-disable-checksum",
		"--s3-chunk-size", "16M", "--s3-upload-concurrency", "4", "--s3-upload-cutoff", "16M", "--stats", "0")
	// What the environment has for AWS's tools is not for it.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "RCLONE_CONFIG_GATEWAY_TYPE=s3", "RCLONE_CONFIG_GATEWAY_PROVIDER=Other", "RCLONE_CONFIG_GATEWAY_ENV_AUTH=false",
		"RCLONE_CONFIG_GATEWAY_ACCESS_KEY_ID=" + g.AccessKey, "RCLONE_CONFIG_GATEWAY_SECRET_ACCESS_KEY=" + g.SecretKey,
		"RCLONE_CONFIG_GATEWAY_ENDPOINT=" + g.Endpoint(), "RCLONE_CONFIG_GATEWAY_REGION=" + g.Region}
	return cmd
}

// make writes the files.
func (l load) make() (string, error) {
	dir, err := os.MkdirTemp("", "benchrclone")
	if err != nil {
		return "", err
	}
	content := make([]byte, l.size)
	for i := range l.files {
		rand.Read(content[:min(l.size, 1<<20)])
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%05d", i)), content, 0o600); err != nil {
			return "", err
		}
	}
	return dir, nil
}

func (l load) report(contenders []contender, took [][]time.Duration) {
	fmt.Printf("%d files of %d bytes, %d at once\n", l.files, l.size, l.workers)
	var first float64
	for i, c := range contenders {
		slices.Sort(took[i])
		cpu := took[i][len(took[i])/2].Seconds()
		if i == 0 {
			first = cpu
		}
		fmt.Printf("  %-8s %7.2f CPU-s %9.0f files/CPU-s %8.0f MB/CPU-s   hbackup is %.1f times as fast\n",
			c.name, cpu, float64(l.files)/cpu, float64(l.files)*float64(l.size)/1e6/cpu, cpu/first)
	}
}
