// Package rpc talks to a running HBase (2.4 to 3.0) in HBase's own wire
// protocol: it finds the servers, keeps one multiplexed connection per address
// and service, repeats what may be repeated, and offers the calls that backup,
// restore and log capture need.
//
// A Client is made by Dial and is safe for concurrent use. Its methods are
// grouped by subject, one file each: cluster.go, namespaces.go, tables.go,
// snapshots.go, restore.go, procedures.go, peers.go, wal.go, regions.go,
// meta.go, scan.go, get.go, put.go, switches.go.
//
// Every method returns a *hbackup.Error whose cause, when the server said no,
// is a *RemoteError with the server's exception class. Calls that change
// something are sent with a nonce where HBase knows one, so that a repetition
// after a lost connection is the same procedure; where HBase knows none, the
// method either recognises its own earlier success or reports that the outcome
// is unknown.
package rpc
