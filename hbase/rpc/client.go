package rpc

import (
	"context"
	"errors"
	"sync"
	"time"

	"hbackup"
)

// Client is a connection to one cluster. It is safe for concurrent use; Close
// ends it.
type Client struct {
	cfg      Config
	pool     *pool
	registry registry
	wait     backoff

	clusterID string

	mu      sync.Mutex
	master  ServerName // where the active master was seen last; zero: look
	meta    ServerName // where hbase:meta was seen last; zero: look
	version Version    // of the master; zero: ask
}

// Dial makes a Client and contacts the cluster's registry once, so that a wrong
// address or a cluster that is down is known at once. It does not wait for a
// master. Errors: usage for a bad configuration, unavailable and denied.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := newClient(cfg)
	id, err := c.registry.clusterID(ctx)
	if err != nil {
		c.Close()
		return nil, c.fail("reach HBase through", c.cfg.registryName(), err)
	}
	c.clusterID = id
	return c, nil
}

func newClient(cfg Config) *Client {
	c := &Client{cfg: cfg, wait: defaultBackoff}
	c.pool = newPool(&c.cfg)
	if len(cfg.Bootstrap) > 0 {
		c.registry = &bootstrapRegistry{
			pool:  c.pool,
			addrs: append([]string(nil), cfg.Bootstrap...),
			timeout: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, c.cfg.ConnectTimeout)
			},
		}
	} else {
		c.registry = &zkRegistry{cfg: &c.cfg, servers: append([]string(nil), cfg.ZooKeeper...)}
	}
	return c
}

// Close ends all connections. Calls under way fail with KindInterrupted.
// It may be called more than once.
func (c *Client) Close() error {
	c.pool.close()
	return nil
}

// ClusterID is the id that the cluster gave itself when it was made; it tells
// one cluster from another behind the same addresses.
func (c *Client) ClusterID() string { return c.clusterID }

// findMaster gives the active master, asking the registry when none is remembered.
func (c *Client) findMaster(ctx context.Context) (ServerName, error) {
	c.mu.Lock()
	master := c.master
	c.mu.Unlock()
	if !master.IsZero() {
		return master, nil
	}
	master, err := c.registry.activeMaster(ctx)
	if err != nil {
		return ServerName{}, err
	}
	c.mu.Lock()
	c.master = master
	c.mu.Unlock()
	return master, nil
}

// forgetMaster makes the next call look for the master again, and ask for its
// version: the next master may run another one.
func (c *Client) forgetMaster(seen ServerName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.master == seen {
		c.master, c.version = ServerName{}, Version{}
	}
}

func (c *Client) findMeta(ctx context.Context) (ServerName, error) {
	c.mu.Lock()
	meta := c.meta
	c.mu.Unlock()
	if !meta.IsZero() {
		return meta, nil
	}
	meta, err := c.registry.metaServer(ctx)
	if err != nil {
		return ServerName{}, err
	}
	c.mu.Lock()
	c.meta = meta
	c.mu.Unlock()
	return meta, nil
}

func (c *Client) forgetMeta(seen ServerName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.meta == seen {
		c.meta = ServerName{}
	}
}

// sleep waits or gives the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// outcomeUnknown wraps the loss of a call that must not be sent twice.
func outcomeUnknown(err error) error {
	var lost *ConnError
	if errors.As(err, &lost) && lost.sent() && lost.kind() != hbackup.KindInterrupted {
		return hbackup.E("", "", hbackup.KindTimeout, err).
			WithHint("the server may have carried it out: look at the real state before trying again")
	}
	return err
}
