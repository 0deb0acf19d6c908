package servers

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"time"

	"hbackup"
)

// RunTool runs a main class of HBase or Hadoop, such as
// org.apache.hadoop.hbase.snapshot.ExportSnapshot, in a JVM of its own with the
// cluster's configuration; MapReduce jobs run inside it. It gives what the tool
// wrote to its standard output; the error has the rest.
func (h *HBase) RunTool(ctx context.Context, mainClass string, arguments ...string) (string, error) {
	archive, err := h.jars.classArchive(ctx)
	if err != nil {
		return "", err
	}
	cmd, err := h.jars.command(h.ConfDir(), "512m", archive, mainClass, arguments...)
	if err != nil {
		return "", err
	}
	out, _, err := h.runTool(ctx, mainClass, cmd)
	return out, err
}

// runTool runs the command line to its end; the state tells what it used.
func (h *HBase) runTool(ctx context.Context, mainClass string, cmd *exec.Cmd) (string, *os.ProcessState, error) {
	log, err := os.CreateTemp(h.dir.dir, "tool-*.log")
	if err != nil {
		return "", nil, err
	}
	defer log.Close()
	var stdout bytes.Buffer
	command := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	command.Dir = h.dir.dir
	command.Stdout, command.Stderr = &stdout, log
	command.WaitDelay = time.Second
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		text, _ := os.ReadFile(log.Name())
		return stdout.String(), command.ProcessState, hbackup.E("run", mainClass, hbackup.KindOther,
			errors.Join(err, errors.New(tail(text, 2000)), errors.New(tail(stdout.Bytes(), 2000)))).
			WithHint("its error output is in %s", log.Name())
	}
	return stdout.String(), command.ProcessState, nil
}
