// Package java carries what the test servers run on the JVM: the Maven project
// that names the jar sets (pom.xml), the one for tools that use S3 (peers.xml),
// our own Java sources, and those that drive parts of Hadoop to measure them.
package java

import "embed"

// Files holds pom.xml, peers.xml, log4j.properties, src/hbackup/e2e/*.java and
// peers/*.java.
//
//go:embed pom.xml peers.xml log4j.properties src/hbackup/e2e/*.java peers/*.java
var Files embed.FS
