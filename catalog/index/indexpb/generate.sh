#!/bin/sh
# Makes the Go code from index.proto.
set -e
cd "$(dirname "$0")"
command -v protoc-gen-go >/dev/null || PATH="$PATH:$(go env GOPATH)/bin"
protoc --proto_path=hbackup/catalog/index/indexpb=. --go_out=../../.. --go_opt=module=hbackup hbackup/catalog/index/indexpb/index.proto
