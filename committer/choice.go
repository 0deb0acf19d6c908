package committer

import (
	"context"
	"fmt"

	"hbackup"
	"hbackup/storage"
)

// Protocol names a committer. The zero value means Auto.
type Protocol string

const (
	// Auto is Deferred where an object that nobody wants could not be deleted
	// again and the store can hold uploads, and Direct everywhere else.
	Auto Protocol = "auto"
	// ProtocolDirect puts every file under its final key at once.
	ProtocolDirect Protocol = "direct"
	// ProtocolDeferred holds every file as an upload until the commit.
	ProtocolDeferred Protocol = "deferred"
)

// Choice is the committer for a location, and why it is this one.
type Choice struct {
	Protocol   Protocol           // ProtocolDirect or ProtocolDeferred
	Permanence storage.Permanence // "" where it did not matter and was not asked for
	Reason     string             // a sentence for people
}

// Choose picks the committer that a location gets. It writes nothing. Deferred,
// when it is asked for and the store cannot hold uploads, is KindUnsupported.
func Choose(ctx context.Context, s storage.Store, want Protocol) (Choice, error) {
	_, holds := storage.HolderOf(s)
	switch {
	case want == ProtocolDirect:
		return Choice{Protocol: ProtocolDirect, Reason: "the configuration says so"}, nil
	case want == ProtocolDeferred && !holds:
		return Choice{}, hbackup.Errorf("choose committer", string(s.Location()), hbackup.KindUnsupported,
			"the committer deferred needs a store that can hold uploads, and this one cannot").
			WithHint("set committer to auto or direct")
	case !holds:
		return Choice{Protocol: ProtocolDirect, Reason: "objects of this kind of store can be deleted"}, nil
	case want != Auto && want != "" && want != ProtocolDeferred:
		return Choice{}, hbackup.Errorf("choose committer", string(s.Location()), hbackup.KindUsage, "there is no committer %q", string(want))
	}
	p, why, err := storage.PermanenceOf(ctx, s)
	c := Choice{Protocol: ProtocolDirect, Permanence: p}
	switch {
	case want == ProtocolDeferred:
		// What becomes of deleted objects decides only how job records are closed.
		c.Protocol, c.Reason = ProtocolDeferred, "the configuration says so"
		return c, nil
	case err != nil:
		return Choice{}, hbackup.E("choose committer", string(s.Location()), hbackup.KindOther, err)
	case p.Keeps():
		c.Protocol, c.Reason = ProtocolDeferred, "objects could not be deleted again: "+why
	case p == storage.PermanenceUnknown:
		c.Reason = "it is not known whether objects can be deleted: " + why
	case why != "":
		c.Reason = fmt.Sprintf("objects can be deleted (%s)", why)
	default:
		c.Reason = "objects can be deleted"
	}
	return c, nil
}

// Unsure reports that the store does not say what the choice should rest on.
func (c Choice) Unsure() bool { return c.Permanence == storage.PermanenceUnknown }

// For gives the committer of one image. The folder, which ends in '/', is where
// Deferred keeps the job record of its uploads.
func (c Choice) For(s storage.Store, folder string) (Committer, error) {
	if c.Protocol != ProtocolDeferred {
		return NewDirect(s), nil
	}
	h, holds := storage.HolderOf(s)
	if !holds {
		return nil, hbackup.Errorf("choose committer", string(s.Location()), hbackup.KindUnsupported, "the store cannot hold uploads")
	}
	return NewDeferred(s, h, folder, c.Permanence.Keeps()), nil
}
