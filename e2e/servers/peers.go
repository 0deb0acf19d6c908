package servers

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"hbackup/e2e/java"
)

// peerJars resolves what HBase's tools need to use S3: 650 MB, so apart from the jar sets.
func peerJars(ctx context.Context) (string, error) {
	pom, err := java.Files.ReadFile("peers.xml")
	if err != nil {
		return "", err
	}
	return entry(ctx, "peers-"+hashOf(pom), func(dir string) error {
		work, err := os.MkdirTemp("", "hbackup-mvn-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(work)
		if err := os.WriteFile(filepath.Join(work, "pom.xml"), pom, 0o666); err != nil {
			return err
		}
		return run(ctx, work, "mvn", "-B", "-q", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+dir)
	})
}

// PreparePeers fetches what RunPeer needs.
func PreparePeers(ctx context.Context, say Progress) error {
	started := time.Now()
	say("S3A for HBase's tools: 650 MB of jars")
	dir, err := peerJars(ctx)
	if err == nil {
		say("S3A for HBase's tools: %s (%.1f s)", dir, time.Since(started).Seconds())
	}
	return err
}

// RunPeer runs a main class of HBase or Hadoop like RunTool, but so that its
// speed can be compared: the JVM has its default compiler and collector, a heap
// of 1 GB and no class archive of ours, and as many map tasks run at a time as
// maps says (the local job runner would run one). With a gateway the tool
// reaches it as s3a://bucket/…. The state tells what the process used.
func (h *HBase) RunPeer(ctx context.Context, s *S3, maps string, mainClass string, arguments ...string) (string, *os.ProcessState, error) {
	jvm, err := exec.LookPath("java")
	if err != nil {
		return "", nil, err
	}
	cp, err := h.jars.classPath()
	if err != nil {
		return "", nil, err
	}
	work, err := os.MkdirTemp(h.dir.dir, "peer-*")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(work)
	options := Settings{
		"mapreduce.framework.name":          "local",
		"mapreduce.local.map.tasks.maximum": maps,
		"hadoop.tmp.dir":                    work,
	}
	if s != nil {
		jars, err := peerJars(ctx)
		if err != nil {
			return "", nil, err
		}
		cp += string(os.PathListSeparator) + filepath.Join(jars, "*")
		options = options.with(s.s3a(filepath.Join(work, "s3a")))
	}
	args := append([]string{"-Xmx1g", "-XX:-UsePerfData", "-Dlog4j.configuration=file:" + filepath.Join(h.ConfDir(), "log4j.properties")}, opens...)
	args = append(args, "-cp", cp+string(os.PathListSeparator)+h.ConfDir(), mainClass)
	for k, v := range options {
		args = append(args, "-D"+k+"="+v)
	}
	return h.runTool(ctx, mainClass, exec.Command(jvm, append(args, arguments...)...))
}

// s3a gives the settings with which Hadoop's S3A reaches the gateway.
func (s *S3) s3a(bufferDir string) Settings {
	return Settings{
		"fs.s3a.endpoint":                 s.Endpoint(),
		"fs.s3a.endpoint.region":          s.Region,
		"fs.s3a.path.style.access":        "true",
		"fs.s3a.connection.ssl.enabled":   strconv.FormatBool(s.options.TLS),
		"fs.s3a.access.key":               s.AccessKey,
		"fs.s3a.secret.key":               s.SecretKey,
		"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
		"fs.s3a.buffer.dir":               bufferDir,
	}
}
