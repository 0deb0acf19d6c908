package servers

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"
)

// NameNodeCall is one line of the name node's audit log: a call that looks at
// or changes the name space. Calls about blocks and leases are not in it.
type NameNodeCall struct {
	Time        time.Time
	User        string // as the client gave it
	Allowed     bool
	Command     string // getfileinfo, open, listStatus, create, rename, delete, mkdirs, append …
	Path        string
	Destination string // of a rename or concat; else ""
}

// Calls gives the name node's calls since its first start, oldest first. To
// count those of a step take the list before and after it; to tell your calls
// from HBase's use a user name of your own.
func (h *HDFS) Calls() ([]NameNodeCall, error) {
	f, err := os.Open(h.AuditFile())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var calls []NameNodeCall
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		c, err := parseAudit(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", h.AuditFile(), err)
		}
		calls = append(calls, c)
	}
	return calls, lines.Err()
}

// CountCalls counts calls by command.
func CountCalls(calls []NameNodeCall, want func(NameNodeCall) bool) map[string]int {
	counts := map[string]int{}
	for _, c := range calls {
		if want == nil || want(c) {
			counts[c.Command]++
		}
	}
	return counts
}

// AuditFile is the name node's audit log.
func (h *HDFS) AuditFile() string { return h.dir.path("audit.log") }

// parseAudit reads name=value pairs with tabs between. Hadoop 2 writes a blank
// after "ugi=name".
func parseAudit(line string) (NameNodeCall, error) {
	var c NameNodeCall
	for pair := range strings.SplitSeq(line, "\t") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			continue
		}
		switch name {
		case "time":
			t, err := time.Parse("2006-01-02T15:04:05.000-0700", value)
			if err != nil {
				return c, err
			}
			c.Time = t.UTC()
		case "allowed":
			c.Allowed = value == "true"
		case "ugi":
			c.User, _, _ = strings.Cut(value, " ")
		case "cmd":
			c.Command, _, _ = strings.Cut(value, " (")
		case "src":
			c.Path = value
		case "dst":
			if value != "null" {
				c.Destination = value
			}
		}
	}
	if c.Command == "" {
		return c, fmt.Errorf("no command in audit line %q", line)
	}
	return c, nil
}
