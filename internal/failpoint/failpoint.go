// Package failpoint lets tests end the process at a named step, as kill -9
// would, hold it there until something has happened, or shorten a time that a
// test would have to wait for. In an ordinary build every function is empty; the
// build tag "failpoints" brings them to life.
package failpoint

// Step names a point between two steps of a verb, such as "backup.snapshot-taken".
type Step string
