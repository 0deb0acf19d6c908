package crash

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"hbackup/e2e/cli"
)

// TestInterrupted interrupts a backup between two files: it tidies up, says so
// and how to go on, and the same request goes on.
func TestInterrupted(t *testing.T) {
	const name = "crash:signal"
	table(t, name, 5)
	want := dump(t, name, true)
	for _, c := range []struct {
		place
		signal os.Signal
	}{{s3Place("signal-s3"), syscall.SIGINT}, {dirPlace("signal-dir"), syscall.SIGTERM}} {
		x := toolFor(t, c.place)
		gate := cli.NewGate(t, "backup.file-copied#2")
		p := x.With(gate.Env()).Start(t, backupArgs(c.place, "signal", name)...)
		gate.Reached(t, p)
		p.Signal(t, c.signal)
		gate.Open(t)
		if r := p.Wait(); r.Code != 130 || !strings.Contains(r.Stdout+r.Stderr, "--request-id signal") {
			t.Errorf("after %s: %s", c.signal, r)
		}
		if left := ours(t); len(left) > 0 {
			t.Errorf("after %s: snapshots left: %q", c.signal, left)
		}
		if images := c.files(t, "images"); len(images) > 0 {
			t.Errorf("after %s: images: %v", c.signal, images)
		}
		b := resultOf(t, x.Run(t.Context(), backupArgs(c.place, "signal", name)...))
		oneImage(t, x, c.place, b)
		equal(t, x, c.place, b.Backup, name, want, true)
		noneLeft(t, x, c.place)
	}
}
