//go:build failpoints

package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Enabled says whether this build can be killed at a step.
const Enabled = true

// Variable names the environment variable that picks the step: "name", or
// "name#3" for its third hit.
const Variable = "HBACKUP_FAILPOINT"

var (
	wanted, nth = parse(os.Getenv(Variable))
	hits        atomic.Int64
)

func parse(s string) (Step, int64) {
	name, count, ok := strings.Cut(s, "#")
	if !ok {
		return Step(name), 1
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		panic(Variable + ": " + err.Error())
	}
	return Step(name), n
}

// Hit ends the process with SIGKILL when the step is the wanted one: no deferred
// function runs, no buffer is flushed.
func Hit(s Step) {
	if s != wanted || hits.Add(1) != nth {
		return
	}
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}
