package servers

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The kernel's kill exists on Linux only; the end of standard input does everywhere.
func TestAJVMEndsWithItsStandardInput(t *testing.T) {
	ForTest(t)
	h, err := StartHBase(t.Context(), HBaseOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Stop()
	if err := h.process.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	<-h.process.ended
	if _, err := h.Regions(t.Context(), "t"); err == nil || !strings.Contains(err.Error(), "the process has ended") {
		t.Errorf("a call to a dead server: %v", err)
	}
}

func TestAChildThatDiesBeforeItIsReadyGivesItsLastWords(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	_, _, err := spawnReady(t.Context(), "child", log, exec.Command("sh", "-c", "echo a=b >&3; echo last words; exit 7"), nil)
	if err == nil || !strings.Contains(err.Error(), "last words") || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("error %v", err)
	}
}

func TestFactsOfAChildComeWhileItStarts(t *testing.T) {
	var seen []string
	log := filepath.Join(t.TempDir(), "log")
	p, facts, err := spawnReady(t.Context(), "child", log,
		exec.Command("sh", "-c", "echo a=b=c >&3; echo d=e >&3; echo ready >&3; cat"),
		func(key, value string) error { seen = append(seen, key+" is "+value); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if !p.alive() {
		t.Error("the child is gone")
	}
	p.kill()
	if p.alive() || len(facts) != 2 || facts["a"] != "b=c" || strings.Join(seen, ", ") != "a is b=c, d is e" {
		t.Errorf("facts %v, seen %q", facts, seen)
	}
}
