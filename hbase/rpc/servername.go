package rpc

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"hbackup/hbase/hbpb"
)

// ServerName names one life of one HBase server: a restarted server has the
// same address and another start code.
type ServerName struct {
	Host      string
	Port      int
	StartCode int64 // ms since 1970; 0 when not known
}

// Addr gives host:port.
func (s ServerName) Addr() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// String gives HBase's own form, "host,port,startcode", as in WAL directories.
func (s ServerName) String() string {
	return s.Host + "," + strconv.Itoa(s.Port) + "," + strconv.FormatInt(s.StartCode, 10)
}

// IsZero reports whether no server is named.
func (s ServerName) IsZero() bool { return s == ServerName{} }

// ParseServerName reads HBase's form "host,port,startcode".
func ParseServerName(text string) (ServerName, error) {
	parts := strings.Split(text, ",")
	if len(parts) != 3 || parts[0] == "" {
		return ServerName{}, fmt.Errorf("%q is not a server name (form: host,port,startcode)", text)
	}
	port, err := strconv.ParseUint(parts[1], 10, 16)
	if err != nil || port == 0 {
		return ServerName{}, fmt.Errorf("server name %q: bad port", text)
	}
	start, err := strconv.ParseUint(parts[2], 10, 63)
	if err != nil {
		return ServerName{}, fmt.Errorf("server name %q: bad start code", text)
	}
	return ServerName{parts[0], int(port), int64(start)}, nil
}

func serverName(s *hbpb.ServerName) (ServerName, error) {
	if s.GetHostName() == "" || s.GetPort() == 0 || s.GetPort() > 65535 {
		return ServerName{}, corruptf("server name without host or port")
	}
	return ServerName{s.GetHostName(), int(s.GetPort()), int64(s.GetStartCode())}, nil
}

func (s ServerName) proto() *hbpb.ServerName {
	port, start := uint32(s.Port), uint64(s.StartCode)
	return &hbpb.ServerName{HostName: &s.Host, Port: &port, StartCode: &start}
}

// serverNames leaves out entries that name no server.
func serverNames(in []*hbpb.ServerName) []ServerName {
	var out []ServerName
	for _, s := range in {
		if n, err := serverName(s); err == nil {
			out = append(out, n)
		}
	}
	return out
}
