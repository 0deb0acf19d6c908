// Command hbackup backs up tables of Apache HBase and restores them. This
// package wires the parts together and speaks to people and programs; it holds
// no rule of its own. One file per verb; exit.go maps errors to exit codes.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
)

// version is set by the linker.
var version = "dev"

func main() {
	// Most of the memory is buffers, which are kept: garbage may come to a third as
	// much beside them, not to as much again.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(33)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, stop := interruptible(context.Background(), signals, os.Exit)
	defer stop()
	p := &program{
		stdout:  os.Stdout,
		stderr:  os.Stderr,
		environ: os.Environ(),
		now:     time.Now,
		connect: connect,
	}
	os.Exit(int(p.run(ctx, os.Args[1:])))
}
