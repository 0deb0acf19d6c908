package bench

import (
	"strings"
	"time"

	"hbackup"
	"hbackup/internal/nearest"
)

// Protocol is a way to make the files of a job visible.
type Protocol string

const (
	V1       Protocol = "v1"       // FileOutputCommitter, algorithm 1
	V2       Protocol = "v2"       // FileOutputCommitter, algorithm 2
	Magic    Protocol = "magic"    // uploads held open until the job commits, as S3A's magic committer does
	Manifest Protocol = "manifest" // renames side by side from lists, as the manifest committer does
	Hbackup  Protocol = "hbackup"  // our own: one conditional write
)

// Protocols are all of them, in the order in which they run.
var Protocols = []Protocol{V1, V2, Magic, Manifest, Hbackup}

// ParseProtocols reads names that are separated by commas; none means all.
func ParseProtocols(list string) ([]Protocol, error) {
	if list == "" {
		return Protocols, nil
	}
	var names []string
	for _, p := range Protocols {
		names = append(names, string(p))
	}
	var chosen []Protocol
	seen := map[string]bool{}
	for word := range strings.SplitSeq(list, ",") {
		word = strings.TrimSpace(word)
		known := false
		for _, p := range Protocols {
			if known = word == string(p); known {
				break
			}
		}
		switch {
		case !known:
			err := hbackup.Errorf("read protocol", "", hbackup.KindUsage, "%q is not one of %s", word, strings.Join(names, ", "))
			if near := nearest.To(word, names); near != "" {
				return nil, err.WithHint("did you mean %s?", near)
			}
			return nil, err
		case seen[word]:
			return nil, hbackup.Errorf("read protocol", "", hbackup.KindUsage, "%s is named twice", word)
		}
		seen[word] = true
		chosen = append(chosen, Protocol(word))
	}
	return chosen, nil
}

// Bounds of Options.
const (
	MaxFiles    = 100_000
	MaxSize     = 64 << 20  // bytes of a file, which is held in memory
	MaxTotal    = 100 << 30 // bytes of all files of one protocol
	MaxParallel = 256
	MaxLatency  = 10 * time.Second
)

// Options say what is measured.
type Options struct {
	Protocols []Protocol
	Files     int   // of the job
	Size      int64 // bytes of each
	Tasks     int   // that the files are spread over
	Parallel  int   // tasks at work at the same time
	Latency   time.Duration
	// Pool, when set, is how much every protocol does at the same time where it has
	// a pool; otherwise it is as Hadoop's defaults have it.
	Pool int
}

// Validate refuses what makes no sense or cannot be meant.
func (o Options) Validate() error {
	bad := func(format string, args ...any) error {
		return hbackup.Errorf("bench committer", "", hbackup.KindUsage, format, args...)
	}
	switch {
	case o.Files < 1 || o.Files > MaxFiles:
		return bad("%d files cannot be measured; it must be 1 to %d", o.Files, MaxFiles)
	case o.Size < 1 || o.Size > MaxSize:
		return bad("a file of %d bytes cannot be measured; it must have 1 byte to %d MiB", o.Size, MaxSize>>20)
	case int64(o.Files) > MaxTotal/o.Size:
		return bad("%d files of %d bytes are more than %d GiB", o.Files, o.Size, MaxTotal>>30)
	case o.Parallel < 1 || o.Parallel > MaxParallel:
		return bad("%d tasks at the same time cannot be; it must be 1 to %d", o.Parallel, MaxParallel)
	case o.Tasks < 1 || o.Tasks > MaxFiles:
		return bad("%d tasks cannot be; it must be 1 to %d", o.Tasks, MaxFiles)
	case o.Tasks > o.Files:
		return bad("%d tasks for %d files would leave some with nothing to do", o.Tasks, o.Files)
	case o.Latency < 0 || o.Latency > MaxLatency:
		return bad("a latency of %v cannot be; it must be 0s to %v", o.Latency, MaxLatency)
	case len(o.Protocols) == 0:
		return bad("no protocol is chosen")
	}
	return nil
}
