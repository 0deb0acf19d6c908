package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"hbackup"
	"hbackup/e2e/java"
)

// jarSet is what one version runs from: the jars of its profile in pom.xml, and
// our own classes compiled against them.
type jarSet struct {
	version Version
	dir     string // the jars
	driver  string // our own classes, a jar
	key     string // changes with the jars, the classes or the Java version
}

// jarsOf resolves and compiles what is not in the cache yet.
func jarsOf(ctx context.Context, v Version) (*jarSet, error) {
	v = v.OrDefault()
	if !slices.Contains(Versions(), v) {
		return nil, hbackup.Errorf("choose a version of HBase", string(v), hbackup.KindUsage, "unknown version").
			WithHint("one of %v", Versions())
	}
	pom, err := java.Files.ReadFile("pom.xml")
	if err != nil {
		return nil, err
	}
	jarKey := hashOf(pom)
	jars, err := entry(ctx, fmt.Sprintf("jars-%s-%s", v, jarKey), func(dir string) error {
		return resolveJars(ctx, v, pom, dir)
	})
	if err != nil {
		return nil, err
	}
	sources, err := fs.Glob(java.Files, "src/hbackup/e2e/*.java")
	if err != nil {
		return nil, err
	}
	var texts [][]byte
	for _, s := range sources {
		text, err := java.Files.ReadFile(s)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	release, err := javaRelease(ctx)
	if err != nil {
		return nil, err
	}
	key := hashOf(append(texts, []byte(jarKey+release+" layout 1"))...)
	classes, err := entry(ctx, fmt.Sprintf("driver-%s-%s", v, key), func(dir string) error {
		return compileDriver(ctx, jars, sources, dir)
	})
	if err != nil {
		return nil, err
	}
	return &jarSet{version: v, dir: jars, driver: filepath.Join(classes, "driver.jar"), key: key}, nil
}

// classPath lists the jars in a fixed order: a class archive is only used when
// the class path is the one it was made with.
func (j *jarSet) classPath() (string, error) {
	names, err := filepath.Glob(filepath.Join(j.dir, "*.jar"))
	if err != nil {
		return "", err
	}
	slices.Sort(names)
	return strings.Join(append(names, j.driver), string(os.PathListSeparator)), nil
}

func resolveJars(ctx context.Context, v Version, pom []byte, dir string) error {
	work, err := os.MkdirTemp("", "hbackup-mvn-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.WriteFile(filepath.Join(work, "pom.xml"), pom, 0o666); err != nil {
		return err
	}
	return run(ctx, work, "mvn", "-B", "-q", "-P", string(v), "dependency:copy-dependencies",
		"-DincludeScope=runtime", "-DoutputDirectory="+dir)
}

func compileDriver(ctx context.Context, jars string, sources []string, dir string) error {
	classes := filepath.Join(dir, "classes")
	args := []string{"-nowarn", "-Xlint:none", "-proc:none", "-encoding", "UTF-8", "-d", classes, "-cp", filepath.Join(jars, "*")}
	for _, s := range sources {
		text, err := java.Files.ReadFile(s)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, filepath.FromSlash(s))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o666); err != nil {
			return err
		}
		args = append(args, path)
	}
	if err := run(ctx, dir, "javac", args...); err != nil {
		return err
	}
	// The name node and the data node insist on finding these directories on the class path.
	for _, d := range []string{"hdfs", "datanode"} {
		if err := os.MkdirAll(filepath.Join(classes, "webapps", d), 0o777); err != nil {
			return err
		}
	}
	return run(ctx, dir, "jar", "--create", "--file", filepath.Join(dir, "driver.jar"), "-C", classes, ".")
}

func javaRelease(ctx context.Context) (string, error) {
	out, err := output(ctx, "", "java", "-version")
	if err != nil {
		return "", err
	}
	return string(out), nil
}

// run runs a build command; its output appears in the error only.
func run(ctx context.Context, dir, name string, args ...string) error {
	_, err := output(ctx, dir, name, args...)
	return err
}

func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, hbackup.E("find the command", name, hbackup.KindUnsupported, err).
			WithHint("the test servers need a JDK of version 17 or later (java, javac, jar), Maven (mvn) and Go (go) on PATH")
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, hbackup.E("run "+name, "", hbackup.KindOther, errors.Join(err, errors.New(tail(out.Bytes(), 4000))))
	}
	return out.Bytes(), nil
}

// tail gives the last n bytes, from the start of a line.
func tail(b []byte, n int) string {
	if len(b) > n {
		b = b[len(b)-n:]
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			b = b[i+1:]
		}
	}
	return strings.TrimSpace(string(b))
}
