// Package snapshot holds the tests of package hbase/snapshot against real
// servers: it reads the snapshots that HBase takes of tables in every state, and
// has HBase clone what was composed from them.
package snapshot
