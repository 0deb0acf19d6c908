// Package java carries what the test servers run on the JVM: the Maven project
// that names the jar sets (pom.xml), the one for tools that use S3 (peers.xml) and
// our own Java sources.
package java

import "embed"

// Files holds pom.xml, peers.xml, log4j.properties and src/hbackup/e2e/*.java.
//
//go:embed pom.xml peers.xml log4j.properties src/hbackup/e2e/*.java
var Files embed.FS
