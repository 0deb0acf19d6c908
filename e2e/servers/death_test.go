package servers_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hbackup"
	"hbackup/e2e/servers"
)

// TestMain can be a process that starts servers and waits for its death.
func TestMain(m *testing.M) {
	if os.Getenv("SERVERS_TEST_VICTIM") == "" {
		os.Exit(m.Run())
	}
	if err := victim(); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

// victim prints the processes of its servers and ends in the way it reads.
func victim() error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	c, err := servers.StartCluster(ctx, servers.ClusterOptions{})
	if err != nil {
		return err
	}
	defer c.Stop()
	s, err := servers.StartS3(ctx, servers.S3Options{})
	if err != nil {
		return err
	}
	defer s.Stop()
	fmt.Println("pids", c.PID(), c.HDFS.PID(), s.PID())
	word, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return err
	}
	switch strings.TrimSpace(word) {
	case "panic":
		panic("as asked")
	case "exit":
		os.Exit(3)
	}
	<-ctx.Done()
	return nil
}

func TestServersDieWithTheProcessThatStartedThem(t *testing.T) {
	servers.ForTest(t)
	for _, end := range []string{"kill", "panic", "exit", "interrupt"} {
		t.Run(end, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			tmp := t.TempDir()
			cmd.Env = append(os.Environ(), "SERVERS_TEST_VICTIM=1", "TMPDIR="+tmp)
			stdin, err := cmd.StdinPipe()
			check(t, err)
			stdout, err := cmd.StdoutPipe()
			check(t, err)
			check(t, cmd.Start())
			line, err := bufio.NewReader(stdout).ReadString('\n')
			if err != nil || !strings.HasPrefix(line, "pids ") {
				cmd.Process.Kill()
				cmd.Wait()
				t.Fatalf("%q, %v", line, err)
			}
			fmt.Fprintln(stdin, end)
			switch end {
			case "kill":
				check(t, cmd.Process.Kill())
			case "interrupt":
				check(t, cmd.Process.Signal(os.Interrupt))
			}
			cmd.Wait() // how it ends is the test's own doing
			for _, word := range strings.Fields(line)[1:] {
				pid, err := strconv.Atoi(word)
				check(t, err)
				awaitGone(t, pid)
			}
			left, err := os.ReadDir(tmp)
			check(t, err)
			if end == "interrupt" && len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// awaitGone returns when there is no such process; half a minute is plenty for
// a kernel that has nothing else to do than to reap it.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) || isZombie(pid) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("process %d is still there", pid)
		}
	}
}

// isZombie: where nobody reaps orphans, a dead process keeps its number.
func isZombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(after, "Z")
}

func TestAStartThatFailsSaysWhyAndLeavesNoProcess(t *testing.T) {
	servers.ForTest(t)
	t.Setenv("TMPDIR", t.TempDir())
	_, err := servers.StartCluster(t.Context(), servers.ClusterOptions{
		LocalRoot: true, HBase: servers.Settings{"hbase.zookeeper.property.dataDir": "/dev/null/no"}})
	if err == nil || !strings.Contains(err.Error(), "/dev/null/no") {
		t.Errorf("error %v", err)
	}
	if hint := hbackup.HintOf(err); !strings.Contains(hint, "hbase.log") {
		t.Errorf("hint %q", hint)
	}
	assertNoChildren(t)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := servers.StartCluster(ctx, servers.ClusterOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	assertNoChildren(t)
}
