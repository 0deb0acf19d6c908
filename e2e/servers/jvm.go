package servers

import (
	"os"
	"os/exec"
	"path/filepath"
)

// opens are the parts of the JDK that Hadoop and HBase reach into.
var opens = []string{
	"--add-opens", "java.base/java.lang=ALL-UNNAMED",
	"--add-opens", "java.base/java.lang.reflect=ALL-UNNAMED",
	"--add-opens", "java.base/java.net=ALL-UNNAMED",
	"--add-opens", "java.base/java.nio=ALL-UNNAMED",
	"--add-opens", "java.base/java.util=ALL-UNNAMED",
	"--add-opens", "java.base/java.util.concurrent=ALL-UNNAMED",
	"--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED",
	"--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED",
	"--add-exports", "java.base/jdk.internal.misc=ALL-UNNAMED",
	"--add-exports", "java.security.jgss/sun.security.krb5=ALL-UNNAMED",
}

// quick trades peak speed for a quick start and little memory.
var quick = []string{
	"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-XX:-UsePerfData",
	"-Djava.net.preferIPv4Stack=true", "-Djava.security.egd=file:/dev/./urandom",
}

// command gives the command line of a JVM that runs a main class with the jar set.
func (j *jarSet) command(conf, heap string, options []string, main string, args ...string) (*exec.Cmd, error) {
	path, err := exec.LookPath("java")
	if err != nil {
		return nil, err
	}
	cp, err := j.classPath()
	if err != nil {
		return nil, err
	}
	all := append([]string{}, quick...)
	all = append(all, "-Xmx"+heap, "-Dlog4j.configuration=file:"+filepath.Join(conf, "log4j.properties"))
	all = append(all, opens...)
	all = append(all, options...)
	// The configuration comes last: a class archive wants the class path it was
	// made with, but bears more at the end.
	all = append(all, "-cp", cp+string(os.PathListSeparator)+conf, main)
	return exec.Command(path, append(all, args...)...), nil
}
