//go:build peers

package peers

import (
	"os"
	"testing"

	"hbackup/bench"
	"hbackup/bench/s3a"
	"hbackup/e2e/servers"
	"hbackup/storage/s3"
)

// The benchmark's models ask S3 for as much as Hadoop's own committers do.
func TestModelsAskForWhatHadoopAsks(t *testing.T) {
	gateway := servers.ForTest(t).S3(servers.S3Options{Buckets: []string{"backups"}})
	os.Setenv("PEERS_ACCESS", gateway.AccessKey)
	os.Setenv("PEERS_SECRET", gateway.SecretKey)
	const files, tasks, bytes = 30, 3, 1000
	for _, p := range []bench.Protocol{bench.V1, bench.V2, bench.Magic, bench.Manifest} {
		t.Run(string(p), func(t *testing.T) {
			rounds, err := source.RunCommitter(t.Context(), gateway, servers.CommitterJob{
				Kind: string(p), Output: "s3a://backups/hadoop/" + string(p), Files: files, Bytes: bytes, Tasks: tasks, Rounds: 1})
			check(t, err)
			target, err := s3a.Open(t.Context(), s3.Config{Bucket: "backups", Region: gateway.Region, Endpoint: gateway.Endpoint(), PathStyle: true,
				Credentials: s3.Credentials{AccessKey: "env:PEERS_ACCESS", SecretKey: "env:PEERS_SECRET"}}, bench.NewFolder(), 0)
			check(t, err)
			defer target.Close()
			results, err := bench.Run(t.Context(), target, bench.Options{
				Protocols: []bench.Protocol{p}, Files: files, Size: bytes, Tasks: tasks, Parallel: tasks}, nil)
			check(t, err)
			// A directory that several leave empty at once gets its marker from each.
			near(t, "task commit", results[0].TaskCommit.Traffic.Total(), rounds[0].TaskRequests, tasks)
			near(t, "job commit", results[0].JobCommit.Traffic.Total(), rounds[0].JobRequests, 2*tasks)
		})
	}
}

func near(t *testing.T, what string, got, want, apart int64) {
	t.Helper()
	t.Logf("%s: %d requests, Hadoop %d", what, got, want)
	if got < want-apart || got > want+apart {
		t.Errorf("%s: %d requests, Hadoop %d", what, got, want)
	}
}
