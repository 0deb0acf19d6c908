//go:build failpoints

package failpoint

import (
	"os"
	"syscall"
	"time"
)

// Enabled says whether this build can be killed at a step.
const Enabled = true

// The environment variables that are looked at, once.
const (
	// Variable picks the step to die at: "name", or "name#3" for its third hit.
	Variable = "HBACKUP_FAILPOINT"
	// PauseVariable picks the step to wait at and the file to wait for:
	// "name:/path" or "name#3:/path". While it waits there is a file "/path.waiting".
	PauseVariable = "HBACKUP_PAUSE"
	// LeaseVariable gives another lifetime of leases, for example "8s".
	LeaseVariable = "HBACKUP_LEASE_TTL"
)

var (
	death = must(parsePoint(os.Getenv(Variable)))
	pause = must(parseGate(os.Getenv(PauseVariable)))
	ttl   = must(parseDuration(os.Getenv(LeaseVariable)))
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Hit waits when the step is the one to wait at, and ends the process with
// SIGKILL when it is the one to die at: no deferred function runs, no buffer is
// flushed.
func Hit(s Step) {
	if pause.reached(s) {
		if err := pause.wait(); err != nil {
			panic(err)
		}
	}
	if death.reached(s) {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	}
}

// LeaseTTL gives the lifetime that the environment says, or the usual one.
func LeaseTTL(usual time.Duration) time.Duration {
	if ttl > 0 {
		return ttl
	}
	return usual
}
