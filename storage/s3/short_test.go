package s3

import "testing"

// long marks a test that takes many seconds of a gateway: make test runs it, make
// test-fast does not.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("long; run without -short")
	}
}
