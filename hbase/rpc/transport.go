package rpc

import (
	"context"
	"net"
	"syscall"
	"time"
)

// silentPeer is how long a host may leave our packets unacknowledged before its
// connections are given up.
const silentPeer = 30 * time.Second

func dialTCP(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{
			Enable:   true,
			Idle:     silentPeer / 2,
			Interval: silentPeer / 6,
			Count:    3,
		},
		Control: func(_, _ string, raw syscall.RawConn) error {
			return raw.Control(limitUnacknowledged)
		},
	}
	return d.DialContext(ctx, network, address)
}
