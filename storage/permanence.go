package storage

import "context"

// Permanence is what becomes of an object that is deleted.
type Permanence string

const (
	// Deletable objects are gone once deleted, at the latest after days that the
	// store counts by itself.
	Deletable Permanence = "deletable"
	// Versioned objects are hidden by a deletion and kept as an older version.
	Versioned Permanence = "versioned"
	// Locked objects cannot be deleted before their time.
	Locked Permanence = "locked"
	// PermanenceUnknown is said by a store that may not look, or does not answer.
	PermanenceUnknown Permanence = "unknown"
)

// Keeps reports that an object which nobody wants would stay all the same.
func (p Permanence) Keeps() bool { return p == Versioned || p == Locked }

// Keeper is a store that can say what becomes of deleted objects. The reason is
// a sentence for people, such as "versioning is enabled on the bucket"; it may be
// empty. That the store does not let us look is no error: the answer is then
// PermanenceUnknown, and the reason names the right that is missing.
type Keeper interface {
	Permanence(ctx context.Context) (p Permanence, reason string, err error)
}

// PermanenceOf asks the store. One that is no Keeper has objects that can be
// deleted.
func PermanenceOf(ctx context.Context, s Store) (Permanence, string, error) {
	if k, ok := s.(Keeper); ok {
		return k.Permanence(ctx)
	}
	return Deletable, "", nil
}
