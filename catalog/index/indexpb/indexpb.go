// Package indexpb holds the messages of which the index is made. The Go code is
// made from index.proto by "go generate".
package indexpb

//go:generate ./generate.sh
