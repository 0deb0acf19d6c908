package file

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"hbackup/storage"
)

// childEnv makes the test binary a writer that puts until it is killed.
const childEnv = "HBACKUP_FILE_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		writeForEver(path, os.Getenv(childEnv+"_NAMED") != "")
	}
	os.Exit(m.Run())
}

// writeForEver puts objects whose content follows from their key, and says each
// time how far it got. Every third put overwrites.
func writeForEver(path string, named bool) {
	place, err := storage.ParseLocation("file://" + path)
	if err != nil {
		panic(err)
	}
	s, err := Open(place)
	if err != nil {
		panic(err)
	}
	s.named = named
	ctx := context.Background()
	for i := 0; ; i++ {
		key := storage.Key(fmt.Sprintf("d/%d/%d", i%3, i))
		if i%3 == 2 {
			key = "d/same"
		}
		if _, err := storage.PutBytes(ctx, s, key, bodyOf(i), i%3 != 2); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("put", i)
	}
}

// bodyOf starts with its number and goes on with what follows from it.
func bodyOf(i int) []byte {
	rnd := rand.New(rand.NewPCG(uint64(i), 1))
	n := rnd.IntN(200_000)
	return []byte(strconv.Itoa(i) + "\n" + strings.Repeat(strconv.Itoa(i*7)+",", n/4))
}

// TestKilledWriter kills a writer again and again and looks at what is there:
// all that it reported, nothing that is half, no temporary file for long.
func TestKilledWriter(t *testing.T) {
	for _, named := range []string{"", "yes"} {
		for round := range 12 {
			path := t.TempDir()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childEnv+"="+path, childEnv+"_NAMED="+named)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			reported := -1
			lines := bufio.NewScanner(out)
			for stopAt := rand.IntN(30); lines.Scan(); {
				n, ok := strings.CutPrefix(lines.Text(), "put ")
				if !ok {
					t.Fatalf("the writer says %q", lines.Text())
				}
				if reported, err = strconv.Atoi(n); err != nil {
					t.Fatal(err)
				}
				if reported == stopAt {
					for range rand.IntN(100_000) { // somewhere inside the next put
					}
					cmd.Process.Kill()
				}
			}
			cmd.Wait()
			checkAfterKill(t, openStore(t, path), round, reported)
		}
	}
}

func checkAfterKill(t *testing.T, s *Store, round, reported int) {
	t.Helper()
	seen := map[int]bool{}
	for obj, err := range s.List(t.Context(), "", storage.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		data, _, err := storage.ReadAll(t.Context(), s, obj.Key, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		number, _, _ := strings.Cut(string(data), "\n")
		i, err := strconv.Atoi(number)
		if err != nil || string(data) != string(bodyOf(i)) {
			t.Fatalf("round %d: %s has %d bytes that are no whole body", round, obj.Key, len(data))
		}
		seen[i] = true
	}
	for i := range reported + 1 {
		if i%3 != 2 && !seen[i] {
			t.Fatalf("round %d: put %d was reported and is not there", round, i)
		}
	}
	s.named = true // so that the directory of temporary files is used, and swept
	if _, err := storage.PutBytes(t.Context(), s, "after", []byte("x"), true); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(s.path + "/" + tempDir); err != nil || len(left) > 0 {
		t.Fatalf("round %d: left over are %v, %v", round, left, err)
	}
}

func deadProcess(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(cmd.Process.Pid)
}
