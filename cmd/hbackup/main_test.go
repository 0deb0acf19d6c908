package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite golden files and the outputs in scripts")

// TestMain lets scripts run this test binary as hbackup. With FAKE set the
// services are those of that name in fakes; otherwise they are the real ones.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"hbackup": func() {
			signals := make(chan os.Signal, 2)
			signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
			ctx, stop := interruptible(context.Background(), signals, os.Exit)
			p := &program{stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ(), now: time.Now, connect: connect,
				searchPaths: []string{"hbackup.yaml", "etc/hbackup.yaml"}}
			if name := os.Getenv("FAKE"); name != "" {
				p.connect, p.now = fakes[name].connect, fakeNow
			}
			code := p.run(ctx, os.Args[1:])
			stop()
			os.Exit(int(code))
		},
	})
}

// TestScripts runs the stories in testdata/script. Beside testscript's own
// commands there is "code N hbackup ...", which expects that exit code.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: code N command args...")
				}
				want, err := strconv.Atoi(args[0])
				if err != nil {
					ts.Fatalf("%v", err)
				}
				got := 0
				if err := ts.Exec(args[1], args[2:]...); err != nil {
					var exit *exec.ExitError
					if !errors.As(err, &exit) {
						ts.Fatalf("%v", err)
					}
					got = exit.ExitCode()
				}
				if got != want {
					ts.Fatalf("exit code %d, want %d", got, want)
				}
			},
		},
	})
}
