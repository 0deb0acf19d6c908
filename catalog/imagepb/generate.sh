#!/bin/sh
# Makes the Go code from image.proto.
set -e
cd "$(dirname "$0")"
command -v protoc-gen-go >/dev/null || PATH="$PATH:$(go env GOPATH)/bin"
protoc --proto_path=hbackup/catalog/imagepb=. --go_out=../.. --go_opt=module=hbackup hbackup/catalog/imagepb/image.proto
