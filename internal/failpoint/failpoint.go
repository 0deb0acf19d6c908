// Package failpoint lets tests end the process at a named step, as kill -9
// would. In an ordinary build every function is empty; the build tag
// "failpoints" brings them to life.
package failpoint

// Step names a point between two steps of a verb, such as "backup.snapshot-taken".
type Step string
