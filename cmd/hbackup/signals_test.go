package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestSecondSignalEndsAtOnce(t *testing.T) {
	signals, exited := make(chan os.Signal), make(chan int)
	ctx, stop := interruptible(t.Context(), signals, func(code int) { exited <- code })
	defer stop()
	if wasInterrupted(ctx) {
		t.Fatal("interrupted before any signal")
	}
	signals <- os.Interrupt
	<-ctx.Done()
	if !wasInterrupted(ctx) || !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
	first := time.Now()
	for sent := 0; ; sent++ {
		select {
		case signals <- syscall.SIGTERM:
		case code := <-exited:
			if code != 130 || sent < 2 || time.Since(first) < echo/2 {
				t.Errorf("exit code %d after %d more signals and %s", code, sent, time.Since(first))
			}
			return
		}
	}
}

func TestEndWithoutSignalIsNoInterruption(t *testing.T) {
	ctx, stop := interruptible(t.Context(), make(chan os.Signal), func(int) { t.Error("exits") })
	stop()
	<-ctx.Done()
	if wasInterrupted(ctx) {
		t.Error("it counts as interrupted")
	}
}

// process is hbackup as a process of its own, at work on something that never ends.
type process struct {
	*exec.Cmd
	dir    string
	stderr bytes.Buffer
}

// startBlocked starts hbackup and returns when its verb is at work.
func startBlocked(t *testing.T, fake string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{dir: t.TempDir()}
	config := filepath.Join(p.dir, "hbackup.yaml")
	if err := os.WriteFile(config, []byte(goldenConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(p.dir, "hbackup") // testscript.Main goes by the name of the program
	if err := os.Symlink(exe, link); err != nil {
		t.Fatal(err)
	}
	p.Cmd = exec.CommandContext(t.Context(), link, "backup", "--config", config, "--cluster", "prod", "--tables", "ns:orders", "--request-id", "r1", "--log-level", "error")
	p.Env = append(os.Environ(), "FAKE="+fake, "STARTED="+p.dir)
	p.Stderr = &p.stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	p.await(t, "started")
	return p
}

// await waits for a file that the process writes.
func (p *process) await(t *testing.T, name string) {
	t.Helper()
	gone := make(chan struct{})
	defer close(gone)
	for {
		if _, err := os.Stat(filepath.Join(p.dir, name)); err == nil {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("the process never wrote %s", name)
		default:
			if err := p.Process.Signal(syscall.Signal(0)); err != nil {
				t.Fatalf("the process is gone: %s", p.stderr.String())
			}
		}
	}
}

func TestSignalInterrupts(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		p := startBlocked(t, "block")
		if err := p.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		p.Wait()
		want := "hbackup: copy hdfs://nn1:8020/hbase/data/x: interrupted\nhint: run the same command with --request-id r1 to go on\n"
		if code := p.ProcessState.ExitCode(); code != 130 || p.stderr.String() != want {
			t.Errorf("%s: exit code %d, stderr %q", sig, code, p.stderr.String())
		}
	}
}

func TestSecondSignalEndsAProcessThatDoesNotStop(t *testing.T) {
	p := startBlocked(t, "stubborn")
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.await(t, "stopping")
	ended := make(chan struct{})
	go func() { p.Wait(); close(ended) }()
	for alive := true; alive; {
		p.Process.Signal(os.Interrupt) // an error says that it has ended
		select {
		case <-ended:
			alive = false
		case <-time.After(echo / 5):
		}
	}
	if code := p.ProcessState.ExitCode(); code != 130 || strings.Contains(p.stderr.String(), "panic") {
		t.Errorf("exit code %d, stderr %q", code, p.stderr.String())
	}
}
