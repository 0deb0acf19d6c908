package servers

import (
	"os"
	"testing"
)

// Test starts servers for one test and ends them with it. When the test failed
// their directories are kept and the ends of their logs appear in its output.
type Test struct{ t testing.TB }

// ForTest gives servers to a test. It skips the test in short mode, because
// servers take seconds to start.
func ForTest(t testing.TB) Test {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real servers; not in short mode")
	}
	return Test{t}
}

// Cluster starts HBase and HDFS.
func (x Test) Cluster(o ClusterOptions) *Cluster {
	x.t.Helper()
	c, err := StartCluster(x.t.Context(), o)
	if err != nil {
		x.t.Fatal(err)
	}
	logs := []string{c.LogFile()}
	if c.HDFS != nil {
		logs = append(logs, c.HDFS.LogFile())
	}
	x.endWith(c.dir, c.Stop, logs...)
	return c
}

// HDFS starts HDFS alone.
func (x Test) HDFS(o HDFSOptions) *HDFS {
	x.t.Helper()
	h, err := StartHDFS(x.t.Context(), o)
	if err != nil {
		x.t.Fatal(err)
	}
	x.endWith(h.dir, h.Stop, h.LogFile())
	return h
}

// HDFSPair starts an HDFS with two name nodes.
func (x Test) HDFSPair(o HDFSOptions) *HDFSPair {
	x.t.Helper()
	h, err := StartHDFSPair(x.t.Context(), o)
	if err != nil {
		x.t.Fatal(err)
	}
	x.endWith(h.dir, h.Stop, h.logFiles()...)
	return h
}

// S3 starts the S3 gateway.
func (x Test) S3(o S3Options) *S3 {
	x.t.Helper()
	s, err := StartS3(x.t.Context(), o)
	if err != nil {
		x.t.Fatal(err)
	}
	x.endWith(s.dir, s.Stop, s.LogFile())
	return s
}

func (x Test) endWith(dir *workDir, stop func() error, logs ...string) {
	x.t.Cleanup(func() {
		if x.t.Failed() {
			if err := dir.keep(); err != nil {
				x.t.Errorf("keep the directory: %v", err)
			}
			for _, path := range logs {
				text, err := os.ReadFile(path)
				if err != nil {
					text = []byte(err.Error())
				}
				x.t.Logf("end of %s, which is kept:\n%s", path, tail(text, 3000))
			}
		}
		if err := stop(); err != nil {
			x.t.Errorf("stop the servers: %v", err)
		}
	})
}
