package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// The part of ZooKeeper's client protocol that reading one node needs: frames
// of int32 length; a connect request and answer; getData; close. Everything is
// big-endian. Done here rather than by a library because a look-up must end
// with its context, must not leave goroutines, and must bound what it
// allocates whatever kind of server is at the address.

const (
	zkGetData     = 4
	zkClose       = -11
	zkNoNode      = -101
	zkNoAuth      = -102
	zkNeedSASL    = -124
	zkMaxFrame    = 4 << 20 // ZooKeeper's own limit for a node is 1 MiB
	zkSessionTime = 10 * time.Second
)

var errNoNode = errors.New("no such ZooKeeper node")

// zkGet opens a session with one server, reads one node and closes the session.
func zkGet(ctx context.Context, dial DialFunc, server, path string) (data []byte, err error) {
	nc, err := dial(ctx, "tcp", server)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer func() {
		if !stop() && err != nil {
			err = ctx.Err()
		}
	}()

	// protocol version, last zxid seen, session timeout in ms, session id, password, read-only
	connect := binary.BigEndian.AppendUint32(nil, 0)
	connect = binary.BigEndian.AppendUint64(connect, 0)
	connect = binary.BigEndian.AppendUint32(connect, uint32(zkSessionTime.Milliseconds()))
	connect = binary.BigEndian.AppendUint64(connect, 0)
	connect = appendZKString(connect, make([]byte, 16))
	connect = append(connect, 0)
	answer, err := zkExchange(nc, connect)
	if err != nil {
		return nil, fmt.Errorf("open ZooKeeper session: %w", err)
	}
	if err := checkZKConnect(answer); err != nil {
		return nil, err
	}

	// xid, opcode, path, watch
	get := binary.BigEndian.AppendUint32(nil, 1)
	get = binary.BigEndian.AppendUint32(get, zkGetData)
	get = appendZKString(get, []byte(path))
	get = append(get, 0)
	answer, err = zkExchange(nc, get)
	if err != nil {
		return nil, fmt.Errorf("read ZooKeeper node %s: %w", path, err)
	}
	data, err = parseZKData(answer, 1)

	opcode := int32(zkClose)
	bye := binary.BigEndian.AppendUint32(nil, 2)
	bye = binary.BigEndian.AppendUint32(bye, uint32(opcode))
	_ = zkWrite(nc, bye) // a session that is not closed ends by its timeout
	return data, err
}

func zkExchange(nc net.Conn, request []byte) ([]byte, error) {
	if err := zkWrite(nc, request); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(nc, size[:]); err != nil {
		if err == io.EOF {
			err = errors.New("the server closed the connection")
		}
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > zkMaxFrame {
		return nil, corruptf("a ZooKeeper answer of %d bytes; is this a ZooKeeper server?", n)
	}
	var body bytes.Buffer
	if _, err := io.CopyN(&body, nc, int64(n)); err != nil {
		return nil, noEOF(err)
	}
	return body.Bytes(), nil
}

func zkWrite(nc net.Conn, request []byte) error {
	_, err := nc.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...))
	return err
}

func appendZKString(b, s []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// checkZKConnect reads protocol version, timeout, session id.
func checkZKConnect(answer []byte) error {
	if len(answer) < 16 || binary.BigEndian.Uint32(answer) != 0 {
		return corruptf("the answer is not ZooKeeper's")
	}
	if binary.BigEndian.Uint64(answer[8:]) == 0 {
		return errors.New("ZooKeeper gave no session")
	}
	return nil
}

// parseZKData reads xid int32, zxid int64, error int32, then the data with its
// length in front; the node's statistics that follow are not used.
func parseZKData(answer []byte, xid int32) ([]byte, error) {
	if len(answer) < 16 || int32(binary.BigEndian.Uint32(answer)) != xid {
		return nil, corruptf("the answer is not ZooKeeper's")
	}
	switch code := int32(binary.BigEndian.Uint32(answer[12:])); code {
	case 0:
	case zkNoNode:
		return nil, errNoNode
	case zkNoAuth:
		return nil, errors.New("ZooKeeper denies reading the node")
	case zkNeedSASL:
		return nil, errors.New("ZooKeeper demands SASL authentication; use the masters' addresses instead")
	default:
		return nil, fmt.Errorf("ZooKeeper error %d", code)
	}
	body := answer[16:]
	if len(body) < 4 {
		return nil, corruptf("ZooKeeper node without a length")
	}
	n := int32(binary.BigEndian.Uint32(body))
	if n < 0 {
		return nil, nil // a node without data
	}
	if int64(n) > int64(len(body)-4) {
		return nil, corruptf("ZooKeeper node of %d bytes in %d", n, len(body)-4)
	}
	return body[4 : 4+n], nil
}
