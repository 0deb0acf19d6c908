// Package webhdfs is a client of HDFS over HTTP: WebHDFS of the name nodes and
// data nodes, or an HttpFS gateway. There a Java client on the server's side reads
// and writes the blocks, so it goes where package hdfs cannot: into encryption
// zones, into erasure-coded directories, and through firewalls that let only HTTP
// pass. It has the same methods.
//
// On the way to and from a data node only TCP and TLS guard the bytes: WebHDFS has
// no checksum there. Lengths are compared.
package webhdfs
