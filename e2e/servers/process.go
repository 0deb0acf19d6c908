package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"hbackup"
)

// process is one child. It ends when this process does: the kernel closes the
// pipe that is its standard input (our JVM watches it), and on Linux also kills it.
type process struct {
	name  string
	pid   int
	log   string         // path of the file that has its output
	stdin io.WriteCloser // closing it ends a JVM of ours
	ended chan struct{}  // closed when the child is gone
	err   error          // how it ended; valid after ended
}

// spawn starts a child whose output goes to the log file. When ready is not
// nil, its write end is the child's file descriptor 3.
func spawn(name, log string, cmd *exec.Cmd, ready *os.File) (*process, error) {
	out, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	fmt.Fprintf(out, "# %s started at %s\n", name, time.Now().UTC().Format(time.RFC3339))
	cmd.Stdout, cmd.Stderr = out, out
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if ready != nil {
		cmd.ExtraFiles = []*os.File{ready}
	}
	cmd.SysProcAttr = childAttributes()
	p := &process{name: name, log: log, stdin: stdin, ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel's "kill when the parent dies" means the parent's thread, so the
		// thread that starts the child stays with it to its end.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.pid = cmd.Process.Pid
		started <- nil
		p.err = cmd.Wait()
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return nil, hbackup.E("start "+name, cmd.Path, hbackup.KindOther, err)
	}
	return p, nil
}

// alive reports whether the child still runs.
func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// kill ends the child at once and waits until it is gone.
func (p *process) kill() {
	if p == nil {
		return
	}
	if p.alive() {
		syscall.Kill(p.pid, syscall.SIGKILL)
	}
	<-p.ended
	p.stdin.Close()
}

// await waits for the end, then kills.
func (p *process) await(limit time.Duration) {
	select {
	case <-p.ended:
	case <-time.After(limit):
	}
	p.kill()
}

// failure describes an unexpected end, with the last lines of the log.
func (p *process) failure(op string) error {
	text, err := os.ReadFile(p.log)
	if err != nil {
		text = []byte(err.Error())
	}
	return hbackup.E(op, p.name, hbackup.KindOther,
		errors.Join(errors.New("the process has ended"), p.err, errors.New(tail(text, 3000)))).
		WithHint("its whole output is in %s", p.log)
}

// spawnReady starts a child that writes lines "key=value" and at last "ready"
// to file descriptor 3, and gives those pairs, each also to the function when
// there is one. When the child ends before it is ready, or the context does, the
// child is gone on return.
func spawnReady(ctx context.Context, name, log string, cmd *exec.Cmd, fact func(key, value string) error) (*process, map[string]string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	p, err := spawn(name, log, cmd, w)
	w.Close()
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { r.SetReadDeadline(time.Now()) })
	defer stop()
	facts := map[string]string{}
	for lines := bufio.NewReader(r); ; {
		line, err := lines.ReadString('\n')
		switch {
		case err == nil && line == "ready\n":
			return p, facts, nil
		case err == nil:
			k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
			facts[k] = v
			if fact == nil {
				continue
			}
			if err := fact(k, v); err != nil {
				p.kill()
				return nil, nil, err
			}
		case ctx.Err() != nil:
			p.kill()
			return nil, nil, hbackup.E("start", name, hbackup.KindOther, context.Cause(ctx)).WithHint("its output is in %s", log)
		default:
			p.await(5 * time.Second)
			return nil, nil, p.failure("start")
		}
	}
}
