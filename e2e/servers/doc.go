// Package servers starts and stops real servers for tests, demonstrations and
// trying things out: HDFS and HBase on the JVM, and an S3 gateway. Nothing has
// to be installed but java, mvn and go: jars and the gateway come from pinned
// versions and are kept in a cache outside the tree (see Prepare).
//
// Everything works without *testing.T: functions take a context and return
// errors, and whatever was started has Stop and Kill. Every server listens on
// 127.0.0.1 at a port of its own choice, keeps its files below one temporary
// directory and ends with the process that started it, however that one ends.
//
// What HBase's own Java client says is the ground truth of the tests. It runs
// beside the servers and is driven from Go through Cluster's methods: CreateTable,
// Load, Flush, Split, Snapshot, Dump and so on. None of it uses hbackup's own
// RPC client.
package servers
