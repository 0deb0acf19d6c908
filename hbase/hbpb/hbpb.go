// Package hbpb holds the protocol buffer messages that hbackup exchanges with
// HBase and finds in HBase's files: only the messages and fields it uses, under
// a protobuf package name of its own, so that it can live in one binary with
// another HBase client. Field numbers and types are HBase's (2.4 to 3.0 agree
// on all of them); unknown fields are kept when a message is read and written
// again.
//
// The Go code is made from the .proto files beside it by "go generate", which
// needs protoc (Debian: protobuf-compiler) and
//
//	go install google.golang.org/protobuf/cmd/protoc-gen-go
package hbpb

//go:generate ./generate.sh
