package failpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// point is the n-th hit of a step. The zero value is never reached.
type point struct {
	step Step
	nth  int64
	hits atomic.Int64
}

// parsePoint reads "name" or "name#3".
func parsePoint(s string) (*point, error) {
	name, count, counted := strings.Cut(s, "#")
	p := &point{step: Step(name), nth: 1}
	if !counted {
		return p, nil
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil || n < 1 || name == "" {
		return nil, fmt.Errorf("%q is not of the form name#3", s)
	}
	p.nth = n
	return p, nil
}

// reached counts a hit and says whether it is the one.
func (p *point) reached(s Step) bool {
	return p.step != "" && s == p.step && p.hits.Add(1) == p.nth
}

// gate is a point at which the process waits for a file.
type gate struct {
	*point
	file string
}

// parseGate reads "name:/path" or "name#3:/path".
func parseGate(s string) (gate, error) {
	name, file, ok := strings.Cut(s, ":")
	if s != "" && (!ok || name == "" || file == "") {
		return gate{}, fmt.Errorf("%q is not of the form name:/path", s)
	}
	p, err := parsePoint(name)
	return gate{p, file}, err
}

// waiting is the end of the name of the file that is there while a gate is closed.
const waiting = ".waiting"

// wait shows that the gate is reached and returns when its file is there.
func (g gate) wait() error {
	if err := os.WriteFile(g.file+waiting, nil, 0o600); err != nil {
		return err
	}
	for {
		_, err := os.Stat(g.file)
		if err == nil {
			return os.Remove(g.file + waiting)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func parseDuration(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	return time.ParseDuration(s)
}
