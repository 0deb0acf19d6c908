package hdfsstore

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"hbackup"
	"hbackup/storage"
	"hbackup/storage/hdfs"
)

// childEnv makes the test binary a writer that puts until it is killed.
const childEnv = "HBACKUP_HDFS_TEST_CHILD"

// writeForEver puts objects whose content follows from their key, and says each
// time how far it got. Every third put overwrites. Each body stops once in its
// middle to say so.
func writeForEver(at string) {
	cfg := hdfs.Config{User: os.Getenv(childEnv + "_USER")}
	if web := os.Getenv(childEnv + "_WEB"); web != "" {
		cfg.WebHDFS = []string{web}
	}
	s, err := open(at, cfg)
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		body := bodyOf(i)
		opts := storage.PutOptions{Size: int64(len(body)), IfAbsent: i%3 != 2}
		if _, err := s.Put(context.Background(), keyOf(i), &halting{left: body, half: len(body) / 2, put: i}, opts); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("put", i)
	}
}

func keyOf(i int) storage.Key {
	if i%3 == 2 {
		return "d/same"
	}
	return storage.Key(fmt.Sprintf("d/%d/%d", i%3, i))
}

// halting is a body that says when its half was taken.
type halting struct {
	left []byte
	half int
	put  int
}

func (h *halting) Read(p []byte) (int, error) {
	if h.half == 0 {
		fmt.Println("half", h.put)
		h.half = -1
	}
	n := len(h.left)
	if h.half > 0 {
		n = h.half
	}
	n = copy(p, h.left[:n])
	h.left = h.left[n:]
	if h.half > 0 {
		h.half -= n
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// bodyOf starts with its number and goes on with what follows from it, over some
// blocks of HDFS.
func bodyOf(i int) []byte {
	rnd := rand.New(rand.NewPCG(uint64(i), 1))
	return []byte(strconv.Itoa(i) + "\n" + strings.Repeat(strconv.Itoa(i*7)+",", 1000+rnd.IntN(600_000)))
}

// TestKilledWriter kills a writer again and again, in the middle of a body or
// anywhere behind a put, and looks at what is there: all that it reported,
// nothing that is half, no file left open under a key. What it left in the
// directory of temporary files, open or, over HTTP, closed by a data node that took
// the end of the connection for that of the file, is no object, and goes when it is
// old.
func TestKilledWriter(t *testing.T) {
	left := 0
	for round := range 14 {
		at := fmt.Sprintf("%s-%d", directory(t), round)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+at, childEnv+"_USER="+cluster.User())
		if round >= 10 {
			cmd.Env = append(cmd.Env, childEnv+"_WEB=http://"+cluster.HTTPAddress())
		}
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		reported, stopAt, inBody := -1, rand.IntN(12), round%2 == 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			word, text, _ := strings.Cut(lines.Text(), " ")
			n, err := strconv.Atoi(text)
			if err != nil || word != "put" && word != "half" {
				t.Fatalf("the writer says %q", lines.Text())
			}
			if word == "put" {
				reported = n
			}
			if n >= stopAt && (word == "half") == inBody {
				for range rand.IntN(3_000_000) { // somewhere inside what it does now
				}
				cmd.Process.Kill()
			}
		}
		cmd.Wait() // killed, as it must
		s := openAt(t, at, hdfs.Config{User: cluster.User()})
		checkAfterKill(t, s, reported)
		putAgain(t, s, reported+1)
		left += swept(t, at)
	}
	if left == 0 {
		t.Error("no killed writer left anything: this tested nothing")
	}
}

// swept makes the temporary files old, lets the next writer sweep them, and gives
// their number. A data node that finds only now that its writer is gone closes the
// file, which makes it young again: then both are done once more.
func swept(t *testing.T, at string) int {
	t.Helper()
	temp := strings.TrimPrefix(at, cluster.URI()) + "/.hbackup-tmp"
	old := time.Now().Add(-49 * time.Hour).UnixMilli()
	giveUp := time.Now().Add(time.Minute)
	found := -1
	for round := 0; ; round++ {
		there, err := raw(t).ReadDir(t.Context(), temp)
		must(t, err)
		if found < 0 {
			found = len(there)
		}
		if round > 0 && len(there) == 0 {
			return found
		}
		if time.Now().After(giveUp) {
			t.Fatalf("%d temporary files are left of %d", len(there), found)
		}
		for _, f := range there {
			webhdfs(t, "PUT", f.Path, fmt.Sprintf("op=SETTIMES&modificationtime=%d&accesstime=%d", old, old))
		}
		put(t, openAt(t, at, hdfs.Config{User: cluster.User()}), storage.Key(fmt.Sprintf("swept%d", round)), "1")
	}
}

// checkAfterKill reads everything. The store refuses files that are open.
func checkAfterKill(t *testing.T, s storage.Store, reported int) {
	t.Helper()
	seen := map[int]bool{}
	for obj, err := range s.List(t.Context(), "", storage.ListOptions{}) {
		must(t, err)
		data, _, err := storage.ReadAll(t.Context(), s, obj.Key, 16<<20)
		must(t, err)
		number, _, _ := strings.Cut(string(data), "\n")
		i, err := strconv.Atoi(number)
		if err != nil || string(data) != string(bodyOf(i)) {
			t.Fatalf("%s has %d bytes that are no whole body", obj.Key, len(data))
		}
		seen[i] = true
	}
	for i := range reported + 1 {
		if i%3 != 2 && !seen[i] {
			t.Fatalf("put %d was reported and is not there", i)
		}
	}
}

// putAgain does the put that was killed. Nothing of it stands in the way; it may
// have been done.
func putAgain(t *testing.T, s storage.Store, i int) {
	t.Helper()
	_, err := storage.PutBytes(t.Context(), s, keyOf(i), bodyOf(i), i%3 != 2)
	if err != nil && !hbackup.IsKind(err, hbackup.KindExists) {
		t.Fatal(err)
	}
	checkAfterKill(t, s, i)
}
