package rpc

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"hbackup/hbase/hbpb"
)

// raw is a connection without any of the client's care, to send what the client
// never sends.
type raw struct {
	t  *testing.T
	nc net.Conn
	id uint32
}

func dialBytes(t *testing.T, addr string, first []byte) *raw {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	must(t, err)
	t.Cleanup(func() { nc.Close() })
	_, err = nc.Write(first)
	must(t, err)
	return &raw{t: t, nc: nc}
}

func dialRaw(t *testing.T, addr, service string) *raw {
	t.Helper()
	header, err := proto.Marshal(&hbpb.ConnectionHeader{
		UserInfo:    &hbpb.UserInformation{EffectiveUser: proto.String("raw")},
		ServiceName: &service,
	})
	must(t, err)
	first := binary.BigEndian.AppendUint32([]byte("HBas\x00\x50"), uint32(len(header)))
	return dialBytes(t, addr, append(first, header...))
}

// send writes a call; without a parameter when req is nil.
func (r *raw) send(method string, req proto.Message) {
	r.t.Helper()
	r.id++
	header, err := proto.Marshal(&hbpb.RequestHeader{CallId: &r.id, MethodName: &method, RequestParam: proto.Bool(req != nil)})
	must(r.t, err)
	frame := append(protowire.AppendVarint(nil, uint64(len(header))), header...)
	if req != nil {
		b, err := proto.Marshal(req)
		must(r.t, err)
		frame = append(protowire.AppendVarint(frame, uint64(len(b))), b...)
	}
	_, err = r.nc.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
	if err != nil {
		r.t.Logf("write: %v", err)
	}
}

// receive gives the next answer, or an error when the connection ends or
// nothing comes within the time.
func (r *raw) receive(resp proto.Message, within time.Duration) (*hbpb.ResponseHeader, error) {
	r.t.Helper()
	must(r.t, r.nc.SetReadDeadline(time.Now().Add(within)))
	var size [4]byte
	if _, err := io.ReadFull(r.nc, size[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(r.nc, frame); err != nil {
		return nil, err
	}
	head, n := protowire.ConsumeBytes(frame)
	var h hbpb.ResponseHeader
	must(r.t, proto.Unmarshal(head, &h))
	if h.Exception == nil && resp != nil {
		body, _ := protowire.ConsumeBytes(frame[n:])
		must(r.t, proto.Unmarshal(body, resp))
	}
	return &h, nil
}

// call sends and receives; it gives the exception's class and text, or "".
func (r *raw) call(method string, req, resp proto.Message) string {
	r.t.Helper()
	r.send(method, req)
	h, err := r.receive(resp, 30*time.Second)
	must(r.t, err)
	if h.Exception == nil {
		return ""
	}
	text, _, _ := strings.Cut(h.Exception.GetStackTrace(), "\n\tat ")
	return h.Exception.GetExceptionClassName() + " | " + text
}
