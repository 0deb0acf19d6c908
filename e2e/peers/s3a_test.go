//go:build peers

package peers

import (
	"testing"

	"hbackup/e2e/cli"
	"hbackup/e2e/servers"
)

// TestToolsReadS3 is the same over S3A.
func TestToolsReadS3(t *testing.T) {
	s3 := servers.ForTest(t).S3(servers.S3Options{Buckets: []string{"backups"}})
	toolsRead(t, cli.S3(s3, "backups", "of/ours"), "s3a://backups/of/ours/prod", s3)
}
