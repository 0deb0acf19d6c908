//go:build !linux

package rpc

func limitUnacknowledged(uintptr) {}
