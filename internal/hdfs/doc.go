// Package hdfs is a client of HDFS without a JVM, for HBase's root and for
// backups alike. The protocol is that of a library; around it are the things
// that the library lacks: time limits and contexts, fail-over, errors with kinds
// and hints, bytes that are verified before they are given out, and the refusal
// of files whose bytes it would get wrong.
package hdfs
