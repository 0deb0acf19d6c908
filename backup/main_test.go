package backup_test

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(childEnv); spec != "" {
		beChild(spec)
	}
	os.Exit(m.Run())
}
