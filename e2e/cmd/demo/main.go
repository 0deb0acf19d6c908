// Command demo shows hbackup's main job on a real HBase: it starts HDFS, two
// HBase clusters and an S3 server on this machine, backs a table up, spoils it,
// restores it to both clusters and compares every cell.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	binary := flag.String("hbackup", "bin/hbackup", "the hbackup to show")
	keep := flag.Bool("keep", false, "leave the servers up until interrupted")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *binary, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binary string, keep bool) (err error) {
	binary, err = filepath.Abs(binary)
	if err != nil {
		return err
	}
	began := time.Now()
	s := &stage{ctx: ctx, hbackup: binary}
	if err := s.open(); err != nil {
		return errors.Join(err, s.close())
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.play(); err != nil {
		return fmt.Errorf("%w\n(the servers' logs are in %s)", err, s.dir)
	}
	fmt.Printf("\nEverything compared equal. The whole took %s.\n", took(began))
	if !keep {
		fmt.Println("Run `make demo KEEP=1` to leave the servers up and try for yourself.")
		return nil
	}
	s.invite()
	<-ctx.Done()
	fmt.Println("\nstopping the servers")
	return nil
}

func took(since time.Time) string { return fmt.Sprintf("%.1f s", time.Since(since).Seconds()) }
