package rpc

import "syscall"

// limitUnacknowledged bounds the time that sent bytes may stay unacknowledged.
// Keep-alive probes alone do not find a dead host while data is under way.
func limitUnacknowledged(fd uintptr) {
	const tcpUserTimeout = 0x12 // TCP_USER_TIMEOUT of linux/tcp.h
	// Best effort: without it a dead host is found later, by the calls' own deadlines.
	_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(silentPeer.Milliseconds()))
}
