package rpc

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"time"

	"hbackup"
)

// DialFunc opens a transport connection to "host:port". A TLS client plugs in here.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Config says how to reach one cluster. Either ZooKeeper or Bootstrap must be
// set; with both, Bootstrap is used. The other zero values have defaults.
type Config struct {
	ZooKeeper   []string // quorum, "host:port" or "host" (port 2181)
	ZNodeParent string   // default "/hbase"
	Bootstrap   []string // "host:port" of masters, or of region servers from 2.5 on

	Dialer DialFunc      // to HBase's servers, not to ZooKeeper; default: TCP
	Auth   Authenticator // default: Simple with User
	User   string        // effective user of the default Auth; default "hbackup"

	ConnectTimeout   time.Duration // opening one connection; default 10 s
	CallTimeout      time.Duration // one ordinary call; default 60 s
	SlowCallTimeout  time.Duration // a call that may wait for a table lock; default 5 min
	RetryFor         time.Duration // how long a call is repeated while servers are away; default 2 min
	BusyFor          time.Duration // how long a snapshot waits for another of its table; default 5 min
	ProcedureTimeout time.Duration // waiting for a procedure of the master; default 30 min
	MaxFrame         int           // largest answer accepted, in bytes; default 256 MiB

	Log *slog.Logger // default: nothing is logged
}

const maxRequest = 250 << 20 // servers end the connection above 256 MiB without reading on

func (c Config) withDefaults() Config {
	if c.ZNodeParent == "" {
		c.ZNodeParent = "/hbase"
	}
	if c.User == "" {
		c.User = "hbackup"
	}
	if c.Auth == nil {
		c.Auth = Simple{User: c.User}
	}
	if c.Dialer == nil {
		c.Dialer = dialTCP
	}
	setDefault(&c.ConnectTimeout, 10*time.Second)
	setDefault(&c.CallTimeout, time.Minute)
	setDefault(&c.SlowCallTimeout, 5*time.Minute)
	setDefault(&c.RetryFor, 2*time.Minute)
	setDefault(&c.BusyFor, 5*time.Minute)
	setDefault(&c.ProcedureTimeout, 30*time.Minute)
	if c.MaxFrame <= 0 {
		c.MaxFrame = 256 << 20
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

func setDefault(d *time.Duration, v time.Duration) {
	if *d <= 0 {
		*d = v
	}
}

func (c Config) validate() error {
	const op = "configure HBase client"
	if len(c.ZooKeeper) == 0 && len(c.Bootstrap) == 0 {
		return hbackup.Errorf(op, "", hbackup.KindUsage, "neither a ZooKeeper quorum nor master addresses are given").
			WithHint("name the cluster's masters, or its ZooKeeper servers")
	}
	for _, a := range c.Bootstrap {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return hbackup.Errorf(op, a, hbackup.KindUsage, "not of the form host:port")
		}
	}
	for _, a := range c.ZooKeeper {
		if a == "" || strings.ContainsAny(a, "/, ") {
			return hbackup.Errorf(op, a, hbackup.KindUsage, "%q is not one ZooKeeper server (form: host:port)", a)
		}
	}
	if p := c.ZNodeParent; !strings.HasPrefix(p, "/") || len(p) > 1 && strings.HasSuffix(p, "/") {
		return hbackup.Errorf(op, p, hbackup.KindUsage, "the znode parent must start with / and not end with it")
	}
	return nil
}

// registryName is how the place of discovery is named in errors.
func (c Config) registryName() string {
	if len(c.Bootstrap) > 0 {
		return strings.Join(c.Bootstrap, ",")
	}
	return "zookeeper " + strings.Join(c.ZooKeeper, ",") + c.ZNodeParent
}
