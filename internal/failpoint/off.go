//go:build !failpoints

package failpoint

import "time"

// Enabled says whether this build can be killed at a step.
const Enabled = false

// Hit does nothing in an ordinary build.
func Hit(Step) {}

// LeaseTTL gives the default back in an ordinary build.
func LeaseTTL(usual time.Duration) time.Duration { return usual }
