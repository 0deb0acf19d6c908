package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Process is a run of the binary that goes on beside the test.
type Process struct {
	cmd      *exec.Cmd
	args     []string
	out, err bytes.Buffer
	ended    chan struct{}
	result   Result
}

// Start starts the binary. It is killed when the test ends before it.
func (x *Tool) Start(t testing.TB, args ...string) *Process {
	t.Helper()
	p := &Process{cmd: exec.Command(x.binary, args...), args: args, ended: make(chan struct{})}
	p.cmd.Env = append(append(os.Environ(), "HBACKUP_CONFIG="+x.config), x.Env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		err := p.cmd.Wait()
		p.result = Result{Args: args, Stdout: p.out.String(), Stderr: p.err.String()}
		var exit *exec.ExitError
		switch {
		case errors.As(err, &exit):
			p.result.Code = exit.ExitCode()
			p.result.Killed = p.result.Code == -1
		case err != nil:
			p.result.Code, p.result.Stderr = -1, p.result.Stderr+err.Error()
		}
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

// Signal sends a signal.
func (p *Process) Signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// Wait waits for the end and gives what it came to.
func (p *Process) Wait() Result {
	<-p.ended
	return p.result
}

// Gate holds a process at a named step until the test lets it go on.
type Gate struct {
	step string
	file string
}

// NewGate makes a gate at a step: "backup.planned", or "backup.file-copied#3"
// for its third hit.
func NewGate(t testing.TB, step string) *Gate {
	t.Helper()
	return &Gate{step, filepath.Join(t.TempDir(), "go")}
}

// Env gives the variable that makes a run wait at the gate.
func (g *Gate) Env() string { return "HBACKUP_PAUSE=" + g.step + ":" + g.file }

// Reached waits until the process stands at the gate; the test fails when it
// ends before that.
func (g *Gate) Reached(t testing.TB, p *Process) {
	t.Helper()
	for {
		if _, err := os.Stat(g.file + ".waiting"); err == nil {
			return
		}
		select {
		case <-p.ended:
			t.Fatalf("it never came to %s: %s", g.step, p.result)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Open lets the process go on.
func (g *Gate) Open(t testing.TB) {
	t.Helper()
	if err := os.WriteFile(g.file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
