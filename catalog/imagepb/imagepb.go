// Package imagepb holds the messages of which an image manifest is made. The Go
// code is made from image.proto by "go generate", as that of hbase/hbpb is.
package imagepb

//go:generate ./generate.sh
