package servers

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"hbackup/e2e/java"
)

// CommitterRound is what one of Hadoop's committers took for all files of a job.
type CommitterRound struct {
	Round        int     `json:"round"` // from 1; the first is that of a cold JVM
	Write        float64 `json:"write_seconds"`
	TaskCommit   float64 `json:"task_seconds"`
	JobCommit    float64 `json:"job_seconds"`
	TaskRequests int64   `json:"task_requests"` // of S3A; 0 on other file systems
	JobRequests  int64   `json:"job_requests"`
}

// CommitterJob says what is committed where, by which committer (v1, v2, magic or
// manifest): files dealt out to tasks that are all at work at the same time.
type CommitterJob struct {
	Kind, Output        string
	Files, Bytes, Tasks int
	Rounds              int
}

// RunCommitter runs one of Hadoop's own output committers; see RunPeer.
func (h *HBase) RunCommitter(ctx context.Context, s *S3, j CommitterJob) ([]CommitterRound, error) {
	source, err := java.Files.ReadFile("peers/Committers.java")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "hbackup-committers-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "Committers.java")
	if err := os.WriteFile(file, source, 0o666); err != nil {
		return nil, err
	}
	// The launcher compiles a file that is named in place of a class.
	out, _, err := h.RunPeer(ctx, s, "1", file, j.Kind, j.Output, strconv.Itoa(j.Files), strconv.Itoa(j.Bytes), strconv.Itoa(j.Tasks), strconv.Itoa(j.Rounds))
	if err != nil {
		return nil, err
	}
	var rounds []CommitterRound
	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		if text := strings.TrimSpace(lines.Text()); strings.HasPrefix(text, "{\"round\"") {
			var r CommitterRound
			if err := json.Unmarshal([]byte(text), &r); err != nil {
				return nil, fmt.Errorf("%s: %w", text, err)
			}
			rounds = append(rounds, r)
		}
	}
	if len(rounds) != j.Rounds {
		return nil, fmt.Errorf("%d rounds of %d were reported:\n%s", len(rounds), j.Rounds, out)
	}
	return rounds, nil
}
