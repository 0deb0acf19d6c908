package faulty

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hbackup"
	"hbackup/storage"
)

// The operations, as scripts and Calls name them.
const (
	opPut    = "put"
	opGet    = "get"
	opStat   = "stat"
	opList   = "list"
	opDelete = "delete"
	opBatch  = "batch"
	opTime   = "time"
	opOpen   = "open"
	opFill   = "fill"
	opFinish = "finish"
	opDrop   = "drop"
	opHeld   = "uploads"
	opAny    = "any"
)

var allOps = []string{opPut, opGet, opStat, opList, opDelete, opBatch, opTime, opOpen, opFill, opFinish, opDrop, opHeld}

// fault is what happens to a call.
type fault struct {
	name        string
	kind        hbackup.Kind  // of fail, lost, half and some
	probability float64       // of drop
	share       float64       // of half and reset: what passes
	count       int           // of truncate and late
	delay       time.Duration // of delay and skew
}

// meaning says for which operations a fault can be.
var meaning = map[string][]string{
	"fail":     allOps,
	"lost":     allOps,
	"half":     {opPut, opGet, opList, opFill},
	"reset":    {opPut, opGet, opList, opFill},
	"twice":    {opPut, opDelete, opBatch, opFinish, opDrop},
	"late":     {opPut, opDelete},
	"skew":     {opTime},
	"cut":      {opGet, opList},
	"flip":     {opGet},
	"drop":     {opList},
	"truncate": {opList},
	"repeat":   {opList},
	"some":     {opBatch},
	"delay":    allOps,
	"hang":     allOps,
}

// rule is one line of a script.
type rule struct {
	op    string
	part  []string // of the key, in this order; for a listing of its prefix
	from  int      // first call that it applies to
	to    int      // last one; 0 means no end
	every int      // of the calls between, each so-manieth
	fault fault
	seen  int // calls that matched op and part so far
}

// applies counts a call and reports whether it is one that shall fail.
func (r *rule) applies(op string, keys ...storage.Key) bool {
	if r.op != op && (r.op != opAny || !slices.Contains(meaning[r.fault.name], op)) {
		return false
	}
	if r.part != nil && !slices.ContainsFunc(keys, r.matches) {
		return false
	}
	r.seen++
	return r.seen >= r.from && (r.to == 0 || r.seen <= r.to) && r.seen%r.every == 0
}

func (r *rule) matches(key storage.Key) bool {
	rest := string(key)
	for _, part := range r.part {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return true
}

// parse reads a script.
func parse(script string) ([]*rule, error) {
	var rules []*rule
	for line := range strings.SplitSeq(script, ";") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		r, err := parseRule(line)
		if err != nil {
			return nil, hbackup.Errorf("read fault script", "", hbackup.KindUsage, "%q: %w", line, err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func parseRule(line string) (*rule, error) {
	r := &rule{every: 1}
	rest := line
	if i := strings.IndexAny(rest, "[#"); i < 0 {
		return nil, fmt.Errorf("the '#' is missing")
	} else {
		r.op, rest = rest[:i], rest[i:]
	}
	if r.op != opAny && !slices.Contains(allOps, r.op) {
		return nil, fmt.Errorf("the operation %q is not known", r.op)
	}
	if after, ok := strings.CutPrefix(rest, "["); ok {
		var part string
		if part, rest, ok = strings.Cut(after, "]"); !ok {
			return nil, fmt.Errorf("the ']' is missing")
		}
		r.part = strings.Split(part, "*")
	}
	rest, ok := strings.CutPrefix(rest, "#")
	which, what, ok2 := strings.Cut(rest, ":")
	if !ok || !ok2 {
		return nil, fmt.Errorf("the '#' or the ':' is missing")
	}
	if err := r.parseWhich(which); err != nil {
		return nil, err
	}
	var err error
	if r.fault, err = parseFault(what); err != nil {
		return nil, err
	}
	if r.op != opAny && !slices.Contains(meaning[r.fault.name], r.op) {
		return nil, fmt.Errorf("the fault %s has no meaning for %s", r.fault.name, r.op)
	}
	return r, nil
}

// parseWhich reads "*", "3", "3+", "3-5" or "%3".
func (r *rule) parseWhich(s string) error {
	var err error
	first, last, isRange := strings.Cut(s, "-")
	switch {
	case s == "*":
		return nil
	case strings.HasPrefix(s, "%"):
		r.every, err = number(s[1:])
	case strings.HasSuffix(s, "+"):
		r.from, err = number(s[:len(s)-1])
	case isRange:
		if r.from, err = number(first); err == nil {
			r.to, err = number(last)
		}
	default:
		r.from, err = number(s)
		r.to = r.from
	}
	if err == nil && r.to > 0 && r.to < r.from {
		err = fmt.Errorf("the range %q is empty", s)
	}
	return err
}

func number(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is no number from 1", s)
	}
	return n, nil
}

func fraction(s string) (float64, error) {
	p, err := strconv.ParseFloat(s, 64)
	if err == nil && !(p >= 0 && p <= 1) {
		err = fmt.Errorf("%q is not between 0 and 1", s)
	}
	return p, err
}

func parseFault(s string) (fault, error) {
	name, argument, given := strings.Cut(s, "=")
	f := fault{name: name, kind: hbackup.KindUnavailable, probability: 0.5, share: 0.5, count: 1, delay: 10 * time.Millisecond}
	if _, known := meaning[name]; !known {
		return f, fmt.Errorf("the fault %q is not known", name)
	}
	switch name {
	case "lost", "late":
		f.kind = hbackup.KindTimeout
	case "skew":
		f.delay = 20 * time.Minute
	}
	if !given {
		return f, nil
	}
	var err error
	switch name {
	case "fail", "lost", "half", "some":
		f.kind = hbackup.Kind(argument)
		if !slices.Contains(kinds, f.kind) {
			err = fmt.Errorf("the kind %q is not known", argument)
		}
	case "drop":
		f.probability, err = fraction(argument)
	case "reset":
		f.share, err = fraction(argument)
	case "truncate":
		f.count, err = strconv.Atoi(argument)
		if err == nil && f.count < 0 {
			err = fmt.Errorf("%q is no number of objects", argument)
		}
	case "late":
		f.count, err = number(argument)
	case "delay", "skew":
		f.delay, err = time.ParseDuration(argument)
	default:
		err = fmt.Errorf("the fault %s has no argument", name)
	}
	return f, err
}

// kinds that a store can give.
var kinds = []hbackup.Kind{
	hbackup.KindNotFound, hbackup.KindExists, hbackup.KindConflict, hbackup.KindBusy, hbackup.KindDenied,
	hbackup.KindUnavailable, hbackup.KindThrottled, hbackup.KindTimeout, hbackup.KindCorrupt, hbackup.KindIncomplete,
	hbackup.KindNoSpace, hbackup.KindReadOnly, hbackup.KindUnsupported, hbackup.KindInterrupted, hbackup.KindUsage,
}
