package rpc

import (
	"context"

	"google.golang.org/protobuf/proto"

	"hbackup/hbase/hbpb"
)

// adminAttempts is small: a region server that is gone does not come back under
// the same name.
const adminAttempts = 3

// RollWAL asks a region server to close its write-ahead log and begin a new
// one. The server only notes the wish: the new file appears some milliseconds
// after the answer, so wait for it in the WAL directory.
func (c *Client) RollWAL(ctx context.Context, server ServerName) error {
	err := c.callAdmin(ctx, server, "RollWALWriter", &hbpb.RollWALWriterRequest{}, &hbpb.RollWALWriterResponse{}, callOptions{})
	return c.fail("roll write-ahead log of server", server.String(), err)
}

// callAdmin sends a call that does no harm when sent twice to one region server.
func (c *Client) callAdmin(ctx context.Context, server ServerName, method string, req, resp proto.Message, o callOptions) error {
	o.attempts = adminAttempts
	return c.repeat(ctx, method, o, func(ctx context.Context) (func(), error) {
		_, err := c.callServer(ctx, server, AdminService, method, req, resp, nil, o)
		return func() {}, err
	})
}
