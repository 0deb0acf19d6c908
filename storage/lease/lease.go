// Package lease makes claims on a piece of work in a location: one owner at a
// time, with an expiry, over any number of hosts, on nothing but a store.
//
// A lease is the sequence of the objects leases/<name>/<generation>, numbered
// from 1 with 20 digits. The newest generation says who holds the lease and
// until when by the store's clock. Every change of the lease (acquire, renew,
// release) is the creation of the next generation, if absent. Of all who want
// to make it one wins; nothing is ever overwritten, so no answer that comes
// late and no listing that is stale makes two holders.
//
// Clocks of hosts do not matter: expiries are written in the store's time and
// compared with the store's time. What a holder measures with its own clock is
// only how long ago it asked the store, and it counts from before the question.
//
// Generations that nobody can need any more are deleted by later holders. That
// must wait: a contender that was held up between its look at the store and its
// create could otherwise create a generation a second time. So no operation
// takes longer than opWindow, by its own measure, and no generation is deleted
// before it is keepFor old.
package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"hbackup"
	"hbackup/storage"
)

const (
	prefix    = "leases/"
	opWindow  = time.Minute
	keepFor   = 10 * time.Minute
	maxRecord = 64 << 10
	version   = 1
)

// MinTTL and MaxTTL bound how long a lease may last without a renewal. Stores
// tell the time by the second.
const (
	MinTTL = 5 * time.Second
	MaxTTL = 24 * time.Hour
)

// ErrLost is in the chain of every error that means: this lease is no longer
// held, stop what depends on it.
var ErrLost = errors.New("the lease is lost")

// errReleased is why a lease is lost after Release.
var errReleased = errors.New("it was released")

// Holder is what the newest generation of a lease says.
type Holder struct {
	Name       string
	Generation int64
	Owner      string    // as given to Acquire; for people
	Acquired   time.Time // when this owner got it, store's time
	Expires    time.Time // store's time
	Released   bool      // given back by its owner
	record     record
}

// HeldAt reports whether the lease is held at a moment of the store's clock.
func (h Holder) HeldAt(storeTime time.Time) bool {
	return h.Generation > 0 && !h.Released && storeTime.Before(h.Expires)
}

// record is the content of a generation.
type record struct {
	Version  int       `json:"version"`
	Owner    string    `json:"owner"`
	Token    string    `json:"token"`    // of one Acquire: two with the same owner name stay apart
	Acquired time.Time `json:"acquired"` // store's time
	At       time.Time `json:"at"`       // store's time just before this generation was made
	Expires  time.Time `json:"expires"`
	Released bool      `json:"released,omitempty"`
}

func (r record) holder(name string, generation int64) Holder {
	return Holder{Name: name, Generation: generation, Owner: r.Owner, Acquired: r.Acquired, Expires: r.Expires, Released: r.Released, record: r}
}

func decode(data []byte) (record, error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return r, hbackup.E("decode lease", "", hbackup.KindCorrupt, err)
	}
	switch {
	case r.Version > version:
		return r, hbackup.Errorf("decode lease", "", hbackup.KindUnsupported, "it has version %d; this hbackup knows %d", r.Version, version)
	case r.Version < 1 || r.Token == "" || r.At.IsZero() || r.Expires.IsZero():
		return r, hbackup.Errorf("decode lease", "", hbackup.KindCorrupt, "fields are missing")
	}
	return r, nil
}

func folder(name string) string { return prefix + name + "/" }

func keyOf(name string, generation int64) storage.Key {
	return storage.Key(fmt.Sprintf("%s%020d", folder(name), generation))
}

// generationOf reads a generation out of a key; ok is false for what is none.
func generationOf(name string, key storage.Key) (generation int64, ok bool) {
	digits, found := strings.CutPrefix(string(key), folder(name))
	if !found || len(digits) != 20 {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && n > 0 && digits[0] == '0'
}
