package check

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"hbackup"
	"hbackup/catalog"
	"hbackup/committer"
	"hbackup/storage"
)

// Inspector is a store that can say more of itself than the contract asks for.
type Inspector interface {
	// Inspect looks at what the store's settings would do to backups and at what
	// it can do beyond the contract. It may try things out below the prefix, a
	// folder of the location that ends in '/'.
	Inspect(ctx context.Context, prefix string, terms storage.Terms) []storage.Finding

	// Sweep removes what is left below the prefix when its objects are deleted:
	// uploads that are held, older versions. The error says what stays.
	Sweep(ctx context.Context, prefix string) error

	// Rights names what is needed.
	Rights() storage.Rights
}

// TargetOptions say how a location is tried.
type TargetOptions struct {
	Full     bool          // all cases of the suite, not the short selection
	NoSuite  bool          // look at rights and settings only
	PartSize int64         // bytes from which the store sends an object in parts; 0: it does not
	Longest  time.Duration // how long a backup may take; default DefaultLongest
	Init     bool          // try the location although it holds other data, and make it ours if it is safe
	// Committer is what the configuration asks for.
	Committer committer.Protocol
	Writer    string // version of hbackup, for the marker
	// Expect is told how many trials there are to come, Done when one is over.
	Expect, Done func(n int)
}

// DefaultLongest is the longest backup that is reckoned with.
const DefaultLongest = 24 * time.Hour

// refusedSkew is from where on S3 refuses requests.
const refusedSkew = 15 * time.Minute

// TargetReport is what is known of a location after the trial.
type TargetReport struct {
	Items     []Item
	Committer Committer
	// Left says what the trial wrote and could not remove, "" when nothing is left.
	Left string
}

// Committer is how images would be committed there, and why.
type Committer struct {
	Name committer.Protocol `json:"name"`
	Why  string             `json:"why"`
}

// Target tries a location out: whose it is, the rights, the store's settings, and
// the conformance suite. It writes only below a random prefix, which it clears
// away, also when the context ends in between. An error means that nothing could
// be tried: the location cannot be reached, or may be somebody else's.
func Target(ctx context.Context, s storage.Store, o TargetOptions) (TargetReport, error) {
	t := newTrial(s, o)
	marker, err := t.whose(ctx)
	if err != nil {
		return TargetReport{}, err
	}
	clockErr := t.clock(ctx)
	if clockErr != nil {
		return TargetReport{}, clockErr
	}
	t.chooseCommitter(ctx)
	writable := t.rights(ctx)
	t.inspect(ctx, writable)
	if writable && !o.NoSuite {
		t.suite(ctx)
	}
	left := t.clear(ctx)
	if ctx.Err() != nil {
		return TargetReport{Left: left}, hbackup.E("try out", string(s.Location()), hbackup.KindOther, context.Cause(ctx))
	}
	if worst, _ := Worst(t.items); worst != Failed && o.Init && marker == nil {
		m, err := catalog.EnsureMarker(ctx, s, o.Writer, true)
		if err != nil {
			return TargetReport{Items: t.items, Left: left}, err
		}
		t.items[0].Detail = fmt.Sprintf("%s, location id %s: it is hbackup's from now on", s.Location(), m.ID)
	}
	return TargetReport{Items: t.items, Committer: Committer{t.choice.Protocol, t.choice.Reason}, Left: left}, nil
}

// trial is one run of Target.
type trial struct {
	list
	s         storage.Store
	inspector Inspector // nil for a store that is none
	o         TargetOptions
	prefix    string // ends in '/'
	choice    committer.Choice
	locked    bool // what is written cannot be deleted again
	lacking   bool // a right of uploads is missing
	wrote     bool
}

func newTrial(s storage.Store, o TargetOptions) *trial {
	if o.Longest == 0 {
		o.Longest = DefaultLongest
	}
	if o.Expect == nil {
		o.Expect = func(int) {}
	}
	if o.Done == nil {
		o.Done = func(int) {}
	}
	t := &trial{s: s, o: o, prefix: catalog.ProbePrefix + strings.ToLower(rand.Text()) + "/"}
	t.inspector, _ = storage.As[Inspector](s)
	return t
}

// names gives the rights in the store's words, or in ours.
func (t *trial) names() storage.Rights {
	if t.inspector != nil {
		return t.inspector.Rights()
	}
	return storage.Rights{List: "list", Get: "read", Put: "write", Delete: "delete"}
}

// whose finds out whether the location may be written to.
func (t *trial) whose(ctx context.Context) (*catalog.Marker, error) {
	at := string(t.s.Location())
	marker, err := catalog.Examine(ctx, t.s)
	switch {
	case t.o.Init && hbackup.IsKind(err, hbackup.KindRefused):
		t.ok("location", at+" holds other data; it is tried, as --init says")
	case hbackup.IsKind(err, hbackup.KindDenied):
		n := t.names()
		return nil, hbackup.E("", "", hbackup.KindDenied, err).
			WithHint("%s (the rights to look into the location are %s and %s)", hbackup.HintOf(err), n.List, n.Get)
	case err != nil:
		return nil, err
	case marker == nil:
		t.ok("location", at+" is empty")
	default:
		t.ok("location", fmt.Sprintf("%s, location id %s, format %d", at, marker.ID, marker.Format))
	}
	return marker, nil
}

// clock compares the store's with this machine's.
func (t *trial) clock(ctx context.Context) error {
	before := time.Now()
	theirs, err := t.s.ServerTime(ctx)
	if err = unfit(t.s, err); hbackup.IsKind(err, hbackup.KindRefused) {
		t.fail("clock", err) // a file system tells the time by a new file
		return nil
	}
	if err != nil {
		return err
	}
	now := before.Add(time.Since(before) / 2)
	switch skew := theirs.Sub(now).Abs(); {
	case skew >= refusedSkew:
		t.fail("clock", hbackup.Errorf("compare the clock of", string(t.s.Location()), hbackup.KindRefused,
			"it says %s, this machine's %s", hbackup.FormatTime(theirs), hbackup.FormatTime(now)).
			WithHint("set the wrong clock (NTP): requests are refused from %s on", hbackup.FormatDuration(refusedSkew)))
	case skew > MaxSkew:
		t.warn("clock", fmt.Sprintf("the store's says %s, this machine's %s", hbackup.FormatTime(theirs), hbackup.FormatTime(now)), "set the wrong clock (NTP)")
	default:
		t.ok("clock", "agrees with this machine's within "+hbackup.FormatDuration(MaxSkew))
	}
	return nil
}

// chooseCommitter finds out how images would be committed.
func (t *trial) chooseCommitter(ctx context.Context) {
	var err error
	if t.choice, err = committer.Choose(ctx, t.s, t.o.Committer); err != nil {
		t.fail("committer", err)
	} else if t.choice.Unsure() {
		t.warn("committer", string(t.choice.Protocol)+": "+t.choice.Reason, "grant the right, or set the committer of the location to direct or deferred")
	} else {
		t.ok("committer", string(t.choice.Protocol)+": "+t.choice.Reason)
	}
	p, _, err := storage.PermanenceOf(ctx, t.s)
	t.locked = err == nil && p == storage.Locked
}

// inspect adds what the store says of itself.
func (t *trial) inspect(ctx context.Context, writable bool) {
	if t.inspector == nil {
		return
	}
	for _, f := range t.inspector.Inspect(ctx, t.prefix, storage.Terms{LongestJob: t.o.Longest, Writable: writable, Held: t.choice.Protocol == committer.ProtocolDeferred}) {
		item := Item{Name: f.Name, Detail: f.Detail, Hint: f.Hint, Err: f.Err}
		t.lacking = t.lacking || hbackup.IsKind(f.Err, hbackup.KindDenied)
		switch f.Verdict {
		case storage.Harmful:
			item.Status = Failed
			if item.Err == nil {
				item.Err = hbackup.Errorf("use", string(t.s.Location()), hbackup.KindRefused, "%s: %s", f.Name, f.Detail)
			}
		case storage.Caution:
			item.Status = Warning
		case storage.Without:
			item.Status = Absent
		default:
			item.Status = OK
		}
		t.items = append(t.items, item)
	}
}
