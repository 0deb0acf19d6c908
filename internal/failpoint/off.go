//go:build !failpoints

package failpoint

// Enabled says whether this build can be killed at a step.
const Enabled = false

// Hit does nothing in an ordinary build.
func Hit(Step) {}
