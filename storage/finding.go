package storage

import "time"

// Finding is one thing that a look at a store has shown: of its settings, of what
// it can do beyond the contract, or of the rights that we have.
type Finding struct {
	Name    string // what was looked at, such as "versioning"
	Verdict Verdict
	Detail  string // a sentence for people
	Hint    string // what to do about it
	Err     error  // the failure behind it, if there was one
}

// Verdict says what a finding means for backups.
type Verdict string

const (
	Fine    Verdict = "fine"
	Without Verdict = "without" // the store cannot do it, and hbackup does not need it
	Caution Verdict = "caution" // backups are safe; it costs or risks something else
	Harmful Verdict = "harmful" // backups would not be safe
)

// Terms are what a store has to be good for.
type Terms struct {
	// LongestJob is how long a backup may take: what the store does by itself
	// with uploads and objects must not happen sooner.
	LongestJob time.Duration
	// Writable says that objects can be put and deleted; else nothing is tried out.
	Writable bool
	// Held says that uploads are held open for the whole of a job.
	Held bool
}

// Rights names, in the words of a store, what the methods of the contract take.
// An empty name stands for a right that the store does not know apart.
type Rights struct {
	List, Get, Put, Delete string
}
