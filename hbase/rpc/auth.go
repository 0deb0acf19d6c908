package rpc

import (
	"context"
	"net"

	"hbackup/hbase/hbpb"
)

// Service is one of HBase's RPC services. A connection speaks to exactly one.
type Service string

// The services that the client uses.
const (
	MasterService     Service = "MasterService"
	AdminService      Service = "AdminService"
	ClientService     Service = "ClientService"
	ClientMetaService Service = "ClientMetaService"
)

// Peer is the other end of a connection that is being opened.
type Peer struct {
	Addr    string // host:port
	Service Service
}

// Authenticator opens a connection: it sends the preamble with its
// authentication byte and carries out what the server then expects, up to the
// point where the connection header follows. It returns the connection to go on
// with, which may wrap nc (to seal every byte, or to recognise a late refusal).
// The context's deadline is already set on nc.
type Authenticator interface {
	Authenticate(ctx context.Context, nc net.Conn, peer Peer) (net.Conn, error)

	// UserInfo goes into the connection header; nil sends none, which means the
	// authenticated user itself.
	UserInfo() *hbpb.UserInformation
}

// Simple is HBase's trusting authentication: the server believes the name.
type Simple struct{ User string }

const (
	preamble   = "HBas\x00" // magic and version
	authSimple = 0x50
)

// Authenticate sends the preamble; the server answers nothing.
func (s Simple) Authenticate(_ context.Context, nc net.Conn, _ Peer) (net.Conn, error) {
	_, err := nc.Write(append([]byte(preamble), authSimple))
	return nc, err
}

// UserInfo names the user.
func (s Simple) UserInfo() *hbpb.UserInformation {
	return &hbpb.UserInformation{EffectiveUser: &s.User}
}
